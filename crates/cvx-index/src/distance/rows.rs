//! Distances of one query to full-precision rows, some of which lie anywhere in a table.
//!
//! Every path adds into the same 16 accumulators, multiplying and adding apart, and reduces them in
//! the same order: instruction sets differ in speed, never in a bit.

use super::Metric;
use super::isa::{Isa, Path};

const LANES: usize = 16;
/// Rows measured together, so that their sums and cache misses overlap.
pub(crate) const GROUP: usize = 4;

/// Rows as they came, and what is taken from each before it is compared.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a> {
    pub(crate) table: &'a [f32],
    /// The center, or zeros; as long as a row.
    pub(crate) offset: &'a [f32],
}

/// What is summed over the dimensions: twice, for cosine needs the length of the row too.
trait Measure {
    fn terms(query: f32, moved: f32) -> [f32; 2];
}

struct Product;

impl Measure for Product {
    #[inline(always)]
    fn terms(query: f32, moved: f32) -> [f32; 2] {
        [query * moved, 0.0]
    }
}

struct ProductAndLength;

impl Measure for ProductAndLength {
    #[inline(always)]
    fn terms(query: f32, moved: f32) -> [f32; 2] {
        [query * moved, moved * moved]
    }
}

struct Squared;

impl Measure for Squared {
    #[inline(always)]
    fn terms(query: f32, moved: f32) -> [f32; 2] {
        let difference = query - moved;
        [difference * difference, 0.0]
    }
}

#[inline(always)]
fn sum(mut lanes: [f32; LANES]) -> f32 {
    for width in [8, 4, 2, 1] {
        for lane in 0..width {
            lanes[lane] += lanes[lane + width];
        }
    }
    lanes[0]
}

#[inline(always)]
fn measure<M: Measure, const N: usize>(
    query: &[f32],
    offset: &[f32],
    rows: [&[f32]; N],
) -> [[f32; 2]; N] {
    let (queries, query_rest) = query.as_chunks::<LANES>();
    let (offsets, offset_rest) = offset[..query.len()].as_chunks::<LANES>();
    let mut chunked = [(&[][..], &[][..]); N];
    for (chunked, row) in chunked.iter_mut().zip(rows) {
        *chunked = row[..query.len()].as_chunks::<LANES>();
    }
    let rows = chunked;
    let mut sums = [[[0.0f32; LANES]; 2]; N];
    for (at, (query, offset)) in queries.iter().zip(offsets).enumerate() {
        for (sums, (chunks, _)) in sums.iter_mut().zip(&rows) {
            let row = &chunks[at];
            for lane in 0..LANES {
                let terms = M::terms(query[lane], row[lane] - offset[lane]);
                sums[0][lane] += terms[0];
                sums[1][lane] += terms[1];
            }
        }
    }
    for (sums, (_, rest)) in sums.iter_mut().zip(&rows) {
        for (lane, row) in rest.iter().enumerate() {
            let terms = M::terms(query_rest[lane], row - offset_rest[lane]);
            sums[0][lane] += terms[0];
            sums[1][lane] += terms[1];
        }
    }
    let mut totals = [[0.0; 2]; N];
    for (total, [first, second]) in totals.iter_mut().zip(sums) {
        *total = [sum(first), sum(second)];
    }
    totals
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

#[inline(always)]
fn cosine(query: &[f32], offset: &[f32], row: &[f32], [product, squares]: [f32; 2]) -> f32 {
    // Within these bounds neither the squares nor the products over- or underflow.
    if (1e-24..1e24).contains(&squares) {
        1.0 - product / squares.sqrt()
    } else {
        cosine_of_extremes(query, offset, row)
    }
}

#[inline(always)]
fn measure_all(metric: Metric, query: &[f32], rows: Rows<'_>, nodes: &[u32], out: &mut Vec<f32>) {
    let (dim, offset) = (query.len(), rows.offset);
    let row = |node: u32| &rows.table[node as usize * dim..][..dim];
    let (groups, rest) = nodes.as_chunks::<GROUP>();
    macro_rules! over {
        ($measure:ty, $distance:expr) => {{
            let distance = $distance;
            for group in groups {
                let group = group.map(row);
                let sums = measure::<$measure, GROUP>(query, offset, group);
                out.extend(
                    group
                        .into_iter()
                        .zip(sums)
                        .map(|(row, sums)| distance(row, sums)),
                );
            }
            for &node in rest {
                let [sums] = measure::<$measure, 1>(query, offset, [row(node)]);
                out.push(distance(row(node), sums));
            }
        }};
    }
    match metric {
        Metric::Cosine => over!(ProductAndLength, |row, sums| cosine(
            query, offset, row, sums
        )),
        Metric::InnerProduct => over!(Product, |_: &[f32], [product, _]: [f32; 2]| 1.0 - product),
        Metric::L2 => over!(Squared, |_: &[f32], [squares, _]: [f32; 2]| squares),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn measure_all_avx2(
    metric: Metric,
    query: &[f32],
    rows: Rows<'_>,
    nodes: &[u32],
    out: &mut Vec<f32>,
) {
    measure_all(metric, query, rows, nodes, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn measure_all_avx512(
    metric: Metric,
    query: &[f32],
    rows: Rows<'_>,
    nodes: &[u32],
    out: &mut Vec<f32>,
) {
    measure_all(metric, query, rows, nodes, out);
}

/// Appends the distance of `query` to each of the rows `nodes`.
///
/// The query has the center taken away and, for cosine, length 1; the rows are as they came.
pub(crate) fn distances(
    isa: Isa,
    metric: Metric,
    query: &[f32],
    rows: Rows<'_>,
    nodes: &[u32],
    out: &mut Vec<f32>,
) {
    match isa.0 {
        Path::Scalar => measure_all(metric, query, rows, nodes, out),
        // SAFETY: an `Isa` holds these paths only where the processor was seen to have the
        // instructions; the functions ask for nothing else.
        #[cfg(target_arch = "x86_64")]
        Path::Avx2 => unsafe { measure_all_avx2(metric, query, rows, nodes, out) },
        // SAFETY: as above; whoever has VNNI has the foundation.
        #[cfg(target_arch = "x86_64")]
        Path::Avx512 => unsafe { measure_all_avx512(metric, query, rows, nodes, out) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The same sums, one row and one lane at a time.
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
            Metric::Cosine => 1.0 - sum(sums) / sum(squares).sqrt(),
            Metric::InnerProduct => 1.0 - sum(sums),
            Metric::L2 => sum(sums),
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
                    let rows = Rows { table, offset: &offset };
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
            let rows = Rows { table: &[size, 0.0, size, size], offset: &[0.0; 2] };
            distances(Isa::available()[0].1, Metric::Cosine, &[1.0, 0.0], rows, &[0, 1], &mut found);
            let cosine = size.signum();
            prop_assert!((found[0] - (1.0 - cosine)).abs() < 1e-6);
            prop_assert!((found[1] - (1.0 - cosine / 2f32.sqrt())).abs() < 1e-2);
        }
    }
}
