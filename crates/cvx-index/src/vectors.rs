//! The vectors of all nodes: rows in full precision, checked and centred, beside their 8-bit codes.
//!
//! Walks and scans compare codes; the best of what they find is measured from the rows as they
//! came, in full precision.

pub(crate) mod codes;

use std::sync::Arc;

use crate::columns::column::Column;
use crate::columns::pieces::Pieces;
use crate::distance::Metric;
use crate::distance::full_precision::{self, VectorRows};
use crate::distance::instruction_set::Isa;
use crate::distance::prefetch::prefetch;
use crate::error::{Error, Result};
use crate::id::Slot;
use crate::vectors::codes::{Coded, Codes};

/// Up to this norm, the squared distance of two vectors fits into f32.
const LONGEST: f64 = 1e18;

/// One row a node; rows of nodes without a vector hold zeros and are never compared.
#[derive(Clone)]
pub(crate) struct Vectors {
    dim: usize,
    metric: Metric,
    isa: Isa,
    center: Option<Vec<f32>>,
    /// What is taken from a row before it is compared: the center, or zeros. Squared distances do
    /// not move with the center.
    offset: Vec<f32>,
    raw: Column<f32>,
    /// Of rows that came from a snapshot and were not checked when it was opened.
    pieces: Option<Arc<Pieces>>,
    pub(crate) codes: Codes,
}

/// A vector to be compared.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query {
    /// With the center taken away and, for cosine, of length 1.
    pub(crate) exact: Vec<f32>,
    pub(crate) coded: Coded,
}

impl Vectors {
    pub(crate) fn new(dim: usize, metric: Metric, isa: Isa) -> Self {
        Vectors {
            dim,
            metric,
            isa,
            center: None,
            offset: vec![0.0; dim],
            raw: Column::new(),
            pieces: None,
            codes: Codes::new(dim, metric, isa),
        }
    }

    pub(crate) fn center(&self) -> Option<&[f32]> {
        self.center.as_deref()
    }

    pub(crate) fn raw(&self, node: Slot) -> &[f32] {
        self.check_read(node);
        &self.raw[node.index() * self.dim..][..self.dim]
    }

    /// Holds the row of a node against its checksum, if it was not yet: before it is read or changed.
    #[inline]
    fn check_read(&self, node: Slot) {
        if let Some(pieces) = &self.pieces {
            let size = self.dim * size_of::<f32>();
            let start = node.index() * size;
            pieces.check(bytemuck::cast_slice(&self.raw), start..start + size);
        }
    }

    /// Holds all rows and codes against their checksums.
    pub(crate) fn check_all(&self) {
        if let Some(pieces) = &self.pieces {
            pieces.check_all(bytemuck::cast_slice(&self.raw));
        }
        self.codes.check_all();
    }

