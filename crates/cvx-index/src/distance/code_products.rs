//! Inner products of 8-bit codes: whole numbers, the same on every instruction set.

use std::ops::Range;

use super::prefetch::{prefetch, prefetch_at};

/// Components in a cache line.
pub(crate) const CHUNK: usize = 64;
/// What is added to a component to store it without a sign.
pub(crate) const BIAS: u8 = 128;
/// Rows measured together, so that they share the loads of the query.
pub(crate) const GROUP: usize = 4;

/// A cache line of a row: components from -127 to 127, each with [`BIAS`] added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
pub(crate) struct Chunk(pub(crate) [u8; CHUNK]);

// SAFETY: 64 bytes without padding, for which zeros and every other pattern are values.
unsafe impl bytemuck::Zeroable for Chunk {}
// SAFETY: as above; it is Copy, 'static and repr(C).
unsafe impl bytemuck::Pod for Chunk {}

impl Chunk {
    /// Nothing but zeros.
    pub(crate) const ZERO: Chunk = Chunk([BIAS; CHUNK]);
}

/// A cache line of a query: components as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
pub(crate) struct QueryChunk(pub(crate) [i8; CHUNK]);

/// A table of rows.
#[derive(Clone, Copy)]
pub(crate) struct CodeRows<'a> {
    chunks: &'a [Chunk],
    /// Lines a row takes, and how many rows there are.
    width: usize,
    len: usize,
}

impl<'a> CodeRows<'a> {
    /// The chunks as rows of `width` chunks.
    #[inline]
    pub(crate) fn new(chunks: &'a [Chunk], width: usize) -> Self {
        let len = chunks.len().checked_div(width).unwrap_or(0);
        CodeRows { chunks, width, len }
    }

    /// The row at a place.
    ///
    /// # Panics
    /// Where there is none.
    #[inline(always)]
    pub(crate) fn row(&self, at: u32) -> &'a [Chunk] {
        let at = at as usize;
        assert!(at < self.len, "a row beyond the table");
        // SAFETY: of `len` rows of `width` chunks, which the table holds, this one ends within it.
        unsafe {
            self.chunks
                .get_unchecked(at * self.width..(at + 1) * self.width)
        }
    }

    /// All rows as bytes.
    #[inline(always)]
    pub(crate) fn bytes(&self) -> &'a [u8] {
        bytemuck::cast_slice(self.chunks)
    }

    /// Where the row of a place begins and ends, in bytes.
    #[inline(always)]
    pub(crate) fn place(&self, at: u32) -> Range<usize> {
        let size = self.width * size_of::<Chunk>();
        let start = at as usize * size;
        start..start + size
    }

    /// Asks for the row at a place.
    #[inline(always)]
    pub(crate) fn prefetch(&self, at: u32) {
        let row = self.chunks.as_ptr().wrapping_add(at as usize * self.width);
        let mut chunk = 0;
        // By twos: to count takes as long as to ask.
        while chunk + 2 <= self.width {
            prefetch_at(row.wrapping_add(chunk));
            prefetch_at(row.wrapping_add(chunk + 1));
            chunk += 2;
        }
        if chunk < self.width {
            prefetch_at(row.wrapping_add(chunk));
        }
    }
}

fn product_scalar(query: &[QueryChunk], row: &[Chunk]) -> i32 {
    let chunks = query.iter().zip(row);
    let products = chunks.flat_map(|(q, r)| q.0.iter().zip(&r.0));
    products.map(|(&q, &r)| i32::from(q) * i32::from(r)).sum()
}

pub(super) fn products_scalar(query: &[QueryChunk], rows: [&[Chunk]; GROUP]) -> [i32; GROUP] {
    rows.map(|row| product_scalar(query, row))
}

/// Rows of a pack, whose products with a row are taken together.
pub(crate) const PACK: usize = 32;
/// Components of a row that lie together in a pack.
const WORD: usize = 4;

