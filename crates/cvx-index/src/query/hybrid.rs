//! Hybrid search: a node's score also takes its neighbours in time into account.

use crate::error::{Error, Result};
use crate::filter::Filter;
use crate::filter::plan::Route;
use crate::graph::scratch::with_scratch;
use crate::id::{NodeId, Slot};
use crate::index::TemporalIndex;
use crate::query::nearest::Want;
use crate::vectors::Query;

/// A result of [`TemporalIndex::hybrid_search`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Scored {
    /// The node.
    pub node: NodeId,
    /// Its own distance to the query.
    pub distance: f32,
    /// Higher is better.
    pub score: f32,
    /// Its own similarity to the query.
    pub similarity: f32,
    /// The more similar of the nodes just before and after it, with that similarity.
    pub neighbor: Option<(NodeId, f32)>,
}

impl TemporalIndex {
    /// The best `k` nodes by `max(sim(v), beta * max(sim(predecessor), sim(successor)))`.
    ///
    /// Where [`search`](Self::search) scans, every accepted node is scored. Where it walks, those
    /// are: the nearest `ef` accepted nodes, and the accepted neighbours in time of the nearest
    /// `ef` nodes of the namespaces. A neighbour in time need not be accepted itself.
    ///
    /// # Errors
    /// Those of [`search`](Self::search); [`Error::Parameter`] for a beta outside [0, 1].
    pub fn hybrid_search(
        &self,
        query: &[f32],
        k: usize,
        beta: f32,
        ef: Option<usize>,
        filter: &Filter,
    ) -> Result<Vec<Scored>> {
        if !(0.0..=1.0).contains(&beta) {
            let value = beta.to_string();
            return Err(Error::Parameter {
                name: "beta",
                value,
                bound: "in [0, 1]",
            });
        }
        let width = self.width(k, ef)?;
        let accepted = self.accepted(filter)?;
        let query = self.vectors.prepared(query)?;
        let route = self.route(filter, &accepted, width);
        let mut candidates: Vec<Slot> = match &route {
            Route::Scan(nodes) if beta > 0.0 => nodes.to_vec(),
            _ => with_scratch(|scratch| {
                let want = Want {
                    least: k,
                    measured: width,
                    width,
                };
                self.nearest(&query, want, &accepted, &route, scratch);
                scratch.found.near.iter().map(|near| near.node()).collect()
            }),
        };
        if beta > 0.0 && matches!(route, Route::Walk(_)) {
            let around = self.near_in_namespaces(&query, width, filter)?;
            let around = around.into_iter().flat_map(|node| self.beside(node));
            candidates.extend(around.filter(|&node| accepted.has(node)));
            candidates.sort_unstable();
            candidates.dedup();
        }
        Ok(self.scored(&query.exact, &candidates, beta, k))
    }

    fn near_in_namespaces(
        &self,
        query: &Query,
        width: usize,
        filter: &Filter,
    ) -> Result<Vec<Slot>> {
        let namespaces = filter.namespaces.clone();
        let open = Filter {
            namespaces,
            recallable: None,
            ..Filter::default()
        };
        let accepted = self.accepted(&open)?;
        let route = self.route(&open, &accepted, width);
        Ok(with_scratch(|scratch| {
            let want = Want {
                least: width,
                measured: width,
                width,
            };
            self.nearest(query, want, &accepted, &route, scratch);
            scratch.found.near.iter().map(|near| near.node()).collect()
        }))
    }

    fn scored(&self, query: &[f32], candidates: &[Slot], beta: f32, k: usize) -> Vec<Scored> {
        let embedded = |node: &Slot| self.links.level(*node).is_some();
        // Each candidate, then those beside it that can be compared.
        let mut nodes = Vec::with_capacity(3 * candidates.len());
        let mut ends = Vec::with_capacity(candidates.len());
        for &node in candidates {
            nodes.push(node);
            nodes.extend(self.beside(node).filter(embedded));
            ends.push(nodes.len());
        }
        let mut distances = Vec::with_capacity(nodes.len());
        self.vectors.distances(query, &nodes, &mut distances);
        let mut start = 0;
        let mut scored = Vec::with_capacity(candidates.len());
        for end in ends {
            let mut near =
                nodes[start..end]
                    .iter()
                    .zip(&distances[start..end])
                    .map(|(&node, &distance)| {
                        (node, distance, self.params.metric.similarity(distance))
                    });
            start = end;
            let Some((node, distance, similarity)) = near.next() else {
                continue;
            };
            let neighbor = near.map(|(node, _, similarity)| (node, similarity));
            let neighbor = neighbor.reduce(|a, b| if b.1 > a.1 { b } else { a });
            // At beta 0 a neighbour has no say, not even against a similarity below 0.
            let lent = neighbor.filter(|_| beta > 0.0).map(|(_, near)| beta * near);
            let score = lent.map_or(similarity, |lent| similarity.max(lent));
            scored.push(Scored {
                node: self.id(node),
                distance,
                score,
                similarity,
                neighbor: neighbor.map(|(node, near)| (self.id(node), near)),
            });
        }
        scored.sort_unstable_by(|a, b| {
            b.score
                .total_cmp(&a.score)
                .then_with(|| a.distance.total_cmp(&b.distance))
                .then_with(|| a.node.cmp(&b.node))
        });
        scored.truncate(k);
        scored
    }
}