    /// The section of the snapshot that something was read from which is not what was written.
    pub(crate) fn damaged(&self) -> Option<&'static str> {
        let rows = self.pieces.as_deref().is_some_and(Pieces::damaged);
        match rows {
            true => Some("ROWS"),
            false => self.codes.damaged().then_some("CODE"),
        }
    }

    /// The row of a node as a query.
    pub(crate) fn query_of(&self, node: Slot) -> Query {
        Query {
            exact: self.compared(node),
            coded: self.codes.slices().coded_row(node),
        }
    }

    /// The row of a node as it is compared; it was checked when it came.
    fn compared(&self, node: Slot) -> Vec<f32> {
        let (row, center) = (self.raw(node), self.center.as_deref());
        let mut compared = Vec::new();
        if let Ok(divisor) = divisor(self.metric, center, row, squares(row, &[]).sqrt()) {
            take_moved(self.metric, center, row, divisor, &mut compared);
        }
        compared
    }

    /// The vector as it is to be compared.
    ///
    /// # Errors
    /// [`Error::Dimension`], [`Error::NonFinite`], [`Error::ZeroVector`], [`Error::TooLong`].
    pub(crate) fn prepared(&self, vector: &[f32]) -> Result<Query> {
        let mut query = Query::default();
        self.prepare(vector, &mut query)?;
        Ok(query)
    }

    /// [`prepared`](Self::prepared), in the place of another query.
    pub(crate) fn prepare(&self, vector: &[f32], query: &mut Query) -> Result<()> {
        let norm = self.check_finite(vector)?;
        let (metric, center) = (self.metric, self.center.as_deref());
        let divisor = divisor(metric, center, vector, norm)?;
        take_moved(metric, center, vector, divisor, &mut query.exact);
        self.codes.code(&query.exact, &mut query.coded);
        Ok(())
    }

    /// Refuses what cannot be compared.
    ///
    /// # Errors
    /// As [`prepared`](Self::prepared).
    pub(crate) fn check(&self, vector: &[f32]) -> Result<()> {
        let norm = self.check_finite(vector)?;
        divisor(self.metric, self.center.as_deref(), vector, norm).map(drop)
    }

    /// Checks dimension, finiteness and, where distances could overflow, length, which it returns.
    pub(crate) fn check_finite(&self, vector: &[f32]) -> Result<f64> {
        if vector.len() != self.dim {
            return Err(Error::Dimension {
                found: vector.len(),
                expected: self.dim,
            });
        }
        let norm = squares(vector, &[]).sqrt();
        if !norm.is_finite() {
            // f64 holds the squares of all finite f32.
            let position = vector.iter().position(|x| !x.is_finite()).unwrap_or(0);
            return Err(Error::NonFinite {
                position,
                value: vector[position],
            });
        }
        if self.metric != Metric::Cosine && norm > LONGEST {
            return Err(Error::TooLong {
                norm,
                bound: LONGEST,
            });
        }
        Ok(norm)
    }

    /// Stores the row of a node, a vector that passed [`check`](Self::check), without its code.
    pub(crate) fn put(&mut self, node: Slot, vector: &[f32]) {
        self.check_read(node);
        let start = node.index() * self.dim;
        self.raw.grow(start + self.dim, 0.0);
        self.raw.to_mut()[start..start + self.dim].copy_from_slice(vector);
    }

    /// Codes the rows of nodes that were put.
    pub(crate) fn encode(&mut self, nodes: &[Slot]) {
        for &node in nodes {
            let compared = self.compared(node);
            self.codes.put(node, &compared);
        }
    }

    /// Whether the code of a node is that of its row.
    pub(crate) fn is_coded(&self, node: Slot) -> bool {
        self.codes.is_of(node, &self.compared(node))
    }

    /// Codes the rows of all nodes there are anew.
    pub(crate) fn recode(&mut self, nodes: &[Slot]) {
        self.codes = Codes::new(self.dim, self.metric, self.isa);
        self.encode(nodes);
    }

    /// Forgets the row of a node.
    pub(crate) fn erase(&mut self, node: Slot) {
        self.check_read(node);
        self.raw.to_mut()[node.index() * self.dim..][..self.dim].fill(0.0);
        self.codes.erase(node);
    }

    /// The mean of the raw rows of `nodes`.
    pub(crate) fn mean(&self, nodes: impl Iterator<Item = Slot>) -> Option<Vec<f32>> {
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
        mut nodes: impl Iterator<Item = Slot>,
    ) -> Result<()> {
        if let Some(center) = center {
            self.check_finite(center)?;
        }
        nodes.try_for_each(|node| {
            let row = self.raw(node);
            divisor(self.metric, center, row, squares(row, &[]).sqrt()).map(drop)
        })
    }

    /// Takes distances from a center that passed [`check_center`](Self::check_center).
    ///
    /// The codes of the rows are those of the center before until they are made anew.
    pub(crate) fn set_center(&mut self, center: Option<Vec<f32>>) {
        self.offset = match (&center, self.metric) {
            (Some(center), Metric::Cosine | Metric::InnerProduct) => center.clone(),
            _ => vec![0.0; self.dim],
        };
        self.center = center;
    }

    /// Appends the distances from a prepared vector to the rows of `nodes`, in full precision.
    pub(crate) fn distances(&self, exact: &[f32], nodes: &[Slot], out: &mut Vec<f32>) {
        if self.pieces.is_some() {
            nodes.iter().for_each(|&node| self.check_read(node));
        }
        let rows = VectorRows {
            table: &self.raw,
            offset: &self.offset,
        };
        full_precision::distances(
            self.isa,
            self.metric,
            exact,
            rows,
            Slot::numbers(nodes),
            out,
        );
    }

    /// Asks for what [`distances`](Self::distances) of a node will read.
    #[inline]
    pub(crate) fn prefetch(&self, node: Slot) {
        for line in self.raw[node.index() * self.dim..][..self.dim].chunks(16) {
            prefetch(&line[0]);
        }
    }

    /// All rows as they came.
    pub(crate) fn rows(&self) -> &[f32] {
        &self.raw
    }

    /// Takes over the rows of a snapshot, and the checksums that they are still to be held against.
    pub(crate) fn restore(&mut self, rows: Column<f32>, pieces: Option<Arc<Pieces>>) {
        (self.raw, self.pieces) = (rows, pieces);
    }

    /// These vectors in memory with room for so many rows, where to have them would copy all.
    pub(crate) fn roomy(&self, rows: usize) -> Option<Self> {
        let more = rows.saturating_sub(self.raw.len() / self.dim);
        self.raw.lacks(more * self.dim).then(|| Vectors {
            center: self.center.clone(),
            offset: self.offset.clone(),
            raw: self.raw.roomy(more * self.dim),
            pieces: self.pieces.clone(),
            codes: self.codes.roomy(more),
            ..*self
        })
    }

    /// The rows at these slots, of which those from `end` on have none, and their codes, but for
    /// their extremes those of before; `nodes` are the places that rows of nodes come to.
    pub(crate) fn gathered(&self, kept: &[Slot], end: usize, nodes: &[Slot]) -> Self {
        self.check_all();
        // Rows at other places have no checksums; of damaged ones it is not forgotten that they are.
        let pieces = self.pieces.clone().filter(|pieces| pieces.damaged());
        let rows = &kept[..kept.partition_point(|&slot| slot.index() < end)];
        let mut vectors = Vectors {
            center: self.center.clone(),
            offset: self.offset.clone(),
            raw: self.raw.gathered(Slot::numbers(rows), self.dim),
            pieces,
            codes: Codes::new(self.dim, self.metric, self.isa),
            ..*self
        };
        vectors.encode(nodes);
        // The codes are new; the links are not, and may have been chosen by damaged ones.
        vectors.codes.stay_damaged(&self.codes);
        vectors
    }

    /// How many bytes of memory the rows take.
    pub(crate) fn bytes(&self) -> usize {
        self.raw.heap_bytes() + self.codes.bytes()
    }

    /// How many bytes a row takes, with its code.
    pub(crate) fn row_bytes(&self) -> usize {
        self.dim * size_of::<f32>() + self.codes.row_bytes()
    }
}

