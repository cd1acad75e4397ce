//! The epoch of the regions: a snapshot of hubs, with what was computed from it so far.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::id::Slot;

/// The extent of the snapshot, and what was worked out from it so far.
#[derive(Debug, Default)]
pub(crate) struct RegionEpoch {
    number: u64,
    /// Nodes in the slots below are of the snapshot.
    nodes: usize,
    vectors: usize,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
pub(super) struct Known {
    /// How many levels have hubs.
    pub(super) levels: Option<usize>,
    pub(super) hubs: BTreeMap<usize, Arc<[Slot]>>,
    /// Per node its hub; shorter than the index where nodes came later.
    pub(super) assigned: BTreeMap<usize, Arc<[Slot]>>,
}

/// Of a node without a region.
pub(super) const NONE: Slot = Slot(u32::MAX);

impl RegionEpoch {
    pub(crate) fn restored(number: u64, nodes: usize, vectors: usize) -> Self {
        RegionEpoch {
            number,
            nodes,
            vectors,
            known: Mutex::default(),
        }
    }

    /// Its number; every new one has a higher.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// How many nodes and vectors the index had when the epoch began.
    pub(crate) fn extent(&self) -> (usize, usize) {
        (self.nodes, self.vectors)
    }

    /// Whether a node is of the snapshot.
    pub(crate) fn covers(&self, node: Slot) -> bool {
        node.index() < self.nodes
    }

    /// Begins an epoch.
    pub(crate) fn begin(&mut self, nodes: usize, vectors: usize) {
        self.number += 1;
        self.nodes = nodes;
        self.vectors = vectors;
        self.forget();
    }

    /// Begins an epoch if the vectors have doubled with the last of `nodes`; told of each vector in
    /// turn, so that epochs do not depend on how nodes were batched.
    pub(crate) fn grown(&mut self, nodes: usize, vectors: usize) {
        if vectors > 0 && vectors >= 2 * self.vectors {
            self.begin(nodes, vectors);
        }
    }

    /// Forgets what was worked out: a node took another vector.
    pub(crate) fn forget(&mut self) {
        *self.known.get_mut().unwrap_or_else(PoisonError::into_inner) = Known::default();
    }

    /// Takes out nodes that are no hubs above the ground: there nobody else's region changes.
    pub(crate) fn remove(&mut self, gone: &[Slot]) {
        let known = self.known.get_mut().unwrap_or_else(PoisonError::into_inner);
        known.levels = None;
        known.hubs.remove(&0);
        known.assigned.remove(&0);
        for assigned in known.assigned.values_mut() {
            // Copied only where somebody still reads it.
            let hubs = Arc::make_mut(assigned);
            for &node in gone {
                if let Some(hub) = hubs.get_mut(node.index()) {
                    *hub = NONE;
                }
            }
        }
    }

    pub(super) fn known(&self) -> MutexGuard<'_, Known> {
        // Entries are put in whole: a panic elsewhere leaves nothing half done.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
