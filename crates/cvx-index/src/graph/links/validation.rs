//! Checks the links that a snapshot holds before a graph is made of them.

use super::{Links, OUTSIDE};
use crate::columns::column::Column;
use crate::filter::accepted::Bits;
use crate::graph::insert::NewLinks;
use crate::id::Slot;

/// The tables of a graph.
#[derive(Debug)]
pub(crate) struct LinkTables {
    pub(crate) levels: Vec<u8>,
    pub(crate) ground: Column<u32>,
    pub(crate) upper_at: Column<u32>,
    pub(crate) upper: Column<u32>,
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
        let links = Links {
            m,
            levels: tables.levels.into(),
            ground: tables.ground,
            upper_at: tables.upper_at,
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
            let (levels, upper_at) = (self.levels.clone(), self.upper_at.clone());
            Links {
                levels,
                ground,
                upper_at,
                upper: self.upper.clone(),
                ..*self
            }
        })
    }

    /// Gives back what the tables have in reserve.
    pub(crate) fn shrink(&mut self) {
        self.levels.shrink();
        for table in [&mut self.ground, &mut self.upper_at, &mut self.upper] {
            table.shrink();
        }
    }

    /// How many nodes the tables cover.
    pub(crate) fn table_len(&self) -> usize {
        self.levels.len()
    }

    /// The levels, the ground table, the places of the blocks and the blocks.
    pub(crate) fn tables(&self) -> (&[u8], [&[u32]; 3]) {
        (&self.levels, [&self.ground, &self.upper_at, &self.upper])
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
        self.upper_at.len() == nodes
            && nodes.checked_mul(stride) == Some(self.ground.len())
            && self
                .ground
                .chunks_exact(stride)
                .zip(Slot::range(0, nodes))
                .all(row_sound)
            && self.blocks_sound(is_erased)
    }

    /// Whether the blocks of upper links are sound, and no two of them overlap.
    fn blocks_sound(&self, is_erased: impl Fn(Slot) -> bool) -> bool {
        // Nodes without upper levels, and those taken out, have no block to be wrong about.
        let with_block = |&node: &Slot| self.level(node).is_some_and(|level| level > 0);
        let mut nodes: Vec<Slot> = self.nodes().filter(with_block).collect();
        // In the order of slots, but for nodes that took another vector.
        nodes.sort_by_key(|node| self.upper_at[node.index()]);
        let mut end = 0;
        nodes
            .into_iter()
            .all(|node| self.block_sound(node, &mut end, &is_erased))
    }

    /// Whether the block of a node is sound and begins where those before it have ended, at `end`,
    /// which it moves.
    fn block_sound(&self, node: Slot, end: &mut usize, is_erased: impl Fn(Slot) -> bool) -> bool {
        let levels = self.level(node).unwrap_or(0);
        let start = self.upper_at[node.index()] as usize;
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
