//! A node with its distance in one sortable word; equal distances are ordered by node.

use crate::id::Slot;

/// A node and its distance in one word, ordered by distance, then by node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ranked(u64);

impl Ranked {
    pub(crate) fn new(distance: f32, node: Slot) -> Self {
        let bits = distance.to_bits();
        // Negative floats order backwards; all of them below the positive ones.
        let ordered = if bits >> 31 == 0 {
            bits | 1 << 31
        } else {
            !bits
        };
        Ranked(u64::from(ordered) << 32 | u64::from(node.0))
    }

    /// As the number that it is ordered by.
    pub(crate) fn word(self) -> u64 {
        self.0
    }

    pub(crate) fn of_word(word: u64) -> Self {
        Ranked(word)
    }

    pub(crate) fn node(self) -> Slot {
        Slot(self.0 as u32)
    }

    pub(crate) fn distance(self) -> f32 {
        let ordered = (self.0 >> 32) as u32;
        f32::from_bits(if ordered >> 31 == 1 {
            ordered & !(1 << 31)
        } else {
            !ordered
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ranks_order_by_distance_then_node(a: (f32, u32), b: (f32, u32)) {
            prop_assume!(!a.0.is_nan() && !b.0.is_nan());
            let (x, y) = (Ranked::new(a.0, Slot(a.1)), Ranked::new(b.0, Slot(b.1)));
            prop_assert_eq!(x.cmp(&y), a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            prop_assert_eq!((x.distance().to_bits(), x.node()), (a.0.to_bits(), Slot(a.1)));
        }
    }
}
