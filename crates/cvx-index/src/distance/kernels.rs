//! Inner products and squared distances of one query to many rows.
//!
//! Every path adds into the same 16 accumulators, multiplying and adding apart, and reduces them in
//! the same order: instruction sets differ in speed, never in a bit. The one unsafe block of the
//! crate is the dispatch at the end.

use std::sync::OnceLock;

use crate::error::{Error, Result};

const LANES: usize = 16;
/// Rows measured together, so that their sums and cache misses overlap.
const GROUP: usize = 4;

/// An instruction set that this machine has: made by [`Isa::chosen`] and [`Isa::available`] alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Isa(Path);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Path {
    Scalar,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Isa {
    /// What this machine can run, the plainest first.
    pub(crate) fn available() -> Vec<(&'static str, Isa)> {
        let mut paths = vec![("scalar", Isa(Path::Scalar))];
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2") {
                paths.push(("avx2", Isa(Path::Avx2)));
            }
            if is_x86_feature_detected!("avx512f") {
                paths.push(("avx512", Isa(Path::Avx512)));
            }
        }
        paths
    }

    /// The best of them, or the one that the environment variable `CVX_CPU` names; chosen once.
    ///
    /// # Errors
    /// [`Error::Parameter`] where `CVX_CPU` names none of them.
    pub(crate) fn chosen() -> Result<Isa> {
        static CHOSEN: OnceLock<std::result::Result<Isa, String>> = OnceLock::new();
        let chosen = CHOSEN.get_or_init(|| {
            let wanted =
                std::env::var_os("CVX_CPU").map(|name| name.to_string_lossy().into_owned());
            Isa::named(wanted.as_deref())
        });
        chosen.clone().map_err(|value| Error::Parameter {
            name: "CVX_CPU",
            value,
            bound: "scalar, avx2 or avx512, and one that this processor has",
        })
    }

    /// What `CVX_CPU` calls it.
    pub(crate) fn name(self) -> &'static str {
        Isa::available()
            .into_iter()
            .find(|(_, isa)| *isa == self)
            .map_or("", |(name, _)| name)
    }

    fn named(wanted: Option<&str>) -> std::result::Result<Isa, String> {
        let mut available = Isa::available().into_iter().rev();
        match wanted {
            None | Some("") => available.next(),
            Some(wanted) => available.find(|(name, _)| *name == wanted),
        }
        .map(|(_, isa)| isa)
        .ok_or_else(|| wanted.unwrap_or_default().to_owned())
    }
}

/// What is summed over the dimensions.
pub(crate) trait Measure {
    fn term(a: f32, b: f32) -> f32;
    fn distance(sum: f32) -> f32;
}

/// 1 - inner product.
pub(crate) struct Dot;

impl Measure for Dot {
    #[inline(always)]
    fn term(a: f32, b: f32) -> f32 {
        a * b
    }

    #[inline(always)]
    fn distance(sum: f32) -> f32 {
        1.0 - sum
    }
}

/// Squared euclidean distance.
pub(crate) struct Squared;

impl Measure for Squared {
    #[inline(always)]
    fn term(a: f32, b: f32) -> f32 {
        let difference = a - b;
        difference * difference
    }

    #[inline(always)]
    fn distance(sum: f32) -> f32 {
        sum
    }
}

#[inline(always)]
fn measure<M: Measure, const N: usize>(query: &[f32], rows: [&[f32]; N]) -> [f32; N] {
    let (query_chunks, query_rest) = query.as_chunks::<LANES>();
    let rows = rows.map(|row| row[..query.len()].as_chunks::<LANES>());
    let mut sums = [[0.0f32; LANES]; N];
    for (at, query) in query_chunks.iter().enumerate() {
        for (sums, (chunks, _)) in sums.iter_mut().zip(&rows) {
            let row = &chunks[at];
            for lane in 0..LANES {
                sums[lane] += M::term(query[lane], row[lane]);
            }
        }
    }
    for (sums, (_, rest)) in sums.iter_mut().zip(&rows) {
        for (lane, (a, b)) in query_rest.iter().zip(*rest).enumerate() {
            sums[lane] += M::term(*a, *b);
        }
    }
    sums.map(|mut sums| {
        for width in [8, 4, 2, 1] {
            for lane in 0..width {
                sums[lane] += sums[lane + width];
            }
        }
        M::distance(sums[0])
    })
}

