//! Vectors quantized to 8 bits a dimension: graph walks and scans compare these codes first.
//!
//! With y = the vector as it is compared, a row is stored as whole numbers c from -127 to 127 with
//! y ~ scale * c. All metrics are then one formula over products of whole numbers,
//!
//! `distance(q, x) = base(q) + base(x) - factor * scale(q) * scale(x) * (c(q) . c(x))`,
//!
//! with base(q) + base(x) = 1 and factor 1 for cosine and inner products, and for the squared
//! euclidean distance base = |y|^2 and factor 2. A scale a row needs no training and keeps rows of
//! any length.

mod snapshot_tables;

pub(crate) use snapshot_tables::CodeTables;

use std::mem;
use std::sync::Arc;

use crate::columns::column::Column;
use crate::columns::pieces::Pieces;
use crate::distance::Metric;
use crate::distance::code_products::{BIAS, CHUNK, Chunk, CodeRows, GROUP, PACK, QueryChunk, pack};
use crate::distance::instruction_set::Isa;
use crate::distance::kernel::{Kernel, Work};
use crate::distance::prefetch::prefetch_at;
use crate::distance::quantize::{Quantized, quantize};
use crate::hash::splitmix;
use crate::id::Slot;

/// The rows as bytes, and what turns their products into distances.
#[derive(Clone)]
pub(crate) struct Codes {
    isa: Isa,
    metric: Metric,
    /// Chunks a row takes.
    chunks: usize,
    rows: Column<Chunk>,
    /// Of rows that came from a snapshot and were not checked when it was opened.
    pieces: Option<Arc<Pieces>>,
    scales: Column<f32>,
    /// Only for l2.
    bases: Column<f32>,
    worst: Worst,
}

/// The extremes of all rows coded since the index was made or compacted, to bound what codes lose.
///
/// What a row loses is a share of its own scale, so that a row of any length costs no other anything:
/// length and residual, in units of the scale, are bounded by the root of the dimension.
#[derive(Clone, Copy, Debug, Default)]
struct Worst {
    scale: f32,
    /// Length of the numbers of a row.
    length: f32,
    /// Length of what rounding took from a row, in units of its scale.
    residual: f32,
}

/// What sums of floats may lose, on top of what codes lose.
const ROUNDING: f32 = 1e-6;

/// A vector to compare with the rows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Coded {
    chunks: Vec<QueryChunk>,
    /// What the bias of the rows adds to each product.
    excess: i32,
    scale: f32,
    base: f32,
    /// How far the distance to a row can be from that of the vector itself, in units of the scale
    /// of the row.
    error: f32,
}

impl Codes {
    pub(crate) fn new(dim: usize, metric: Metric, isa: Isa) -> Self {
        Codes {
            isa,
            metric,
            chunks: dim.div_ceil(CHUNK),
            rows: Column::new(),
            pieces: None,
            scales: Column::new(),
            bases: Column::new(),
            worst: Worst::default(),
        }
    }

    fn factor(&self) -> f32 {
        if self.metric == Metric::L2 { 2.0 } else { 1.0 }
    }

    /// Stores the row of a node.
    pub(crate) fn put(&mut self, node: Slot, compared: &[f32]) {
        let numbers = quantize(self.isa, compared, Vec::new());
        self.slices().check_read(node);
        let (at, end) = (node.index(), node.index() + 1);
        self.rows.grow(end * self.chunks, Chunk::ZERO);
        self.scales.grow(end, 0.0);
        let rows = self.rows.to_mut()[at * self.chunks..].iter_mut();
        for (row, chunk) in rows.zip(&numbers.chunks) {
            *row = Chunk(chunk.0.map(|number| number as u8 ^ BIAS));
        }
        self.scales.to_mut()[at] = numbers.scale;
        if self.metric == Metric::L2 {
            self.bases.grow(end, 0.0);
            self.bases.to_mut()[at] = numbers.squares;
        }
        let Worst {
            scale,
            length,
            residual,
        } = &mut self.worst;
        *scale = scale.max(numbers.scale);
        *length = length.max(numbers.length);
        *residual = residual.max(numbers.residual);
    }

    /// Whether the row of a node is that of this vector.
    pub(crate) fn is_of(&self, node: Slot, compared: &[f32]) -> bool {
        let numbers = quantize(self.isa, compared, Vec::new());
        let (at, table) = (node.index(), self.slices());
        let chunks = table.row(node).iter().zip(&numbers.chunks);
        chunks
            .into_iter()
            .all(|(row, chunk)| row.0 == chunk.0.map(|number| number as u8 ^ BIAS))
            && self.scales[at] == numbers.scale
            && self
                .bases
                .get(at)
                .is_none_or(|&base| base == numbers.squares)
    }

