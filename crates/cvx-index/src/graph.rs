//! The graph: its links, the one beam search over them, and how nodes are linked and taken out.

pub(crate) mod beam;
pub(crate) mod bulk;
pub(crate) mod insert;
pub(crate) mod links;
pub(crate) mod pool;
pub(crate) mod ranked;
mod remove;
pub(crate) mod scratch;
