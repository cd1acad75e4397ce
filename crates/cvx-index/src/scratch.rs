//! What a walk needs, kept from one walk to the next.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::id::NodeId;

/// A node and its distance in one word, ordered by distance, then by node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ranked(u64);

impl Ranked {
    pub(crate) fn new(distance: f32, node: u32) -> Self {
        let bits = distance.to_bits();
        // Negative floats order backwards; all of them below the positive ones.
        let ordered = if bits >> 31 == 0 {
            bits | 1 << 31
        } else {
            !bits
        };
        Ranked(u64::from(ordered) << 32 | u64::from(node))
    }

    pub(crate) fn node(self) -> u32 {
        self.0 as u32
    }

    pub(crate) fn id(self) -> NodeId {
        NodeId(self.node())
    }

    pub(crate) fn distance(self) -> f32 {
        let ordered = (self.0 >> 32) as u32;
        f32::from_bits(if ordered >> 31 == 1 {
            ordered & !(1 << 31)
        } else {
            !ordered
        })
    }
}

/// Which nodes a walk has seen: a stamp a node, so that a new walk forgets all of them at once.
#[derive(Default)]
pub(crate) struct Visited {
    stamps: Vec<u8>,
    generation: u8,
}

impl Visited {
    pub(crate) fn forget(&mut self, nodes: usize) {
        if self.stamps.len() < nodes {
            self.stamps.resize(nodes, 0);
        }
        self.generation = self.generation.wrapping_add(1);
        if self.generation == 0 {
            self.stamps.fill(0);
            self.generation = 1;
        }
    }

    /// Whether the node is seen for the first time.
    #[inline]
    pub(crate) fn first(&mut self, node: u32) -> bool {
        let stamp = &mut self.stamps[node as usize];
        let first = *stamp != self.generation;
        *stamp = self.generation;
        first
    }
}

/// The buffers of a walk.
#[derive(Default)]
pub(crate) struct Scratch {
    pub(crate) visited: Visited,
    /// Seen and not yet expanded, `C` in the paper.
    pub(crate) frontier: BinaryHeap<Reverse<Ranked>>,
    /// The nearest accepted so far, `W` in the paper, nearest first.
    pub(crate) found: Vec<Ranked>,
    pub(crate) hop: Vec<u32>,
    pub(crate) distances: Vec<f32>,
}

/// Lends this thread's buffers; a call inside a call gets fresh ones.
pub(crate) fn with_scratch<T>(work: impl FnOnce(&mut Scratch) -> T) -> T {
    thread_local!(static SCRATCH: Cell<Option<Box<Scratch>>> = const { Cell::new(None) });
    SCRATCH.with(|cell| {
        let mut scratch = cell.take().unwrap_or_default();
        let result = work(&mut scratch);
        cell.set(Some(scratch));
        result
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ranks_order_by_distance_then_node(a: (f32, u32), b: (f32, u32)) {
            prop_assume!(!a.0.is_nan() && !b.0.is_nan());
            let (x, y) = (Ranked::new(a.0, a.1), Ranked::new(b.0, b.1));
            prop_assert_eq!(x.cmp(&y), a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            prop_assert_eq!((x.distance().to_bits(), x.node()), (a.0.to_bits(), a.1));
        }
    }

    #[test]
    fn a_new_walk_has_seen_nothing_however_many_went_before() {
        let mut visited = Visited::default();
        for _ in 0..600 {
            visited.forget(3);
            assert!(visited.first(2));
            assert!(!visited.first(2));
        }
    }
}