    /// Forgets the row of a node, which then has no distance: it is not a number, within no bound.
    pub(crate) fn erase(&mut self, node: Slot) {
        self.slices().check_read(node);
        let at = node.index();
        self.rows.to_mut()[at * self.chunks..][..self.chunks].fill(Chunk::ZERO);
        self.scales.to_mut()[at] = f32::NAN;
        if self.metric == Metric::L2 {
            self.bases.to_mut()[at] = 0.0;
        }
    }

    /// Whether a row has no distance, as those have that were erased.
    pub(crate) fn is_erased(&self, node: Slot) -> bool {
        self.scales
            .get(node.index())
            .is_some_and(|scale| scale.is_nan())
    }

    /// Codes a vector as it is compared.
    pub(crate) fn code(&self, compared: &[f32], coded: &mut Coded) {
        let Quantized {
            chunks,
            sum,
            scale,
            squares,
            residual,
            ..
        } = quantize(self.isa, compared, mem::take(&mut coded.chunks));
        // |q.x - q'.x'| <= |q - q'| |x'| + |q| |x - x'|, and a little for the sums of floats.
        let lost = residual * scale * self.worst.length + squares.sqrt() * self.worst.residual;
        let error = self.factor() * lost * 1.001;
        *coded = Coded {
            chunks,
            excess: sum * i32::from(BIAS),
            scale: self.factor() * scale,
            base: if self.metric == Metric::L2 {
                squares
            } else {
                1.0
            },
            error,
        };
    }

    /// No distance by codes to any row is farther than this from the true one.
    pub(crate) fn largest_error(&self, query: &Coded) -> f32 {
        query.error * self.worst.scale + ROUNDING
    }

    /// The tables as plain slices, to be taken once before a loop.
    #[inline]
    pub(crate) fn slices(&self) -> CodeSlices<'_> {
        CodeSlices {
            isa: self.isa,
            factor: self.factor(),
            rows: CodeRows::new(&self.rows, self.chunks),
            pieces: self.pieces.as_deref(),
            scales: &self.scales,
            bases: &self.bases,
        }
    }

    /// Holds all rows against their checksums.
    pub(crate) fn check_all(&self) {
        if let Some(pieces) = &self.pieces {
            pieces.check_all(bytemuck::cast_slice(&self.rows));
        }
    }

    /// Whether a row was read that is not what was written.
    pub(crate) fn damaged(&self) -> bool {
        self.pieces.as_deref().is_some_and(Pieces::damaged)
    }

    /// Remembers that other codes are damaged, where they are.
    pub(crate) fn stay_damaged(&mut self, other: &Codes) {
        self.pieces = other.pieces.clone().filter(|pieces| pieces.damaged());
    }

    /// How many bytes of memory the rows take.
    pub(crate) fn bytes(&self) -> usize {
        self.rows.heap_bytes() + self.scales.heap_bytes() + self.bases.heap_bytes()
    }

    /// How many bytes a row takes, its scale and its base included.
    pub(crate) fn row_bytes(&self) -> usize {
        self.chunks * size_of::<Chunk>() + 2 * size_of::<f32>()
    }
}

/// The tables of the codes.
#[derive(Clone, Copy)]
pub(crate) struct CodeSlices<'a> {
    isa: Isa,
    factor: f32,
    rows: CodeRows<'a>,
    pieces: Option<&'a Pieces>,
    scales: &'a [f32],
    bases: &'a [f32],
}

