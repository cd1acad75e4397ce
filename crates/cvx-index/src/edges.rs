//! Typed, weighted, directed edges between nodes, beside the temporal order.
//!
//! [`TypedEdgeLayer`] holds the edges that somebody added. The temporal edges are implied by the
//! timelines and belong to the facade, which lends them to [`traverse()`] and [`ancestors()`] through
//! closures; so are the bounds of a walk (deleted nodes, namespaces).

mod ancestors;
mod edge;
mod kind;
mod layer;
mod records;
mod row;
mod rows;
mod snapshot_tables;
mod traverse;

pub use ancestors::{Ancestor, Ancestry};
pub(crate) use ancestors::{Looked, ancestors};
pub use edge::{Direction, Edge, HalfEdge};
pub use kind::EdgeKind;
pub(crate) use layer::TypedEdgeLayer;
pub(crate) use records::EdgeRecords;
pub(crate) use row::{EdgeRow, Half};
pub(crate) use rows::FlatEdges;
pub use traverse::Path;
pub(crate) use traverse::traverse;
