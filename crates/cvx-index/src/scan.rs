//! Finding the nearest of a list: all of them by their codes, the best in full precision.

use std::mem;
use std::ops::Range;

use crate::codes::{self, Buffers, Coded, Codes};
use crate::distance::kernel::{Kernel, Work};
use crate::scratch::{Found, Ranked, Scratch};
use crate::vectors::{Query, Vectors};

/// Nodes compared together: enough for their cache misses to overlap.
const BLOCK: usize = 32;
/// Rows asked for ahead of the one that is measured in full precision.
const AHEAD: usize = 8;

impl Vectors {
    /// Leaves the nearest `width` of `nodes` in `scratch.found`, exactly those.
    ///
    /// Whatever the codes lost, a row is passed over only if it cannot be among the nearest.
    pub(crate) fn scan(&self, query: &Query, nodes: &[u32], width: usize, scratch: &mut Scratch) {
        if nodes.len() <= width {
            // All of them are wanted: their codes would tell nothing.
            let near = &mut scratch.found.near;
            near.clear();
            near.extend(nodes.iter().map(|&node| Ranked::new(0.0, node)));
            self.measure(query, width, &mut scratch.found);
            return;
        }
        let codes = self.codes.table();
        let mut nearest = Nearest::new(query, width, &mut scratch.found.near);
        codes.isa().run(ScanList {
            scan: Scan {
                codes,
                query: &query.coded,
                nearest: &mut nearest,
                buffers: &mut scratch.buffers,
            },
            nodes,
        });
        nearest.cut();
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
        nodes: &[u32],
        copies: &Codes,
        width: usize,
        scratch: &mut Scratch,
    ) {
        scan_rows(copies, query, 0..nodes.len() as u32, width, scratch);
        for near in &mut scratch.found.near {
            *near = Ranked::new(near.distance(), nodes[near.node() as usize]);
        }
        self.settle(query, width, &mut scratch.found);
    }

    /// Measures what a scan left: first as many as are wanted, then of the others those that can
    /// still be among the nearest.
    ///
    /// The slack of a scan allows for two distances by codes. Here one of the two is measured, and
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
            let bound = farthest.distance() + query.coded.error();
            others.retain(|near| near.distance() <= bound);
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
    let codes = codes.table();
    let mut nearest = Nearest::new(query, width, &mut scratch.found.near);
    codes.isa().run(ScanRun {
        scan: Scan {
            codes,
            query: &query.coded,
            nearest: &mut nearest,
            buffers: &mut scratch.buffers,
        },
        run,
    });
    nearest.cut();
}

/// What a scan goes by.
struct Scan<'a, 'b> {
    codes: codes::Table<'a>,
    query: &'a Coded,
    nearest: &'a mut Nearest<'b>,
    buffers: &'a mut Buffers,
}

impl Scan<'_, '_> {
    /// Compares some nodes, and asks for the rows of those that come after them.
    #[inline(always)]
    fn look(&mut self, kernel: impl Kernel, nodes: &[u32], ahead: &[u32]) {
        let distances = self
            .codes
            .distances_by(kernel, self.query, nodes, ahead, self.buffers);
        self.nearest.take(kernel, nodes, distances);
    }
}

/// A scan of rows that lie anywhere.
struct ScanList<'a, 'b> {
    scan: Scan<'a, 'b>,
    nodes: &'a [u32],
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
        let mut block = [0; BLOCK];
        while !self.run.is_empty() {
            let len = self.run.len().min(BLOCK);
            for (place, node) in block[..len].iter_mut().zip(&mut self.run) {
                *place = node;
            }
            self.scan.look(kernel, &block[..len], &[]);
        }
    }
}

/// Those that can be among the nearest of a scan.
struct Nearest<'a> {
    found: &'a mut Vec<Ranked>,
    width: usize,
    /// The last one wanted may be farther than its code says, and another one nearer.
    slack: f32,
    /// Beyond this distance by codes nothing is among the nearest.
    bound: f32,
    /// When so many are found, it is time to drop some.
    most: usize,
}

impl<'a> Nearest<'a> {
    fn new(query: &Query, width: usize, found: &'a mut Vec<Ranked>) -> Self {
        found.clear();
        Nearest {
            found,
            width,
            slack: 2.0 * query.coded.error(),
            bound: f32::INFINITY,
            most: width.saturating_mul(2).max(4 * BLOCK),
        }
    }

    /// Takes those of at most 64 nodes that are near enough.
    #[inline(always)]
    fn take(&mut self, kernel: impl Kernel, nodes: &[u32], distances: &[f32]) {
        let mut near = kernel.within(distances, self.bound);
        while near != 0 {
            let place = near.trailing_zeros() as usize;
            near &= near - 1;
            self.found.push(Ranked::new(distances[place], nodes[place]));
        }
        if self.found.len() >= self.most {
            self.cut();
            self.most = self.most.max(2 * self.found.len());
        }
    }

    /// Drops what is farther than the last one wanted by more than codes can be wrong.
    fn cut(&mut self) {
        if self.found.len() > self.width {
            let last = self.found.select_nth_unstable(self.width - 1).1.distance();
            self.bound = last + self.slack;
            self.found.retain(|near| near.distance() <= self.bound);
        }
    }
}
