//! The candidates of a beam search: a sorted array, and how wide the beam may grow.

use crate::distance::kernel::{EIGHT, Kernel};
use crate::graph::ranked::Ranked;
use crate::id::Slot;

/// Words that a pool without a bound begins with.
const SOME: usize = 1024;
/// A pool may keep so many times its width of those that are hardly farther.
const STRETCH: usize = 3;
/// How much farther twice as many nodes reach, which is 2^(2/d) - 1 for squared distances among d
/// dimensions: for d = 24, about what sentence vectors are locally.
const A_DOUBLING: f32 = 1.0 / 17.0;

/// How many candidates a pool keeps: the nearest `width`, then up to `most` of those that are nearer
/// than `reach` times the `near`-th.
///
/// How far the `width`-th is tells how long the search for the `near` nearest has to be, but only on
/// average: around one query lie many at nearly the same distance, around another few. A reach
/// from the distance of the `near`-th gives to the former what the latter does not need. It is the
/// rule of Al-Jazzazi et al., "Distance adaptive beam search", 2025, over a beam of fixed width.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BeamWidth {
    width: usize,
    most: usize,
    near: usize,
    reach: f32,
}

impl BeamWidth {
    /// For so many and no more.
    pub(crate) fn of(width: usize) -> Self {
        BeamWidth {
            width,
            most: width,
            near: 1,
            reach: 0.0,
        }
    }

    /// For `width`, and for as many more as the search for the `near` nearest needs.
    pub(crate) fn around(near: usize, width: usize) -> Self {
        // A logarithm that is linear between the powers of two: the same on every machine.
        let (mut times, mut doublings) = (width as f32 / near as f32, 0.0);
        while times >= 2.0 {
            times /= 2.0;
            doublings += 1.0;
        }
        BeamWidth {
            width,
            most: width.saturating_mul(STRETCH),
            near,
            reach: 1.0 + A_DOUBLING * (doublings + times - 1.0),
        }
    }
}

/// A candidate in one word, ordered by distance, then by node.
///
/// The last bit of the distance makes room for a mark below the node, where it changes no order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate(u64);

impl Candidate {
    const EXPANDED: u64 = 1;

    fn new(seen: Ranked) -> Self {
        Candidate((seen.word() >> 33) << 33 | u64::from(seen.node().0) << 1)
    }

    fn node(self) -> Slot {
        Slot((self.0 >> 1) as u32)
    }

    #[inline(always)]
    fn ranked(self) -> Ranked {
        Ranked::new(Ranked::of_word(self.0).distance(), self.node())
    }
}

/// Candidates, nearest first, of which those are kept that there is [`BeamWidth`] for.
///
/// What lies behind those that are kept is left over from them, or the word above all candidates.
#[derive(Default)]
pub(crate) struct CandidatePool {
    words: Vec<[u64; EIGHT]>,
    len: usize,
    room: BeamWidth,
    /// Before this place all are expanded, but for those that came since the last was.
    open: usize,
    /// The nearest that came since the last was expanded.
    fresh: u64,
}

impl CandidatePool {
    pub(crate) fn clear(&mut self, room: BeamWidth) {
        self.words.clear();
        self.words
            .resize(room.most.min(SOME).div_ceil(EIGHT), [u64::MAX; EIGHT]);
        self.len = 0;
        self.room = room;
        self.open = 0;
        self.fresh = u64::MAX;
    }

    #[inline(always)]
    fn words(&self) -> &[u64] {
        &self.words.as_flattened()[..self.len]
    }

    /// How far the candidate at a place is; infinite where there is none.
    #[inline(always)]
    fn distance(&self, place: usize) -> f32 {
        let word = self.words().get(place);
        word.map_or(f32::INFINITY, |&word| Ranked::of_word(word).distance())
    }

    /// Beyond this distance nothing is worth keeping; infinite until the pool is as wide as it is
    /// meant to be.
    #[inline(always)]
    pub(crate) fn bound(&self) -> f32 {
        let BeamWidth {
            width,
            most,
            near,
            reach,
        } = self.room;
        let wide = self.distance(width - 1);
        if most == width {
            return wide;
        }
        let reached = self.distance(near - 1) * reach;
        reached.max(wide).min(self.distance(most - 1))
    }

