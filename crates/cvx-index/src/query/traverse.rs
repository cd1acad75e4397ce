//! Traversal over typed and temporal edges that stays within the allowed namespaces.

use crate::edges::{self, Ancestry, Direction, EdgeKind, EdgeRow, Half, HalfEdge, Looked, Path};
use crate::error::{Error, Result};
use crate::id::{NodeId, Slot};
use crate::index::TemporalIndex;

/// How far [`TemporalIndex::ancestors`] goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reach<'a> {
    /// The kinds of edges to follow, temporal ones among them.
    pub kinds: &'a [EdgeKind],
    /// In for what led to a node, out for what it led to.
    pub direction: Direction,
    /// The most edges between the start and a node, at least 1.
    pub max_depth: usize,
    /// The most edges to look at, at least 1; as many nodes at most are found.
    pub budget: usize,
    /// The walk enters nodes of these only; `None` is the namespace of the start.
    pub namespaces: Option<&'a [&'a str]>,
}

impl TemporalIndex {
    /// The edges of a node, of one kind or all, the temporal ones included; by kind, then by the
    /// node at the other end. That node is in one of `namespaces`, by default in the node's own.
    ///
    /// # Errors
    /// [`Error::UnknownNode`], [`Error::EdgeWeight`] for a bound that is NaN.
    pub fn typed_neighbors(
        &self,
        node: NodeId,
        kind: Option<EdgeKind>,
        min_weight: f32,
        direction: Direction,
        namespaces: Option<&[&str]>,
    ) -> Result<Vec<HalfEdge>> {
        let open = self.open_namespaces(node, namespaces)?;
        if min_weight.is_nan() {
            return Err(Error::EdgeWeight { weight: min_weight });
        }
        let node = self.slot(node)?;
        let mut found = Vec::new();
        match kind {
            Some(kind) => self.append_edges(node, kind, direction, &mut found),
            None => {
                self.append_edges(node, EdgeKind::Temporal, direction, &mut found);
                found.extend(self.edges.neighbors(node, direction).iter());
            }
        }
        found.retain(|edge| edge.weight >= min_weight && self.is_open(&open, edge.node));
        let named = |edge: HalfEdge<Slot>| edge.named(|slot| self.id(slot));
        Ok(found.into_iter().map(named).collect())
    }

    /// The strongest simple paths of 1 to `max_hops` edges of these kinds, at most `max_paths`,
    /// through `namespaces`, by default those of the start.
    ///
    /// # Errors
    /// [`Error::UnknownNode`], [`Error::Parameter`] for no hops or no paths.
    pub fn traverse(
        &self,
        start: NodeId,
        kinds: &[EdgeKind],
        max_hops: usize,
        max_paths: usize,
        namespaces: Option<&[&str]>,
    ) -> Result<Vec<Path>> {
        let open = self.open_namespaces(start, namespaces)?;
        at_least_one("max_hops", max_hops)?;
        at_least_one("max_paths", max_paths)?;
        let kinds = distinct(kinds);
        let paths = edges::traverse(self.slot(start)?, max_hops, max_paths, |node, found| {
            for &kind in &kinds {
                self.append_edges(node, kind, Direction::Out, found);
            }
            found.retain(|edge| self.is_open(&open, edge.node));
        });
        let named = |path: Path<Slot>| path.named(|slot| self.id(slot));
        Ok(paths.into_iter().map(named).collect())
    }

    /// The nodes that a node can be reached from, or reaches, within bounds.
    ///
    /// # Errors
    /// [`Error::UnknownNode`], [`Error::Parameter`] for a depth or a budget of 0.
    pub fn ancestors(&self, start: NodeId, reach: &Reach<'_>) -> Result<Ancestry> {
        let open = self.open_namespaces(start, reach.namespaces)?;
        at_least_one("max_depth", reach.max_depth)?;
        at_least_one("budget", reach.budget)?;
        let kinds = distinct(reach.kinds);
        let (depth, budget) = (reach.max_depth, reach.budget);
        let ancestry = edges::ancestors(self.slot(start)?, depth, budget, |node, most, found| {
            let mut looked = Looked {
                edges: 0,
                cut_off: false,
            };
            for &kind in &kinds {
                let mut temporal = None;
                let row = self.edges_of(node, kind, reach.direction, &mut temporal);
                let part = row.last(most - looked.edges);
                looked.edges += part.len();
                looked.cut_off |= part.len() < row.len();
                // The latest causes are met first.
                found.extend(part.iter().rev());
            }
            found.retain(|edge| self.is_open(&open, edge.node));
            looked
        });
        Ok(ancestry.named(|slot| self.id(slot)))
    }

    fn open_namespaces(&self, node: NodeId, names: Option<&[&str]>) -> Result<Vec<u32>> {
        let own = self.columns.namespace[self.check(node)?];
        Ok(names.map_or_else(
            || vec![own],
            |names| {
                names
                    .iter()
                    .filter_map(|name| self.columns.namespaces.place(*name))
                    .collect()
            },
        ))
    }

    fn is_open(&self, namespaces: &[u32], node: Slot) -> bool {
        // A file that was overwritten while it was open may name a node that is none.
        let namespace = self.columns.namespace.get(node.index());
        namespace.is_some_and(|namespace| namespaces.contains(namespace))
    }

    /// Appends the edges of one kind of a live node.
    fn append_edges(
        &self,
        node: Slot,
        kind: EdgeKind,
        direction: Direction,
        found: &mut Vec<HalfEdge<Slot>>,
    ) {
        let mut temporal = None;
        found.extend(self.edges_of(node, kind, direction, &mut temporal).iter());
    }

    /// The edges of one kind of a live node; a temporal one is read off its timeline into
    /// `temporal`.
    pub(crate) fn edges_of<'a>(
        &'a self,
        node: Slot,
        kind: EdgeKind,
        direction: Direction,
        temporal: &'a mut Option<Half>,
    ) -> EdgeRow<'a> {
        match kind {
            EdgeKind::Temporal => {
                *temporal = self.temporal_edge(node, direction);
                EdgeRow::of(temporal)
            }
            _ => self.edges.neighbors_of(node, kind, direction),
        }
    }

    fn temporal_edge(&self, node: Slot, direction: Direction) -> Option<Half> {
        let (before, after) = self.timelines.around(&self.columns, node);
        let other = match direction {
            Direction::Out => after.first(),
            Direction::In => before.last(),
        };
        other.map(|&other| Half::new(other, EdgeKind::Temporal, 1.0))
    }
}

fn at_least_one(name: &'static str, value: usize) -> Result<()> {
    match value {
        0 => Err(Error::Parameter {
            name,
            value: "0".to_owned(),
            bound: "1 or more",
        }),
        _ => Ok(()),
    }
}

fn distinct(kinds: &[EdgeKind]) -> Vec<EdgeKind> {
    let mut kinds = kinds.to_vec();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}
