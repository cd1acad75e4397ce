//! The vectors as they came, and as they are compared.

use crate::column::Column;
use crate::distance::Metric;
use crate::distance::kernels::Isa;
use crate::error::{Error, Result};

/// Up to this norm, the squared distance of two vectors fits into f32.
const LONGEST: f64 = 1e18;

/// One row a node; rows of nodes without a vector hold zeros and are never compared.
#[derive(Clone)]
pub(crate) struct Vectors {
    dim: usize,
    metric: Metric,
    isa: Isa,
    center: Option<Vec<f32>>,
    raw: Column<f32>,
    /// Rows with the center taken away and, for cosine, of length 1; absent where raw rows serve:
    /// always for l2, whose distances do not move with the center.
    compared: Option<Column<f32>>,
}

impl Vectors {
    pub(crate) fn new(dim: usize, metric: Metric, isa: Isa) -> Self {
        let mut vectors = Vectors {
            dim,
            metric,
            isa,
            center: None,
            raw: Column::new(),
            compared: None,
        };
        vectors.set_center(None, std::iter::empty());
        vectors
    }

    pub(crate) fn center(&self) -> Option<&[f32]> {
        self.center.as_deref()
    }

    pub(crate) fn raw(&self, node: u32) -> &[f32] {
        &self.raw[node as usize * self.dim..][..self.dim]
    }

    fn table(&self) -> &[f32] {
        self.compared.as_deref().unwrap_or(&self.raw)
    }

    /// The row of a node as it is compared.
    pub(crate) fn row(&self, node: u32) -> &[f32] {
        &self.table()[node as usize * self.dim..][..self.dim]
    }

    /// The vector as it is to be compared.
    ///
    /// # Errors
    /// [`Error::Dimension`], [`Error::NonFinite`], [`Error::ZeroVector`], [`Error::TooLong`].
    pub(crate) fn prepared(&self, vector: &[f32]) -> Result<Vec<f32>> {
        self.check_finite(vector)?;
        moved(self.metric, self.center.as_deref(), vector)
    }

    /// Checks length, finiteness and, where distances could overflow, size.
    pub(crate) fn check_finite(&self, vector: &[f32]) -> Result<()> {
        if vector.len() != self.dim {
            return Err(Error::Dimension {
                found: vector.len(),
                expected: self.dim,
            });
        }
        if let Some(position) = vector.iter().position(|x| !x.is_finite()) {
            return Err(Error::NonFinite {
                position,
                value: vector[position],
            });
        }
        if self.metric != Metric::Cosine {
            let norm = vector
                .iter()
                .map(|&x| f64::from(x) * f64::from(x))
                .sum::<f64>()
                .sqrt();
            if norm > LONGEST {
                return Err(Error::TooLong {
                    norm,
                    bound: LONGEST,
                });
            }
        }
        Ok(())
    }

    /// Stores the row of a node; `vector` passed [`prepared`](Self::prepared), which made `moved`.
    pub(crate) fn put(&mut self, node: u32, vector: &[f32], moved: &[f32]) {
        put_row(self.raw.to_mut(), node, vector);
        if let Some(compared) = &mut self.compared {
            put_row(compared.to_mut(), node, moved);
        }
    }

    /// Forgets the row of a node.
    pub(crate) fn erase(&mut self, node: u32) {
        let row = node as usize * self.dim..(node as usize + 1) * self.dim;
        self.raw.to_mut()[row.clone()].fill(0.0);
        if let Some(compared) = &mut self.compared {
            compared.to_mut()[row].fill(0.0);
        }
    }

    /// The mean of the raw rows of `nodes`.
    pub(crate) fn mean(&self, nodes: impl Iterator<Item = u32>) -> Option<Vec<f32>> {
        let mut sums = vec![0.0f64; self.dim];
        let mut count = 0u32;
        for node in nodes {
            for (sum, &x) in sums.iter_mut().zip(self.raw(node)) {
                *sum += f64::from(x);
            }
            count += 1;
        }
        (count > 0).then(|| {
            sums.iter()
                .map(|sum| (sum / f64::from(count)) as f32)
                .collect()
        })
    }

    /// Refuses a center that would leave one of `nodes` without a direction.
    pub(crate) fn check_center(
        &self,
        center: Option<&[f32]>,
        mut nodes: impl Iterator<Item = u32>,
    ) -> Result<()> {
        if let Some(center) = center {
            self.check_finite(center)?;
        }
        nodes.try_for_each(|node| moved(self.metric, center, self.raw(node)).map(drop))
    }

    /// Takes distances from a center that passed [`check_center`](Self::check_center).
    pub(crate) fn set_center(
        &mut self,
        center: Option<Vec<f32>>,
        nodes: impl Iterator<Item = u32>,
    ) {
        self.center = center;
        self.compared = match self.metric {
            Metric::L2 => None,
            Metric::InnerProduct if self.center.is_none() => None,
            _ => {
                let mut compared = vec![0.0; self.raw.len()];
                for node in nodes {
                    let row = moved(self.metric, self.center.as_deref(), self.raw(node));
                    put_row(&mut compared, node, &row.unwrap_or_default());
                }
                Some(compared.into())
            }
        };
    }

    /// Appends the distances from a prepared vector to the rows of `nodes`.
    pub(crate) fn distances(&self, prepared: &[f32], nodes: &[u32], out: &mut Vec<f32>) {
        self.metric
            .distances(self.isa, prepared, self.table(), nodes, out);
    }

    /// How many bytes of memory the rows take.
    pub(crate) fn bytes(&self) -> usize {
        self.raw.heap_bytes() + self.compared.as_ref().map_or(0, Column::heap_bytes)
    }
}

fn put_row(table: &mut Vec<f32>, node: u32, row: &[f32]) {
    let start = node as usize * row.len();
    if table.len() < start + row.len() {
        table.resize(start + row.len(), 0.0);
    }
    table[start..start + row.len()].copy_from_slice(row);
}

/// `vector - center`, for cosine of length 1.
fn moved(metric: Metric, center: Option<&[f32]>, vector: &[f32]) -> Result<Vec<f32>> {
    let taken = |at: usize| center.map_or(0.0, |center| center[at]);
    match metric {
        Metric::L2 => Ok(vector.to_vec()),
        Metric::InnerProduct => Ok(vector
            .iter()
            .enumerate()
            .map(|(at, x)| x - taken(at))
            .collect()),
        Metric::Cosine => {
            // f64: squares of f32 neither overflow nor vanish.
            let offset: Vec<f64> = vector
                .iter()
                .enumerate()
                .map(|(at, &x)| f64::from(x) - f64::from(taken(at)))
                .collect();
            let norm = offset.iter().map(|x| x * x).sum::<f64>().sqrt();
            if norm == 0.0 {
                return Err(Error::ZeroVector {
                    centered: center.is_some(),
                });
            }
            Ok(offset.iter().map(|x| (x / norm) as f32).collect())
        }
    }
}
