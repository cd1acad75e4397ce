//! Links of the graph: a flat table for level 0, blocks for the levels above.

mod blocks;
mod validation;

pub(crate) use validation::{LinkTables, with_block};

use crate::columns::column::Column;
use crate::distance::prefetch::prefetch;
use crate::id::Slot;
use blocks::Blocks;

/// Of a node that is not in the graph.
const OUTSIDE: u8 = u8::MAX;

/// Who is linked to whom at which level, and where walks begin.
///
/// The m of the paper is the most links a node has above the ground; at the ground it is 2 m.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Links {
    m: usize,
    levels: Column<u8>,
    /// Per node: how many, then the links, in a row of 2 m + 1.
    ground: Column<u32>,
    /// Where the block of a node begins in `upper`; a row of m + 1 for each of its levels from 1.
    blocks: Blocks,
    upper: Column<u32>,
    entry: Option<Slot>,
    len: usize,
}

impl Links {
    pub(crate) fn new(m: usize) -> Self {
        Links {
            m,
            levels: Column::new(),
            ground: Column::new(),
            blocks: Blocks::default(),
            upper: Column::new(),
            entry: None,
            len: 0,
        }
    }

    /// How many nodes are in the graph.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The node where walks begin: of the highest level.
    pub(crate) fn entry(&self) -> Option<Slot> {
        self.entry
    }

    /// The highest level, of an empty graph none.
    pub(crate) fn top(&self) -> Option<usize> {
        self.entry.and_then(|entry| self.level(entry))
    }

    /// The level of a node; `None` outside the graph.
    #[inline(always)]
    pub(crate) fn level(&self, node: Slot) -> Option<usize> {
        let level = *self.levels.get(node.index())?;
        (level != OUTSIDE).then_some(usize::from(level))
    }

    /// Whether a node is in the graph at a level. A link to one that is not leads nowhere: to a node
    /// that was removed, which nobody knew to be linked there.
    #[inline(always)]
    pub(crate) fn reaches(&self, node: Slot, level: usize) -> bool {
        self.level(node).is_some_and(|highest| highest >= level)
    }

