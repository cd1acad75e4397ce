//! `SharedIndex`: one index for many threads; searches go on while nodes are changed.
//!
//! Changes wait for each other. A change takes the index for itself only for the moments in which
//! it writes; what takes long, such as finding the neighbours of new nodes, only looks at it, beside
//! the searches. A search sees the index between two steps of a change: whole, with some of the
//! nodes of a batch and not yet the others.
//!
//! What reads for long, such as a slice of a batch of queries, passes a door of its own. A change
//! closes that door and waits there, beside the searches, until nobody reads for long; only then it
//! asks for the index, and waits for single searches alone. So no search queues behind a change that
//! waits for something longer than a search, and no change waits longer than a slice.

#[cfg(test)]
mod interleavings;
#[cfg(test)]
mod test_locks;

use std::mem;
use std::sync::PoisonError;
#[cfg(not(test))]
use std::sync::{Mutex, RwLock};

#[cfg(test)]
use test_locks::{Mutex, RwLock};

use crate::columns::NewNode;
use crate::error::{Error, Result};
use crate::filter::Filter;
use crate::id::NodeId;
use crate::index::TemporalIndex;
use crate::index::changes::{self, Access};
use crate::query::nearest::{Neighbor, batched};

/// Vectors of a slice, for each thread that looks at it: some 20 ms of searches.
const SLICE: usize = 256;

/// An index that threads share.
///
/// ```
/// use cvx_index::{EntityId, Filter, IndexParams, NewNode, SharedIndex, TemporalIndex};
///
/// # fn main() -> cvx_index::Result<()> {
/// let index = SharedIndex::new(TemporalIndex::new(IndexParams::new(2))?);
/// let rows: Vec<[f32; 2]> = (0..100).map(|turn| [turn as f32, 1.0]).collect();
/// let nodes: Vec<NewNode> = (0..).zip(&rows)
///     .map(|(time, row)| NewNode::new(EntityId(1), time, Some(row)))
///     .collect();
/// std::thread::scope(|scope| {
///     let writer = scope.spawn(|| index.bulk_insert(&nodes, 1));
///     // Meanwhile: whole, with some of the nodes or all of them.
///     index.read(|index| index.search(&[1.0, 0.0], 5, None, &Filter::default()))?;
///     writer.join().expect("no panic").map(drop)
/// })?;
/// assert_eq!(index.read(|index| Ok(index.len()))?, 100);
/// # Ok(())
/// # }
/// ```
pub struct SharedIndex {
    /// Held by whoever changes the index, from the first step to the last.
    order: Mutex<()>,
    /// The door of those who read for long: passed one by one, and closed by a change that waits. The
    /// lock behind it is no such door: a slice that ends would have the next one in before the
    /// change has woken.
    door: Mutex<()>,
    long: RwLock<()>,
    index: RwLock<TemporalIndex>,
}

/// The steps of someone who holds the order.
struct Steps<'a>(&'a SharedIndex);

impl<T> From<PoisonError<T>> for Error {
    fn from(_: PoisonError<T>) -> Self {
        Error::Poisoned
    }
}

impl Access for Steps<'_> {
    fn look<T>(&mut self, look: impl FnOnce(&TemporalIndex) -> T) -> Result<T> {
        Ok(look(&*self.0.index.read()?))
    }

    fn change<T>(&mut self, change: impl FnOnce(&mut TemporalIndex) -> T) -> Result<T> {
        let closed = self.0.door.lock()?;
        let _nobody_reads_for_long = self.0.long.write()?;
        drop(closed);
        Ok(change(&mut *self.0.index.write()?))
    }

    /// Beside the searches: a change alone would copy the tables first where they are mapped or
    /// full, and let nobody in.
    fn make_room(&mut self, rows: usize) -> Result<()> {
        let (vectors, links) =
            self.look(|index| (index.vectors.roomy(rows), index.links.roomy(rows)))?;
        if vectors.is_none() && links.is_none() {
            return Ok(());
        }
        let before = self.change(|index| {
            (
                vectors.map(|vectors| mem::replace(&mut index.vectors, vectors)),
                links.map(|links| mem::replace(&mut index.links, links)),
            )
        })?;
        // What was there is given back after the searches were let in again.
        drop(before);
        Ok(())
    }
}

impl SharedIndex {
    /// Shares an index.
    #[must_use]
    pub fn new(index: TemporalIndex) -> Self {
        SharedIndex {
            order: Mutex::new(()),
            door: Mutex::new(()),
            long: RwLock::new(()),
            index: RwLock::new(index),
        }
    }

