//! Where the blocks of upper links begin: one node in m has any, and only for those it is kept.

use crate::id::Slot;

/// Nodes that one mark tells of.
const MARKED: usize = u32::BITS as usize;

/// The places of the blocks, found by how many nodes before a node have one.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Blocks {
    marks: Vec<Mark>,
    /// Of the nodes that have a block, by slot.
    starts: Vec<u32>,
}

/// Which of some nodes have a block, and how many before them.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Mark {
    has: u32,
    before: u32,
}

impl Blocks {
    /// The places of the blocks of these nodes, by slot; `None` where there are more or fewer.
    pub(super) fn of(nodes: impl Iterator<Item = Slot>, starts: &[u32]) -> Option<Self> {
        let mut blocks = Blocks::default();
        for node in nodes {
            let start = *starts.get(blocks.starts.len())?;
            blocks.put(node, start);
        }
        (blocks.starts.len() == starts.len()).then_some(blocks)
    }

    /// Where they begin, by slot of their nodes.
    pub(super) fn starts(&self) -> &[u32] {
        &self.starts
    }

    /// The mark of a node, and its bit there.
    fn place(node: Slot) -> (usize, u32) {
        (node.index() / MARKED, 1 << (node.index() % MARKED))
    }

    /// The place of a node among those that have a block.
    #[inline(always)]
    fn rank(&self, node: Slot) -> Option<usize> {
        let (at, bit) = Self::place(node);
        let mark = self.marks.get(at)?;
        let before = mark.before + (mark.has & (bit - 1)).count_ones();
        (mark.has & bit != 0).then_some(before as usize)
    }

    /// Where the block of a node begins; `None` where it has none.
    #[inline(always)]
    pub(super) fn start(&self, node: Slot) -> Option<u32> {
        self.starts.get(self.rank(node)?).copied()
    }

    /// Tells where the block of a node begins that had none. Slots that come in order are appended;
    /// another moves those behind it.
    pub(super) fn put(&mut self, node: Slot, start: u32) {
        let (at, bit) = Self::place(node);
        let before = self.starts.len() as u32;
        if self.marks.len() <= at {
            self.marks.resize(at + 1, Mark { has: 0, before });
        }
        self.marks[at].has |= bit;
        self.marks[at + 1..]
            .iter_mut()
            .for_each(|mark| mark.before += 1);
        let rank = self.rank(node).expect("it was marked above");
        self.starts.insert(rank, start);
    }

    /// Forgets the block of a node, if it has one.
    pub(super) fn take_out(&mut self, node: Slot) {
        if let Some(rank) = self.rank(node) {
            let (at, bit) = Self::place(node);
            self.starts.remove(rank);
            self.marks[at].has &= !bit;
            self.marks[at + 1..]
                .iter_mut()
                .for_each(|mark| mark.before -= 1);
        }
    }

    /// Gives back what the tables have in reserve.
    pub(super) fn shrink(&mut self) {
        self.marks.shrink_to_fit();
        self.starts.shrink_to_fit();
    }

    /// How many bytes of memory they take.
    pub(super) fn bytes(&self) -> usize {
        self.marks.capacity() * size_of::<Mark>() + self.starts.capacity() * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn blocks_are_found_as_in_a_map(
            changes in proptest::collection::vec((0usize..300, any::<bool>()), 0..200),
        ) {
            let mut blocks = Blocks::default();
            let mut map = BTreeMap::new();
            for (start, (node, comes)) in (0..).zip(changes) {
                if !comes {
                    blocks.take_out(Slot::at(node));
                    map.remove(&node);
                } else if map.insert(node, start).is_none() {
                    blocks.put(Slot::at(node), start);
                } else {
                    blocks.take_out(Slot::at(node));
                    blocks.put(Slot::at(node), start);
                }
            }
            let nodes = map.keys().map(|&node| Slot::at(node));
            prop_assert!(Blocks::of(nodes.clone(), &blocks.starts[1.min(map.len())..]).is_none() || map.is_empty());
            prop_assert!(Blocks::of(nodes.clone().skip(1), &blocks.starts).is_none() || map.is_empty());
            let again = Blocks::of(nodes, &blocks.starts).expect("as many");
            for node in 0..400 {
                prop_assert_eq!(blocks.start(Slot::at(node)), map.get(&node).copied());
                prop_assert_eq!(again.start(Slot::at(node)), map.get(&node).copied());
            }
        }
    }
}
