//! Hash functions: random draws from a seed, and fast maps keyed by node.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::id::Slot;

/// A map from the slots of nodes.
pub(crate) type ByNode<T> = HashMap<Slot, T, BuildHasherDefault<SlotHasher>>;

/// Slots are dense and nobody's to choose: one multiplication spreads them well enough.
#[derive(Default)]
pub(crate) struct SlotHasher(u64);

impl Hasher for SlotHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes
            .iter()
            .for_each(|&byte| self.write_u32(u32::from(byte)));
    }

    fn write_u32(&mut self, node: u32) {
        self.0 = (self.0.rotate_left(5) ^ u64::from(node)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 ^= self.0 >> 32;
    }
}

/// The next number of Steele, Lea & Flood's SplitMix64 after `state`.
pub(crate) fn splitmix(state: u64) -> u64 {
    let mut hash = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    hash ^ (hash >> 31)
}
