//! The edges of all nodes in one direction: mapped from a snapshot, with changes in memory.

use std::borrow::Cow;

use super::row::{EdgeRow, Half};
use crate::columns::column::Column;
use crate::distance::prefetch::prefetch;
use crate::id::Slot;

/// Edges in a cache line.
const IN_A_LINE: usize = 5;

/// The rows as two flat tables, which may lie in a mapped file.
///
/// A file that is overwritten while it is open may hold anything: what the tables say is held
/// against their bounds at every use.
#[derive(Clone, Debug)]
pub(crate) struct FlatEdges {
    /// Per node where its row ends in `halves`; nodes behind the last that has edges are left out.
    pub(crate) ends: Column<u64>,
    pub(crate) halves: Column<Half>,
}

/// The tables of [`FlatEdges`] on their way into a snapshot.
#[derive(Debug, PartialEq)]
pub(crate) struct EdgeTables<'a> {
    pub(crate) ends: Cow<'a, [u64]>,
    pub(crate) halves: Cow<'a, [Half]>,
}

impl Default for FlatEdges {
    fn default() -> Self {
        FlatEdges {
            ends: Column::new(),
            halves: Column::new(),
        }
    }
}

impl FlatEdges {
    #[inline]
    fn row(&self, node: Slot) -> &[Half] {
        let ends = &*self.ends;
        let Some(&end) = ends.get(node.index()) else {
            return &[];
        };
        let start = node.index().checked_sub(1).map_or(0, |before| ends[before]);
        let halves = self.halves.get(start as usize..end as usize);
        halves.unwrap_or(&[])
    }

    /// Whether every row is one that a layer makes, over so many nodes and kinds.
    pub(super) fn sound(&self, nodes: usize, kinds: usize, lives: impl Fn(Slot) -> bool) -> bool {
        let ends = &*self.ends;
        let last_row = Slot::at(ends.len().saturating_sub(1));
        ends.len() <= nodes
            && ends.is_sorted()
            && ends.last().copied().unwrap_or(0) == self.halves.len() as u64
            && (ends.is_empty() || !self.row(last_row).is_empty())
            && Slot::range(0, ends.len()).all(|node| {
                let row = self.row(node);
                let (mut sound, mut before) = (row.is_empty() || lives(node), (0, Slot(0)));
                for half in row {
                    // 0 is the kind of temporal edges, which no layer holds: keys are above (0, 0).
                    // Of weights the bits are compared: -0 would be a second spelling of 0.
                    sound &= half.key() > before
                        && half.kind > 0
                        && (half.kind as usize) < kinds
                        && half.weight.to_bits() <= 1.0f32.to_bits()
                        && half.node != node
                        && lives(half.node);
                    before = half.key();
                }
                sound
            })
    }
}

/// The rows of all nodes in one direction.
#[derive(Clone, Debug, Default)]
pub(crate) struct EdgeRows {
    flat: FlatEdges,
    /// Rows that are no longer as `flat` has them, whole.
    changed: Vec<Option<Vec<Half>>>,
}

impl EdgeRows {
    pub(super) fn of(flat: FlatEdges) -> Self {
        EdgeRows {
            flat,
            changed: Vec::new(),
        }
    }

    /// Up to which node there may be edges.
    pub(super) fn nodes(&self) -> usize {
        self.flat.ends.len().max(self.changed.len())
    }

    #[inline]
    pub(super) fn row(&self, node: Slot) -> EdgeRow<'_> {
        match self.changed.get(node.index()) {
            Some(Some(row)) => EdgeRow(row),
            _ => EdgeRow(self.flat.row(node)),
        }
    }

    fn row_mut(&mut self, node: Slot) -> &mut Vec<Half> {
        if self.changed.len() <= node.index() {
            self.changed.resize_with(node.index() + 1, || None);
        }
        let flat = &self.flat;
        self.changed[node.index()].get_or_insert_with(|| flat.row(node).to_vec())
    }

    /// Puts an edge in its place; whether it is new.
    pub(super) fn put(&mut self, node: Slot, half: Half) -> bool {
        let row = self.row_mut(node);
        match row.binary_search_by_key(&half.key(), Half::key) {
            Ok(place) => {
                row[place] = half;
                false
            }
            Err(place) => {
                row.insert(place, half);
                true
            }
        }
    }

    /// Takes the edge to a node away; whether it was there.
    pub(super) fn take(&mut self, node: Slot, kind: u32, other: Slot) -> bool {
        let key = (kind, other);
        let place = self.row(node).0.binary_search_by_key(&key, Half::key);
        if let Ok(place) = place {
            self.row_mut(node).remove(place);
        }
        place.is_ok()
    }

    /// Takes all edges of a node away.
    pub(super) fn take_row(&mut self, node: Slot) -> Vec<Half> {
        match self.row(node).is_empty() {
            true => Vec::new(),
            false => std::mem::take(self.row_mut(node)),
        }
    }

    /// Asks for the rows of these nodes, before they are read one by one.
    pub(super) fn prefetch(&self, nodes: impl Iterator<Item = Slot> + Clone) {
        let ends = &*self.flat.ends;
        for node in nodes.clone() {
            self.changed
                .get(node.index())
                .into_iter()
                .for_each(prefetch);
            ends.get(node.index()).into_iter().for_each(prefetch);
        }
        // Where a row lies is known only once its entry is here.
        for node in nodes {
            let lines = self.row(node).0.chunks(IN_A_LINE);
            lines.for_each(|line| prefetch(&line[0]));
        }
    }

    /// All rows as flat tables, equal for equal rows.
    pub(super) fn tables(&self) -> EdgeTables<'_> {
        if self.changed.is_empty() {
            return EdgeTables {
                ends: Cow::Borrowed(&self.flat.ends),
                halves: Cow::Borrowed(&self.flat.halves),
            };
        }
        let last = Slot::range(0, self.nodes()).rfind(|&node| !self.row(node).is_empty());
        let (mut ends, mut halves) = (Vec::new(), Vec::new());
        for node in Slot::range(0, last.map_or(0, |last| last.index() + 1)) {
            halves.extend_from_slice(self.row(node).0);
            ends.push(halves.len() as u64);
        }
        EdgeTables {
            ends: Cow::Owned(ends),
            halves: Cow::Owned(halves),
        }
    }
}

impl PartialEq for EdgeRows {
    fn eq(&self, other: &Self) -> bool {
        Slot::range(0, self.nodes().max(other.nodes()))
            .all(|node| self.row(node).0 == other.row(node).0)
    }
}