    /// Puts a node that is not in the pool into its place, if it is among the nearest.
    #[inline(always)]
    pub(crate) fn insert(&mut self, kernel: impl Kernel, seen: Ranked) -> bool {
        let word = Candidate::new(seen).0;
        if self.len == self.room.most {
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

    /// The nearest candidate that was not expanded, if it is within the bound; from then on it is.
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
        let nearest = Candidate(rest[ahead]).ranked();
        self.open += ahead;
        if nearest.distance() > self.bound() {
            return None;
        }
        self.words.as_flattened_mut()[self.open] |= Candidate::EXPANDED;
        self.open += 1;
        Some(nearest)
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
    use crate::distance::instruction_set::Isa;
    use crate::distance::kernel::Work;
    use proptest::prelude::*;

    struct Put<'a>(&'a mut CandidatePool, Ranked);

    impl Work for Put<'_> {
        type Output = bool;

        fn run(self, kernel: impl Kernel) -> bool {
            self.0.insert(kernel, self.1)
        }
    }

    fn nodes(pool: &CandidatePool) -> Vec<Slot> {
        pool.ranked().map(Ranked::node).collect()
    }

    proptest! {
        #[test]
        fn a_pool_keeps_the_nearest_and_expands_each_once(
            distances in proptest::collection::vec(-4i8..30, 1..60), most in 1usize..20,
        ) {
            for (_, isa) in Isa::available() {
                let mut pool = CandidatePool::default();
                pool.clear(BeamWidth::of(most));
                let mut all: Vec<Ranked> = Vec::new();
                for (&distance, node) in distances.iter().zip((0..).map(Slot)) {
                    let seen = Ranked::new(f32::from(distance), node);
                    let bound = pool.bound();
                    let kept = isa.run(Put(&mut pool, seen));
                    prop_assert!(kept || f32::from(distance) >= bound);
                    all.push(seen);
                }
                all.sort_unstable();
                all.truncate(most);
                let nearest: Vec<Slot> = all.iter().map(|seen| seen.node()).collect();
                prop_assert_eq!(nodes(&pool), nearest.clone());
                let expanded: Vec<Slot> =
                    std::iter::from_fn(|| pool.expand()).map(Ranked::node).collect();
                prop_assert_eq!(expanded, nearest);
                // A nearer one that comes later is expanded next.
                if isa.run(Put(&mut pool, Ranked::new(-9.0, Slot(1000)))) {
                    prop_assert_eq!(pool.expand().map(Ranked::node), Some(Slot(1000)));
                }
                prop_assert!(pool.expand().is_none());
            }
        }

        #[test]
        fn beyond_its_width_a_pool_keeps_what_is_hardly_farther_than_the_near_ones(
            distances in proptest::collection::vec(8u8..40, 1..60),
            near in 1usize..6, wider in 0usize..10,
        ) {
            let width = near + wider;
            let room = BeamWidth::around(near, width);
            let mut all: Vec<Ranked> = distances
                .iter()
                .zip((0..).map(Slot))
                .map(|(&distance, node)| Ranked::new(f32::from(distance), node))
                .collect();
            for (_, isa) in Isa::available() {
                let mut pool = CandidatePool::default();
                pool.clear(room);
                for &seen in &all {
                    isa.run(Put(&mut pool, seen));
                }
                all.sort_unstable();
                let distance = |place: usize| all.get(place).map_or(f32::INFINITY, |seen| seen.distance());
                let bound = distance(width - 1)
                    .max(distance(near - 1) * room.reach)
                    .min(distance(STRETCH * width - 1));
                prop_assert_eq!(pool.bound(), bound);
                let within = all.iter().take(STRETCH * width).filter(|seen| seen.distance() <= bound);
                let expanded = std::iter::from_fn(|| pool.expand());
                prop_assert_eq!(expanded.collect::<Vec<_>>(), within.copied().collect::<Vec<_>>());
            }
        }

        #[test]
        fn what_comes_while_others_are_expanded_is_expanded_in_its_turn(
            turns in proptest::collection::vec((0u16..500, any::<bool>()), 1..300),
            most in prop_oneof![1usize..40, Just(usize::MAX)],
        ) {
            for (_, isa) in Isa::available() {
                let mut pool = CandidatePool::default();
                pool.clear(BeamWidth::of(most));
                // Distance, node and whether it was expanded, the nearest first.
                let mut twin: Vec<(u16, Slot, bool)> = Vec::new();
                for (&(distance, expands), node) in turns.iter().zip((0..).map(Slot)) {
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

    #[test]
    fn twice_the_width_reaches_a_seventeenth_farther() {
        let reach = |width| BeamWidth::around(10, width).reach;
        assert_eq!(
            [reach(10), reach(20), reach(40)],
            [1.0, 18.0 / 17.0, 19.0 / 17.0]
        );
        assert!(reach(20) < reach(25) && reach(25) < reach(40));
        let plain = BeamWidth::of(7);
        assert_eq!((plain.width, plain.most), (7, 7));
    }
}
