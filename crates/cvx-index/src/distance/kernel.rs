//! The kernel of each instruction set, chosen once before a loop begins.
//!
//! A kernel called through a branch on the instruction set is a call a hop, and nothing around it
//! may use the wide registers. Here the branch stands around the loop: [`Isa::run`] compiles a
//! [`Work`] once for each set, and the value of type [`Kernel`] that it is handed is the proof that
//! the processor has the instructions.

#[cfg(target_arch = "x86_64")]
use super::code_products::x86;
use super::code_products::{Chunk, GROUP, PACK, QueryChunk, products_scalar, tile_scalar};
use super::instruction_set::{Isa, Path};

/// An instruction set at work: only [`Isa::run`] hands one out.
pub(crate) trait Kernel: Copy {
    /// The products of a query and four rows, as [`products`](super::code_products::products) has them.
    fn products(self, query: &[QueryChunk], rows: [&[Chunk]; GROUP]) -> [i32; GROUP];

    /// The products of four queries with the rows of a [`pack`](super::code_products::pack).
    fn tile(self, queries: [&[QueryChunk]; GROUP], pack: &[Chunk]) -> [[i32; PACK]; GROUP];

    /// Which of at most 64 distances are not above a bound: a bit each, the first the lowest.
    fn within(self, distances: &[f32], bound: f32) -> u64;

    /// Puts a word into its place among ascending ones; the last of them falls out.
    fn put(self, words: &mut [[u64; EIGHT]], word: u64);
}

/// Words that are moved together.
pub(crate) const EIGHT: usize = 8;

/// What is to be compiled for every instruction set. `run` must be `inline(always)`, and so must
/// what it calls in a loop; a closure would be compiled for none.
pub(crate) trait Work {
    type Output;
    fn run(self, kernel: impl Kernel) -> Self::Output;
}

