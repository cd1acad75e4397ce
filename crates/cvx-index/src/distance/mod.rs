//! Metrics, and the SIMD kernels that measure them.

pub(crate) mod code_products;
pub(crate) mod full_precision;
pub(crate) mod instruction_set;
pub(crate) mod kernel;
pub(crate) mod prefetch;
pub(crate) mod quantize;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use full_precision::VectorRows;
use instruction_set::Isa;

/// How far two vectors are apart. A distance is lower where they are nearer.
///
/// ```
/// use cvx_index::Metric;
///
/// let distance = Metric::L2.distance(&[0.0, 0.0], &[3.0, 4.0])?;
/// assert_eq!((distance, Metric::L2.similarity(distance)), (25.0, 1.0 / 26.0));
/// # Ok::<(), cvx_index::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Metric {
    /// 1 - cosine of the angle.
    Cosine,
    /// Squared euclidean distance.
    L2,
    /// 1 - inner product.
    InnerProduct,
}

impl Metric {
    /// The distance of two vectors; for cosine the first must be of length 1.
    ///
    /// # Errors
    /// [`Error::Dimension`] for vectors of different length, [`Error::Parameter`] for `CVX_CPU`.
    pub fn distance(self, a: &[f32], b: &[f32]) -> Result<f32> {
        if a.len() != b.len() || a.is_empty() {
            return Err(Error::Dimension {
                found: b.len(),
                expected: a.len(),
            });
        }
        let mut found = Vec::with_capacity(1);
        let rows = VectorRows {
            table: b,
            offset: &vec![0.0; b.len()],
        };
        full_precision::distances(Isa::chosen()?, self, a, rows, &[0], &mut found);
        Ok(found[0])
    }

    /// The similarity of a distance: higher is better.
    ///
    /// The cosine, the inner product, or 1 / (1 + squared euclidean distance).
    #[must_use]
    pub fn similarity(self, distance: f32) -> f32 {
        match self {
            Metric::Cosine | Metric::InnerProduct => 1.0 - distance,
            Metric::L2 => 1.0 / (1.0 + distance),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requirement: X14
    #[test]
    fn similarity_grows_as_distance_shrinks() {
        for metric in [Metric::Cosine, Metric::L2, Metric::InnerProduct] {
            assert_eq!(metric.similarity(0.0), 1.0);
            assert!(metric.similarity(0.5) > metric.similarity(0.75));
        }
        assert_eq!(Metric::L2.similarity(3.0), 0.25);
        assert_eq!(Metric::Cosine.similarity(2.0), -1.0);
    }
}
