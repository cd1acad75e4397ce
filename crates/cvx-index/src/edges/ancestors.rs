//! Ancestors and descendants of a node over edges.

use super::edge::HalfEdge;
use super::kind::EdgeKind;
use crate::hash::ByNode;
use crate::id::{NodeId, Slot};

/// A node that a walk came to.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Ancestor<N = NodeId> {
    /// The node.
    pub node: N,
    /// The fewest edges between it and the start.
    pub depth: usize,
    /// The largest product of weights over the paths of `depth` edges.
    pub weight: f32,
    /// The node one step nearer to the start on that path.
    pub toward: N,
    /// The kind of the edge between the two.
    pub kind: EdgeKind,
    /// The weight of that edge.
    pub edge_weight: f32,
}

/// What a walk from a node came to.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Ancestry<N = NodeId> {
    /// By depth; of one depth the strongest first, then by node. Without the start.
    pub found: Vec<Ancestor<N>>,
    /// Whether the budget ended the walk before it had seen everything.
    pub truncated: bool,
}

impl<N> Ancestry<N> {
    /// The same, its nodes named anew.
    pub(crate) fn named<M>(self, name: impl Fn(N) -> M) -> Ancestry<M> {
        let named = |ancestor: Ancestor<N>| Ancestor {
            node: name(ancestor.node),
            depth: ancestor.depth,
            weight: ancestor.weight,
            toward: name(ancestor.toward),
            kind: ancestor.kind,
            edge_weight: ancestor.edge_weight,
        };
        Ancestry {
            found: self.found.into_iter().map(named).collect(),
            truncated: self.truncated,
        }
    }
}

/// The nodes within `max_depth` edges of `start`, breadth first, looking at most at `budget` edges.
///
/// `edges_from(node, most, edges)` appends at most `most` of the edges that may be walked from a
/// node, with weights in [0, 1], and tells how many it looked at and whether it left some out. Of
/// one depth, the strongest nodes are walked from first. Of several strongest edges to a node the
/// one met first counts.
pub(crate) fn ancestors(
    start: Slot,
    max_depth: usize,
    budget: usize,
    mut edges_from: impl FnMut(Slot, usize, &mut Vec<HalfEdge<Slot>>) -> Looked,
) -> Ancestry<Slot> {
    let mut found: Vec<Ancestor<Slot>> = Vec::new();
    let mut places: ByNode<usize> = ByNode::default();
    let mut edges = Vec::new();
    let mut left = budget;
    let mut layer = 0..0;
    for depth in 1..=max_depth {
        let mut nearer: Vec<(Slot, f32)> = found[layer]
            .iter()
            .map(|ancestor| (ancestor.node, ancestor.weight))
            .collect();
        if depth == 1 {
            nearer.push((start, 1.0));
        }
        let first = found.len();
        let mut truncated = false;
        for (toward, reached) in nearer {
            edges.clear();
            let looked = edges_from(toward, left, &mut edges);
            left -= looked.edges.min(left);
            for edge in edges.iter().filter(|edge| edge.node != start) {
                let ancestor = Ancestor {
                    node: edge.node,
                    depth,
                    weight: reached * edge.weight,
                    toward,
                    kind: edge.kind,
                    edge_weight: edge.weight,
                };
                let place = *places.entry(edge.node).or_insert(found.len());
                if place == found.len() {
                    found.push(ancestor);
                } else if place >= first && ancestor.weight > found[place].weight {
                    found[place] = ancestor;
                }
            }
            truncated = looked.cut_off;
            if truncated {
                break;
            }
        }
        found[first..]
            .sort_unstable_by(|a, b| b.weight.total_cmp(&a.weight).then(a.node.cmp(&b.node)));
        layer = first..found.len();
        if truncated || layer.is_empty() {
            return Ancestry { found, truncated };
        }
    }
    Ancestry {
        found,
        truncated: false,
    }
}

/// How far the edges of a node were looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Looked {
    /// How many of them, those that may not be walked included.
    pub(crate) edges: usize,
    /// Whether there were more.
    pub(crate) cut_off: bool,
}

#[cfg(test)]
#[path = "ancestors_tests.rs"]
mod tests;
