//! Buffers that a thread uses again from one beam search to the next: visited set, candidates.

use std::cell::Cell;

use crate::graph::bulk::Compared;
use crate::graph::candidate_pool::CandidatePool;
use crate::graph::ranked::Ranked;
use crate::id::Slot;
use crate::vectors::codes::Buffers;

/// Which nodes a walk has seen: a byte a node, that of this walk where it was seen.
///
/// Bits would take an eighth of the room, and twice the instructions a link.
#[derive(Default)]
pub(crate) struct Visited {
    /// As many as the largest graph walked so far has nodes.
    marks: Vec<u8>,
    mark: u8,
    /// How many nodes the graph of this walk has.
    nodes: usize,
}

impl Visited {
    /// Forgets what earlier walks have seen, among so many nodes.
    pub(crate) fn forget(&mut self, nodes: usize) {
        self.mark = self.mark.wrapping_add(1);
        if self.mark == 0 {
            self.marks.fill(0);
            self.mark = 1;
        }
        if self.marks.len() < nodes {
            self.marks.resize(nodes, 0);
        }
        self.nodes = nodes;
    }

    /// Leaves those of `nodes` in `hop` that are seen for the first time; one beyond the table
    /// counts as seen.
    ///
    /// Without a branch a node: which ones are new is what no processor can predict.
    #[inline(always)]
    pub(crate) fn keep_new(&mut self, nodes: &[Slot], hop: &mut Hop) {
        hop.reserve(nodes.len());
        let mark = self.mark;
        let (marks, places) = (&mut self.marks[..self.nodes], &mut hop.nodes[..nodes.len()]);
        let mut count = 0;
        for &node in nodes {
            let Some(seen) = marks.get_mut(node.index()) else {
                continue;
            };
            places[count] = node;
            count += usize::from(*seen != mark);
            *seen = mark;
        }
        hop.len = count;
    }
}

/// Nodes that a walk is about to look at.
#[derive(Default)]
pub(crate) struct Hop {
    /// Of which only the first are meant: to clear and fill it again and again takes its time.
    nodes: Vec<Slot>,
    len: usize,
}

impl Hop {
    #[inline(always)]
    pub(crate) fn nodes(&self) -> &[Slot] {
        &self.nodes[..self.len]
    }

    #[inline(always)]
    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }

    #[inline(always)]
    fn reserve(&mut self, len: usize) {
        if self.nodes.len() < len {
            self.nodes.resize(len, Slot(0));
        }
    }
}

/// The state of one walk.
#[derive(Default)]
pub(crate) struct Walk {
    pub(crate) visited: Visited,
    /// Seen, the nearest first: `C` in the paper, and `W` too where every node is accepted.
    pub(crate) frontier: CandidatePool,
    /// The nearest accepted so far where not every node is, `W` in the paper.
    pub(crate) accepted: CandidatePool,
    /// The nodes that the walk looks at next; their rows were asked for.
    pub(crate) hop: Hop,
    /// Those that it looks at after them.
    pub(crate) next: Hop,
    pub(crate) measured: usize,
    pub(crate) gave_up: bool,
}

/// What a search found, and what it takes to measure that.
#[derive(Default)]
pub(crate) struct Found {
    /// Nearest first, by the distances in full precision.
    pub(crate) near: Vec<Ranked>,
    pub(crate) nodes: Vec<Slot>,
    pub(crate) distances: Vec<f32>,
}

/// The buffers of searches.
#[derive(Default)]
pub(crate) struct Scratch {
    pub(crate) walk: Walk,
    pub(crate) buffers: Buffers,
    pub(crate) found: Found,
    /// The rows of a group, compared with each other or with others.
    pub(crate) compared: Compared,
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
    #[test]
    fn a_new_walk_has_seen_nothing_but_what_lies_beyond_the_table() {
        let mut visited = Visited::default();
        let mut hop = Hop::default();
        for nodes in [3, 200, 3].repeat(200) {
            visited.forget(nodes);
            visited.keep_new(&[2, 1000, 0, 2].map(Slot), &mut hop);
            assert_eq!(hop.nodes(), [2, 0].map(Slot));
            visited.keep_new(&[0, 1, 2].map(Slot), &mut hop);
            assert_eq!(hop.nodes(), [Slot(1)]);
        }
    }
}
