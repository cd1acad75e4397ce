//! Search that also follows boosted edges from the nodes it finds.

mod bound;

use bound::Bound;

use crate::accepted::Accepted;
use crate::by_node::ByNode;
use crate::distance::Metric;
use crate::edges::{Direction, EdgeKind, HalfEdge};
use crate::error::{Error, Result};
use crate::filter::Filter;
use crate::id::NodeId;
use crate::index::TemporalIndex;
use crate::nearest::Want;
use crate::scratch::{Ranked, with_scratch};
use crate::vectors::Query;

/// An edge that led to a result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WalkedEdge {
    /// Where it starts.
    pub from: NodeId,
    /// Where it ends.
    pub to: NodeId,
    /// What it means.
    pub kind: EdgeKind,
    /// Its strength.
    pub weight: f32,
    /// What its kind counts in this search.
    pub boost: f32,
}

/// A result of [`TemporalIndex::graph_search`].
#[derive(Clone, Debug, PartialEq)]
pub struct GraphHit {
    /// The node.
    pub node: NodeId,
    /// Its own distance to the query.
    pub distance: f32,
    /// Higher is better: similarity, and what the path brings.
    pub score: f32,
    /// Its own similarity to the query.
    pub similarity: f32,
    /// The edges that brought most, from a near node to this one; empty where none brought any.
    pub path: Vec<WalkedEdge>,
}

/// The end of a path: what it brings, where it began, and how it came here.
#[derive(Clone, Copy)]
struct Arrival {
    node: u32,
    value: f32,
    start: u32,
    before: usize,
    edge: HalfEdge,
    boost: f32,
}

/// The best two arrivals at a node, of different starts.
///
/// A path may not end where it began, so the best arrival may be barred from going on to a node
/// that the second best may still reach. A third never helps: two starts are not both that node.
#[derive(Clone, Copy, Default)]
struct Best([Option<usize>; 2]);

/// Marks an arrival that is a start.
const NOWHERE: usize = usize::MAX;

impl TemporalIndex {
    /// The best `k` nodes by similarity and by the edges that lead to them.
    ///
    /// With S the nearest `ef` accepted nodes, `score(v) = sim(v) +` the largest, over simple paths
    /// of 1 to `max_hops` boosted edges from a u in S to v, of `sim(u) * product(boost * weight)`,
    /// or 0 if there is none above it. Nodes found over edges alone count, if the filter accepts
    /// them. Paths run through nodes that it refuses, but enter no namespace that it does not name.
    ///
    /// # Errors
    /// Those of [`search`](Self::search); [`Error::Boost`] for one outside [0, 1].
    pub fn graph_search(
        &self,
        query: &[f32],
        k: usize,
        boosts: &[(EdgeKind, f32)],
        max_hops: usize,
        ef: Option<usize>,
        filter: &Filter,
    ) -> Result<Vec<GraphHit>> {
        if let Some(&(_, boost)) = boosts
            .iter()
            .find(|(_, boost)| !(0.0..=1.0).contains(boost))
        {
            return Err(Error::Boost { boost });
        }
        let width = self.width(k, ef)?;
        let accepted = self.accepted(filter)?;
        let query = self.vectors.prepared(query)?;
        let route = self.route(filter, &accepted, width);
        let near: Vec<Ranked> = with_scratch(|scratch| {
            let want = Want {
                least: k,
                measured: width,
                width,
            };
            self.nearest(&query, want, &accepted, &route, scratch);
            scratch.found.near.clone()
        });
        let bound = self.bound(&near, k, boosts, max_hops);
        let (arrivals, best) = self.spread(&near, &bound, boosts, max_hops, &accepted);
        let mut hits = self.hits(&query, &near, &bound, &arrivals, &best, &accepted);
        hits.sort_unstable_by(|a, b| {
            let nearer = |hit: &GraphHit| Ranked::new(hit.distance, hit.node.0);
            b.score
                .total_cmp(&a.score)
                .then_with(|| nearer(a).cmp(&nearer(b)))
        });
        hits.truncate(k);
        for hit in &mut hits {
            if let Some(Best([Some(at), _])) = best.get(&hit.node.0) {
                hit.path = walked(&arrivals, *at);
            }
            self.name(hit);
        }
        Ok(hits)
    }

    /// Puts nodes in the place of slots.
    fn name(&self, hit: &mut GraphHit) {
        hit.node = self.id(hit.node.0);
        for edge in &mut hit.path {
            (edge.from, edge.to) = (self.id(edge.from.0), self.id(edge.to.0));
        }
    }

