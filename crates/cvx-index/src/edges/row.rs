//! The edges of one node, laid out the same in memory and in a snapshot.

use super::edge::HalfEdge;
use super::kind::EdgeKind;
use crate::id::Slot;

/// Where the edge of a node leads: plain numbers, so that a table of them can be mapped.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub(crate) struct Half {
    pub(super) node: Slot,
    /// The place of its kind among all kinds.
    pub(super) kind: u32,
    pub(super) weight: f32,
}

// SAFETY: three numbers of 4 bytes without padding, for which zeros and every other pattern are
// values.
unsafe impl bytemuck::Zeroable for Half {}
// SAFETY: as above; it is Copy, 'static and repr(C).
unsafe impl bytemuck::Pod for Half {}

impl Half {
    pub(crate) fn new(node: Slot, kind: EdgeKind, weight: f32) -> Self {
        Half {
            node,
            kind: kind.place() as u32,
            weight,
        }
    }

    /// What rows are sorted by.
    #[inline]
    pub(super) fn key(&self) -> (u32, Slot) {
        (self.kind, self.node)
    }

    #[inline]
    fn edge(self) -> HalfEdge<Slot> {
        HalfEdge {
            node: self.node,
            kind: EdgeKind::at_place(self.kind),
            weight: self.weight,
        }
    }
}

/// Edges of one node in one direction, by kind, then by the node at the other end.
#[derive(Clone, Copy, Debug)]
pub struct EdgeRow<'a>(pub(super) &'a [Half]);

impl<'a> EdgeRow<'a> {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The edges in order.
    #[inline]
    pub fn iter(
        &self,
    ) -> impl DoubleEndedIterator<Item = HalfEdge<Slot>> + ExactSizeIterator + use<'a> {
        self.0.iter().map(|half| half.edge())
    }

    /// The last `most` of them.
    pub(crate) fn last(&self, most: usize) -> Self {
        EdgeRow(&self.0[self.0.len().saturating_sub(most)..])
    }

    /// An edge that no table holds, if there is one.
    pub(crate) fn of(half: &'a Option<Half>) -> Self {
        EdgeRow(half.as_slice())
    }

    /// Those of one kind.
    #[inline]
    pub(super) fn of_kind(&self, kind: u32) -> Self {
        let row = self.0;
        if let (Some(first), Some(last)) = (row.first(), row.last())
            && (first.kind, last.kind) == (kind, kind)
        {
            return *self;
        }
        let start = row.partition_point(|half| half.kind < kind);
        let len = row[start..].partition_point(|half| half.kind == kind);
        EdgeRow(&row[start..start + len])
    }
}
