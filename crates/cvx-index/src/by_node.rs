//! Maps from nodes to what is known of them for the length of one call.

use crate::id::Slot;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map from nodes.
pub(crate) type ByNode<T> = HashMap<Slot, T, BuildHasherDefault<NodeHasher>>;

/// Node ids are dense and nobody's to choose: one multiplication spreads them well enough.
#[derive(Default)]
pub(crate) struct NodeHasher(u64);

impl Hasher for NodeHasher {
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
