//! Edges as plain records: for snapshots of formats 1 and 2, and for compaction.

use bytemuck::Zeroable;
use serde::{Deserialize, Serialize};

use super::edge::Edge;
use super::layer::TypedEdgeLayer;
use super::row::Half;
use super::rows::{EdgeRows, FlatEdges};
use crate::error::{Error, Result};
use crate::id::Slot;

/// The layer as plain records: see [`TypedEdgeLayer::from_records`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EdgeRecords {
    /// Names of the custom kinds, in order of declaration.
    pub kinds: Vec<String>,
    /// All edges, by start, kind and end.
    pub edges: Vec<Edge<Slot>>,
}

impl TypedEdgeLayer {
    /// The layer as records, equal for equal layers.
    #[must_use]
    pub fn to_records(&self) -> EdgeRecords {
        EdgeRecords {
            kinds: self.kinds.clone(),
            edges: self.edges().collect(),
        }
    }

    /// Rebuilds a layer over nodes `0..node_count` from records that may come from anywhere.
    ///
    /// # Errors
    /// Those of [`declare_kind`](Self::declare_kind) and [`check`](Self::check);
    /// [`Error::InvalidEdgeTable`] for a node beyond the bound, an edge from a node to itself, a kind
    /// twice, an edge twice or out of order.
    pub fn from_records(table: &EdgeRecords, node_count: usize) -> Result<Self> {
        let mut layer = Self::new();
        layer.declare_all(&table.kinds)?;
        for edge in &table.edges {
            let highest = edge.from.max(edge.to);
            if highest.index() >= node_count {
                return Err(Error::InvalidEdgeTable {
                    reason: format!("an edge at node {highest} of {node_count}"),
                });
            }
            if edge.from == edge.to {
                return Err(Error::InvalidEdgeTable {
                    reason: format!("an edge from node {highest} to itself"),
                });
            }
            layer.check(edge.kind, edge.weight)?;
        }
        let key = |edge: &Edge<Slot>| (edge.from, edge.kind, edge.to);
        let mut pairs = table.edges.windows(2);
        if let Some(pair) = pairs.find(|pair| key(&pair[0]) >= key(&pair[1])) {
            let Edge { from, to, .. } = pair[1];
            return Err(Error::InvalidEdgeTable {
                reason: format!("an edge {from} -> {to} out of order, or twice"),
            });
        }
        // -0.0 is in the range, and must not make a second spelling of 0.
        let half = |node, edge: &Edge<Slot>| Half::new(node, edge.kind, edge.weight + 0.0);
        layer.out = grouped(&table.edges, |edge| (edge.from, half(edge.to, edge)));
        layer.into = grouped(&table.edges, |edge| (edge.to, half(edge.from, edge)));
        layer.len = table.edges.len();
        Ok(layer)
    }
}

/// The edges as rows of the nodes that `end` names.
fn grouped(edges: &[Edge<Slot>], end: impl Fn(&Edge<Slot>) -> (Slot, Half)) -> EdgeRows {
    let last = edges.iter().map(|edge| end(edge).0.index()).max();
    // Counted one place ahead: where a row ends is then where the one behind it is put.
    let mut ends = vec![0u64; last.map_or(0, |last| last + 2)];
    for edge in edges {
        ends[end(edge).0.index() + 1] += 1;
    }
    for at in 1..ends.len() {
        ends[at] += ends[at - 1];
    }
    let mut halves = vec![Half::zeroed(); edges.len()];
    for edge in edges {
        let (node, half) = end(edge);
        let place = &mut ends[node.index()];
        halves[*place as usize] = half;
        *place += 1;
    }
    ends.pop();
    let mut start = 0;
    for &end in &ends {
        // Edges came by start, then kind; a row of those that end at a node is by kind first.
        halves[start..end as usize].sort_unstable_by_key(Half::key);
        start = end as usize;
    }
    EdgeRows::of(FlatEdges {
        ends: ends.into(),
        halves: halves.into(),
    })
}
