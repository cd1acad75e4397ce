//! Exhaustive search of a list of nodes: by codes, then the best in full precision.

use std::mem;
use std::ops::Range;

use crate::distance::kernel::{Kernel, Work};
use crate::graph::ranked::Ranked;
use crate::graph::scratch::{Found, Scratch};
use crate::id::Slot;
use crate::vectors::codes::{Buffers, CodeSlices, Coded, Codes};
use crate::vectors::{Query, Vectors};

/// Nodes compared together: enough for their cache misses to overlap.
const BLOCK: usize = 32;
/// Rows asked for ahead of the one that is measured in full precision.
const AHEAD: usize = 8;

impl Vectors {
    /// Leaves the nearest `width` of `nodes` in `scratch.found`, exactly those.
    ///
    /// Whatever the codes lost, a row is passed over only if it cannot be among the nearest.
    pub(crate) fn scan(&self, query: &Query, nodes: &[Slot], width: usize, scratch: &mut Scratch) {
        if nodes.len() <= width {
            // All of them are wanted: their codes would tell nothing.
            let near = &mut scratch.found.near;
            near.clear();
            near.extend(nodes.iter().map(|&node| Ranked::new(0.0, node)));
            self.measure(query, width, &mut scratch.found);
            return;
        }
        let codes = self.codes.slices();
        let mut nearest = Nearest::new(codes, query, width, &mut scratch.found);
        codes.isa().run(ScanList {
            scan: Scan {
                codes,
                query: &query.coded,
                nearest: &mut nearest,
                buffers: &mut scratch.buffers,
            },
            nodes,
        });
        nearest.finish();
        self.settle(query, width, &mut scratch.found);
    }

    /// [`scan`](Self::scan) of an unbroken run of nodes, which asks for nothing ahead: the
    /// processor sees the next row coming.
    pub(crate) fn scan_run(
        &self,
        query: &Query,
        run: Range<u32>,
        width: usize,
        scratch: &mut Scratch,
    ) {
        scan_rows(&self.codes, query, run, width, scratch);
        self.settle(query, width, &mut scratch.found);
    }

    /// [`scan`](Self::scan) of nodes whose codes lie in a table of their own.
    pub(crate) fn scan_copies(
        &self,
        query: &Query,
        nodes: &[Slot],
        copies: &Codes,
        width: usize,
        scratch: &mut Scratch,
    ) {
        scan_rows(copies, query, 0..nodes.len() as u32, width, scratch);
        for near in &mut scratch.found.near {
            *near = Ranked::new(near.distance(), nodes[near.node().index()]);
        }
        self.settle(query, width, &mut scratch.found);
    }

    /// Measures what a scan left: first as many as are wanted, then of the others those that can
    /// still be among the nearest.
    ///
    /// A scan allows for the errors of two distances by codes. Here one of the two is measured, and
    /// most of what the scan had to keep lies beyond the error of the other.
    fn settle(&self, query: &Query, width: usize, found: &mut Found) {
        if found.near.len() <= width {
            self.measure(query, width, found);
            return;
        }
        found.near.select_nth_unstable(width - 1);
        let mut others = found.near.split_off(width);
        self.measure(query, width, found);
        if let Some(farthest) = found.near.last() {
            let codes = self.codes.slices();
            let least = |near: &Ranked| near.distance() - codes.error(&query.coded, near.node());
            others.retain(|near| least(near) <= farthest.distance());
        }
        let measured = mem::replace(&mut found.near, others);
        self.measure(query, width, found);
        found.near.extend(measured);
        found.near.sort_unstable();
        found.near.truncate(width);
    }

    /// Puts what was found by codes in the order of the true distances; the nearest `width` stay.
    pub(crate) fn measure(&self, query: &Query, width: usize, found: &mut Found) {
        let Found {
            near: found,
            nodes,
            distances,
        } = found;
        nodes.clear();
        nodes.extend(found.iter().map(|near| near.node()));
        nodes
            .iter()
            .take(AHEAD)
            .for_each(|&node| self.prefetch(node));
        distances.clear();
        for (at, &node) in nodes.iter().enumerate() {
            if let Some(&later) = nodes.get(at + AHEAD) {
                self.prefetch(later);
            }
            self.distances(&query.exact, &[node], distances);
        }
        found.clear();
        found.extend(
            nodes
                .iter()
                .zip(distances)
                .map(|(&node, &mut d)| Ranked::new(d, node)),
        );
        found.sort_unstable();
        found.truncate(width);
    }
}

/// Leaves the rows of a table that can be among the nearest.
fn scan_rows(codes: &Codes, query: &Query, run: Range<u32>, width: usize, scratch: &mut Scratch) {
    let codes = codes.slices();
    let mut nearest = Nearest::new(codes, query, width, &mut scratch.found);
    codes.isa().run(ScanRun {
        scan: Scan {
            codes,
            query: &query.coded,
            nearest: &mut nearest,
            buffers: &mut scratch.buffers,
        },
        run,
    });
    nearest.finish();
}

/// What a scan goes by.
struct Scan<'a, 'b> {
    codes: CodeSlices<'a>,
    query: &'a Coded,
    nearest: &'a mut Nearest<'b>,
    buffers: &'a mut Buffers,
}

impl Scan<'_, '_> {
    /// Compares some nodes, and asks for the rows of those that come after them.
    #[inline(always)]
    fn look(&mut self, kernel: impl Kernel, nodes: &[Slot], ahead: &[Slot]) {
        let distances = self
            .codes
            .least_by(kernel, self.query, nodes, ahead, self.buffers);
        self.nearest.take(kernel, nodes, distances);
    }
}

