//! The least score a path must carry to matter; paths below it are pruned.

use super::Terms;
use super::spread::Spread;
use crate::edges::{Direction, EdgeKind};
use crate::id::Slot;
use crate::index::TemporalIndex;

/// A set of nodes, a bit shared by many: a node without one is not in it, and of the others about
/// one in 64 is taken for one that is.
struct Sketch(Vec<u64>);

impl Sketch {
    fn of(nodes: impl Iterator<Item = Slot>, count: usize) -> Self {
        let mut sketch = Sketch(vec![0; count.next_power_of_two()]);
        for node in nodes {
            let (word, bit) = sketch.place(node);
            sketch.0[word] |= bit;
        }
        sketch
    }

    fn place(&self, node: Slot) -> (usize, u64) {
        ((node.index() / 64) & (self.0.len() - 1), 1 << (node.0 % 64))
    }

    #[inline]
    fn may_have(&self, node: Slot) -> bool {
        let (word, bit) = self.place(node);
        self.0[word] & bit != 0
    }
}

/// What a node must bring to be among the best.
///
/// A node outside S is no more similar than the last of S, and `k` nodes score at least as the
/// k-th of S does without any edge.
pub(super) struct Bound {
    members: Sketch,
    /// The nodes one edge before a node of S that may still be among the best; without it, any.
    toward: Option<Sketch>,
    elsewhere: f32,
    needed: f32,
    /// No edge carries on more than this part of a value.
    carried: f32,
}

impl Bound {
    /// Whether the last edge of a path, from a node to which it brought this much, may matter.
    #[inline]
    pub(super) fn leads_on(&self, node: Slot, value: f32) -> bool {
        self.suffices(value * self.carried)
            || self
                .toward
                .as_ref()
                .is_none_or(|toward| toward.may_have(node))
    }

    /// Whether a node can be in S; most that are not are told apart.
    #[inline]
    pub(super) fn may_contain(&self, node: Slot) -> bool {
        self.members.may_have(node)
    }

    /// Whether a node of this similarity, to which a path brings this much, may be among the best.
    #[inline]
    pub(super) fn reaches(&self, similarity: f32, value: f32) -> bool {
        similarity + value >= self.needed
    }

    /// No node outside S is more similar.
    pub(super) fn elsewhere(&self) -> f32 {
        self.elsewhere
    }

    /// Whether so much brings any node among the best.
    #[inline]
    pub(super) fn suffices(&self, value: f32) -> bool {
        self.reaches(self.elsewhere, value)
    }
}

impl TemporalIndex {
    /// The bound, given S.
    pub(super) fn bound(&self, spread: &Spread, terms: &Terms<'_>) -> Bound {
        let boosts = terms.boosts;
        let near = spread.near();
        // Codes lose more of one node than of another: the order is that of neither end.
        let first = near.get(..terms.k).unwrap_or(&[]).iter();
        let needed = first.map(|near| near.lowest).min_by(f32::total_cmp);
        let carried = boosts.iter().fold(0.0f32, |most, pair| most.max(pair.1));
        let mut bound = Bound {
            members: Sketch::of(near.iter().map(|near| near.node), near.len()),
            toward: None,
            elsewhere: near.last().map_or(f32::NEG_INFINITY, |last| last.highest),
            needed: needed.unwrap_or(f32::NEG_INFINITY),
            carried,
        };
        if terms.max_hops > 1 {
            // A path of more than one edge brings no more than this.
            let most = near
                .iter()
                .fold(0.0f32, |most, near| most.max(near.highest));
            let most = most * carried * carried;
            let open = near.iter().filter(|near| bound.reaches(near.highest, most));
            let open: Vec<Slot> = open.map(|near| near.node).collect();
            bound.toward = Some(self.one_edge_before(&open, boosts));
        }
        bound
    }

    fn one_edge_before(&self, nodes: &[Slot], boosts: &[(EdgeKind, f32)]) -> Sketch {
        self.edges.prefetch(nodes.iter().copied(), Direction::In);
        let mut before = Vec::with_capacity(16 * nodes.len());
        for &(kind, _) in boosts {
            for &node in nodes {
                let mut temporal = None;
                let edges = self.edges_of(node, kind, Direction::In, &mut temporal);
                before.extend(edges.iter().map(|edge| edge.node));
            }
        }
        Sketch::of(before.iter().copied(), before.len())
    }
}
