//! Runs every call to the index without the GIL and turns panics into errors.
//!
//! Every closure runs without the GIL, and the locks of the index are released before the GIL is
//! taken again: a thread that holds one never waits for Python, so the two cannot deadlock. A panic
//! inside ends here, as an error.

use std::panic::{AssertUnwindSafe, catch_unwind};

use cvx_index::{Filter, Neighbor, NewNode, NodeId, SharedIndex, TemporalIndex};
use pyo3::prelude::*;

use crate::error;

/// An index that threads share.
pub struct Shared(SharedIndex);

enum Failure {
    Index(cvx_index::Error),
    Panic(String),
}

impl From<cvx_index::Error> for Failure {
    fn from(error: cvx_index::Error) -> Self {
        Failure::Index(error)
    }
}

impl Shared {
    pub fn new(index: TemporalIndex) -> Self {
        Shared(SharedIndex::new(index))
    }

    /// Asks the index something that takes no longer than a search, beside other readers.
    pub fn read<T: Send>(
        &self,
        py: Python<'_>,
        ask: impl FnOnce(&TemporalIndex) -> cvx_index::Result<T> + Send,
    ) -> PyResult<T> {
        fenced(py, || Ok(self.0.read(ask)?))
    }

    /// Asks the index what rows have no part in: a damaged one answers too.
    pub fn tell<T: Send>(
        &self,
        py: Python<'_>,
        ask: impl FnOnce(&TemporalIndex) -> cvx_index::Result<T> + Send,
    ) -> PyResult<T> {
        fenced(py, || Ok(self.0.tell(ask)?))
    }

    /// Asks the index something that may take long: see `SharedIndex::read_long`.
    pub fn read_long<T: Send>(
        &self,
        py: Python<'_>,
        ask: impl FnOnce(&TemporalIndex) -> cvx_index::Result<T> + Send,
    ) -> PyResult<T> {
        fenced(py, || Ok(self.0.read_long(ask)?))
    }

    /// Searches for each of several queries, with changes in between.
    pub fn search_batch(
        &self,
        py: Python<'_>,
        queries: &[f32],
        k: usize,
        ef: Option<usize>,
        filter: &Filter,
        threads: usize,
    ) -> PyResult<Vec<Vec<Neighbor>>> {
        fenced(py, || {
            Ok(self.0.search_batch(queries, k, ef, filter, threads)?)
        })
    }

    /// Asks the index something when no change is under way.
    pub fn read_settled<T: Send>(
        &self,
        py: Python<'_>,
        ask: impl FnOnce(&TemporalIndex) -> cvx_index::Result<T> + Send,
    ) -> PyResult<T> {
        fenced(py, || Ok(self.0.read_settled(ask)?))
    }

    /// Changes the index, alone. A panic leaves it poisoned: half a change is no state to go on from.
    pub fn write<T: Send>(
        &self,
        py: Python<'_>,
        change: impl FnOnce(&mut TemporalIndex) -> cvx_index::Result<T> + Send,
    ) -> PyResult<T> {
        fenced(py, || Ok(self.0.write(change)?))
    }

    /// Adds nodes while searches go on.
    pub fn insert(
        &self,
        py: Python<'_>,
        nodes: &[NewNode<'_>],
        threads: usize,
    ) -> PyResult<Vec<NodeId>> {
        fenced(py, || Ok(self.0.bulk_insert(nodes, threads)?))
    }

    /// Adds nodes without links while searches go on.
    pub fn insert_unlinked(&self, py: Python<'_>, nodes: &[NewNode<'_>]) -> PyResult<Vec<NodeId>> {
        fenced(py, || Ok(self.0.bulk_insert_unlinked(nodes)?))
    }

    /// Makes room for so many more nodes while searches go on.
    pub fn reserve(&self, py: Python<'_>, nodes: usize) -> PyResult<()> {
        fenced(py, || Ok(self.0.reserve(nodes)?))
    }

    /// Links all nodes anew while searches go on.
    pub fn relink(&self, py: Python<'_>, threads: usize) -> PyResult<()> {
        fenced(py, || Ok(self.0.relink(threads)?))
    }

    /// Gives back what deleted nodes take, while searches go on.
    pub fn compact(&self, py: Python<'_>) -> PyResult<()> {
        fenced(py, || Ok(self.0.compact()?))
    }

    /// Gives a node another vector while searches go on.
    pub fn set_vector(&self, py: Python<'_>, node: NodeId, vector: Option<&[f32]>) -> PyResult<()> {
        fenced(py, || Ok(self.0.set_vector(node, vector)?))
    }

    /// Removes nodes while searches go on.
    pub fn delete(&self, py: Python<'_>, nodes: &[NodeId]) -> PyResult<()> {
        fenced(py, || Ok(self.0.delete(nodes)?))
    }
}

/// Runs what needs no index yet, such as loading one, behind the same fence.
pub fn without_gil<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> cvx_index::Result<T> + Send,
) -> PyResult<T> {
    fenced(py, || Ok(work()?))
}

fn fenced<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, Failure> + Send,
) -> PyResult<T> {
    let outcome = py.detach(|| {
        catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
            let said = panic
                .downcast_ref::<&str>()
                .map(|said| (*said).to_owned())
                .or_else(|| panic.downcast_ref::<String>().cloned())
                .unwrap_or_else(|| "no message".to_owned());
            Err(Failure::Panic(said))
        })
    });
    outcome.map_err(|failure| match failure {
        Failure::Index(error) => error::of_index(py, &error),
        Failure::Panic(said) => error::named(
            py,
            "InternalError",
            &format!("cvx failed inside ({said}): please report it with this message"),
        ),
    })
}