/// What a vector of length `norm` is divided by to be compared: for cosine its length as seen from the
/// center.
fn divisor(metric: Metric, center: Option<&[f32]>, vector: &[f32], norm: f64) -> Result<f64> {
    if metric != Metric::Cosine {
        return Ok(1.0);
    }
    // f64: squares of f32 neither overflow nor vanish.
    match center.map_or(norm, |center| squares(vector, center).sqrt()) {
        0.0 => Err(Error::ZeroVector {
            centered: center.is_some(),
        }),
        length => Ok(length),
    }
}

/// `vector - center`, divided for cosine.
fn take_moved(
    metric: Metric,
    center: Option<&[f32]>,
    vector: &[f32],
    divisor: f64,
    moved: &mut Vec<f32>,
) {
    moved.clear();
    let inverse = 1.0 / divisor;
    let share = |x: f64| (x * inverse) as f32;
    match (metric, center) {
        (Metric::L2, _) | (Metric::InnerProduct, None) => moved.extend_from_slice(vector),
        (Metric::InnerProduct, Some(center)) => {
            moved.extend(vector.iter().zip(center).map(|(x, c)| x - c));
        }
        (Metric::Cosine, None) => moved.extend(vector.iter().map(|&x| share(f64::from(x)))),
        (Metric::Cosine, Some(center)) => {
            let pairs = vector.iter().zip(center);
            moved.extend(pairs.map(|(&x, &c)| share(f64::from(x) - f64::from(c))));
        }
    }
}

/// The sum of the squares of `vector - center`, in lanes that a compiler can take together; an
/// empty center is the origin.
fn squares(vector: &[f32], center: &[f32]) -> f64 {
    const LANES: usize = 8;
    let (chunks, rest) = vector.as_chunks::<LANES>();
    let (taken, taken_rest) = center.as_chunks::<LANES>();
    let mut sums = [0.0f64; LANES];
    for (at, chunk) in chunks.iter().enumerate() {
        let taken = taken.get(at).unwrap_or(&[0.0; LANES]);
        for lane in 0..LANES {
            let x = f64::from(chunk[lane]) - f64::from(taken[lane]);
            sums[lane] += x * x;
        }
    }
    for (lane, &x) in rest.iter().enumerate() {
        let x = f64::from(x) - f64::from(taken_rest.get(lane).copied().unwrap_or(0.0));
        sums[lane] += x * x;
    }
    sums.iter().sum()
}
