//! The beam search. Insertion, search, regions and graph search all walk by it.

use std::cmp::Reverse;

use crate::links::Links;
use crate::scratch::{Ranked, Scratch};
use crate::vectors::Vectors;

/// The graph over its rows.
#[derive(Clone, Copy)]
pub(crate) struct Graph<'a> {
    pub(crate) links: &'a Links,
    pub(crate) vectors: &'a Vectors,
}

/// How a beam goes about it.
pub(crate) struct Beam<A> {
    /// How many accepted nodes it keeps, `ef` in the paper.
    pub(crate) width: usize,
    pub(crate) level: usize,
    /// How many distances it may measure before it gives up.
    pub(crate) budget: usize,
    /// Nodes that are refused still bridge: skipped in the result, not in the walk.
    pub(crate) accepts: A,
}

impl Graph<'_> {
    /// Walks from `starts` towards `query` at one level, algorithm 2 of Malkov & Yashunin.
    ///
    /// Leaves the nearest accepted nodes in `scratch.found`, nearest first. Returns whether it
    /// came to its end within the budget.
    pub(crate) fn beam(
        &self,
        query: &[f32],
        starts: &[Ranked],
        beam: &Beam<impl Fn(u32) -> bool>,
        scratch: &mut Scratch,
    ) -> bool {
        let Scratch {
            visited,
            frontier,
            found,
            hop,
            distances,
        } = scratch;
        visited.forget(self.links.table_len());
        frontier.clear();
        found.clear();
        for &start in starts {
            visited.first(start.node());
            frontier.push(Reverse(start));
            if (beam.accepts)(start.node()) {
                keep(found, start, beam.width);
            }
        }
        let mut measured = 0;
        while let Some(Reverse(nearest)) = frontier.pop() {
            let full = found.len() == beam.width;
            if full && found.last().is_some_and(|&worst| nearest > worst) {
                break;
            }
            hop.clear();
            let neighbors = self.links.neighbors(nearest.node(), beam.level);
            hop.extend(neighbors.iter().filter(|&&node| visited.first(node)));
            measured += hop.len();
            if measured > beam.budget {
                return false;
            }
            distances.clear();
            self.vectors.distances(query, hop, distances);
            for (&node, &distance) in hop.iter().zip(distances.iter()) {
                let seen = Ranked::new(distance, node);
                if found.len() == beam.width && found.last().is_some_and(|&worst| seen > worst) {
                    continue;
                }
                frontier.push(Reverse(seen));
                if (beam.accepts)(node) {
                    keep(found, seen, beam.width);
                }
            }
        }
        true
    }

    /// The node nearest to `query` above `level` that a greedy descent finds.
    pub(crate) fn descend(
        &self,
        query: &[f32],
        level: usize,
        scratch: &mut Scratch,
    ) -> Option<Ranked> {
        let entry = self.links.entry()?;
        let mut best = self.ranked(query, entry, scratch);
        for level in (level + 1..=self.links.top()?).rev() {
            let beam = Beam {
                width: 1,
                level,
                budget: usize::MAX,
                accepts: |_| true,
            };
            self.beam(query, &[best], &beam, scratch);
            best = *scratch.found.first()?;
        }
        Some(best)
    }

    pub(crate) fn ranked(&self, query: &[f32], node: u32, scratch: &mut Scratch) -> Ranked {
        scratch.distances.clear();
        self.vectors
            .distances(query, &[node], &mut scratch.distances);
        Ranked::new(scratch.distances[0], node)
    }

    /// Compares with every one of `nodes`; leaves the nearest `width` in `scratch.found`.
    pub(crate) fn scan(
        &self,
        query: &[f32],
        nodes: impl IntoIterator<Item = u32>,
        width: usize,
        scratch: &mut Scratch,
    ) {
        const BLOCK: usize = 64;
        let Scratch {
            found,
            hop,
            distances,
            ..
        } = scratch;
        found.clear();
        let most = width.saturating_mul(2).max(BLOCK);
        let mut worst = None;
        let mut nodes = nodes.into_iter();
        loop {
            hop.clear();
            hop.extend(nodes.by_ref().take(BLOCK));
            if hop.is_empty() {
                break;
            }
            distances.clear();
            self.vectors.distances(query, hop, distances);
            for (&node, &distance) in hop.iter().zip(distances.iter()) {
                let seen = Ranked::new(distance, node);
                if worst.is_some_and(|worst| seen > worst) {
                    continue;
                }
                found.push(seen);
                if found.len() == most {
                    worst = Some(*found.select_nth_unstable(width - 1).1);
                    found.truncate(width);
                }
            }
        }
        found.sort_unstable();
        found.truncate(width);
    }
}

/// Puts `seen` into its place among the nearest `width`.
#[inline]
fn keep(found: &mut Vec<Ranked>, seen: Ranked, width: usize) {
    let place = found.partition_point(|&kept| kept < seen);
    if found.len() == width {
        if place == width {
            return;
        }
        found.pop();
    }
    found.insert(place, seen);
}