/// Rows side by side: four components of each of 32, then the next four. Rows that are missing are
/// zeros.
pub(crate) fn pack(rows: &[&[Chunk]], packed: &mut Vec<Chunk>) {
    let width = rows.first().map_or(0, |row| row.len());
    packed.clear();
    packed.resize(rows.len().div_ceil(PACK) * PACK * width, Chunk::ZERO);
    let mut ahead = rows.iter().skip(PACK / 2);
    for (rows, packed) in rows.chunks(PACK).zip(packed.chunks_mut(PACK * width)) {
        let packed = bytemuck::cast_slice_mut::<Chunk, u8>(packed);
        for (at, row) in rows.iter().enumerate() {
            // Rows lie anywhere: each is asked for before its turn.
            ahead
                .next()
                .into_iter()
                .flat_map(|row| row.iter())
                .for_each(prefetch);
            let words = bytemuck::cast_slice::<Chunk, u8>(row).as_chunks::<WORD>().0;
            for (word, place) in words.iter().zip((at * WORD..).step_by(PACK * WORD)) {
                packed[place..place + WORD].copy_from_slice(word);
            }
        }
    }
}

pub(super) fn tile_scalar(queries: [&[QueryChunk]; GROUP], pack: &[Chunk]) -> [[i32; PACK]; GROUP] {
    let bytes = bytemuck::cast_slice::<Chunk, u8>(pack);
    queries.map(|query| {
        let mut products = [0; PACK];
        let words = query.iter().flat_map(|chunk| chunk.0.as_chunks::<WORD>().0);
        for (word, rows) in words.zip(bytes.as_chunks::<{ PACK * WORD }>().0) {
            for (product, row) in products.iter_mut().zip(rows.as_chunks::<WORD>().0) {
                for (q, r) in word.iter().zip(row) {
                    *product += i32::from(*q) * i32::from(*r);
                }
            }
        }
        products
    })
}

// No closures around intrinsics: what calls a closure need not have the instructions, and then
// nothing is inlined.
#[cfg(target_arch = "x86_64")]
pub(super) mod x86 {
    use std::arch::x86_64::*;

    use super::{CHUNK, Chunk, GROUP, PACK, QueryChunk, WORD};

