//! An index that threads share: searches go on while nodes come and go.
//!
//! Changes wait for each other. A change takes the index for itself only for the moments in which
//! it writes; what takes long, such as finding the neighbours of new nodes, only looks at it, beside
//! the searches. A search sees the index between two steps of a change: whole, with some of the
//! nodes of a batch and not yet the others.

use std::sync::{Mutex, PoisonError, RwLock};

use crate::changes::{self, Access};
use crate::columns::NewNode;
use crate::error::{Error, Result};
use crate::id::NodeId;
use crate::index::TemporalIndex;

/// An index that threads share.
pub struct SharedIndex {
    /// Held by whoever changes the index, from the first step to the last.
    order: Mutex<()>,
    index: RwLock<TemporalIndex>,
}

/// The steps of someone who holds the order.
struct Steps<'a>(&'a RwLock<TemporalIndex>);

impl<T> From<PoisonError<T>> for Error {
    fn from(_: PoisonError<T>) -> Self {
        Error::Poisoned
    }
}

impl Access for Steps<'_> {
    fn look<T>(&mut self, look: impl FnOnce(&TemporalIndex) -> T) -> Result<T> {
        Ok(look(&*self.0.read()?))
    }

    fn change<T>(&mut self, change: impl FnOnce(&mut TemporalIndex) -> T) -> Result<T> {
        Ok(change(&mut *self.0.write()?))
    }

    /// Beside the searches: a change alone would copy the tables first where they are mapped or
    /// full, and let nobody in.
    fn make_room(&mut self, rows: usize) -> Result<()> {
        let (vectors, links) =
            self.look(|index| (index.vectors.roomy(rows), index.links.roomy(rows)))?;
        if vectors.is_none() && links.is_none() {
            return Ok(());
        }
        self.change(|index| {
            if let Some(vectors) = vectors {
                index.vectors = vectors;
            }
            if let Some(links) = links {
                index.links = links;
            }
        })
    }
}

impl SharedIndex {
    /// Shares an index.
    #[must_use]
    pub fn new(index: TemporalIndex) -> Self {
        SharedIndex {
            order: Mutex::new(()),
            index: RwLock::new(index),
        }
    }

    /// Asks the index something, beside other readers and between the steps of a change.
    ///
    /// # Errors
    /// Those of `ask`; [`Error::Poisoned`], here and below, after a change broke off half way.
    pub fn read<T>(&self, ask: impl FnOnce(&TemporalIndex) -> Result<T>) -> Result<T> {
        ask(&*self.index.read()?)
    }

    /// Asks the index something when no change is under way, such as to be saved.
    ///
    /// # Errors
    /// Those of `ask`.
    pub fn read_settled<T>(&self, ask: impl FnOnce(&TemporalIndex) -> Result<T>) -> Result<T> {
        let _order = self.order.lock()?;
        Steps(&self.index).look(ask)?
    }

    /// Changes the index, alone: for what takes no time.
    ///
    /// # Errors
    /// Those of `change`.
    pub fn write<T>(&self, change: impl FnOnce(&mut TemporalIndex) -> Result<T>) -> Result<T> {
        let _order = self.order.lock()?;
        Steps(&self.index).change(change)?
    }

    /// [`TemporalIndex::bulk_insert`], while searches go on; they see the first nodes of a batch
    /// before the last.
    ///
    /// # Errors
    /// Those of [`TemporalIndex::bulk_insert`].
    pub fn bulk_insert(&self, nodes: &[NewNode<'_>], threads: usize) -> Result<Vec<NodeId>> {
        let _order = self.order.lock()?;
        changes::insert(Steps(&self.index), nodes, threads)
    }

    /// [`TemporalIndex::compact`], while searches go on in the index as it was.
    ///
    /// # Errors
    /// None but [`Error::Poisoned`] today.
    pub fn compact(&self) -> Result<()> {
        let _order = self.order.lock()?;
        let mut steps = Steps(&self.index);
        let compacted = steps.look(TemporalIndex::compacted)??;
        // What was there is given back after the searches were let in again.
        let before = steps.change(|index| std::mem::replace(index, compacted))?;
        drop(before);
        Ok(())
    }

    /// [`TemporalIndex::delete`], while searches go on. Of two threads that delete the same node
    /// one does, and the other is told that there is no such node.
    ///
    /// # Errors
    /// Those of [`TemporalIndex::delete`].
    pub fn delete(&self, nodes: &[NodeId]) -> Result<()> {
        let _order = self.order.lock()?;
        changes::delete(Steps(&self.index), nodes)
    }
}
