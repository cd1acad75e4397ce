//! Checks the links that a snapshot holds before a graph is made of them.

use super::blocks::Blocks;
use super::{Links, OUTSIDE};
use crate::columns::column::Column;
use crate::filter::accepted::Bits;
use crate::graph::insert::NewLinks;
use crate::id::Slot;

/// The tables of a graph as a snapshot holds them.
#[derive(Debug)]
pub(crate) struct LinkTables {
    pub(crate) levels: Vec<u8>,
    pub(crate) ground: Column<u32>,
    /// Of the nodes with upper links: where the block of each begins in `upper`.
    pub(crate) starts: Vec<u32>,
    pub(crate) upper: Column<u32>,
}

/// The places of the nodes with upper links, by the levels of all.
pub(crate) fn with_block(levels: &[u8]) -> impl Iterator<Item = usize> + '_ {
    // Of nodes that were taken out, too, no block is kept.
    let rises = |(at, level): (usize, &u8)| (1..OUTSIDE).contains(level).then_some(at);
    levels.iter().enumerate().filter_map(rises)
}

impl Links {
    /// The graph of these tables, if they are those of one: every link leads to a node of its level,
    /// or to one that is gone and whose row `is_erased`, so that no walk stays there.
    pub(crate) fn restored(
        m: usize,
        tables: LinkTables,
        entry: Option<Slot>,
        is_erased: impl Fn(Slot) -> bool,
    ) -> Option<Self> {
        let inside = || tables.levels.iter().filter(|&&level| level != OUTSIDE);
        let (len, top) = (inside().count(), inside().max().copied());
        let rising = with_block(&tables.levels).map(Slot::at);
        let blocks = Blocks::of(rising, &tables.starts)?;
        let links = Links {
            m,
            levels: tables.levels.into(),
            ground: tables.ground,
            blocks,
            upper: tables.upper,
            entry,
            len,
        };
        let enters = links.top() == top.map(usize::from) && entry.is_some() == top.is_some();
        (enters && links.sound(is_erased)).then_some(links)
    }

    /// The graph of these slots, every slot named anew by `moved`, with the links of `swept` in place
    /// of those that lead to any other.
    pub(crate) fn gathered(&self, swept: &[NewLinks], kept: &[Slot], moved: &[Slot]) -> Self {
        let mut links = Links::new(self.m);
        let mut swept = swept.iter().peekable();
        let mut renamed = Vec::new();
        for &old in kept {
            let Some(highest) = self.level(old) else {
                continue;
            };
            let new = moved[old.index()];
            links.add(new, highest);
            for level in 0..=highest {
                renamed.clear();
                // In the same order: by slot, then by level.
                let swept = swept.next_if(|new| (new.node, new.level) == (old, level));
                let neighbors = match swept {
                    Some(new) => &new.neighbors,
                    None => self.neighbors(old, level),
                };
                renamed.extend(neighbors.iter().map(|&neighbor| moved[neighbor.index()]));
                links.set(new, level, &renamed);
            }
        }
        links.entry = self.entry.map(|entry| moved[entry.index()]);
        links
    }

    /// These links in memory with room for so many nodes, where to have them would copy all.
    pub(crate) fn roomy(&self, nodes: usize) -> Option<Self> {
        let more = (nodes * (self.most(0) + 1)).saturating_sub(self.ground.len());
        self.ground.lacks(more).then(|| {
            let ground = self.ground.roomy(more);
            Links {
                levels: self.levels.clone(),
                ground,
                blocks: self.blocks.clone(),
                upper: self.upper.clone(),
                ..*self
            }
        })
    }

    /// Gives back what the tables have in reserve.
    pub(crate) fn shrink(&mut self) {
        self.levels.shrink();
        self.ground.shrink();
        self.blocks.shrink();
        self.upper.shrink();
    }

    /// How many nodes the tables cover.
    pub(crate) fn table_len(&self) -> usize {
        self.levels.len()
    }

    /// The levels, the ground table, the places of the blocks and the blocks.
    pub(crate) fn tables(&self) -> (&[u8], [&[u32]; 3]) {
        (
            &self.levels,
            [&self.ground, self.blocks.starts(), &self.upper],
        )
    }

    fn sound(&self, is_erased: impl Fn(Slot) -> bool) -> bool {
        let nodes = self.levels.len();
        let stride = self.most(0) + 1;
        let outside: Vec<Slot> = Slot::range(0, nodes)
            .filter(|&node| self.level(node).is_none() && !is_erased(node))
            .collect();
        let gone = Bits::of(&outside, nodes);
        let row_sound = |(row, node): (&[u32], Slot)| {
            // Folds without an early end run at the speed of the memory.
            let last = row[1..].iter().fold(0, |last, &link| last.max(link));
            let count = row[0] as usize;
            let leads_out = |links: &[u32]| {
                Slot::slots(links)
                    .iter()
                    .fold(false, |any, &link| any | gone.has(link))
            };
            count <= self.most(0)
                && (last as usize) < nodes
                && (outside.is_empty() || self.level(node).is_none() || !leads_out(&row[1..=count]))
        };
        nodes.checked_mul(stride) == Some(self.ground.len())
            && self
                .ground
                .chunks_exact(stride)
                .zip(Slot::range(0, nodes))
                .all(row_sound)
            && self.blocks_sound(is_erased)
    }

    /// Whether the blocks of upper links are sound, and no two of them overlap.
    fn blocks_sound(&self, is_erased: impl Fn(Slot) -> bool) -> bool {
        let starts = |node| self.blocks.start(node).map(|start| (start, node));
        let mut nodes: Vec<(u32, Slot)> = self.nodes().filter_map(starts).collect();
        // In the order of slots, but for nodes that took another vector.
        nodes.sort_unstable();
        let mut end = 0;
        nodes
            .into_iter()
            .all(|(start, node)| self.block_sound(node, start as usize, &mut end, &is_erased))
    }

    /// Whether the block of a node is sound and begins where those before it have ended, at `end`,
    /// which it moves.
    fn block_sound(
        &self,
        node: Slot,
        start: usize,
        end: &mut usize,
        is_erased: impl Fn(Slot) -> bool,
    ) -> bool {
        let levels = self.level(node).unwrap_or(0);
        let Some(block) = self.upper.get(start..start + levels * (self.m + 1)) else {
            return false;
        };
        let apart = start >= *end;
        *end = start + block.len();
        let mut rows = block.chunks_exact(self.m + 1).zip(1..);
        apart
            && rows.all(|(row, level)| {
                let count = row[0] as usize;
                let gone = |link| {
                    let inside = link < Slot::at(self.levels.len());
                    inside && self.level(link).is_none() && is_erased(link)
                };
                let reaches = |&link: &Slot| self.reaches(link, level) || gone(link);
                count <= self.m && Slot::slots(&row[1..=count]).iter().all(reaches)
            })
    }
}
