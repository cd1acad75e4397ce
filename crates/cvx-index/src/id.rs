//! Identifiers: `NodeId`, `EntityId`, `RegionId`, and `Slot`, a node's place in the tables.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A node of the index: 0, 1, 2... in the order of insertion, never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NodeId(pub u32);

impl NodeId {
    /// The id as a number to count or index by.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The `index`-th id ever given; an index gives fewer than u32::MAX.
    #[must_use]
    pub const fn from_index(index: usize) -> Self {
        debug_assert!(index <= u32::MAX as usize);
        NodeId(index as u32)
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Who a node belongs to: an episode, an agent, a thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct EntityId(pub u64);

impl fmt::Display for EntityId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A cell of the vector space, named by the node that is its hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RegionId(pub NodeId);

impl fmt::Display for RegionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Where a node lies in the tables: as long as nothing was compacted or passed over the number of its id,
/// later another. Whoever is outside the index sees ids alone.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[repr(transparent)]
pub(crate) struct Slot(pub(crate) u32);

// SAFETY: a u32 by another name, of which every pattern is a value.
unsafe impl bytemuck::Zeroable for Slot {}
// SAFETY: as above; it is Copy, 'static and repr(transparent).
unsafe impl bytemuck::Pod for Slot {}

impl Slot {
    /// The slot as an offset into columns.
    #[inline(always)]
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }

    /// The slot at an offset into columns, which hold fewer than u32::MAX rows.
    #[inline(always)]
    pub(crate) const fn at(index: usize) -> Self {
        debug_assert!(index <= u32::MAX as usize);
        Slot(index as u32)
    }

    /// Slots `start..end`.
    pub(crate) fn range(
        start: usize,
        end: usize,
    ) -> impl DoubleEndedIterator<Item = Slot> + ExactSizeIterator + Clone {
        (start as u32..end as u32).map(Slot)
    }

    /// The slots as plain numbers.
    #[inline(always)]
    pub(crate) fn numbers(slots: &[Slot]) -> &[u32] {
        bytemuck::cast_slice(slots)
    }

    /// Plain numbers as slots.
    #[inline(always)]
    pub(crate) fn slots(numbers: &[u32]) -> &[Slot] {
        bytemuck::cast_slice(numbers)
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
