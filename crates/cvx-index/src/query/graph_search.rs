//! Graph search: nearest nodes, plus nodes that boosted edges lead to from them.

mod path_bound;
mod rerank;
mod spread;

use spread::{Spread, with_spread};

use crate::distance::Metric;
use crate::edges::EdgeKind;
use crate::error::{Error, Result};
use crate::filter::Filter;
use crate::filter::accepted::Accepted;
use crate::filter::plan::Route;
use crate::graph::scratch::with_scratch;
use crate::id::NodeId;
use crate::index::TemporalIndex;
use crate::query::nearest::Want;
use crate::vectors::Query;

/// The most edges of a path: one walk over cycles of many strengths may see each edge as often.
const MOST_HOPS: usize = 64;

/// An edge that led to a result.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
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
#[non_exhaustive]
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

/// What one search asks for.
struct Terms<'a> {
    query: &'a Query,
    k: usize,
    boosts: &'a [(EdgeKind, f32)],
    max_hops: usize,
    accepted: &'a Accepted<'a>,
    /// What part of the error of a code its distance is taken to be off by.
    share: f32,
}

impl TemporalIndex {
    /// The best `k` nodes by similarity and by the edges that lead to them.
    ///
    /// With S the nearest `ef` accepted nodes, `score(v) = sim(v) +` the largest, over simple paths
    /// of 1 to `max_hops` boosted edges from a u in S to v, of `sim(u) * product(boost * weight)`,
    /// or 0 if there is none above it. Nodes found over edges alone count, if the filter accepts
    /// them. Paths run through nodes that it refuses, but enter no namespace that it does not name.
    ///
    /// # Errors
    /// Those of [`search`](Self::search); [`Error::Boost`] for one outside [0, 1];
    /// [`Error::Parameter`] for more than 64 hops.
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
        if max_hops > MOST_HOPS {
            return Err(Error::Parameter {
                name: "max_hops",
                value: max_hops.to_string(),
                bound: "from 0 to 64",
            });
        }
        let width = self.width(k, ef)?;
        let accepted = self.accepted(filter)?;
        let query = self.vectors.prepared(query)?;
        let route = self.route(filter, &accepted, width);
        let terms = Terms {
            query: &query,
            k,
            boosts,
            max_hops,
            accepted: &accepted,
            share: 0.0,
        };
        Ok(self.walked(terms, width, &route))
    }

    /// The best nodes by these terms, with the nearest `width` as S.
    fn walked(&self, mut terms: Terms<'_>, width: usize, route: &Route) -> Vec<GraphHit> {
        let want = Want {
            least: terms.k,
            measured: width,
            width,
        };
        with_spread(|spread| {
            terms.share = self.begin(spread, &terms, want, route);
            let bound = self.bound(spread, &terms);
            self.spread(spread, &terms, &bound);
            self.best(spread, &terms, &bound)
        })
    }

    /// Makes the nearest accepted nodes S; what part of the error of a code distances by codes are
    /// taken to be off by.
    fn begin(&self, spread: &mut Spread, terms: &Terms<'_>, want: Want, route: &Route) -> f32 {
        let &Terms {
            query, accepted, ..
        } = terms;
        spread.clear();
        with_scratch(|scratch| {
            let share = self.nearest_by_codes(query, want, accepted, route, scratch);
            let codes = self.vectors.codes.slices();
            for near in &scratch.found.near {
                let slack = share * codes.error(&query.coded, near.node());
                let [lowest, highest] = self.similarities(near.distance(), slack);
                // Where a scan measured them there is no slack.
                let distance = (share == 0.0).then_some(near.distance());
                spread.begin_at(near.node(), lowest, highest, distance);
            }
            match share {
                0.0 => 1.0,
                _ => share,
            }
        })
    }

    /// The least and the highest similarity of a node whose distance is known but for some slack.
    fn similarities(&self, distance: f32, slack: f32) -> [f32; 2] {
        let metric = self.params.metric;
        let nearest = match metric {
            Metric::L2 => (distance - slack).max(0.0),
            Metric::Cosine | Metric::InnerProduct => distance - slack,
        };
        [distance + slack, nearest].map(|distance| metric.similarity(distance))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::NewNode;
    use crate::id::EntityId;
    use crate::index::params::IndexParams;

    #[test]
    fn a_walk_ends_where_no_edge_leads_on_however_many_hops_are_left() {
        let mut index = TemporalIndex::new(IndexParams::new(2)).unwrap();
        for time in 0..3 {
            let row = [1.0, time as f32];
            let node = NewNode::new(EntityId(1), time, Some(&row));
            index.insert(node).unwrap();
        }
        let boosts = [(EdgeKind::Temporal, 1.0)];
        let query = index.vectors.prepared(&[1.0, 0.0]).unwrap();
        let found = |max_hops| {
            let accepted = index.accepted(&Filter::default()).unwrap();
            let route = index.route(&Filter::default(), &accepted, 1);
            let terms = Terms {
                query: &query,
                k: 1,
                boosts: &boosts,
                max_hops,
                accepted: &accepted,
                share: 0.0,
            };
            index.walked(terms, 1, &route)
        };
        assert_eq!(found(usize::MAX), found(2));
    }
}
