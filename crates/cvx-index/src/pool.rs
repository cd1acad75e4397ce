//! The candidates of a walk: a flat sorted array, which at a few hundred entries beats a heap.

use crate::scratch::Ranked;

/// A candidate in one word, ordered by distance, then by node.
///
/// The last bit of the distance makes room for a mark below the node, where it changes no order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate(u64);

impl Candidate {
    const EXPANDED: u64 = 1;

    fn new(seen: Ranked) -> Self {
        Candidate((seen.word() >> 33) << 33 | u64::from(seen.node()) << 1)
    }

    fn node(self) -> u32 {
        (self.0 >> 1) as u32
    }
}

/// Candidates, nearest first, of which at most so many are kept.
#[derive(Default)]
pub(crate) struct Pool {
    candidates: Vec<Candidate>,
    most: usize,
    /// Before this place all are expanded.
    open: usize,
}

impl Pool {
    pub(crate) fn clear(&mut self, most: usize) {
        self.candidates.clear();
        self.most = most;
        self.open = 0;
    }

    /// Beyond this distance nothing is kept; infinite until the pool is full.
    #[inline]
    pub(crate) fn bound(&self) -> f32 {
        match self.candidates.last() {
            Some(last) if self.candidates.len() == self.most => Ranked::of_word(last.0).distance(),
            _ => f32::INFINITY,
        }
    }

    /// Puts a node that is not in the pool into its place, if it is among the nearest.
    #[inline]
    pub(crate) fn insert(&mut self, seen: Ranked) -> bool {
        let candidate = Candidate::new(seen);
        let place = self.candidates.partition_point(|&other| other < candidate);
        if self.candidates.len() == self.most {
            if place == self.most {
                return false;
            }
            self.candidates.pop();
        }
        self.candidates.insert(place, candidate);
        self.open = self.open.min(place);
        true
    }

    /// The nearest candidate that was not expanded; from then on it is.
    #[inline]
    pub(crate) fn expand(&mut self) -> Option<Ranked> {
        let rest = self.candidates.get_mut(self.open..)?;
        let ahead = rest
            .iter()
            .position(|candidate| candidate.0 & Candidate::EXPANDED == 0)?;
        let candidate = &mut rest[ahead];
        let ranked = Ranked::new(Ranked::of_word(candidate.0).distance(), candidate.node());
        candidate.0 |= Candidate::EXPANDED;
        self.open += ahead + 1;
        Some(ranked)
    }

    pub(crate) fn len(&self) -> usize {
        self.candidates.len()
    }

    /// The nodes and their distances, nearest first.
    pub(crate) fn ranked(&self) -> impl Iterator<Item = Ranked> + '_ {
        let distance = |candidate: &Candidate| Ranked::of_word(candidate.0).distance();
        self.candidates
            .iter()
            .map(move |each| Ranked::new(distance(each), each.node()))
    }

    /// How many of the first are not farther than `distance`.
    pub(crate) fn within(&self, distance: f32) -> usize {
        self.candidates
            .partition_point(|&other| Ranked::of_word(other.0).distance() <= distance)
    }

    /// The distance of the candidate at a place.
    pub(crate) fn distance(&self, place: usize) -> Option<f32> {
        self.candidates
            .get(place)
            .map(|candidate| Ranked::of_word(candidate.0).distance())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_pool_keeps_the_nearest_and_expands_each_once(
            distances in proptest::collection::vec(-4i8..30, 1..60), most in 1usize..20,
        ) {
            let mut pool = Pool::default();
            pool.clear(most);
            let mut all: Vec<Ranked> = Vec::new();
            for (&distance, node) in distances.iter().zip(0..) {
                let seen = Ranked::new(f32::from(distance), node);
                let bound = pool.bound();
                let kept = pool.insert(seen);
                prop_assert!(kept || f32::from(distance) >= bound);
                all.push(seen);
            }
            all.sort_unstable();
            all.truncate(most);
            let nodes: Vec<u32> = all.iter().map(|seen| seen.node()).collect();
            prop_assert_eq!(pool.ranked().map(Ranked::node).collect::<Vec<_>>(), nodes.clone());
            let expanded: Vec<u32> = std::iter::from_fn(|| pool.expand()).map(Ranked::node).collect();
            prop_assert_eq!(expanded, nodes);
            // A nearer one that comes later is expanded next.
            if pool.insert(Ranked::new(-9.0, 1000)) {
                prop_assert_eq!(pool.expand().map(Ranked::node), Some(1000));
            }
            prop_assert!(pool.expand().is_none());
        }
    }
}
