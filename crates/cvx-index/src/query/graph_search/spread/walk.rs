//! Walks boosted edges hop by hop, skipping those that cannot reach the best k.

use std::mem;

use super::super::Terms;
use super::super::path_bound::Bound;
use super::{Arrival, Pending, Spread};
use crate::edges::Direction;
use crate::graph::scratch::with_scratch;
use crate::id::Slot;
use crate::index::TemporalIndex;

impl TemporalIndex {
    /// Walks hop by hop from the nodes of S over boosted edges that may matter.
    pub(in crate::query::graph_search) fn spread(
        &self,
        spread: &mut Spread,
        terms: &Terms<'_>,
        bound: &Bound,
    ) {
        let mut hop = 0..spread.arrivals.len();
        for hops_left in (0..terms.max_hops).rev() {
            if hop.is_empty() {
                break;
            }
            let goes_on = |&at: &u32| {
                let Arrival { at, value, .. } = spread.arrivals[at as usize];
                let node = spread.node(at);
                // A node of a namespace that was not named is where a path ends, unseen.
                (hops_left > 0 || bound.leads_on(node, value))
                    && ((at as usize) < spread.near || terms.accepted.has_namespace(node))
            };
            let hops = hop.start as u32..hop.end as u32;
            let going: Vec<u32> = hops.filter(goes_on).collect();
            let here = |at: &u32| spread.node(spread.arrivals[*at as usize].at);
            self.edges.prefetch(going.iter().map(here), Direction::Out);
            for before in going {
                self.step(spread, terms, bound, before, hops_left);
            }
            self.settle(spread, terms, bound);
            hop = hop.end..spread.arrivals.len();
        }
    }

    /// Follows every edge from where an arrival is, with so many hops left after it.
    fn step(
        &self,
        spread: &mut Spread,
        terms: &Terms<'_>,
        bound: &Bound,
        before: u32,
        hops_left: usize,
    ) {
        let codes = self.vectors.codes.slices();
        let coded = self.links.table_len();
        let from = spread.arrivals[before as usize];
        let (here, start) = (spread.node(from.at), spread.node(from.start));
        for &(kind, boost) in terms.boosts {
            let mut temporal = None;
            for edge in self
                .edges_of(here, kind, Direction::Out, &mut temporal)
                .iter()
            {
                let node = edge.node;
                let value = from.value * (boost * edge.weight);
                if value <= 0.0 || node == start {
                    continue;
                }
                let by = Pending {
                    before,
                    edge,
                    boost,
                    value,
                };
                // A node without a vector can lead on, and is never found.
                if bound.suffices(value) && node.index() < coded {
                    codes.prefetch(node);
                    spread.pending.push(by);
                }
                let goes_on = hops_left > 1 || (hops_left == 1 && bound.leads_on(node, value));
                if goes_on || (bound.may_contain(node) && spread.may_gain(bound, node, value)) {
                    let unknown = [f32::NEG_INFINITY, bound.elsewhere()];
                    let at = spread.place(node, unknown);
                    spread.arrive(at, by);
                }
            }
        }
    }

    /// Looks at the codes of nodes that edges led to, and keeps those that may be among the best.
    fn settle(&self, spread: &mut Spread, terms: &Terms<'_>, bound: &Bound) {
        let pending = mem::take(&mut spread.pending);
        let nodes: Vec<Slot> = pending.iter().map(|by| by.edge.node).collect();
        with_scratch(|scratch| {
            let codes = self.vectors.codes.slices();
            let distances = codes.distances(&terms.query.coded, &nodes, &mut scratch.buffers);
            for (&by, &distance) in pending.iter().zip(distances) {
                let slack = terms.share * codes.error(&terms.query.coded, by.edge.node);
                let similarities = self.similarities(distance, slack);
                if bound.reaches(similarities[1], by.value) {
                    let at = spread.place(by.edge.node, similarities);
                    spread.tell(at, similarities);
                    spread.arrive(at, by);
                }
            }
        });
        spread.pending = pending;
        spread.pending.clear();
    }
}

impl Spread {
    /// Whether a node of S to which a path brings this much may be among the best.
    fn may_gain(&self, bound: &Bound, node: Slot, value: f32) -> bool {
        let place = self.places.get(&node).map(|&place| place as usize);
        place.is_some_and(|place| {
            place < self.near && bound.reaches(self.reached[place].highest, value)
        })
    }
}
