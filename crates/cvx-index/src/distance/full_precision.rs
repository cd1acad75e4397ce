//! Distances of one query to rows in full precision.
//!
//! Every path adds into the same 16 accumulators, multiplying and adding apart, and reduces them in
//! the same order: instruction sets differ in speed, never in a bit.

use super::Metric;
use super::instruction_set::{Isa, Path};

const LANES: usize = 16;
/// Rows as they came, and what is taken from each before it is compared.
#[derive(Clone, Copy)]
pub(crate) struct VectorRows<'a> {
    pub(crate) table: &'a [f32],
    /// The center, or zeros; as long as a row.
    pub(crate) offset: &'a [f32],
}

/// What is summed over the dimensions: of products, and for cosine of squares of the row too, or of
/// squared differences.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sum {
    Product,
    ProductAndSquares,
    Differences,
}

/// Sixteen components; behind the last dimension zeros, which add nothing to any sum.
fn lanes(values: &[f32], chunk: usize) -> [f32; LANES] {
    let values = &values[(chunk * LANES).min(values.len())..];
    values.first_chunk().copied().unwrap_or_else(|| {
        let mut padded = [0.0; LANES];
        padded[..values.len()].copy_from_slice(values);
        padded
    })
}

/// Both sums of a row, lane by lane.
fn sums_scalar(sum: Sum, query: &[f32], offset: &[f32], row: &[f32]) -> [f32; 2] {
    let mut sums = [[0.0f32; LANES]; 2];
    for chunk in 0..query.len().div_ceil(LANES) {
        let (q, c, x) = (lanes(query, chunk), lanes(offset, chunk), lanes(row, chunk));
        for lane in 0..LANES {
            let moved = x[lane] - c[lane];
            sums[0][lane] += match sum {
                Sum::Product | Sum::ProductAndSquares => q[lane] * moved,
                Sum::Differences => (q[lane] - moved) * (q[lane] - moved),
            };
            if sum == Sum::ProductAndSquares {
                sums[1][lane] += moved * moved;
            }
        }
    }
    sums.map(|mut lanes| {
        for width in [8, 4, 2, 1] {
            for lane in 0..width {
                lanes[lane] += lanes[lane + width];
            }
        }
        lanes[0]
    })
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{LANES, Sum, lanes};

    #[inline]
    #[target_feature(enable = "avx2")]
    fn total(low: __m256, high: __m256) -> f32 {
        let eight = _mm256_add_ps(low, high);
        let four = _mm_add_ps(
            _mm256_castps256_ps128(eight),
            _mm256_extractf128_ps::<1>(eight),
        );
        let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
        _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps::<1>(two, two)))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn eight(lanes: &[f32; LANES], half: usize) -> __m256 {
        // SAFETY: 8 floats from 0 or 8 are within the 16; the load asks for no alignment.
        unsafe { _mm256_loadu_ps(lanes.as_ptr().add(8 * (half & 1))) }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn sixteen(lanes: &[f32; LANES]) -> __m512 {
        // SAFETY: 16 floats; the load asks for no alignment.
        unsafe { _mm512_loadu_ps(lanes.as_ptr()) }
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn sums_avx2(sum: Sum, query: &[f32], offset: &[f32], row: &[f32]) -> [f32; 2] {
        let mut sums = [[_mm256_setzero_ps(); 2]; 2];
        for chunk in 0..query.len().div_ceil(LANES) {
            let (q, c, x) = (lanes(query, chunk), lanes(offset, chunk), lanes(row, chunk));
            let [first, second] = &mut sums;
            for (half, (first, second)) in first.iter_mut().zip(second).enumerate() {
                let q = eight(&q, half);
                let moved = _mm256_sub_ps(eight(&x, half), eight(&c, half));
                let term = match sum {
                    Sum::Product | Sum::ProductAndSquares => _mm256_mul_ps(q, moved),
                    Sum::Differences => {
                        let difference = _mm256_sub_ps(q, moved);
                        _mm256_mul_ps(difference, difference)
                    }
                };
                *first = _mm256_add_ps(*first, term);
                if sum == Sum::ProductAndSquares {
                    *second = _mm256_add_ps(*second, _mm256_mul_ps(moved, moved));
                }
            }
        }
        [total(sums[0][0], sums[0][1]), total(sums[1][0], sums[1][1])]
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    pub(super) fn sums_avx512(sum: Sum, query: &[f32], offset: &[f32], row: &[f32]) -> [f32; 2] {
        let mut sums = [_mm512_setzero_ps(); 2];
        for chunk in 0..query.len().div_ceil(LANES) {
            let q = sixteen(&lanes(query, chunk));
            let moved = _mm512_sub_ps(sixteen(&lanes(row, chunk)), sixteen(&lanes(offset, chunk)));
            let term = match sum {
                Sum::Product | Sum::ProductAndSquares => _mm512_mul_ps(q, moved),
                Sum::Differences => {
                    let difference = _mm512_sub_ps(q, moved);
                    _mm512_mul_ps(difference, difference)
                }
            };
            sums[0] = _mm512_add_ps(sums[0], term);
            if sum == Sum::ProductAndSquares {
                sums[1] = _mm512_add_ps(sums[1], _mm512_mul_ps(moved, moved));
            }
        }
        let mut totals = [0.0; 2];
        for (total_of, lanes) in totals.iter_mut().zip(sums) {
            let wide = _mm512_castps_pd(lanes);
            let high = _mm256_castpd_ps(_mm512_extractf64x4_pd::<1>(wide));
            *total_of = total(_mm512_castps512_ps256(lanes), high);
        }
        totals
    }
}

/// Cosine over lengths whose squares left the range of f32: the slow way, in f64.
#[cold]
fn cosine_of_extremes(query: &[f32], offset: &[f32], row: &[f32]) -> f32 {
    let moved = row
        .iter()
        .zip(offset)
        .map(|(x, c)| f64::from(*x) - f64::from(*c));
    let length = moved.clone().map(|x| x * x).sum::<f64>().sqrt();
    let product: f64 = query
        .iter()
        .zip(moved)
        .map(|(q, x)| f64::from(*q) * (x / length))
        .sum();
    (1.0 - product) as f32
}

fn cosine(query: &[f32], offset: &[f32], row: &[f32], [product, squares]: [f32; 2]) -> f32 {
    // Within these bounds neither the squares nor the products over- or underflow.
    if (1e-24..1e24).contains(&squares) {
        1.0 - product / squares.sqrt()
    } else {
        cosine_of_extremes(query, offset, row)
    }
}

/// Defines a function that measures the rows at `places` by the kernel `sums`.
macro_rules! measure_by {
    ($(#[$attribute:meta])* $name:ident, $sums:path) => {
        $(#[$attribute])*
        fn $name(metric: Metric, query: &[f32], rows: VectorRows<'_>, places: &[u32], out: &mut Vec<f32>) {
            let (dim, offset) = (query.len(), &rows.offset[..query.len()]);
            for &at in places {
                let row = &rows.table[at as usize * dim..][..dim];
                out.push(match metric {
                    Metric::Cosine => {
                        let sums = $sums(Sum::ProductAndSquares, query, offset, row);
                        cosine(query, offset, row, sums)
                    }
                    Metric::InnerProduct => 1.0 - $sums(Sum::Product, query, offset, row)[0],
                    Metric::L2 => $sums(Sum::Differences, query, offset, row)[0],
                });
            }
        }
    };
}

measure_by!(measure_scalar, sums_scalar);
#[cfg(target_arch = "x86_64")]
measure_by!(
    #[target_feature(enable = "avx2")]
    measure_avx2,
    x86::sums_avx2
);
#[cfg(target_arch = "x86_64")]
measure_by!(
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    measure_avx512,
    x86::sums_avx512
);

/// Appends the distance of `query` to each of the rows at `places`.
///
/// The query has the center taken away and, for cosine, length 1; the rows are as they came.
pub(crate) fn distances(
    isa: Isa,
    metric: Metric,
    query: &[f32],
    rows: VectorRows<'_>,
    places: &[u32],
    out: &mut Vec<f32>,
) {
    match isa.0 {
        Path::Scalar => measure_scalar(metric, query, rows, places, out),
        // SAFETY: an `Isa` holds these paths only where the processor was seen to have the
        // instructions; the functions ask for nothing else.
        #[cfg(target_arch = "x86_64")]
        Path::Avx2 => unsafe { measure_avx2(metric, query, rows, places, out) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Path::Avx512 => unsafe { measure_avx512(metric, query, rows, places, out) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn total(lanes: [f32; LANES]) -> f32 {
        let eight: Vec<f32> = (0..8).map(|l| lanes[l] + lanes[l + 8]).collect();
        let four: Vec<f32> = (0..4).map(|l| eight[l] + eight[l + 4]).collect();
        (four[0] + four[2]) + (four[1] + four[3])
    }

    /// The same sums, one component at a time.
    fn naive(metric: Metric, query: &[f32], offset: &[f32], row: &[f32]) -> f32 {
        let (mut sums, mut squares) = ([0.0f32; LANES], [0.0f32; LANES]);
        for (i, ((q, x), c)) in query.iter().zip(row).zip(offset).enumerate() {
            let moved = x - c;
            squares[i % LANES] += moved * moved;
            sums[i % LANES] += match metric {
                Metric::L2 => (q - moved) * (q - moved),
                _ => q * moved,
            };
        }
        match metric {
            Metric::Cosine => 1.0 - total(sums) / total(squares).sqrt(),
            Metric::InnerProduct => 1.0 - total(sums),
            Metric::L2 => total(sums),
        }
    }

    proptest! {
        #[test]
        fn every_instruction_set_gives_the_same_bits(
            dim in 1usize..70,
            rows in 1usize..11,
            values in proptest::collection::vec(0.1f32..10.0, 12 * 70),
        ) {
            let (query, rest) = values.split_at(dim);
            let (offset, table) = rest.split_at(dim);
            let offset: Vec<f32> = offset.iter().map(|x| -x).collect();
            let nodes: Vec<u32> = (0..rows.min(table.len() / dim) as u32).rev().collect();
            for metric in [Metric::Cosine, Metric::L2, Metric::InnerProduct] {
                let row = |&n: &u32| &table[n as usize * dim..][..dim];
                let expected: Vec<u32> = nodes
                    .iter()
                    .map(|n| naive(metric, query, &offset, row(n)).to_bits())
                    .collect();
                for (name, isa) in Isa::available() {
                    let mut found = Vec::new();
                    let rows = VectorRows { table, offset: &offset };
                    distances(isa, metric, query, rows, &nodes, &mut found);
                    let found: Vec<u32> = found.into_iter().map(f32::to_bits).collect();
                    prop_assert_eq!(&found, &expected, "{:?} on {}", metric, name);
                }
            }
        }

        #[test]
        fn the_length_of_a_row_does_not_change_its_cosine(exponent in -37i32..38, sign in any::<bool>()) {
            let size = 10f32.powi(exponent) * if sign { 1.0 } else { -1.0 };
            let mut found = Vec::new();
            let rows = VectorRows { table: &[size, 0.0, size, size], offset: &[0.0; 2] };
            distances(Isa::available()[0].1, Metric::Cosine, &[1.0, 0.0], rows, &[0, 1], &mut found);
            let cosine = size.signum();
            prop_assert!((found[0] - (1.0 - cosine)).abs() < 1e-6);
            prop_assert!((found[1] - (1.0 - cosine / 2f32.sqrt())).abs() < 1e-2);
        }
    }
}
