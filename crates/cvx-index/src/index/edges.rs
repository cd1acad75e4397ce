//! Adding, removing and reading typed edges by node id.

use crate::edges::{Edge, EdgeKind};
use crate::error::{Error, Result};
use crate::id::NodeId;
use crate::index::TemporalIndex;

impl TemporalIndex {
    /// Makes `name` an edge kind; a name that is one already stays what it is.
    ///
    /// # Errors
    /// [`Error::InvalidEdgeKindName`], [`Error::TooManyEdgeKinds`].
    pub fn declare_edge_kind(&mut self, name: &str) -> Result<EdgeKind> {
        self.edges.declare_kind(name)
    }

    /// The kind of that name.
    ///
    /// # Errors
    /// [`Error::UnknownEdgeKind`], which lists the known ones.
    pub fn edge_kind(&self, name: &str) -> Result<EdgeKind> {
        self.edges.kind(name)
    }

    /// The name of a kind; a custom one of another index may have none here.
    #[must_use]
    pub fn edge_kind_name(&self, kind: EdgeKind) -> Option<&str> {
        self.edges.kind_name(kind)
    }

    /// Every name that is an edge kind.
    pub fn edge_kinds(&self) -> impl Iterator<Item = &str> + '_ {
        self.edges.kind_names()
    }

    /// Adds an edge; the same ends and kind again take the new weight.
    ///
    /// # Errors
    /// [`Error::UnknownNode`], [`Error::EdgeWeight`] outside [0, 1], [`Error::SelfEdge`],
    /// [`Error::ImpliedEdgeKind`] for temporal edges, [`Error::UnknownEdgeKind`].
    pub fn add_edge(
        &mut self,
        from: NodeId,
        to: NodeId,
        kind: EdgeKind,
        weight: f32,
    ) -> Result<()> {
        let (start, end) = (self.slot(from)?, self.slot(to)?);
        self.edges.check(kind, weight)?;
        if start == end {
            return Err(Error::SelfEdge { node: from });
        }
        self.edges.add(start, end, kind, weight).map(drop)
    }

    /// Removes an edge.
    ///
    /// # Errors
    /// [`Error::UnknownNode`], [`Error::UnknownEdge`], [`Error::ImpliedEdgeKind`].
    pub fn remove_edge(&mut self, from: NodeId, to: NodeId, kind: EdgeKind) -> Result<()> {
        let (start, end) = (self.slot(from)?, self.slot(to)?);
        if kind == EdgeKind::Temporal {
            return Err(Error::ImpliedEdgeKind);
        }
        if !self.edges.remove(start, end, kind) {
            let kind = self.edges.kind_name(kind).unwrap_or("undeclared");
            let kind = kind.to_owned();
            return Err(Error::UnknownEdge { from, to, kind });
        }
        Ok(())
    }

    /// Every typed edge, by start, kind and end; temporal ones are in the timelines.
    pub fn edges(&self) -> impl Iterator<Item = Edge> + '_ {
        self.edges
            .edges()
            .map(|edge| edge.named(|slot| self.id(slot)))
    }
}
