//! Quantizes floats to whole numbers of eight bits.
//!
//! Every path does the same operations in the same lanes, so that codes are the same on all.

use super::code_products::{CHUNK, QueryChunk};
use super::instruction_set::{Isa, Path};

/// The largest component.
const MOST: f32 = 127.0;
/// Added to a float of up to 2^22 it leaves the nearest whole number in the low bits.
const ROUND: f32 = 12_582_912.0;
const LANES: usize = 16;

/// A vector as whole numbers.
pub(crate) struct Quantized {
    pub(crate) chunks: Vec<QueryChunk>,
    pub(crate) sum: i32,
    /// What a number has to be multiplied with to become a component.
    pub(crate) scale: f32,
    /// Of the components, before rounding.
    pub(crate) squares: f32,
    /// The root of the squares of the numbers.
    pub(crate) length: f32,
    /// The root of the squares of what rounding took, in units of the scale.
    pub(crate) residual: f32,
}

#[inline(always)]
fn numbers_of(values: &[f32], mut numbered: Vec<QueryChunk>) -> Quantized {
    let (values, rest) = values.as_chunks::<CHUNK>();
    let mut last = [0.0; CHUNK];
    last[..rest.len()].copy_from_slice(rest);
    let values = || values.iter().chain((!rest.is_empty()).then_some(&last));
    let mut most = [0.0f32; LANES];
    for chunk in values() {
        for chunk in chunk.as_chunks::<LANES>().0 {
            for lane in 0..LANES {
                let size = chunk[lane].abs();
                most[lane] = if size > most[lane] { size } else { most[lane] };
            }
        }
    }
    let mut largest = 0.0;
    for size in most {
        largest = if size > largest { size } else { largest };
    }
    let scale = largest / MOST;
    // A scale too small to divide by stands for a vector of zeros.
    let inverse = 1.0 / scale;
    let inverse = if inverse.is_finite() { inverse } else { 0.0 };
    numbered.clear();
    let (mut sums, mut lengths) = ([0i32; LANES], [0i32; LANES]);
    let (mut squares, mut residuals) = ([0.0f32; LANES], [0.0f32; LANES]);
    for chunk in values() {
        let mut numbers = QueryChunk([0; CHUNK]);
        let chunks = chunk.as_chunks::<LANES>().0;
        for (numbers, xs) in numbers.0.as_chunks_mut::<LANES>().0.iter_mut().zip(chunks) {
            for lane in 0..LANES {
                let x = xs[lane];
                let place = (x * inverse).clamp(-MOST, MOST);
                let number =
                    ((place + ROUND).to_bits() as i32).wrapping_sub(ROUND.to_bits() as i32);
                let lost = place - number as f32;
                numbers[lane] = number as i8;
                // A row of NaN, which only a forged snapshot can hold, gives any number at all.
                sums[lane] = sums[lane].wrapping_add(number);
                lengths[lane] = lengths[lane].wrapping_add(number.wrapping_mul(number));
                squares[lane] += x * x;
                residuals[lane] += lost * lost;
            }
        }
        numbered.push(numbers);
    }
    Quantized {
        chunks: numbered,
        sum: sums.into_iter().fold(0, i32::wrapping_add),
        scale,
        squares: squares.iter().sum(),
        length: (lengths.into_iter().fold(0, i32::wrapping_add) as f32).sqrt(),
        residual: residuals.iter().sum::<f32>().sqrt(),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn numbers_avx2(values: &[f32], chunks: Vec<QueryChunk>) -> Quantized {
    numbers_of(values, chunks)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw")]
fn numbers_avx512(values: &[f32], chunks: Vec<QueryChunk>) -> Quantized {
    numbers_of(values, chunks)
}

/// The vector as numbers from -127 to 127 of one scale, in whole chunks; those given are filled anew.
pub(crate) fn quantize(isa: Isa, values: &[f32], chunks: Vec<QueryChunk>) -> Quantized {
    match isa.0 {
        Path::Scalar => numbers_of(values, chunks),
        // SAFETY: an `Isa` holds these paths only where the processor was seen to have the
        // instructions; the functions ask for nothing else.
        #[cfg(target_arch = "x86_64")]
        Path::Avx2 => unsafe { numbers_avx2(values, chunks) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Path::Avx512 => unsafe { numbers_avx512(values, chunks) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_are_the_nearest_and_the_same_on_all(
            values in proptest::collection::vec(-3.0f32..3.0, 2 * CHUNK), exponent in -18i32..17,
            dim in 1..=2 * CHUNK,
        ) {
            let size = 10f32.powi(exponent);
            let values: Vec<f32> = values[..dim].iter().map(|x| x * size).collect();
            let plain = quantize(Isa::available()[0].1, &values, Vec::new());
            prop_assert_eq!(plain.chunks.len(), dim.div_ceil(CHUNK));
            let stored = plain.chunks.iter().flat_map(|chunk| chunk.0);
            prop_assert!(stored.clone().skip(dim).all(|number| number == 0));
            let mut lost = 0.0;
            for (number, x) in stored.zip(&values) {
                let off = f64::from(*x) / f64::from(plain.scale) - f64::from(number);
                prop_assert!(off.abs() <= 0.5001);
                lost += off * off;
            }
            prop_assert!((f64::from(plain.residual) - lost.sqrt()).abs() < 1e-2);
            for (name, isa) in Isa::available() {
                let other = quantize(isa, &values, vec![QueryChunk([7; CHUNK]); 5]);
                prop_assert_eq!(&other.chunks, &plain.chunks, "on {}", name);
                let floats = |n: &Quantized| [n.scale, n.squares, n.length, n.residual].map(f32::to_bits);
                prop_assert_eq!(floats(&other), floats(&plain), "on {}", name);
                prop_assert_eq!(other.sum, plain.sum);
            }
        }
    }

    #[test]
    fn zeros_and_what_is_too_small_to_divide_by_are_zeros() {
        for value in [0.0, 1e-44] {
            let found = quantize(Isa::available()[0].1, &[value; CHUNK], Vec::new());
            assert_eq!(found.chunks, [QueryChunk([0; CHUNK])]);
            assert_eq!((found.sum, found.length), (0, 0.0));
        }
    }
}
