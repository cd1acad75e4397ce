//! An edge with both of its ends, and an edge seen from one end.
//!
//! Between ids as the facade tells of it, between slots inside the index.

use serde::{Deserialize, Serialize};

use super::kind::EdgeKind;
use crate::id::NodeId;

/// Which end of an edge a node is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Edges that start at the node.
    Out,
    /// Edges that end at the node.
    In,
}

/// An edge seen from one of its ends.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct HalfEdge<N = NodeId> {
    /// The node at the other end.
    pub node: N,
    /// What the edge means.
    pub kind: EdgeKind,
    /// Its strength, in [0, 1].
    pub weight: f32,
}

/// An edge with both ends.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Edge<N = NodeId> {
    /// Where it starts.
    pub from: N,
    /// Where it ends.
    pub to: N,
    /// What it means.
    pub kind: EdgeKind,
    /// Its strength, in [0, 1].
    pub weight: f32,
}

impl<N> HalfEdge<N> {
    /// The same edge, its end named anew.
    pub(crate) fn named<M>(self, name: impl Fn(N) -> M) -> HalfEdge<M> {
        HalfEdge {
            node: name(self.node),
            kind: self.kind,
            weight: self.weight,
        }
    }
}

impl<N> Edge<N> {
    /// The same edge, its ends named anew.
    pub(crate) fn named<M>(self, name: impl Fn(N) -> M) -> Edge<M> {
        Edge {
            from: name(self.from),
            to: name(self.to),
            kind: self.kind,
            weight: self.weight,
        }
    }
}