impl CodeSlices<'_> {
    /// Holds the row of a node against its checksum, if it was not yet: before it is read or changed.
    #[inline(always)]
    pub(crate) fn check_read(&self, node: Slot) {
        if let Some(pieces) = self.pieces {
            pieces.check(self.rows.bytes(), self.rows.place(node.0));
        }
    }

    /// The row of a node, checked.
    #[inline(always)]
    fn row(&self, node: Slot) -> &[Chunk] {
        self.check_read(node);
        self.rows.row(node.0)
    }

    /// The row of a node as a query.
    pub(crate) fn coded_row(&self, node: Slot) -> Coded {
        let mut coded = Coded::default();
        self.take_row(node, &mut coded);
        coded
    }

    /// Makes a query of the row of a node.
    #[inline(always)]
    pub(crate) fn take_row(&self, node: Slot, coded: &mut Coded) {
        let (row, at) = (self.row(node), node.index());
        coded.chunks.resize(row.len(), QueryChunk([0; CHUNK]));
        let mut sum = 0i32;
        for (query, chunk) in coded.chunks.iter_mut().zip(row) {
            for (number, &byte) in query.0.iter_mut().zip(&chunk.0) {
                *number = (byte ^ BIAS) as i8;
                sum += i32::from(byte);
            }
        }
        sum -= i32::from(BIAS) * (row.len() * CHUNK) as i32;
        coded.excess = sum * i32::from(BIAS);
        coded.scale = self.factor * self.scales[at];
        coded.base = self.bases.get(at).copied().unwrap_or(1.0);
        coded.error = 0.0;
    }

    /// The distance by codes to the row of a node is no farther than this from the true one.
    #[inline(always)]
    pub(crate) fn error(&self, query: &Coded, node: Slot) -> f32 {
        query.error * self.scales[node.index()] + ROUNDING
    }

    /// Whether two rows are the same.
    pub(crate) fn same(&self, a: Slot, b: Slot) -> bool {
        self.scales[a.index()] == self.scales[b.index()] && self.row(a) == self.row(b)
    }

    /// A hash of the row of a node, the same where two rows are.
    pub(crate) fn hash(&self, node: Slot) -> u64 {
        let words = bytemuck::cast_slice::<Chunk, u64>(self.row(node)).iter();
        let scale = u64::from(self.scales[node.index()].to_bits());
        words.fold(scale, |hash, &word| splitmix(hash ^ word))
    }

    /// Asks for what [`distances`](Self::distances) of a node will read.
    #[inline(always)]
    pub(crate) fn prefetch(&self, node: Slot) {
        self.rows.prefetch(node.0);
        prefetch_at(self.scales.as_ptr().wrapping_add(node.index()));
        if !self.bases.is_empty() {
            prefetch_at(self.bases.as_ptr().wrapping_add(node.index()));
        }
    }

    /// The distances of `query` to the rows `nodes`.
    pub(crate) fn distances<'b>(
        &self,
        query: &Coded,
        nodes: &[Slot],
        buffers: &'b mut Buffers,
    ) -> &'b [f32] {
        self.isa.run(Distances {
            table: self,
            query,
            nodes,
            buffers,
        })
    }

    #[inline(always)]
    pub(crate) fn prefetch_all(&self, nodes: &[Slot]) {
        for &node in nodes {
            self.prefetch(node);
        }
    }

    /// [`distances`](Self::distances) for a loop that is itself compiled for an instruction set.
    ///
    /// Asks for the rows `ahead` on the way, a few at a time: more than the memory takes at once
    /// would be waited for.
    #[inline(always)]
    pub(crate) fn distances_by<'b>(
        &self,
        kernel: impl Kernel,
        query: &Coded,
        nodes: &[Slot],
        ahead: &[Slot],
        buffers: &'b mut Buffers,
    ) -> &'b [f32] {
        self.compared::<false>(kernel, query, nodes, ahead, buffers)
    }

    /// The least that the distances can be, whatever the codes lost; else as
    /// [`distances_by`](Self::distances_by).
    #[inline(always)]
    pub(crate) fn least_by<'b>(
        &self,
        kernel: impl Kernel,
        query: &Coded,
        nodes: &[Slot],
        ahead: &[Slot],
        buffers: &'b mut Buffers,
    ) -> &'b [f32] {
        self.compared::<true>(kernel, query, nodes, ahead, buffers)
    }

    #[inline(always)]
    fn compared<'b, const LEAST: bool>(
        &self,
        kernel: impl Kernel,
        query: &Coded,
        nodes: &[Slot],
        ahead: &[Slot],
        buffers: &'b mut Buffers,
    ) -> &'b [f32] {
        if buffers.distances.len() < nodes.len() {
            buffers.distances.resize(nodes.len(), 0.0);
        }
        let distances = &mut buffers.distances[..nodes.len()];
        if self.pieces.is_some() {
            nodes.iter().for_each(|&node| self.check_read(node));
        }
        let (groups, rest) = nodes.as_chunks::<GROUP>();
        let (outs, rest_out) = distances.as_chunks_mut::<GROUP>();
        let mut ahead = ahead.chunks(GROUP);
        for (group, out) in groups.iter().zip(outs) {
            self.prefetch_all(ahead.next().unwrap_or(&[]));
            *out = self.four::<LEAST>(kernel, query, group);
        }
        for rest in ahead {
            self.prefetch_all(rest);
        }
        if let Some(&last) = rest.last() {
            // The places that are left over measure the last row again.
            let mut group = [last; GROUP];
            group[..rest.len()].copy_from_slice(rest);
            rest_out.copy_from_slice(&self.four::<LEAST>(kernel, query, &group)[..rest.len()]);
        }
        distances
    }

    #[inline(always)]
    fn four<const LEAST: bool>(
        &self,
        kernel: impl Kernel,
        query: &Coded,
        nodes: &[Slot; GROUP],
    ) -> [f32; GROUP] {
        let mut rows: [&[Chunk]; GROUP] = [&[]; GROUP];
        let mut scales = [0.0; GROUP];
        let mut bases = [query.base; GROUP];
        for lane in 0..GROUP {
            let at = nodes[lane].index();
            rows[lane] = self.rows.row(nodes[lane].0);
            scales[lane] = self.scales[at];
        }
        let products = kernel.products(&query.chunks, rows);
        for lane in 0..GROUP {
            let product = (products[lane] - query.excess) as f32;
            bases[lane] -= product * (query.scale * scales[lane]);
        }
        if !self.bases.is_empty() {
            for lane in 0..GROUP {
                bases[lane] += self.bases[nodes[lane].index()];
            }
        }
        if LEAST {
            for lane in 0..GROUP {
                bases[lane] -= query.error * scales[lane] + ROUNDING;
            }
        }
        bases
    }

    /// Puts the rows of nodes side by side.
    pub(crate) fn pack(&self, nodes: &[Slot], packed: &mut Packed) {
        self.prefetch_all(&nodes[..nodes.len().min(PACK)]);
        let rows: Vec<&[Chunk]> = nodes.iter().map(|&node| self.row(node)).collect();
        pack(&rows, &mut packed.rows);
        packed.scales.clear();
        packed.bases.clear();
        for &node in nodes {
            packed.scales.push(self.scales[node.index()]);
            packed
                .bases
                .push(self.bases.get(node.index()).copied().unwrap_or(0.0));
        }
        let len = nodes.len().next_multiple_of(PACK);
        // What is beyond the last is farther than anything.
        packed.scales.resize(len, 0.0);
        packed.bases.resize(len, f32::INFINITY);
    }

    /// The instruction set that the rows are compared by.
    pub(crate) fn isa(&self) -> Isa {
        self.isa
    }
}