/// A scan of rows that lie anywhere.
struct ScanList<'a, 'b> {
    scan: Scan<'a, 'b>,
    nodes: &'a [Slot],
}

impl Work for ScanList<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run(mut self, kernel: impl Kernel) {
        let (mut block, mut rest) = self.nodes.split_at(self.nodes.len().min(BLOCK));
        self.scan.codes.prefetch_all(block);
        while !block.is_empty() {
            let (next, after) = rest.split_at(rest.len().min(BLOCK));
            self.scan.look(kernel, block, next);
            (block, rest) = (next, after);
        }
    }
}

/// A scan of rows that lie one behind the other.
struct ScanRun<'a, 'b> {
    scan: Scan<'a, 'b>,
    run: Range<u32>,
}

impl Work for ScanRun<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run(mut self, kernel: impl Kernel) {
        let mut block = [Slot(0); BLOCK];
        while !self.run.is_empty() {
            let len = self.run.len().min(BLOCK);
            for (place, node) in block[..len].iter_mut().zip(&mut self.run) {
                *place = Slot(node);
            }
            self.scan.look(kernel, &block[..len], &[]);
        }
    }
}

/// Those that can be among the nearest of a scan.
///
/// A row may be nearer than its code says by the error of that row, and another one farther by its
/// own: rows are kept by the least that their distances can be, and dropped where that is beyond the
/// most that those of as many as are wanted can be.
struct Nearest<'a> {
    codes: CodeSlices<'a>,
    query: &'a Coded,
    /// With the least that the distance of each can be.
    found: &'a mut Vec<Ranked>,
    /// The most that they can be.
    most: &'a mut Vec<f32>,
    width: usize,
    /// So far are as many as are wanted at most.
    bound: f32,
    /// When so many are found, it is time to drop some.
    full: usize,
}

impl<'a> Nearest<'a> {
    fn new(codes: CodeSlices<'a>, query: &'a Query, width: usize, found: &'a mut Found) -> Self {
        found.near.clear();
        Nearest {
            codes,
            query: &query.coded,
            found: &mut found.near,
            most: &mut found.distances,
            width,
            bound: f32::INFINITY,
            full: width.saturating_mul(2).max(4 * BLOCK),
        }
    }

    /// Takes those of at most 64 nodes that can be near enough, by the least of their distances.
    #[inline(always)]
    fn take(&mut self, kernel: impl Kernel, nodes: &[Slot], least: &[f32]) {
        let mut near = kernel.within(least, self.bound);
        while near != 0 {
            let place = near.trailing_zeros() as usize;
            near &= near - 1;
            self.found.push(Ranked::new(least[place], nodes[place]));
        }
        if self.found.len() >= self.full {
            self.cut();
            self.full = self.full.max(2 * self.found.len());
        }
    }

    /// Drops what is farther than the last one wanted, whatever their codes lost.
    fn cut(&mut self) {
        if self.found.len() <= self.width {
            return;
        }
        let most =
            |near: &Ranked| near.distance() + 2.0 * self.codes.error(self.query, near.node());
        self.most.clear();
        self.most.extend(self.found.iter().map(most));
        self.bound = *self
            .most
            .select_nth_unstable_by(self.width - 1, f32::total_cmp)
            .1;
        self.found.retain(|near| near.distance() <= self.bound);
    }

    /// Leaves those that can be among the nearest, with their distances by codes.
    fn finish(mut self) {
        self.cut();
        for near in &mut *self.found {
            let error = self.codes.error(self.query, near.node());
            *near = Ranked::new(near.distance() + error, near.node());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distance::Metric;
    use crate::distance::instruction_set::Isa;
    use crate::graph::scratch::with_scratch;
    use crate::hash::splitmix;

    const DIM: usize = 48;
    const ROWS: u32 = 2000;

    /// Numbers from -1 to 1.
    fn row(seed: u64) -> Vec<f32> {
        let number = |at| (splitmix(splitmix(seed) ^ at) >> 40) as f32 / (1 << 23) as f32 - 1.0;
        (0..DIM as u64).map(number).collect()
    }

    /// How many rows a scan for ten leaves to be measured in full precision.
    fn left(vectors: &Vectors, query: &Query, len: u32) -> usize {
        with_scratch(|scratch| {
            scan_rows(&vectors.codes, query, 0..len, 10, scratch);
            scratch.found.near.len()
        })
    }

    #[test]
    fn a_row_far_longer_than_the_others_leaves_no_more_of_them_to_be_measured() {
        for metric in [Metric::L2, Metric::InnerProduct] {
            let mut vectors = Vectors::new(DIM, metric, Isa::chosen().unwrap());
            for node in 0..ROWS {
                vectors.put(Slot(node), &row(u64::from(node)));
            }
            vectors.encode(&(0..ROWS).map(Slot).collect::<Vec<_>>());
            let queries = (1 << 20..1 << 20 | 20).map(|seed| vectors.prepared(&row(seed)).unwrap());
            let queries: Vec<Query> = queries.collect();
            let of_all = |vectors: &Vectors, len| -> usize {
                queries.iter().map(|query| left(vectors, query, len)).sum()
            };
            let before = of_all(&vectors, ROWS);
            assert!(before < 20 * 100, "{before}");
            let long: Vec<f32> = row(ROWS.into()).iter().map(|x| x * 1e4).collect();
            vectors.put(Slot(ROWS), &long);
            vectors.encode(&[Slot(ROWS)]);
            let after = of_all(&vectors, ROWS + 1);
            assert!(after <= before + 20, "{after} where {before} were left");
        }
    }
}