    /// Asks the index something that takes no longer than a search, beside other readers and
    /// between the steps of a change.
    ///
    /// # Errors
    /// Those of `ask`; here and below [`Error::Poisoned`] after a change broke off half way, and
    /// [`Error::Corrupted`] after rows of a snapshot were read that are not what was written.
    pub fn read<T>(&self, ask: impl FnOnce(&TemporalIndex) -> Result<T>) -> Result<T> {
        self.tell(|index| {
            let answer = ask(index)?;
            index.undamaged()?;
            Ok(answer)
        })
    }

    /// [`read`](Self::read) for what rows have no part in: answered by a damaged index too.
    ///
    /// # Errors
    /// Those of `ask`.
    pub fn tell<T>(&self, ask: impl FnOnce(&TemporalIndex) -> Result<T>) -> Result<T> {
        ask(&*self.index.read()?)
    }

    /// The result of a change, unless it read damaged rows.
    fn sound<T>(&self, changed: Result<T>) -> Result<T> {
        let changed = changed?;
        self.read(|_| Ok(changed))
    }

    /// [`read`](Self::read) for what may take long: changes wait until it is over, searches do not
    /// wait for these changes.
    ///
    /// # Errors
    /// Those of `ask`.
    pub fn read_long<T>(&self, ask: impl FnOnce(&TemporalIndex) -> Result<T>) -> Result<T> {
        let passing = self.door.lock()?;
        let _inside = self.long.read()?;
        drop(passing);
        self.read(ask)
    }

    /// [`TemporalIndex::search_batch`], with changes let in every few hundred queries: those before
    /// and after a change are answered by the index as it was and as it is.
    ///
    /// # Errors
    /// Those of [`TemporalIndex::search_batch`].
    pub fn search_batch(
        &self,
        queries: &[f32],
        k: usize,
        ef: Option<usize>,
        filter: &Filter,
        threads: usize,
    ) -> Result<Vec<Vec<Neighbor>>> {
        // Refuses what no slice would be needed for.
        self.read(|index| index.check_batch(queries, k, ef, filter))?;
        batched(threads, || {
            self.read_in_slices(queries, threads, |index, slice| {
                index.search_rows(slice, k, ef, filter, threads)
            })
        })?
    }

    /// Asks about each of `rows`, a slice of them at a time, with changes in between.
    fn read_in_slices<T>(
        &self,
        rows: &[f32],
        threads: usize,
        ask: impl Fn(&TemporalIndex, &[f32]) -> Result<Vec<T>>,
    ) -> Result<Vec<T>> {
        let dim = self.read(|index| Ok(index.params().dim))?;
        let mut answers = Vec::with_capacity(rows.len() / dim);
        for slice in rows.chunks(SLICE * threads * dim) {
            answers.extend(self.read_long(|index| ask(index, slice))?);
        }
        Ok(answers)
    }

    /// Asks the index something when no change is under way, such as to be saved.
    ///
    /// # Errors
    /// Those of `ask`.
    pub fn read_settled<T>(&self, ask: impl FnOnce(&TemporalIndex) -> Result<T>) -> Result<T> {
        let _order = self.order.lock()?;
        let answer = Steps(self).look(ask)?;
        self.sound(answer)
    }

    /// Changes the index, alone: for what takes no time.
    ///
    /// # Errors
    /// Those of `change`.
    pub fn write<T>(&self, change: impl FnOnce(&mut TemporalIndex) -> Result<T>) -> Result<T> {
        let _order = self.order.lock()?;
        let changed = Steps(self).change(change)?;
        self.sound(changed)
    }

