//! Paths over edges from a node, strongest first.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use super::edge::HalfEdge;
use super::kind::EdgeKind;
use crate::id::{NodeId, Slot};

/// A simple path: `nodes` has one more entry than `kinds` and `weights`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Path<N = NodeId> {
    /// The nodes from the start on, none of them twice.
    pub nodes: Vec<N>,
    /// The kind of each edge.
    pub kinds: Vec<EdgeKind>,
    /// The weight of each edge.
    pub weights: Vec<f32>,
    /// The product of the weights, taken from the start on.
    pub strength: f32,
}

impl<N> Path<N> {
    /// The same path, its nodes named anew.
    pub(crate) fn named<M>(self, name: impl Fn(N) -> M) -> Path<M> {
        Path {
            nodes: self.nodes.into_iter().map(name).collect(),
            kinds: self.kinds,
            weights: self.weights,
            strength: self.strength,
        }
    }
}

impl Path<Slot> {
    fn start(node: Slot) -> Self {
        Path {
            nodes: vec![node],
            kinds: Vec::new(),
            weights: Vec::new(),
            strength: 1.0,
        }
    }

    fn longer_by(&self, edge: HalfEdge<Slot>) -> Self {
        let mut path = self.clone();
        path.nodes.push(edge.node);
        path.kinds.push(edge.kind);
        path.weights.push(edge.weight);
        path.strength *= edge.weight;
        path
    }
}

/// Orders a frontier: strongest first, then the shorter, then by nodes, then by kinds.
#[derive(PartialEq)]
struct ByStrength(Path<Slot>);

impl Eq for ByStrength {}

impl PartialOrd for ByStrength {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ByStrength {
    fn cmp(&self, other: &Self) -> Ordering {
        let (a, b) = (&self.0, &other.0);
        b.strength
            .total_cmp(&a.strength)
            .then_with(|| a.nodes.len().cmp(&b.nodes.len()))
            .then_with(|| a.nodes.cmp(&b.nodes))
            .then_with(|| a.kinds.cmp(&b.kinds))
    }
}

/// The strongest simple paths of 1 to `max_hops` edges from `start`, at most `max_paths`.
///
/// `edges_from` appends the edges that may be walked from a node: those of the wanted kinds, with
/// weights in [0, 1], that end where the walk may go. Every prefix of a path is a path. Order:
/// strongest first, then fewer hops, then by nodes, then by kinds.
pub fn traverse(
    start: Slot,
    max_hops: usize,
    max_paths: usize,
    mut edges_from: impl FnMut(Slot, &mut Vec<HalfEdge<Slot>>),
) -> Vec<Path<Slot>> {
    // Weights are at most 1, so a path never ranks before its prefix: taken best first, paths
    // come out in their final order, and whatever ranks behind the places left never will.
    let mut frontier = BTreeSet::from([ByStrength(Path::start(start))]);
    let mut paths = Vec::new();
    let mut edges = Vec::new();
    while paths.len() < max_paths
        && let Some(ByStrength(path)) = frontier.pop_first()
    {
        let places_left = max_paths - paths.len() - usize::from(!path.kinds.is_empty());
        if path.kinds.len() < max_hops
            && let Some(&end) = path.nodes.last()
        {
            edges.clear();
            edges_from(end, &mut edges);
            for &edge in edges.iter().filter(|edge| !path.nodes.contains(&edge.node)) {
                frontier.insert(ByStrength(path.longer_by(edge)));
                if frontier.len() > places_left {
                    frontier.pop_last();
                }
            }
        }
        if !path.kinds.is_empty() {
            paths.push(path);
        }
    }
    paths
}

#[cfg(test)]
#[path = "traverse_tests.rs"]
mod tests;
