//! Finding the nearest of a list: all of them by their codes, the best in full precision.

use crate::scratch::{Found, Ranked, Scratch};
use crate::vectors::{Query, Vectors};

/// Nodes compared together: enough for their cache misses to overlap.
const BLOCK: usize = 64;
/// Rows asked for ahead of the one that is measured in full precision.
const AHEAD: usize = 8;

impl Vectors {
    /// Leaves the nearest `width` of `nodes` in `scratch.found`, exactly those.
    ///
    /// Whatever the codes lost, a row is passed over only if it cannot be among the nearest.
    pub(crate) fn scan(
        &self,
        query: &Query,
        nodes: impl IntoIterator<Item = u32>,
        width: usize,
        scratch: &mut Scratch,
    ) {
        let Scratch { found, buffers, .. } = scratch;
        let Found {
            near: found,
            nodes: block,
            ..
        } = found;
        // The width-th nearest may be farther than its code says, and another one nearer.
        let codes = self.codes.table();
        let slack = 2.0 * query.coded.error();
        found.clear();
        let mut most = width.saturating_mul(2).max(4 * BLOCK);
        let mut bound = f32::INFINITY;
        let mut nodes = nodes.into_iter();
        loop {
            block.clear();
            block.extend(nodes.by_ref().take(BLOCK));
            if block.is_empty() {
                break;
            }
            block.iter().for_each(|&node| codes.prefetch(node));
            codes.distances(&query.coded, block, buffers);
            for (&node, &distance) in block.iter().zip(&buffers.distances) {
                if distance <= bound {
                    found.push(Ranked::new(distance, node));
                }
            }
            if found.len() >= most {
                bound = cut(found, width, slack);
                most = most.max(2 * found.len());
            }
        }
        cut(found, width, slack);
        self.measure(query, width, &mut scratch.found);
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

/// Drops what is farther than the `width`-th by more than `slack`; the distance of the farthest
/// that stays.
fn cut(found: &mut Vec<Ranked>, width: usize, slack: f32) -> f32 {
    if found.len() <= width {
        return f32::INFINITY;
    }
    let bound = found.select_nth_unstable(width - 1).1.distance() + slack;
    found.retain(|near| near.distance() <= bound);
    bound
}
