//! The candidates of a walk: a flat sorted array, which at a few hundred entries beats a heap.

use crate::distance::kernel::{EIGHT, Kernel};
use crate::scratch::Ranked;

/// Room that a pool without a bound begins with.
const SOME: usize = 1024;

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

    #[inline(always)]
    fn ranked(self) -> Ranked {
        Ranked::new(Ranked::of_word(self.0).distance(), self.node())
    }
}

/// Candidates, nearest first, of which at most so many are kept.
///
/// What lies behind those that are kept is left over from them, or the word above all candidates.
#[derive(Default)]
pub(crate) struct Pool {
    words: Vec<[u64; EIGHT]>,
    len: usize,
    most: usize,
    /// Before this place all are expanded, but for those that came since the last was.
    open: usize,
    /// The nearest that came since the last was expanded.
    fresh: u64,
}

impl Pool {
    pub(crate) fn clear(&mut self, most: usize) {
        self.words.clear();
        self.words
            .resize(most.min(SOME).div_ceil(EIGHT), [u64::MAX; EIGHT]);
        self.len = 0;
        self.most = most;
        self.open = 0;
        self.fresh = u64::MAX;
    }

    #[inline(always)]
    fn words(&self) -> &[u64] {
        &self.words.as_flattened()[..self.len]
    }

    /// Beyond this distance nothing is kept; infinite until the pool is full.
    #[inline(always)]
    pub(crate) fn bound(&self) -> f32 {
        match self.words().last() {
            Some(&last) if self.len == self.most => Ranked::of_word(last).distance(),
            _ => f32::INFINITY,
        }
    }

    /// Puts a node that is not in the pool into its place, if it is among the nearest.
    #[inline(always)]
    pub(crate) fn insert(&mut self, kernel: impl Kernel, seen: Ranked) -> bool {
        let word = Candidate::new(seen).0;
        if self.len == self.most {
            if self.words().last().is_none_or(|&last| last < word) {
                return false;
            }
        } else {
            self.len += 1;
            if self.len > self.words.len() * EIGHT {
                self.words.resize(2 * self.words.len(), [u64::MAX; EIGHT]);
            }
        }
        let used = &mut self.words[..self.len.div_ceil(EIGHT)];
        kernel.put(used, word);
        self.fresh = self.fresh.min(word);
        true
    }

    /// The nearest candidate that was not expanded; from then on it is.
    #[inline(always)]
    pub(crate) fn expand(&mut self) -> Option<Ranked> {
        let words = &mut self.words.as_flattened_mut()[..self.len];
        let before = words.get(..self.open)?;
        if before.last().is_some_and(|&last| self.fresh <= last) {
            self.open = before.partition_point(|&word| word < self.fresh);
        }
        self.fresh = u64::MAX;
        let rest = &mut words[self.open..];
        let ahead = rest
            .iter()
            .position(|word| word & Candidate::EXPANDED == 0)?;
        let candidate = Candidate(rest[ahead]);
        rest[ahead] |= Candidate::EXPANDED;
        self.open += ahead + 1;
        Some(candidate.ranked())
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The nodes and their distances, nearest first.
    pub(crate) fn ranked(&self) -> impl Iterator<Item = Ranked> + '_ {
        self.words().iter().map(|&word| Candidate(word).ranked())
    }

    /// How many of the first are not farther than `distance`.
    pub(crate) fn within(&self, distance: f32) -> usize {
        self.words()
            .partition_point(|&word| Ranked::of_word(word).distance() <= distance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distance::isa::Isa;
    use crate::distance::kernel::Work;
    use proptest::prelude::*;

    struct Put<'a>(&'a mut Pool, Ranked);

    impl Work for Put<'_> {
        type Output = bool;

        fn run(self, kernel: impl Kernel) -> bool {
            self.0.insert(kernel, self.1)
        }
    }

    fn nodes(pool: &Pool) -> Vec<u32> {
        pool.ranked().map(Ranked::node).collect()
    }

    proptest! {
        #[test]
        fn a_pool_keeps_the_nearest_and_expands_each_once(
            distances in proptest::collection::vec(-4i8..30, 1..60), most in 1usize..20,
        ) {
            for (_, isa) in Isa::available() {
                let mut pool = Pool::default();
                pool.clear(most);
                let mut all: Vec<Ranked> = Vec::new();
                for (&distance, node) in distances.iter().zip(0..) {
                    let seen = Ranked::new(f32::from(distance), node);
                    let bound = pool.bound();
                    let kept = isa.run(Put(&mut pool, seen));
                    prop_assert!(kept || f32::from(distance) >= bound);
                    all.push(seen);
                }
                all.sort_unstable();
                all.truncate(most);
                let nearest: Vec<u32> = all.iter().map(|seen| seen.node()).collect();
                prop_assert_eq!(nodes(&pool), nearest.clone());
                let expanded: Vec<u32> =
                    std::iter::from_fn(|| pool.expand()).map(Ranked::node).collect();
                prop_assert_eq!(expanded, nearest);
                // A nearer one that comes later is expanded next.
                if isa.run(Put(&mut pool, Ranked::new(-9.0, 1000))) {
                    prop_assert_eq!(pool.expand().map(Ranked::node), Some(1000));
                }
                prop_assert!(pool.expand().is_none());
            }
        }

        #[test]
        fn what_comes_while_others_are_expanded_is_expanded_in_its_turn(
            turns in proptest::collection::vec((0u16..500, any::<bool>()), 1..300),
            most in prop_oneof![1usize..40, Just(usize::MAX)],
        ) {
            for (_, isa) in Isa::available() {
                let mut pool = Pool::default();
                pool.clear(most);
                // Distance, node and whether it was expanded, the nearest first.
                let mut twin: Vec<(u16, u32, bool)> = Vec::new();
                for (&(distance, expands), node) in turns.iter().zip(0..) {
                    isa.run(Put(&mut pool, Ranked::new(f32::from(distance), node)));
                    twin.push((distance, node, false));
                    twin.sort_unstable();
                    twin.truncate(most);
                    if expands {
                        let next = twin.iter_mut().find(|(_, _, expanded)| !expanded);
                        let expected = next.map(|next| {
                            next.2 = true;
                            next.1
                        });
                        prop_assert_eq!(pool.expand().map(Ranked::node), expected);
                    }
                }
                prop_assert_eq!(nodes(&pool), twin.iter().map(|one| one.1).collect::<Vec<_>>());
            }
        }
    }
}