    /// The nodes of the graph, by slot.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = Slot> + '_ {
        Slot::range(0, self.levels.len()).filter(|&node| self.level(node).is_some())
    }

    /// The most links that a node may have at a level.
    pub(crate) fn most(&self, level: usize) -> usize {
        if level == 0 { 2 * self.m } else { self.m }
    }

    pub(crate) fn m(&self) -> usize {
        self.m
    }

    #[inline(always)]
    pub(crate) fn neighbors(&self, node: Slot, level: usize) -> &[Slot] {
        self.slices().neighbors(node, level)
    }

    /// The links of a node to slots before `end`, level by level.
    pub(crate) fn links_before(&self, node: Slot, end: Slot) -> Vec<Vec<Slot>> {
        let before = |level| {
            let links = self.neighbors(node, level).iter().copied();
            links.filter(|&link| link < end).collect()
        };
        (0..=self.level(node).unwrap_or(0)).map(before).collect()
    }

    /// The tables as plain slices, to be taken once before a walk.
    pub(crate) fn slices(&self) -> LinkSlices<'_> {
        LinkSlices {
            m: self.m,
            nodes: self.levels.len(),
            ground: &self.ground,
            blocks: &self.blocks,
            upper: &self.upper,
        }
    }

    /// Where the row of a node at a level begins in its table.
    fn row(&self, node: Slot, level: usize) -> usize {
        match level {
            0 => node.index() * (2 * self.m + 1),
            _ => {
                let block = self.blocks.start(node).expect("a node of this level");
                block as usize + (level - 1) * (self.m + 1)
            }
        }
    }

    /// Adds a node without links; it becomes the entry if no level is as high as its own.
    pub(crate) fn add(&mut self, node: Slot, level: usize) {
        let end = node.index() + 1;
        if self.levels.len() < end {
            self.levels.grow(end, OUTSIDE);
            self.ground.grow(end * (2 * self.m + 1), 0);
        }
        if level > 0 {
            let block = self.upper.len();
            self.blocks.put(node, block as u32);
            self.upper.grow(block + level * (self.m + 1), 0);
        }
        if self.top().is_none_or(|top| level > top) {
            self.entry = Some(node);
        }
        self.levels.to_mut()[node.index()] = level as u8;
        self.len += 1;
    }

    /// Makes a node the entry; whether it is one of the highest level, as the entry must be.
    pub(crate) fn enter(&mut self, entry: Option<Slot>) -> bool {
        let fits = entry.and_then(|entry| self.level(entry)) == self.top()
            && entry.is_some() == self.entry.is_some();
        if fits {
            self.entry = entry;
        }
        fits
    }

    /// Takes a node out. Links to it are for the caller to replace; its row must have no distance
    /// where one may be left.
    pub(crate) fn remove(&mut self, node: Slot) {
        for level in 0..=self.level(node).unwrap_or(0) {
            self.set(node, level, &[]);
        }
        self.blocks.take_out(node);
        self.levels.to_mut()[node.index()] = OUTSIDE;
        self.len -= 1;
        if self.entry == Some(node) {
            // Of the highest level the lowest slot, whatever the order of removal.
            self.entry = self
                .nodes()
                .max_by_key(|&node| (self.level(node), std::cmp::Reverse(node)));
        }
    }

    /// Sets the links of a node at a level, at most [`most`](Self::most).
    pub(crate) fn set(&mut self, node: Slot, level: usize, links: &[Slot]) {
        let row = self.row(node, level);
        let table = if level == 0 {
            self.ground.to_mut()
        } else {
            self.upper.to_mut()
        };
        table[row] = links.len() as u32;
        table[row + 1..][..links.len()].copy_from_slice(Slot::numbers(links));
        let most = if level == 0 { 2 * self.m } else { self.m };
        // What is unused is zero: equal graphs are equal tables.
        table[row + 1 + links.len()..row + 1 + most].fill(0);
    }

    /// How many bytes of memory the links take.
    pub(crate) fn bytes(&self) -> usize {
        self.ground.heap_bytes()
            + self.upper.heap_bytes()
            + self.blocks.bytes()
            + self.levels.heap_bytes()
    }

    /// How many bytes a node takes at the ground.
    pub(crate) fn row_bytes(&self) -> usize {
        (self.most(0) + 1) * size_of::<u32>()
    }
}

/// The tables of the links.
#[derive(Clone, Copy)]
pub(crate) struct LinkSlices<'a> {
    m: usize,
    /// Nodes the tables cover: a link from elsewhere is held against it before it is followed.
    pub(crate) nodes: usize,
    ground: &'a [u32],
    blocks: &'a Blocks,
    upper: &'a [u32],
}

impl<'a> LinkSlices<'a> {
    #[inline(always)]
    pub(crate) fn neighbors(&self, node: Slot, level: usize) -> &'a [Slot] {
        if level == 0 {
            return links_of(self.ground_row(node), 2 * self.m);
        }
        let block = self.blocks.start(node);
        let row = block.map_or(usize::MAX, |block| {
            block as usize + (level - 1) * (self.m + 1)
        });
        let row = self.upper.get(row..).and_then(|row| row.get(..=self.m));
        row.map_or(&[], |row| links_of(row, self.m))
    }

    /// Asks for the links of a node at the ground.
    #[inline(always)]
    pub(crate) fn prefetch(&self, node: Slot) {
        let row = self.ground_row(node);
        row.iter().step_by(16).for_each(prefetch);
    }

    #[inline(always)]
    fn ground_row(&self, node: Slot) -> &'a [u32] {
        let stride = 2 * self.m + 1;
        &self.ground[node.index() * stride..][..stride]
    }
}

/// The links of a row that begins with their number, which in a damaged file may be any.
#[inline]
fn links_of(row: &[u32], most: usize) -> &[Slot] {
    Slot::slots(&row[1..][..(row[0] as usize).min(most)])
}
