//! Rows as bytes: what walks and scans compare, before the best are measured in full precision.
//!
//! With y = the vector as it is compared, a row is stored as whole numbers c from -127 to 127 with
//! y ~ scale * c. All metrics are then one formula over products of whole numbers,
//!
//! `distance(q, x) = base(q) + base(x) - factor * scale(q) * scale(x) * (c(q) . c(x))`,
//!
//! with base(q) + base(x) = 1 and factor 1 for cosine and inner products, and for the squared
//! euclidean distance base = |y|^2 and factor 2. A scale a row needs no training and keeps rows of
//! any length.

mod stored;

pub(crate) use stored::Tables;

use crate::column::Column;
use crate::distance::Metric;
use crate::distance::codes::{BIAS, LINE, Line, QueryLine, products};
use crate::distance::isa::Isa;
use crate::distance::numbers::{Numbers, numbers};
use crate::distance::prefetch::prefetch;

/// The rows as bytes, and what turns their products into distances.
#[derive(Clone)]
pub(crate) struct Codes {
    isa: Isa,
    metric: Metric,
    /// Cache lines a row takes.
    lines: usize,
    rows: Column<Line>,
    scales: Column<f32>,
    /// Only for l2.
    bases: Column<f32>,
    worst: Worst,
}

/// The extremes of all rows ever coded, to bound what codes lose.
#[derive(Clone, Copy, Debug, Default)]
struct Worst {
    scale: f32,
    /// Length of the numbers of a row.
    length: f32,
    /// Length of what rounding took from a row, in units of its scale.
    residual: f32,
}

/// A vector to compare with the rows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Coded {
    lines: Vec<QueryLine>,
    /// What the bias of the rows adds to each product.
    excess: i32,
    scale: f32,
    base: f32,
    /// How far distances to rows can be from those of the vector itself.
    error: f32,
}

impl Coded {
    /// No distance by codes is farther than this from the true one.
    pub(crate) fn error(&self) -> f32 {
        self.error
    }
}

impl Codes {
    pub(crate) fn new(dim: usize, metric: Metric, isa: Isa) -> Self {
        Codes {
            isa,
            metric,
            lines: dim.div_ceil(LINE),
            rows: Column::new(),
            scales: Column::new(),
            bases: Column::new(),
            worst: Worst::default(),
        }
    }

    fn factor(&self) -> f32 {
        if self.metric == Metric::L2 { 2.0 } else { 1.0 }
    }

    /// Stores the row of a node.
    pub(crate) fn put(&mut self, node: u32, compared: &[f32]) {
        let numbers = self.numbers(compared);
        let (at, end) = (node as usize, node as usize + 1);
        self.rows.grow(end * self.lines, Line::ZERO);
        self.scales.grow(end, 0.0);
        let rows = self.rows.to_mut()[at * self.lines..].iter_mut();
        for (row, line) in rows.zip(&numbers.lines) {
            *row = Line(line.0.map(|number| number as u8 ^ BIAS));
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

    /// Forgets the row of a node.
    pub(crate) fn erase(&mut self, node: u32) {
        let at = node as usize;
        self.rows.to_mut()[at * self.lines..][..self.lines].fill(Line::ZERO);
        self.scales.to_mut()[at] = 0.0;
        if self.metric == Metric::L2 {
            self.bases.to_mut()[at] = 0.0;
        }
    }

    /// A vector, as it is compared, as numbers.
    pub(crate) fn coded(&self, compared: &[f32]) -> Coded {
        let Numbers {
            lines,
            sum,
            scale,
            squares,
            residual,
            ..
        } = self.numbers(compared);
        // |q.x - q'.x'| <= |q - q'| |x'| + |q| |x - x'|, and a little for the sums of floats.
        let lost = residual * scale * self.worst.length + squares.sqrt() * self.worst.residual;
        let error = self.factor() * lost * self.worst.scale * 1.001 + 1e-6;
        Coded {
            lines,
            excess: sum * i32::from(BIAS),
            scale: self.factor() * scale,
            base: if self.metric == Metric::L2 {
                squares
            } else {
                1.0
            },
            error,
        }
    }

    /// The tables as plain slices, to be taken once before a loop.
    #[inline]
    pub(crate) fn table(&self) -> Table<'_> {
        Table {
            isa: self.isa,
            factor: self.factor(),
            lines: self.lines,
            rows: &self.rows,
            scales: &self.scales,
            bases: &self.bases,
        }
    }

    /// How many bytes of memory the rows take.
    pub(crate) fn bytes(&self) -> usize {
        self.rows.heap_bytes() + self.scales.heap_bytes() + self.bases.heap_bytes()
    }

    fn numbers(&self, compared: &[f32]) -> Numbers {
        let mut values = vec![[0.0; LINE]; self.lines];
        values.as_flattened_mut()[..compared.len()].copy_from_slice(compared);
        numbers(self.isa, &values)
    }
}

/// The tables of the codes.
#[derive(Clone, Copy)]
pub(crate) struct Table<'a> {
    isa: Isa,
    factor: f32,
    lines: usize,
    rows: &'a [Line],
    scales: &'a [f32],
    bases: &'a [f32],
}

impl Table<'_> {
    /// The row of a node as a query.
    pub(crate) fn coded_row(&self, node: u32) -> Coded {
        let at = node as usize;
        let rows = &self.rows[at * self.lines..][..self.lines];
        let lines: Vec<QueryLine> = rows
            .iter()
            .map(|line| QueryLine(line.0.map(|x| (x ^ BIAS) as i8)))
            .collect();
        let sum: i32 = lines.iter().flat_map(|line| line.0).map(i32::from).sum();
        Coded {
            lines,
            excess: sum * i32::from(BIAS),
            scale: self.factor * self.scales[at],
            base: self.bases.get(at).copied().unwrap_or(1.0),
            error: 0.0,
        }
    }

    /// Whether two rows are the same.
    pub(crate) fn same(&self, a: u32, b: u32) -> bool {
        let row = |node: u32| &self.rows[node as usize * self.lines..][..self.lines];
        self.scales[a as usize] == self.scales[b as usize] && row(a) == row(b)
    }

    /// Asks for what [`distances`](Self::distances) of a node will read.
    #[inline]
    pub(crate) fn prefetch(&self, node: u32) {
        let at = node as usize;
        for line in &self.rows[at * self.lines..][..self.lines] {
            prefetch(line);
        }
        prefetch(&self.scales[at]);
        if let Some(base) = self.bases.get(at) {
            prefetch(base);
        }
    }

    /// The distances of `query` to the rows `nodes`.
    #[inline]
    pub(crate) fn distances(&self, query: &Coded, nodes: &[u32], buffers: &mut Buffers) {
        let Buffers {
            products: sums,
            distances,
        } = buffers;
        sums.resize(nodes.len(), 0);
        products(self.isa, &query.lines, self.rows, nodes, sums);
        distances.clear();
        let near = |(&sum, &node): (&i32, &u32)| {
            let product = (sum - query.excess) as f32;
            query.base - product * (query.scale * self.scales[node as usize])
        };
        let pairs = sums.iter().zip(nodes);
        if self.bases.is_empty() {
            distances.extend(pairs.map(near));
        } else {
            distances.extend(pairs.map(|pair| near(pair) + self.bases[*pair.1 as usize]));
        }
    }
}

/// Where products and distances are put.
#[derive(Default)]
pub(crate) struct Buffers {
    products: Vec<i32>,
    pub(crate) distances: Vec<f32>,
}