    /// Walks hop by hop from the near nodes over boosted edges.
    fn spread(
        &self,
        near: &[Ranked],
        bound: &Bound,
        boosts: &[(EdgeKind, f32)],
        max_hops: usize,
        accepted: &Accepted<'_>,
    ) -> (Vec<Arrival>, ByNode<Best>) {
        let edge = HalfEdge {
            node: NodeId(0),
            kind: EdgeKind::Temporal,
            weight: 0.0,
        };
        let mut arrivals: Vec<Arrival> = Vec::with_capacity(4 * near.len());
        arrivals.extend(near.iter().map(|near| {
            let (start, value) = (near.node(), self.params.metric.similarity(near.distance()));
            Arrival {
                node: start,
                value,
                start,
                before: NOWHERE,
                edge,
                boost: 0.0,
            }
        }));
        let mut best: ByNode<Best> = ByNode::default();
        best.reserve(4 * near.len());
        let mut hop = 0..arrivals.len();
        for hops_left in (0..max_hops).rev() {
            let goes_on = |at: &usize| {
                let Arrival { node, value, .. } = arrivals[*at];
                hops_left > 0 || bound.leads_on(node, value)
            };
            let going: Vec<usize> = hop.clone().filter(goes_on).collect();
            let ends = going.iter().map(|&at| NodeId(arrivals[at].node));
            self.edges.prefetch(ends, Direction::Out);
            for before in going {
                let from = arrivals[before];
                for &(kind, boost) in boosts {
                    let mut temporal = None;
                    let here = NodeId(from.node);
                    for &edge in self.edges_of(here, kind, Direction::Out, &mut temporal) {
                        let node = edge.node.0;
                        let value = from.value * (boost * edge.weight);
                        let matters = bound.admits(node, value)
                            || hops_left > 1
                            || (hops_left == 1 && bound.leads_on(node, value));
                        if value <= 0.0
                            || node == from.start
                            || !matters
                            || !accepted.has_namespace(node)
                        {
                            continue;
                        }
                        let best = best.entry(node).or_default();
                        if best.admit(&arrivals, from.start, value, arrivals.len()) {
                            let Arrival { start, .. } = from;
                            arrivals.push(Arrival {
                                node,
                                value,
                                start,
                                before,
                                edge,
                                boost,
                            });
                        }
                    }
                }
            }
            hop = hop.end..arrivals.len();
        }
        (arrivals, best)
    }

    fn hits(
        &self,
        query: &Query,
        near: &[Ranked],
        bound: &Bound,
        arrivals: &[Arrival],
        best: &ByNode<Best>,
        accepted: &Accepted<'_>,
    ) -> Vec<GraphHit> {
        let value = |best: &Best| best.0[0].map(|at| arrivals[at].value);
        let far: Vec<u32> = best
            .iter()
            .filter(|(node, best)| value(best).is_some_and(|value| bound.admits(**node, value)))
            .map(|(node, _)| *node)
            .filter(|node| !bound.contains(*node) && accepted.has(*node))
            .collect();
        let far = self.within_reach(query, far, |node, similarity| {
            bound.reaches(similarity, best.get(&node).and_then(value).unwrap_or(0.0))
        });
        let mut distances = Vec::with_capacity(far.len());
        self.vectors.distances(&query.exact, &far, &mut distances);
        let far = far.into_iter().zip(distances);
        let all = near
            .iter()
            .map(|near| (near.node(), near.distance()))
            .chain(far);
        let hit = |(node, distance)| {
            let similarity = self.params.metric.similarity(distance);
            let lent = best.get(&node).and_then(value).unwrap_or(0.0);
            let score = similarity + lent;
            GraphHit {
                node: NodeId(node),
                distance,
                score,
                similarity,
                path: Vec::new(),
            }
        };
        all.map(hit)
            .filter(|hit| bound.reaches(hit.score, 0.0))
            .collect()
    }

    /// The nodes that a test passes when asked with the highest similarity that their codes allow.
    fn within_reach(
        &self,
        query: &Query,
        mut nodes: Vec<u32>,
        passes: impl Fn(u32, f32) -> bool,
    ) -> Vec<u32> {
        let codes = self.vectors.codes.table();
        nodes.iter().for_each(|&node| codes.prefetch(node));
        with_scratch(|scratch| {
            codes.distances(&query.coded, &nodes, &mut scratch.buffers);
            let mut distances = scratch.buffers.distances.iter();
            nodes.retain(|&node| {
                distances.next().is_some_and(|distance| {
                    let least = (distance - query.coded.error()).max(self.least_distance());
                    passes(node, self.params.metric.similarity(least))
                })
            });
        });
        nodes
    }

    /// No two vectors are nearer: a similarity of less would be none.
    fn least_distance(&self) -> f32 {
        match self.params.metric {
            Metric::L2 => 0.0,
            Metric::Cosine | Metric::InnerProduct => f32::NEG_INFINITY,
        }
    }
}

impl Best {
    /// Keeps arrival `at` if it is among the best two of different starts; whether it is.
    fn admit(&mut self, arrivals: &[Arrival], start: u32, value: f32, at: usize) -> bool {
        let [first, second] = self.0.map(|at| at.map(|at| arrivals[at]));
        let beats = |other: Option<Arrival>| other.is_none_or(|other| value > other.value);
        let of_first = first.is_some_and(|first| first.start == start);
        if beats(first) {
            if !of_first {
                self.0[1] = self.0[0];
            }
            self.0[0] = Some(at);
            true
        } else if !of_first && beats(second) {
            self.0[1] = Some(at);
            true
        } else {
            false
        }
    }
}

fn walked(arrivals: &[Arrival], mut at: usize) -> Vec<WalkedEdge> {
    let mut path = Vec::new();
    while let Arrival {
        node,
        before,
        edge,
        boost,
        ..
    } = arrivals[at]
        && before != NOWHERE
    {
        path.push(WalkedEdge {
            from: NodeId(arrivals[before].node),
            to: NodeId(node),
            kind: edge.kind,
            weight: edge.weight,
            boost,
        });
        at = before;
    }
    path.reverse();
    path
}
