//! Inserts and deletes nodes and changes their vectors, in short steps between which searches run.
//!
//! Who has the index alone takes the steps one after the other; who shares it lets searches in
//! between (`shared`). The steps are the same, and so is what comes of them. After every step the
//! index is whole: nodes that are on their way in have rows that nothing leads to, then links that
//! nobody gives back.

use std::mem;

use crate::columns::{EMBEDDED, NewNode};
use crate::error::{Error, Result};
use crate::graph::bulk::in_bulk;
use crate::graph::insert::{NewLinks, Request, WORTH_THREADS, set_all};
use crate::id::{NodeId, Slot};
use crate::index::{MOST_NODES, TemporalIndex, check_reward, check_threads, on_threads};

/// The most nodes that are written in one step.
const LARGEST_STEP: usize = 1024;

/// Someone who may look at an index, and change it.
pub(crate) trait Access {
    fn look<T>(&mut self, look: impl FnOnce(&TemporalIndex) -> T) -> Result<T>;
    fn change<T>(&mut self, change: impl FnOnce(&mut TemporalIndex) -> T) -> Result<T>;

    /// Makes room for so many rows in the large tables, before the steps that write to them.
    fn make_room(&mut self, rows: usize) -> Result<()>;
}

impl Access for &mut TemporalIndex {
    fn look<T>(&mut self, look: impl FnOnce(&TemporalIndex) -> T) -> Result<T> {
        Ok(look(self))
    }

    fn change<T>(&mut self, change: impl FnOnce(&mut TemporalIndex) -> T) -> Result<T> {
        Ok(change(self))
    }

    /// Who is alone keeps nobody waiting: the tables grow as they are written.
    fn make_room(&mut self, _rows: usize) -> Result<()> {
        Ok(())
    }
}

impl TemporalIndex {
    /// Adds a node.
    ///
    /// # Errors
    /// As [`bulk_insert`](Self::bulk_insert).
    pub fn insert(&mut self, node: NewNode<'_>) -> Result<NodeId> {
        Ok(insert(self, &[node], 1)?[0])
    }

