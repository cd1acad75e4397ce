//! Inner products of rows of bytes: whole numbers, the same on every instruction set.

use super::prefetch::prefetch_at;

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

// No closures around intrinsics: what calls a closure need not have the instructions, and then
// nothing is inlined.
#[cfg(target_arch = "x86_64")]
pub(super) mod x86 {
    use std::arch::x86_64::*;

    use super::{Chunk, GROUP, QueryChunk};

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
    use crate::distance::isa::Isa;
    use crate::distance::kernel::{Kernel, Work};
    use proptest::prelude::*;

    struct Products<'a>(&'a [QueryChunk], [&'a [Chunk]; GROUP]);

    impl Work for Products<'_> {
        type Output = [i32; GROUP];

        fn run(self, kernel: impl Kernel) -> [i32; GROUP] {
            kernel.products(self.0, self.1)
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
