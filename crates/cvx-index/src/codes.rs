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
use crate::distance::prefetch::prefetch;

/// The largest component.
const MOST: f32 = 127.0;

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
        let (rows, scales) = (self.rows.to_mut(), self.scales.to_mut());
        if scales.len() < end {
            rows.resize(end * self.lines, Line::ZERO);
            scales.resize(end, 0.0);
        }
        for (row, line) in rows[at * self.lines..].iter_mut().zip(&numbers.lines) {
            *row = Line(line.0.map(|number| number as u8 ^ BIAS));
        }
        scales[at] = numbers.scale;
        if self.metric == Metric::L2 {
            let bases = self.bases.to_mut();
            bases.resize(bases.len().max(end), 0.0);
            bases[at] = numbers.squares;
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
        numbers(&values)
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

/// A vector as whole numbers.
struct Numbers {
    lines: Vec<QueryLine>,
    sum: i32,
    scale: f32,
    /// Of the vector, before rounding.
    squares: f32,
    length: f32,
    residual: f32,
}

fn numbers(values: &[[f32; LINE]]) -> Numbers {
    // Added to a float of up to 2^22 it leaves the nearest whole number in the low bits.
    const ROUND: f32 = 12_582_912.0;
    const LANES: usize = 16;
    let mut most = [0.0f32; LANES];
    for chunk in values.as_flattened().as_chunks::<LANES>().0 {
        for (most, x) in most.iter_mut().zip(chunk) {
            *most = if x.abs() > *most { x.abs() } else { *most };
        }
    }
    let scale = most.into_iter().fold(0.0, f32::max) / MOST;
    // A scale too small to divide by stands for a vector of zeros.
    let inverse = Some(1.0 / scale)
        .filter(|inverse| inverse.is_finite())
        .unwrap_or(0.0);
    let mut lines = Vec::with_capacity(values.len());
    let (mut sums, mut lengths) = ([0i32; LANES], [0i32; LANES]);
    let (mut squares, mut residuals) = ([0.0f32; LANES], [0.0f32; LANES]);
    for line in values {
        let mut numbers = [0i8; LINE];
        for (numbers, xs) in numbers
            .chunks_exact_mut(LANES)
            .zip(line.as_chunks::<LANES>().0)
        {
            for lane in 0..LANES {
                let x = xs[lane];
                let place = (x * inverse).clamp(-MOST, MOST);
                let number =
                    ((place + ROUND).to_bits() as i32).wrapping_sub(ROUND.to_bits() as i32);
                let lost = place - number as f32;
                numbers[lane] = number as i8;
                sums[lane] += number;
                lengths[lane] += number * number;
                squares[lane] += x * x;
                residuals[lane] += lost * lost;
            }
        }
        lines.push(QueryLine(numbers));
    }
    Numbers {
        lines,
        sum: sums.iter().sum(),
        scale,
        squares: squares.iter().sum(),
        length: lengths.iter().map(|&x| x as f32).sum::<f32>().sqrt(),
        residual: residuals.iter().sum::<f32>().sqrt(),
    }
}