    /// Adds nodes, all of them or, where one is refused, none.
    ///
    /// The index is the same for any number of threads.
    ///
    /// # Errors
    /// [`Error::Dimension`], [`Error::NonFinite`], [`Error::ZeroVector`] and [`Error::TooLong`] of
    /// a vector, [`Error::RewardRange`], [`Error::Capacity`], [`Error::Parameter`] for no threads
    /// or more than [`MOST_THREADS`](crate::MOST_THREADS).
    pub fn bulk_insert(&mut self, nodes: &[NewNode<'_>], threads: usize) -> Result<Vec<NodeId>> {
        insert(self, nodes, threads)
    }

    /// Adds nodes without links, all of them or none: no walk finds them before [`relink`](Self::relink).
    ///
    /// # Errors
    /// As [`bulk_insert`](Self::bulk_insert).
    pub fn bulk_insert_unlinked(&mut self, nodes: &[NewNode<'_>]) -> Result<Vec<NodeId>> {
        insert_unlinked(self, nodes)
    }

    /// Links all nodes anew, at once.
    ///
    /// What was inserted part by part without links is then as if it had come in one call.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a number of threads as [`bulk_insert`](Self::bulk_insert).
    pub fn relink(&mut self, threads: usize) -> Result<()> {
        relink(self, threads)
    }

    /// Removes nodes and their edges, all of them or, where one is unknown, none.
    ///
    /// Timelines close over the gap, the graph is linked around it, the rows are wiped. A node
    /// named twice is removed once.
    ///
    /// # Errors
    /// [`Error::UnknownNode`] for an id that was never given or whose node was deleted before.
    pub fn delete(&mut self, nodes: &[NodeId]) -> Result<()> {
        delete(self, nodes)
    }

    /// Gives a node another vector, or takes it away; everything else of it stays.
    ///
    /// It takes as long as to delete the node and to insert it. Regions begin a new epoch where the
    /// node is, or becomes, the hub of one above the ground.
    ///
    /// # Errors
    /// [`Error::UnknownNode`]; those of a vector, as [`bulk_insert`](Self::bulk_insert).
    pub fn set_vector(&mut self, node: NodeId, vector: Option<&[f32]>) -> Result<()> {
        set_vector(self, node, vector)
    }
}

/// Adds nodes, all of them or, where one is refused, none.
pub(crate) fn insert(
    index: impl Access + Send,
    nodes: &[NewNode<'_>],
    threads: usize,
) -> Result<Vec<NodeId>> {
    check_threads(threads)?;
    // Starting threads takes longer than linking a few nodes.
    if nodes.len() < WORTH_THREADS {
        return insert_in_steps(index, nodes);
    }
    on_threads(threads, || insert_in_steps(index, nodes))?
}

fn insert_in_steps(mut index: impl Access, nodes: &[NewNode<'_>]) -> Result<Vec<NodeId>> {
    let first = index.look(|index| index.check_new(nodes))??;
    let slots = || Slot::range(first.index(), first.index() + nodes.len()).zip(nodes);
    let embedded: Vec<Slot> = slots()
        .filter(|(_, node)| node.vector.is_some())
        .map(|(slot, _)| slot)
        .collect();
    if let Some(&last) = embedded.last() {
        index.make_room(last.index() + 1)?;
    }
    let there = index.look(|index| index.links.len())?;
    if in_bulk(embedded.len(), there) {
        insert_in_bulk(&mut index, first, nodes, &embedded)?;
        return index.look(|index| slots().map(|(slot, _)| index.id(slot)).collect());
    }
    let mut rest = embedded.as_slice();
    let mut done = 0;
    while done < nodes.len() {
        let reach = Slot::at(first.index() + nodes.len().min(done + LARGEST_STEP));
        let near = &rest[..rest.partition_point(|&slot| slot < reach)];
        let size = index.look(|index| index.builder().next_batch(&index.links, near))?;
        let (batch, later) = rest.split_at(size);
        // With the nodes of the batch come those without a vector before the next that has one.
        let end = later.first().map_or(reach, |&next| reach.min(next));
        let new = &nodes[done..end.index() - first.index()];
        index.change(|index| index.put_rows(Slot::at(first.index() + done), new))?;
        let chosen = index.look(|index| index.builder().choose_batch(&index.links, batch))?;
        let requests = index.change(|index| index.admit(new, batch, &chosen))?;
        let back = index.look(|index| index.builder().back_links(&index.links, &requests))?;
        index.change(|index| set_all(&mut index.links, &back))?;
        (rest, done) = (later, end.index() - first.index());
    }
    index.look(|index| slots().map(|(slot, _)| index.id(slot)).collect())
}

/// Adds nodes that nothing leads to, all of them or none.
pub(crate) fn insert_unlinked(
    mut index: impl Access,
    nodes: &[NewNode<'_>],
) -> Result<Vec<NodeId>> {
    let first = index.look(|index| index.check_new(nodes))??.index();
    index.make_room(first + nodes.len())?;
    for (first, new) in (first..)
        .step_by(LARGEST_STEP)
        .zip(nodes.chunks(LARGEST_STEP))
    {
        let slots = Slot::range(first, first + new.len()).zip(new);
        let embedded: Vec<Slot> = slots
            .filter(|(_, node)| node.vector.is_some())
            .map(|(slot, _)| slot)
            .collect();
        let nothing = vec![Vec::new(); embedded.len()];
        index.change(|index| {
            index.put_rows(Slot::at(first), new);
            index.admit(new, &embedded, &nothing);
        })?;
    }
    index.look(|index| {
        Slot::range(first, first + nodes.len())
            .map(|slot| index.id(slot))
            .collect()
    })
}

/// Makes room for so many more nodes, if the system has it: tables that grow are copied, and are there
/// twice meanwhile.
pub(crate) fn reserve(mut index: impl Access, nodes: usize) -> Result<()> {
    let (there, row_bytes) = index.look(|index| {
        let row_bytes = index.vectors.row_bytes() + index.links.row_bytes();
        (index.columns.len(), row_bytes)
    })?;
    let rows = there.saturating_add(nodes).min(MOST_NODES);
    match Vec::<u8>::new().try_reserve_exact(rows.saturating_mul(row_bytes)) {
        Ok(()) => index.make_room(rows),
        Err(_) => Ok(()),
    }
}

/// Links all nodes anew, beside the graph there is.
pub(crate) fn relink(mut index: impl Access + Send, threads: usize) -> Result<()> {
    on_threads(threads, || {
        let built = index.look(|index| {
            let all: Vec<Slot> = index.links.nodes().collect();
            index.builder().built(index.params.m, &all)
        })?;
        let before = index.change(|index| {
            index.note_change();
            index.epoch.forget();
            mem::replace(&mut index.links, built)
        })?;
        drop(before);
        Ok(())
    })?
}

/// Inserts nodes with the links of a graph that is made beside the one there is, and takes its place
/// when all of them are in.
fn insert_in_bulk(
    index: &mut impl Access,
    first: Slot,
    nodes: &[NewNode<'_>],
    embedded: &[Slot],
) -> Result<()> {
    let steps = || {
        (first.index()..)
            .step_by(LARGEST_STEP)
            .zip(nodes.chunks(LARGEST_STEP))
    };
    for (first, new) in steps() {
        index.change(|index| index.put_rows(Slot::at(first), new))?;
    }
    let built = index.look(|index| {
        let there = index.links.nodes();
        let all: Vec<Slot> = there.chain(embedded.iter().copied()).collect();
        index.builder().built(index.params.m, &all)
    })?;
    let mut rest = embedded;
    for (first, new) in steps() {
        let end = Slot::at(first + new.len());
        let (batch, later) = rest.split_at(rest.partition_point(|&slot| slot < end));
        // Until then a node leads to those that are in, and none of them to it.
        let chosen: Vec<Vec<Vec<Slot>>> = batch
            .iter()
            .map(|&node| built.links_before(node, end))
            .collect();
        index.change(|index| index.admit(new, batch, &chosen))?;
        rest = later;
    }
    let before = index.change(|index| {
        index.epoch.forget();
        mem::replace(&mut index.links, built)
    })?;
    // Given back after the searches were let in again.
    drop(before);
    Ok(())
}

/// Removes nodes, all of them or, where one is unknown, none.
pub(crate) fn delete(mut index: impl Access, nodes: &[NodeId]) -> Result<()> {
    let going = index.look(|index| index.going(nodes))??;
    if !going.embedded.is_empty() {
        index.make_room(0)?;
    }
    index.change(|index| index.take_out(&going))
}

/// Gives a node another vector, or takes it away.
pub(crate) fn set_vector(
    mut index: impl Access,
    node: NodeId,
    vector: Option<&[f32]>,
) -> Result<()> {
    let going = index.look(|index| {
        vector.map_or(Ok(()), |vector| index.vectors.check(vector))?;
        index.going(&[node])
    })??;
    let slot = going.nodes[0];
    if !going.embedded.is_empty() {
        index.make_room(0)?;
        index.change(|index| index.take_vector(&going))?;
    }
    let Some(vector) = vector else { return Ok(()) };
    index.make_room(slot.index() + 1)?;
    index.change(|index| {
        index.vectors.put(slot, vector);
        index.vectors.encode(&[slot]);
    })?;
    let chosen = index.look(|index| index.builder().choose_batch(&index.links, &[slot]))?;
    let requests = index.change(|index| index.admit_vector(slot, &chosen))?;
    let back = index.look(|index| index.builder().back_links(&index.links, &requests))?;
    index.change(|index| set_all(&mut index.links, &back))
}

/// Nodes on their way out.
pub(crate) struct Leaving {
    nodes: Vec<Slot>,
    embedded: Vec<Slot>,
    around: Vec<NewLinks>,
}

impl TemporalIndex {
    /// The slot of the first of these nodes, if all of them can be inserted.
    fn check_new(&self, nodes: &[NewNode<'_>]) -> Result<Slot> {
        let wanted = self.node_count().saturating_add(nodes.len());
        if wanted > MOST_NODES {
            return Err(Error::Capacity {
                wanted,
                bound: MOST_NODES,
            });
        }
        for node in nodes {
            check_reward(node.reward)?;
            node.vector
                .map_or(Ok(()), |vector| self.vectors.check(vector))?;
        }
        Ok(Slot::at(self.columns.len()))
    }

    /// Writes the vectors of nodes that are not there yet.
    fn put_rows(&mut self, first: Slot, nodes: &[NewNode<'_>]) {
        let mut embedded = Vec::new();
        for (slot, node) in Slot::range(first.index(), first.index() + nodes.len()).zip(nodes) {
            if let Some(vector) = node.vector {
                self.vectors.put(slot, vector);
                embedded.push(slot);
            }
        }
        self.vectors.encode(&embedded);
    }

    /// Makes nodes live whose rows were put, with the links chosen for those of the batch.
    fn admit(
        &mut self,
        nodes: &[NewNode<'_>],
        batch: &[Slot],
        chosen: &[Vec<Vec<Slot>>],
    ) -> Vec<Request> {
        self.note_change();
        let first = self.columns.len();
        for node in nodes {
            let slot = self.columns.push(node);
            self.postings.add(&self.columns, slot);
        }
        let new = Slot::range(first, self.columns.len());
        self.timelines.add(&self.columns, new);
        self.live += nodes.len();
        let vectors = self.links.len();
        let (builder, links) = self.building();
        let requests = builder.add_batch(links, batch, chosen);
        for (&slot, vectors) in batch.iter().zip(vectors + 1..) {
            self.epoch.grown(slot.index() + 1, vectors);
        }
        requests
    }

    fn going(&self, nodes: &[NodeId]) -> Result<Leaving> {
        let mut gone = Vec::with_capacity(nodes.len());
        for &node in nodes {
            gone.push(self.slot(node)?);
        }
        gone.sort_unstable();
        gone.dedup();
        let has_vector = |node: &Slot| self.columns.has(*node, EMBEDDED);
        let embedded: Vec<Slot> = gone.iter().copied().filter(has_vector).collect();
        let around = self.builder().around(&self.links, &embedded);
        Ok(Leaving {
            nodes: gone,
            embedded,
            around,
        })
    }

    fn take_out(&mut self, going: &Leaving) {
        for &node in &going.nodes {
            self.edges.remove_node(node);
        }
        self.timelines.remove(&self.columns, &going.nodes);
        self.take_vector(going);
        for &node in &going.nodes {
            self.columns.wipe(node);
        }
        self.live -= going.nodes.len();
    }

    /// Takes the vectors of nodes away, and nothing else of them.
    fn take_vector(&mut self, going: &Leaving) {
        let Leaving {
            nodes,
            embedded,
            around,
        } = going;
        let regions_change = embedded.iter().any(|&node| self.is_hub(node));
        self.note_change();
        self.postings.remove(&self.columns, nodes);
        let (builder, links) = self.building();
        builder.remove(links, embedded, around);
        for &node in embedded {
            self.columns.set_flag(node, EMBEDDED, false);
            self.vectors.erase(node);
        }
        match regions_change {
            true => self.epoch.begin(self.columns.len(), self.links.len()),
            false => self.epoch.remove(nodes),
        }
    }

    /// Whether a region above the ground is named by a node.
    fn is_hub(&self, node: Slot) -> bool {
        self.epoch.covers(node) && self.links.level(node).is_some_and(|level| level > 0)
    }

    /// Makes the vector of a node count whose row was put, with the links chosen for it.
    fn admit_vector(&mut self, node: Slot, chosen: &[Vec<Vec<Slot>>]) -> Vec<Request> {
        self.note_change();
        self.columns.set_flag(node, EMBEDDED, true);
        self.postings.add(&self.columns, node);
        let (builder, links) = self.building();
        let requests = builder.add_batch(links, &[node], chosen);
        self.epoch.forget();
        let (nodes, vectors) = (self.columns.len(), self.links.len());
        match self.is_hub(node) {
            true => self.epoch.begin(nodes, vectors),
            false => self.epoch.grown(nodes, vectors),
        }
        requests
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::EntityId;
    use crate::index::params::IndexParams;

    const DIM: usize = 4;

    /// Looks at the index after each of its changes, as a reader might between any two.
    struct Watched<'a> {
        index: &'a mut TemporalIndex,
        /// How many nodes it held after each.
        sizes: &'a mut Vec<usize>,
    }

    impl Access for &mut Watched<'_> {
        fn look<T>(&mut self, look: impl FnOnce(&TemporalIndex) -> T) -> Result<T> {
            Ok(look(self.index))
        }

        fn change<T>(&mut self, change: impl FnOnce(&mut TemporalIndex) -> T) -> Result<T> {
            let outcome = change(self.index);
            self.index.validate_between_steps().unwrap();
            self.sizes.push(self.index.len());
            Ok(outcome)
        }

        fn make_room(&mut self, _rows: usize) -> Result<()> {
            Ok(())
        }
    }

    /// Points that wind around the origin, no two alike.
    fn row(turn: usize) -> [f32; DIM] {
        let angle = turn as f32 * 2.4;
        [angle.sin(), angle.cos(), turn as f32 * 0.01, 1.0]
    }

    #[test]
    fn after_every_step_the_index_is_whole_and_after_the_last_its_nodes_have_company() {
        let params = IndexParams {
            m: 2,
            ef_construction: 10,
            ..IndexParams::new(DIM)
        };
        let mut index = TemporalIndex::new(params).unwrap();
        let rows: Vec<[f32; DIM]> = (0..600).map(row).collect();
        let node = |(turn, row)| NewNode::new(EntityId(0), turn, Some(row));
        let nodes: Vec<NewNode<'_>> = (0..)
            .zip(rows.iter().map(<[f32; DIM]>::as_slice))
            .map(node)
            .collect();
        let mut sizes = Vec::new();
        let mut watched = Watched {
            index: &mut index,
            sizes: &mut sizes,
        };
        insert(&mut watched, &nodes, 1).unwrap();
        for going in (0..600).step_by(3) {
            delete(&mut watched, &[NodeId(going)]).unwrap();
        }
        for other in (1..600).step_by(3) {
            let vector = (other % 2 == 0).then(|| row(other as usize + 1000));
            let vector = vector.as_ref().map(<[f32; DIM]>::as_slice);
            set_vector(&mut watched, NodeId(other), vector).unwrap();
            set_vector(&mut watched, NodeId(other), Some(&row(other as usize))).unwrap();
        }
        index.validate().unwrap();
        let parts_of_the_batch = sizes.iter().take_while(|&&size| size < 600);
        assert!(parts_of_the_batch.filter(|&&size| size > 0).count() > 1);
    }
}