/// Rows side by side, to be compared with many.
#[derive(Default)]
pub(crate) struct Packed {
    rows: Vec<Chunk>,
    scales: Vec<f32>,
    bases: Vec<f32>,
}

impl Packed {
    /// How many rows there are, with those that fill the last [`PACK`].
    pub(crate) fn len(&self) -> usize {
        self.scales.len()
    }

    /// The products of four queries with the rows of a pack: the same of two rows, whichever is the query.
    #[inline(always)]
    pub(crate) fn products(
        &self,
        kernel: impl Kernel,
        queries: &[Coded; GROUP],
        pack: usize,
    ) -> [[i32; PACK]; GROUP] {
        let [a, b, c, d] = queries;
        let chunks = [&*a.chunks, &*b.chunks, &*c.chunks, &*d.chunks];
        let size = PACK * a.chunks.len();
        let mut products = kernel.tile(chunks, &self.rows[pack * size..][..size]);
        for (products, query) in products.iter_mut().zip(queries) {
            for product in products {
                *product -= query.excess;
            }
        }
        products
    }

    /// The distances of a query to all rows, of its products with them, and the least of each place
    /// in a pack.
    #[inline(always)]
    pub(crate) fn distances(
        &self,
        query: &Coded,
        products: &[i32],
        distances: &mut [f32],
    ) -> [f32; PACK] {
        let mut least = [f32::INFINITY; PACK];
        let packs = products.as_chunks::<PACK>().0.iter();
        let (scales, bases) = (self.scales.as_chunks().0, self.bases.as_chunks().0);
        let rows = packs.zip(scales).zip(bases);
        for (out, ((products, scales), bases)) in distances.as_chunks_mut().0.iter_mut().zip(rows) {
            let (scales, bases): (&[f32; PACK], &[f32; PACK]) = (scales, bases);
            let mut row = [0.0; PACK];
            for at in 0..PACK {
                let scale = query.scale * scales[at];
                row[at] = query.base - products[at] as f32 * scale + bases[at];
                least[at] = if row[at] < least[at] {
                    row[at]
                } else {
                    least[at]
                };
            }
            *out = row;
        }
        least
    }
}

/// Where distances are put.
#[derive(Default)]
pub(crate) struct Buffers {
    distances: Vec<f32>,
}

/// Rows asked for ahead of those that are compared.
const AHEAD: usize = 4 * GROUP;

/// Distances to rows that somebody has picked.
struct Distances<'a, 'b> {
    table: &'a CodeSlices<'a>,
    query: &'a Coded,
    nodes: &'a [Slot],
    buffers: &'b mut Buffers,
}

impl<'b> Work for Distances<'_, 'b> {
    type Output = &'b [f32];

    #[inline(always)]
    fn run(self, kernel: impl Kernel) -> Self::Output {
        let ahead = self.nodes.get(AHEAD..).unwrap_or(&[]);
        self.table
            .distances_by(kernel, self.query, self.nodes, ahead, self.buffers)
    }
}