#[inline(always)]
fn within_scalar(distances: &[f32], bound: f32) -> u64 {
    let mut bits = 0;
    for (place, &distance) in distances.iter().enumerate() {
        bits |= u64::from(distance <= bound) << place;
    }
    bits
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx2")]
fn within_avx2(distances: &[f32], bound: f32) -> u64 {
    use std::arch::x86_64::*;
    let bounds = _mm256_set1_ps(bound);
    let (eights, rest) = distances.as_chunks::<8>();
    let mut bits = within_scalar(rest, bound) << ((8 * eights.len()) & 63);
    for (eight, place) in eights.iter().zip((0..).step_by(8)) {
        // SAFETY: 8 floats; the load asks for no alignment.
        let eight = unsafe { _mm256_loadu_ps(eight.as_ptr()) };
        let near = _mm256_cmp_ps::<_CMP_LE_OQ>(eight, bounds);
        bits |= u64::from(_mm256_movemask_ps(near) as u8) << place;
    }
    bits
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx512f")]
fn within_avx512(distances: &[f32], bound: f32) -> u64 {
    use std::arch::x86_64::*;
    let bounds = _mm512_set1_ps(bound);
    let mut bits = 0;
    for (some, place) in distances.chunks(16).zip((0..).step_by(16)) {
        let there = u16::MAX >> (16 - some.len());
        // SAFETY: only the floats that are there are loaded; the load asks for no alignment.
        let some = unsafe { _mm512_maskz_loadu_ps(there, some.as_ptr()) };
        bits |= u64::from(_mm512_mask_cmp_ps_mask::<_CMP_LE_OQ>(there, some, bounds)) << place;
    }
    bits
}

#[inline(always)]
fn put_scalar(words: &mut [[u64; EIGHT]], word: u64) {
    let words = words.as_flattened_mut();
    let place = words.partition_point(|&other| other < word);
    if let Some(last) = words.len().checked_sub(1).filter(|&last| place <= last) {
        words.copy_within(place..last, place + 1);
        words[place] = word;
    }
}

/// At every place the new word is the lesser of what is there and, of what is before it and the
/// one that comes, the greater: no search, no branch.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx512f")]
fn put_avx512(words: &mut [[u64; EIGHT]], word: u64) {
    use std::arch::x86_64::*;
    let word = _mm512_set1_epi64(word.cast_signed());
    let mut before = _mm512_setzero_si512();
    for eight in words {
        let place = eight.as_mut_ptr().cast();
        // SAFETY: 64 bytes; the load asks for no alignment.
        let there = unsafe { _mm512_loadu_si512(place) };
        let left = _mm512_alignr_epi64::<7>(there, before);
        let put = _mm512_min_epu64(there, _mm512_max_epu64(left, word));
        // SAFETY: as above.
        unsafe { _mm512_storeu_si512(place, put) };
        before = there;
    }
}

#[derive(Clone, Copy)]
struct Scalar;

impl Kernel for Scalar {
    #[inline(always)]
    fn products(self, query: &[QueryChunk], rows: [&[Chunk]; GROUP]) -> [i32; GROUP] {
        products_scalar(query, rows)
    }

    #[inline(always)]
    fn tile(self, queries: [&[QueryChunk]; GROUP], pack: &[Chunk]) -> [[i32; PACK]; GROUP] {
        tile_scalar(queries, pack)
    }

    #[inline(always)]
    fn within(self, distances: &[f32], bound: f32) -> u64 {
        within_scalar(distances, bound)
    }

    #[inline(always)]
    fn put(self, words: &mut [[u64; EIGHT]], word: u64) {
        put_scalar(words, word);
    }
}

/// Exists only within [`on_avx2`].
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
struct Avx2;

#[cfg(target_arch = "x86_64")]
impl Kernel for Avx2 {
    #[inline(always)]
    fn products(self, query: &[QueryChunk], rows: [&[Chunk]; GROUP]) -> [i32; GROUP] {
        // SAFETY: a value of this type exists only where the instructions were seen.
        unsafe { x86::products_avx2(query, rows) }
    }

    #[inline(always)]
    fn tile(self, queries: [&[QueryChunk]; GROUP], pack: &[Chunk]) -> [[i32; PACK]; GROUP] {
        // SAFETY: as above.
        unsafe { x86::tile_avx2(queries, pack) }
    }

    #[inline(always)]
    fn within(self, distances: &[f32], bound: f32) -> u64 {
        // SAFETY: as above.
        unsafe { within_avx2(distances, bound) }
    }

    #[inline(always)]
    fn put(self, words: &mut [[u64; EIGHT]], word: u64) {
        put_scalar(words, word);
    }
}

/// Exists only within [`on_avx512`].
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
struct Avx512;

#[cfg(target_arch = "x86_64")]
impl Kernel for Avx512 {
    #[inline(always)]
    fn products(self, query: &[QueryChunk], rows: [&[Chunk]; GROUP]) -> [i32; GROUP] {
        // SAFETY: a value of this type exists only where the instructions were seen.
        unsafe { x86::products_avx512(query, rows) }
    }

    #[inline(always)]
    fn tile(self, queries: [&[QueryChunk]; GROUP], pack: &[Chunk]) -> [[i32; PACK]; GROUP] {
        // SAFETY: as above.
        unsafe { x86::tile_avx512(queries, pack) }
    }

    #[inline(always)]
    fn within(self, distances: &[f32], bound: f32) -> u64 {
        // SAFETY: as above.
        unsafe { within_avx512(distances, bound) }
    }

    #[inline(always)]
    fn put(self, words: &mut [[u64; EIGHT]], word: u64) {
        // SAFETY: as above.
        unsafe { put_avx512(words, word) }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt,lzcnt")]
fn on_avx2<W: Work>(work: W) -> W::Output {
    work.run(Avx2)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni,bmi1,bmi2,popcnt,lzcnt")]
fn on_avx512<W: Work>(work: W) -> W::Output {
    work.run(Avx512)
}

impl Isa {
    /// Does the work with the instructions of this set.
    #[inline]
    pub(crate) fn run<W: Work>(self, work: W) -> W::Output {
        match self.0 {
            Path::Scalar => work.run(Scalar),
            // SAFETY: an `Isa` holds these paths only where the processor was seen to have the
            // instructions; the functions ask for nothing else.
            #[cfg(target_arch = "x86_64")]
            Path::Avx2 => unsafe { on_avx2(work) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Path::Avx512 => unsafe { on_avx512(work) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    struct Within<'a>(&'a [f32], f32);

    impl Work for Within<'_> {
        type Output = u64;

        fn run(self, kernel: impl Kernel) -> u64 {
            kernel.within(self.0, self.1)
        }
    }

    struct Put<'a>(&'a mut [[u64; EIGHT]], u64);

    impl Work for Put<'_> {
        type Output = ();

        fn run(self, kernel: impl Kernel) {
            kernel.put(self.0, self.1);
        }
    }

    proptest! {
        #[test]
        fn a_bit_tells_of_each_distance_whether_it_is_within_the_bound(
            distances in proptest::collection::vec(-3i8..4, 0..65), bound in -3i8..4,
        ) {
            let distances: Vec<f32> = distances.into_iter().map(f32::from).collect();
            let expected = within_scalar(&distances, f32::from(bound));
            for (at, &distance) in distances.iter().enumerate() {
                prop_assert_eq!(expected >> at & 1 == 1, distance <= f32::from(bound));
            }
            for (name, isa) in Isa::available() {
                let found = isa.run(Within(&distances, f32::from(bound)));
                prop_assert_eq!(found, expected, "on {}", name);
            }
        }

        #[test]
        fn a_word_is_put_into_its_place_and_the_last_falls_out(
            mut words in proptest::collection::vec(0u64..40, 0..41), word in 0u64..40,
        ) {
            words.truncate(words.len() / EIGHT * EIGHT);
            words.sort_unstable();
            let eights = words.as_chunks::<EIGHT>().0.to_vec();
            words.push(word);
            words.sort_unstable();
            words.pop();
            for (name, isa) in Isa::available() {
                let mut found = eights.clone();
                isa.run(Put(&mut found, word));
                prop_assert_eq!(found.as_flattened(), &words, "on {}", name);
            }
        }
    }
}
