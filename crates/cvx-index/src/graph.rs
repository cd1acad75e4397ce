//! The HNSW graph: links, beam search, insertion, bulk build, removal.

pub(crate) mod beam;
pub(crate) mod bulk;
pub(crate) mod candidate_pool;
pub(crate) mod insert;
pub(crate) mod links;
pub(crate) mod ranked;
mod remove;
pub(crate) mod scratch;