    #[inline]
    #[target_feature(enable = "avx2")]
    fn half(bytes: &[u8; 64], side: usize) -> __m256i {
        // SAFETY: 32 bytes from 0 or 32 are within the 64; the load asks for no alignment.
        unsafe { _mm256_loadu_si256(bytes.as_ptr().add(32 * (side & 1)).cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn query_half(bytes: &[i8; 64], side: usize) -> __m256i {
        // SAFETY: as above.
        unsafe { _mm256_loadu_si256(bytes.as_ptr().add(32 * (side & 1)).cast()) }
    }

    /// Bytes widened to 16 bits: their products in pairs fit into 32, nothing saturates.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn sums_avx2<const N: usize>(query: &[QueryChunk], rows: [&[Chunk]; N]) -> [__m256i; N] {
        let mut sums = [_mm256_setzero_si256(); N];
        for (chunk, query) in query.iter().enumerate() {
            for side in 0..2 {
                let q = query_half(&query.0, side);
                let low = _mm256_cvtepi8_epi16(_mm256_castsi256_si128(q));
                let high = _mm256_cvtepi8_epi16(_mm256_extracti128_si256::<1>(q));
                for (sum, row) in sums.iter_mut().zip(&rows) {
                    let r = half(&row[chunk].0, side);
                    let r_low = _mm256_cvtepu8_epi16(_mm256_castsi256_si128(r));
                    let r_high = _mm256_cvtepu8_epi16(_mm256_extracti128_si256::<1>(r));
                    let low = _mm256_madd_epi16(low, r_low);
                    let high = _mm256_madd_epi16(high, r_high);
                    *sum = _mm256_add_epi32(*sum, _mm256_add_epi32(low, high));
                }
            }
        }
        sums
    }

    /// Four products of bytes at a time, added to 32 bits without saturation.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    fn sums_avx512(query: &[QueryChunk], rows: [&[Chunk]; GROUP]) -> [__m256i; GROUP] {
        let mut sums = [_mm512_setzero_si512(); GROUP];
        let [a, b, c, d] = rows;
        let (a, b, c, d) = (a.iter(), b.iter(), c.iter(), d.iter());
        for ((((query, a), b), c), d) in query.iter().zip(a).zip(b).zip(c).zip(d) {
            // SAFETY: a chunk is 64 bytes, aligned to 64.
            let q = unsafe { _mm512_load_si512(query.0.as_ptr().cast()) };
            for (sum, row) in sums.iter_mut().zip([a, b, c, d]) {
                // SAFETY: as above.
                let r = unsafe { _mm512_load_si512(row.0.as_ptr().cast()) };
                *sum = _mm512_dpbusd_epi32(*sum, r, q);
            }
        }
        let mut halves = [_mm256_setzero_si256(); GROUP];
        for (half, sum) in halves.iter_mut().zip(sums) {
            let low = _mm512_castsi512_si256(sum);
            *half = _mm256_add_epi32(low, _mm512_extracti64x4_epi64::<1>(sum));
        }
        halves
    }

    /// Four components of a query, as the lanes of a register repeat them.
    #[inline(always)]
    fn word(query: &QueryChunk, at: usize) -> i32 {
        let [a, b, c, d] = query.0.as_chunks::<WORD>().0[at];
        i32::from_le_bytes([a as u8, b as u8, c as u8, d as u8])
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    pub(in super::super) fn tile_avx512(
        queries: [&[QueryChunk]; GROUP],
        pack: &[Chunk],
    ) -> [[i32; PACK]; GROUP] {
        let mut sums = [[_mm512_setzero_si512(); 2]; GROUP];
        let [a, b, c, d] = queries;
        let (a, b, c, d) = (a.iter(), b.iter(), c.iter(), d.iter());
        let words = pack.as_chunks::<{ 2 * CHUNK / WORD }>().0;
        for ((((words, a), b), c), d) in words.iter().zip(a).zip(b).zip(c).zip(d) {
            for at in 0..CHUNK / WORD {
                // SAFETY: a chunk is 64 bytes, aligned to 64.
                let low = unsafe { _mm512_load_si512(words[2 * at].0.as_ptr().cast()) };
                // SAFETY: as above.
                let high = unsafe { _mm512_load_si512(words[2 * at + 1].0.as_ptr().cast()) };
                let queries = [word(a, at), word(b, at), word(c, at), word(d, at)];
                for lane in 0..GROUP {
                    let q = _mm512_set1_epi32(queries[lane]);
                    sums[lane][0] = _mm512_dpbusd_epi32(sums[lane][0], low, q);
                    sums[lane][1] = _mm512_dpbusd_epi32(sums[lane][1], high, q);
                }
            }
        }
        let mut products = [[0; PACK]; GROUP];
        for (products, sums) in products.iter_mut().zip(sums) {
            for (products, sum) in products.as_chunks_mut::<16>().0.iter_mut().zip(sums) {
                // SAFETY: sixteen numbers of 32 bits; the store asks for no alignment.
                unsafe { _mm512_storeu_si512(products.as_mut_ptr().cast(), sum) };
            }
        }
        products
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in super::super) fn tile_avx2(
        queries: [&[QueryChunk]; GROUP],
        pack: &[Chunk],
    ) -> [[i32; PACK]; GROUP] {
        let mut products = [[0; PACK]; GROUP];
        for (products, query) in products.iter_mut().zip(queries) {
            // Of each register two sums a row, of four rows.
            let mut sums = [_mm256_setzero_si256(); PACK / 4];
            for (at, pair) in pack.as_chunks::<2>().0.iter().enumerate() {
                let word = word(&query[at * WORD / CHUNK], at % (CHUNK / WORD));
                let q = _mm256_cvtepi8_epi16(_mm_set1_epi32(word));
                for (chunk, sums) in pair.iter().zip(sums.as_chunks_mut::<4>().0) {
                    for (rows, sum) in chunk.0.as_chunks::<16>().0.iter().zip(sums) {
                        // SAFETY: 16 bytes; the load asks for no alignment.
                        let rows = unsafe { _mm_loadu_si128(rows.as_ptr().cast()) };
                        let both = _mm256_madd_epi16(q, _mm256_cvtepu8_epi16(rows));
                        *sum = _mm256_add_epi32(*sum, both);
                    }
                }
            }
            for (products, sums) in products
                .as_chunks_mut::<8>()
                .0
                .iter_mut()
                .zip(sums.as_chunks::<2>().0)
            {
                let eight = _mm256_hadd_epi32(sums[0], sums[1]);
                let eight = _mm256_permute4x64_epi64::<0b11_01_10_00>(eight);
                // SAFETY: eight numbers of 32 bits; the store asks for no alignment.
                unsafe { _mm256_storeu_si256(products.as_mut_ptr().cast(), eight) };
            }
        }
        products
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn reduced(sums: [__m256i; GROUP]) -> [i32; GROUP] {
        let first = _mm256_hadd_epi32(sums[0], sums[1]);
        let second = _mm256_hadd_epi32(sums[2], sums[3]);
        let both = _mm256_hadd_epi32(first, second);
        let low = _mm256_castsi256_si128(both);
        let four = _mm_add_epi32(low, _mm256_extracti128_si256::<1>(both));
        let mut out = [0; GROUP];
        // SAFETY: four numbers of 32 bits fill the 16 bytes; the store asks for no alignment.
        unsafe { _mm_storeu_si128(out.as_mut_ptr().cast(), four) };
        out
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in super::super) fn products_avx2(
        query: &[QueryChunk],
        rows: [&[Chunk]; GROUP],
    ) -> [i32; GROUP] {
        reduced(sums_avx2(query, rows))
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    pub(in super::super) fn products_avx512(
        query: &[QueryChunk],
        rows: [&[Chunk]; GROUP],
    ) -> [i32; GROUP] {
        reduced(sums_avx512(query, rows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distance::instruction_set::Isa;
    use crate::distance::kernel::{Kernel, Work};
    use proptest::prelude::*;

    struct Products<'a>(&'a [QueryChunk], [&'a [Chunk]; GROUP]);

    impl Work for Products<'_> {
        type Output = [i32; GROUP];

        fn run(self, kernel: impl Kernel) -> [i32; GROUP] {
            kernel.products(self.0, self.1)
        }
    }

    struct Tile<'a>(&'a [QueryChunk], &'a [Chunk]);

    impl Work for Tile<'_> {
        type Output = [[i32; PACK]; GROUP];

        fn run(self, kernel: impl Kernel) -> [[i32; PACK]; GROUP] {
            kernel.tile([self.0; GROUP], self.1)
        }
    }

    fn same_on_all(query: &[i8], rows: &[i8], chunks: usize) -> Result<(), TestCaseError> {
        let query: Vec<QueryChunk> = query
            .as_chunks()
            .0
            .iter()
            .map(|chunk| QueryChunk(*chunk))
            .collect();
        let stored = |chunk: &[i8; CHUNK]| Chunk(chunk.map(|x| (x as u8) ^ BIAS));
        let table: Vec<Chunk> = rows.as_chunks().0.iter().map(stored).collect();
        let nodes: Vec<u32> = (0..(table.len() / chunks) as u32).rev().collect();
        let excess: i32 = query
            .iter()
            .flat_map(|q| q.0)
            .map(|q| i32::from(q) * 128)
            .sum();
        let exact: Vec<i32> = nodes
            .iter()
            .map(|&n| {
                let row = &rows[n as usize * chunks * CHUNK..][..chunks * CHUNK];
                let signed = query.iter().flat_map(|q| q.0).zip(row);
                signed
                    .map(|(q, r)| i32::from(q) * i32::from(*r))
                    .sum::<i32>()
                    + excess
            })
            .collect();
        for (name, isa) in Isa::available() {
            let rows = CodeRows::new(&table, chunks);
            let found: Vec<i32> = nodes
                .iter()
                .map(|&n| {
                    let others = rows.row(nodes[0]);
                    let row = [rows.row(n), others, rows.row(n), others];
                    let [one, _, again, _] = isa.run(Products(&query, row));
                    assert_eq!(one, again);
                    one
                })
                .collect();
            prop_assert_eq!(&found, &exact, "on {}", name);
            let mut packed = Vec::new();
            pack(
                &nodes.iter().map(|&n| rows.row(n)).collect::<Vec<_>>(),
                &mut packed,
            );
            for products in isa.run(Tile(&query, &packed)) {
                prop_assert_eq!(&products[..exact.len()], &exact, "tiles on {}", name);
            }
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn every_instruction_set_gives_the_same_product(
            chunks in 1usize..4,
            values in proptest::collection::vec(-127i8..=127, 10 * 3 * CHUNK),
        ) {
            same_on_all(&values[..chunks * CHUNK], &values[3 * CHUNK..][..9 * chunks * CHUNK], chunks)?;
        }
    }

    #[test]
    fn the_largest_components_do_not_saturate() {
        for (q, r) in [(127, 127), (-127, 127), (127, -127), (-127, -127)] {
            same_on_all(&[q; 3 * CHUNK], &[r; 5 * 3 * CHUNK], 3).unwrap();
        }
    }
}
