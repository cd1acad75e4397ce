//! What a walk needs, kept from one walk to the next.

use std::cell::Cell;

use crate::codes::Buffers;
use crate::pool::Pool;

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

    /// As the number that it is ordered by.
    pub(crate) fn word(self) -> u64 {
        self.0
    }

    pub(crate) fn of_word(word: u64) -> Self {
        Ranked(word)
    }

    pub(crate) fn node(self) -> u32 {
        self.0 as u32
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

/// Which nodes a walk has seen: a bit a node, small enough to be cleared for each walk.
#[derive(Default)]
pub(crate) struct Visited(Vec<u64>);

impl Visited {
    pub(crate) fn forget(&mut self, nodes: usize) {
        self.0.clear();
        self.0.resize(nodes.div_ceil(64), 0);
    }

    /// Whether the node is seen for the first time; one beyond the table counts as seen.
    #[inline]
    pub(crate) fn first(&mut self, node: u32) -> bool {
        let Some(word) = self.0.get_mut(node as usize / 64) else {
            return false;
        };
        let bit = 1 << (node % 64);
        let first = *word & bit == 0;
        *word |= bit;
        first
    }
}

/// The state of one walk.
#[derive(Default)]
pub(crate) struct Walk {
    pub(crate) visited: Visited,
    /// Seen, the nearest first: `C` in the paper, and `W` too where every node is accepted.
    pub(crate) frontier: Pool,
    /// The nearest accepted so far where not every node is, `W` in the paper.
    pub(crate) accepted: Pool,
    /// The nodes that the walk looks at next.
    pub(crate) hop: Vec<u32>,
    pub(crate) measured: usize,
    pub(crate) gave_up: bool,
}

/// What a search found, and what it takes to measure that.
#[derive(Default)]
pub(crate) struct Found {
    /// Nearest first, by the distances in full precision.
    pub(crate) near: Vec<Ranked>,
    pub(crate) nodes: Vec<u32>,
    pub(crate) distances: Vec<f32>,
}

/// The buffers of searches.
#[derive(Default)]
pub(crate) struct Scratch {
    /// Of as many walks as go side by side.
    pub(crate) walks: Vec<Walk>,
    pub(crate) buffers: Buffers,
    pub(crate) found: Found,
}

impl Scratch {
    /// The states of `count` walks, and the buffers that they share.
    pub(crate) fn walks(&mut self, count: usize) -> (&mut [Walk], &mut Buffers) {
        if self.walks.len() < count {
            self.walks.resize_with(count, Walk::default);
        }
        (&mut self.walks[..count], &mut self.buffers)
    }

    /// The state of a walk that goes alone.
    pub(crate) fn walk(&mut self) -> (&mut Walk, &mut Buffers) {
        let (walks, buffers) = self.walks(1);
        (&mut walks[0], buffers)
    }
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
    fn a_new_walk_has_seen_nothing_but_what_lies_beyond_the_table() {
        let mut visited = Visited::default();
        for nodes in [3, 200, 3] {
            visited.forget(nodes);
            assert!(visited.first(2));
            assert!(!visited.first(2));
            assert!(!visited.first(1000));
        }
    }
}