#[inline(always)]
fn measure_all<M: Measure>(query: &[f32], table: &[f32], nodes: &[u32], out: &mut Vec<f32>) {
    let dim = query.len();
    let row = |node: u32| &table[node as usize * dim..][..dim];
    let (groups, rest) = nodes.as_chunks::<GROUP>();
    for group in groups {
        out.extend_from_slice(&measure::<M, GROUP>(query, group.map(row)));
    }
    for &node in rest {
        out.extend_from_slice(&measure::<M, 1>(query, [row(node)]));
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn measure_all_avx2<M: Measure>(query: &[f32], table: &[f32], nodes: &[u32], out: &mut Vec<f32>) {
    measure_all::<M>(query, table, nodes, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn measure_all_avx512<M: Measure>(query: &[f32], table: &[f32], nodes: &[u32], out: &mut Vec<f32>) {
    measure_all::<M>(query, table, nodes, out);
}

/// Appends the distance of `query` to each of the rows `nodes` of a table of rows of its length.
pub(crate) fn distances<M: Measure>(
    isa: Isa,
    query: &[f32],
    table: &[f32],
    nodes: &[u32],
    out: &mut Vec<f32>,
) {
    match isa.0 {
        Path::Scalar => measure_all::<M>(query, table, nodes, out),
        // SAFETY: an `Isa` holds these paths only where the processor was seen to have the
        // instructions; the functions ask for nothing else.
        #[cfg(target_arch = "x86_64")]
        Path::Avx2 => unsafe { measure_all_avx2::<M>(query, table, nodes, out) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Path::Avx512 => unsafe { measure_all_avx512::<M>(query, table, nodes, out) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The same sums, one row and one lane at a time.
    fn naive(squared: bool, query: &[f32], row: &[f32]) -> f32 {
        let mut sums = [0.0f32; LANES];
        for (i, (a, b)) in query.iter().zip(row).enumerate() {
            sums[i % LANES] += if squared { (a - b) * (a - b) } else { a * b };
        }
        for width in [8, 4, 2, 1] {
            for lane in 0..width {
                sums[lane] += sums[lane + width];
            }
        }
        if squared { sums[0] } else { 1.0 - sums[0] }
    }

    proptest! {
        #[test]
        fn every_instruction_set_gives_the_same_bits(
            dim in 1usize..70,
            rows in 1usize..11,
            values in proptest::collection::vec(-10.0f32..10.0, 11 * 70),
        ) {
            let (query, table) = values.split_at(dim);
            let nodes: Vec<u32> = (0..rows.min(table.len() / dim) as u32).rev().collect();
            let rows = nodes.iter().map(|&n| &table[n as usize * dim..][..dim]);
            let dot: Vec<u32> = rows.clone().map(|r| naive(false, query, r).to_bits()).collect();
            let squared: Vec<u32> = rows.map(|r| naive(true, query, r).to_bits()).collect();
            for (name, isa) in Isa::available() {
                let (mut a, mut b) = (Vec::new(), Vec::new());
                distances::<Dot>(isa, query, table, &nodes, &mut a);
                distances::<Squared>(isa, query, table, &nodes, &mut b);
                let bits = |found: Vec<f32>| found.into_iter().map(f32::to_bits).collect::<Vec<_>>();
                prop_assert_eq!(&bits(a), &dot, "dot on {}", name);
                prop_assert_eq!(&bits(b), &squared, "squared on {}", name);
            }
        }
    }

    #[test]
    fn the_environment_can_ask_for_a_path_and_is_refused_an_unknown_one() {
        assert_eq!(Isa::named(Some("scalar")), Ok(Isa(Path::Scalar)));
        assert_eq!(
            Isa::named(None).ok(),
            Isa::available().last().map(|(_, isa)| *isa)
        );
        assert_eq!(Isa::named(Some("neon")), Err("neon".to_owned()));
    }
}
