//! The three identities: a row of the index, who it belongs to, a cell of the space.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A row of the index: 0, 1, 2... in the order of insertion, never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NodeId(pub u32);

impl NodeId {
    /// The row as an offset into columns.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The id of row `index`; rows are created by the columns, which keep them within u32.
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
pub type RegionId = NodeId;