    /// [`TemporalIndex::bulk_insert`], while searches go on; they see the first nodes of a batch
    /// before the last.
    ///
    /// # Errors
    /// Those of [`TemporalIndex::bulk_insert`].
    pub fn bulk_insert(&self, nodes: &[NewNode<'_>], threads: usize) -> Result<Vec<NodeId>> {
        let _order = self.order.lock()?;
        self.sound(changes::insert(Steps(self), nodes, threads))
    }

    /// [`TemporalIndex::bulk_insert_unlinked`], while searches go on.
    ///
    /// # Errors
    /// Those of [`TemporalIndex::bulk_insert_unlinked`].
    pub fn bulk_insert_unlinked(&self, nodes: &[NewNode<'_>]) -> Result<Vec<NodeId>> {
        let _order = self.order.lock()?;
        self.sound(changes::insert_unlinked(Steps(self), nodes))
    }

    /// Makes room for so many more nodes, at most as many as an index holds.
    ///
    /// # Errors
    /// None but [`Error::Poisoned`] today.
    pub fn reserve(&self, nodes: usize) -> Result<()> {
        let _order = self.order.lock()?;
        changes::reserve(Steps(self), nodes)
    }

    /// [`TemporalIndex::relink`], while searches go on in the graph as it was.
    ///
    /// # Errors
    /// Those of [`TemporalIndex::relink`].
    pub fn relink(&self, threads: usize) -> Result<()> {
        let _order = self.order.lock()?;
        self.sound(changes::relink(Steps(self), threads))
    }

    /// [`TemporalIndex::compact`], while searches go on in the index as it was.
    ///
    /// # Errors
    /// None but [`Error::Poisoned`] today.
    pub fn compact(&self) -> Result<()> {
        let _order = self.order.lock()?;
        let mut steps = Steps(self);
        let compacted = steps.look(TemporalIndex::compacted)??;
        // What was there is given back after the searches were let in again.
        let before = steps.change(|index| mem::replace(index, compacted))?;
        drop(before);
        self.sound(Ok(()))
    }

    /// [`TemporalIndex::delete`], while searches go on. Of two threads that delete the same node
    /// one does, and the other is told that there is no such node.
    ///
    /// # Errors
    /// Those of [`TemporalIndex::delete`].
    pub fn delete(&self, nodes: &[NodeId]) -> Result<()> {
        let _order = self.order.lock()?;
        self.sound(changes::delete(Steps(self), nodes))
    }

    /// [`TemporalIndex::set_vector`], while searches go on; between its steps they see the node
    /// without a vector.
    ///
    /// # Errors
    /// Those of [`TemporalIndex::set_vector`].
    pub fn set_vector(&self, node: NodeId, vector: Option<&[f32]>) -> Result<()> {
        let _order = self.order.lock()?;
        self.sound(changes::set_vector(Steps(self), node, vector))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::thread;

    use super::*;
    use crate::id::EntityId;
    use crate::index::params::IndexParams;

    fn shared() -> SharedIndex {
        let index = TemporalIndex::new(IndexParams::new(2)).unwrap();
        let shared = SharedIndex::new(index);
        let node = NewNode::new(EntityId(1), 1, Some(&[1.0, 0.0]));
        shared.bulk_insert(&[node], 1).unwrap();
        shared
    }

    /// Until somebody waits to change the index, wherever that is: what they wait for lets nobody in.
    fn until_a_change_waits(shared: &SharedIndex) {
        while shared.door.is_free() && shared.long.lets_in() && shared.index.lets_in() {
            thread::yield_now();
        }
    }

    #[test]
    fn no_search_queues_behind_a_change_that_waits_for_a_long_reader() {
        let shared = shared();
        let reward = || shared.read(|index| index.reward(NodeId(0))).unwrap();
        thread::scope(|scope| {
            let change = shared.read_long(|_| {
                let change = || shared.write(|index| index.set_reward(NodeId(0), Some(1.0)));
                let change = scope.spawn(change);
                until_a_change_waits(&shared);
                // Who would have to queue is not let in at once.
                assert!(shared.index.lets_in());
                assert_eq!(reward(), None);
                Ok(change)
            });
            change.unwrap().join().unwrap().unwrap();
        });
        assert_eq!(reward(), Some(1.0));
    }

    #[test]
    fn a_change_that_waits_comes_before_the_next_slice() {
        let shared = shared();
        let rows = vec![1.0; 2 * 3 * SLICE];
        thread::scope(|scope| {
            let slices = Cell::new(0);
            let found = shared.read_in_slices(&rows, 1, |index, slice| {
                assert_eq!(slice.len(), 2 * SLICE);
                assert_eq!(
                    index.reward(NodeId(0))?,
                    [None, Some(0.0), Some(1.0)][slices.get()]
                );
                let reward = Some(slices.get() as f32);
                let shared = &shared;
                scope.spawn(move || shared.write(|index| index.set_reward(NodeId(0), reward)));
                until_a_change_waits(shared);
                slices.set(slices.get() + 1);
                Ok(vec![slices.get()])
            });
            assert_eq!(found.unwrap(), [1, 2, 3]);
        });
    }
}
