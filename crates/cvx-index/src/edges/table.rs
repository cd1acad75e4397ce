//! The edges as plain records, for a snapshot.

use serde::{Deserialize, Serialize};

use super::kind::EdgeKind;
use super::layer::{Edge, HalfEdge, TypedEdgeLayer};
use crate::error::{Error, Result};

/// The layer as plain records: see [`TypedEdgeLayer::from_table`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EdgeTable {
    /// Names of the custom kinds, in order of declaration.
    pub kinds: Vec<String>,
    /// All edges, by start, kind and end.
    pub edges: Vec<Edge>,
}

impl TypedEdgeLayer {
    /// The layer as records, equal for equal layers.
    #[must_use]
    pub fn to_table(&self) -> EdgeTable {
        EdgeTable {
            kinds: self.kinds.clone(),
            edges: self.edges().collect(),
        }
    }

    /// Rebuilds a layer over nodes `0..node_count` from records that may come from anywhere.
    ///
    /// # Errors
    /// Those of [`declare_kind`](Self::declare_kind) and [`check`](Self::check);
    /// [`Error::InvalidEdgeTable`] for a node beyond the bound, a kind twice, an edge twice or out
    /// of order.
    pub fn from_table(table: &EdgeTable, node_count: usize) -> Result<Self> {
        let mut layer = Self::new();
        for (place, name) in table.kinds.iter().enumerate() {
            if layer.declare_kind(name)? != EdgeKind::Custom(place as u16) {
                return Err(Error::InvalidEdgeTable {
                    reason: format!("kind {name:?} twice"),
                });
            }
        }
        let [mut out, mut into] = [Vec::new(), Vec::new()];
        for edge in &table.edges {
            let highest = edge.from.max(edge.to);
            if highest.index() >= node_count {
                return Err(Error::InvalidEdgeTable {
                    reason: format!("an edge at node {highest} of {node_count}"),
                });
            }
            layer.check(edge.from, edge.to, edge.kind, edge.weight)?;
            count(&mut out, edge.from.index());
            count(&mut into, edge.to.index());
        }
        let key = |edge: &Edge| (edge.from, edge.kind, edge.to);
        let mut pairs = table.edges.windows(2);
        if let Some(pair) = pairs.find(|pair| key(&pair[0]) >= key(&pair[1])) {
            let Edge { from, to, .. } = pair[1];
            return Err(Error::InvalidEdgeTable {
                reason: format!("an edge {from} -> {to} out of order, or twice"),
            });
        }
        // Rows are made as long as they will be: moving them as they grow takes most of an opening.
        let rows = |counts: Vec<usize>| counts.into_iter().map(Vec::with_capacity).collect();
        (layer.out, layer.into) = (rows(out), rows(into));
        for &Edge {
            from,
            to,
            kind,
            weight,
        } in &table.edges
        {
            // -0.0 is in the range, and must not make a second spelling of 0.
            let weight = weight + 0.0;
            let half = |node| HalfEdge { node, kind, weight };
            layer.out[from.index()].push(half(to));
            layer.into[to.index()].push(half(from));
        }
        // Edges came by start, then kind; a row of those that end at a node is by kind first.
        let row = |row: &mut Vec<HalfEdge>| row.sort_by_key(HalfEdge::key);
        layer.into.iter_mut().for_each(row);
        layer.len = table.edges.len();
        Ok(layer)
    }
}

fn count(counts: &mut Vec<usize>, at: usize) {
    if counts.len() <= at {
        counts.resize(at + 1, 0);
    }
    counts[at] += 1;
}
