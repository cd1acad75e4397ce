//! Ranks what graph search reached: by codes first, the best again in full precision.

use super::path_bound::Bound;
use super::spread::Spread;
use super::{GraphHit, Terms};
use crate::id::Slot;
use crate::index::TemporalIndex;
use crate::vectors::Query;

/// Rows asked for ahead of the one that is measured.
const AHEAD: usize = 8;

/// A node that may be among the best: its place, and its score at the least and at the most.
struct Candidate {
    place: usize,
    lowest: f32,
    highest: f32,
}

impl TemporalIndex {
    /// The best of S and of the nodes that paths came to.
    pub(super) fn best(
        &self,
        spread: &mut Spread,
        terms: &Terms<'_>,
        bound: &Bound,
    ) -> Vec<GraphHit> {
        let k = terms.k;
        let known = |place: &usize| spread.reached()[*place].lowest > f32::NEG_INFINITY;
        let mut candidates: Vec<Candidate> = (0..spread.reached().len())
            .filter(known)
            .map(|place| candidate(spread, place))
            .filter(|candidate| bound.reaches(candidate.highest, 0.0))
            .collect();
        let near = spread.near().len();
        candidates.retain(|candidate| {
            candidate.place < near || terms.accepted.has(spread.reached()[candidate.place].node)
        });
        cut(&mut candidates, k);
        self.measure_lenders(spread, terms.query, &candidates);
        let mut hits: Vec<(GraphHit, usize)> = candidates
            .iter()
            .map(|candidate| (self.hit(spread, candidate.place), candidate.place))
            .collect();
        hits.sort_unstable_by(|(a, _), (b, _)| {
            b.score
                .total_cmp(&a.score)
                .then_with(|| a.distance.total_cmp(&b.distance))
                .then_with(|| a.node.cmp(&b.node))
        });
        hits.truncate(k);
        let explained = |(mut hit, place): (GraphHit, usize)| {
            if hit.score > hit.similarity {
                hit.path = spread.path(place, |slot| self.id(slot));
            }
            hit
        };
        hits.into_iter().map(explained).collect()
    }

    /// Measures candidates and the nodes that lend to them.
    fn measure_lenders(&self, spread: &mut Spread, query: &Query, candidates: &[Candidate]) {
        let mut places: Vec<usize> = Vec::with_capacity(2 * candidates.len());
        for &Candidate { place, .. } in candidates {
            places.push(place);
            places.extend(spread.lender(place).map(|(start, _)| start));
        }
        places.retain(|&place| spread.reached()[place].distance.is_none());
        places.sort_unstable();
        places.dedup();
        let node = |&place: &usize| spread.reached()[place].node;
        let nodes: Vec<Slot> = places.iter().map(node).collect();
        let ask = |node: &Slot| self.vectors.prefetch(*node);
        nodes.iter().take(AHEAD).for_each(ask);
        let mut distances = Vec::with_capacity(nodes.len());
        for (at, node) in nodes.iter().enumerate() {
            nodes.get(at + AHEAD).iter().copied().for_each(ask);
            let node = std::slice::from_ref(node);
            self.vectors.distances(&query.exact, node, &mut distances);
        }
        for (place, distance) in places.into_iter().zip(distances) {
            spread.reached_mut(place).distance = Some(distance);
        }
    }

    fn hit(&self, spread: &Spread, place: usize) -> GraphHit {
        let distance = |place: usize| spread.reached()[place].distance.unwrap_or(f32::INFINITY);
        let similarity = |place: usize| self.params.metric.similarity(distance(place));
        let lender = spread.lender(place);
        let lent = lender.map_or(0.0, |(start, carries)| similarity(start) * carries);
        GraphHit {
            node: self.id(spread.reached()[place].node),
            distance: distance(place),
            score: similarity(place) + lent.max(0.0),
            similarity: similarity(place),
            path: Vec::new(),
        }
    }
}

fn candidate(spread: &Spread, place: usize) -> Candidate {
    let own = &spread.reached()[place];
    let lent = spread.lender(place).map_or([0.0; 2], |(start, carries)| {
        let start = &spread.reached()[start];
        [start.lowest, start.highest].map(|similarity| (similarity * carries).max(0.0))
    });
    Candidate {
        place,
        lowest: own.lowest + lent[0],
        highest: own.highest + lent[1],
    }
}

/// Drops the candidates that can be no better than `k` others.
fn cut(candidates: &mut Vec<Candidate>, k: usize) {
    if candidates.len() <= k {
        return;
    }
    let mut lowest: Vec<f32> = candidates.iter().map(|each| each.lowest).collect();
    let (_, needed, _) = lowest.select_nth_unstable_by(k - 1, |a, b| b.total_cmp(a));
    let needed = *needed;
    candidates.retain(|candidate| candidate.highest >= needed);
}
