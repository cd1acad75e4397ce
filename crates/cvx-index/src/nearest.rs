//! Plain search: the nearest accepted nodes, by a scan or by a walk.

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::filter::Filter;
use crate::id::NodeId;
use crate::index::{TemporalIndex, on_threads};
use crate::params::DEFAULT_EF;
use crate::plan::{Accepted, Catalog, Route};
use crate::scratch::{Ranked, Scratch, with_scratch};
use crate::search::{Beam, Graph};

/// A node and how far it is from the query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Neighbor {
    /// The node.
    pub node: NodeId,
    /// Lower is nearer.
    pub distance: f32,
}

impl TemporalIndex {
    /// The nearest `k` nodes that the filter accepts, nearest first, ties by id.
    ///
    /// Fewer come back only where fewer are accepted. `ef` is the width of the walk,
    /// [`DEFAULT_EF`] unless told and never below `k`.
    ///
    /// # Errors
    /// Those of a vector and of [`Filter::check`]; [`Error::ZeroK`]; [`Error::Parameter`] for an
    /// `ef` of 0.
    pub fn search(
        &self,
        query: &[f32],
        k: usize,
        ef: Option<usize>,
        filter: &Filter,
    ) -> Result<Vec<Neighbor>> {
        let width = self.width(k, ef)?;
        let accepted = self.accepted(filter)?;
        let query = self.vectors.prepared(query)?;
        let route = accepted.route(width, self.params.exact_below);
        Ok(with_scratch(|scratch| {
            self.neighbors(&query, k, width, &accepted, &route, scratch)
        }))
    }

    /// [`search`](Self::search) for each row of `queries`; the answers do not depend on `threads`.
    ///
    /// # Errors
    /// Those of [`search`](Self::search); [`Error::Dimension`] where the rows do not come out even,
    /// [`Error::Parameter`] for no threads.
    pub fn search_batch(
        &self,
        queries: &[f32],
        k: usize,
        ef: Option<usize>,
        filter: &Filter,
        threads: usize,
    ) -> Result<Vec<Vec<Neighbor>>> {
        let width = self.width(k, ef)?;
        let accepted = self.accepted(filter)?;
        let dim = self.params.dim;
        if !queries.len().is_multiple_of(dim) {
            return Err(Error::Dimension {
                found: queries.len() % dim,
                expected: dim,
            });
        }
        let route = accepted.route(width, self.params.exact_below);
        let one = |query: &[f32]| -> Result<Vec<Neighbor>> {
            let query = self.vectors.prepared(query)?;
            Ok(with_scratch(|scratch| {
                self.neighbors(&query, k, width, &accepted, &route, scratch)
            }))
        };
        match threads {
            1 => queries.chunks_exact(dim).map(one).collect(),
            _ => on_threads(threads, || queries.par_chunks_exact(dim).map(one).collect())?,
        }
    }

    fn neighbors(
        &self,
        query: &[f32],
        k: usize,
        width: usize,
        accepted: &Accepted<'_>,
        route: &Route,
        scratch: &mut Scratch,
    ) -> Vec<Neighbor> {
        self.nearest(query, k, width, accepted, route, scratch);
        let found = scratch.found.iter().take(k);
        found
            .map(|near| Neighbor {
                node: near.id(),
                distance: near.distance(),
            })
            .collect()
    }

    /// Leaves the nearest accepted nodes in `scratch.found`: at least `least` of them wherever so
    /// many are accepted, at most `width`.
    pub(crate) fn nearest(
        &self,
        query: &[f32],
        least: usize,
        width: usize,
        accepted: &Accepted<'_>,
        route: &Route,
        scratch: &mut Scratch,
    ) {
        let graph = self.graph();
        let budget = match route {
            Route::Scan(nodes) => return graph.scan(query, nodes.iter().copied(), width, scratch),
            Route::Walk(budget) => *budget,
        };
        let starts: Vec<Ranked> = graph.descend(query, 0, scratch).into_iter().collect();
        let done = if accepted.everything() {
            let beam = Beam {
                width,
                level: 0,
                budget,
                accepts: |_| true,
            };
            graph.beam(query, &starts, &beam, scratch)
        } else {
            let beam = Beam {
                width,
                level: 0,
                budget,
                accepts: |node| accepted.has(node),
            };
            graph.beam(query, &starts, &beam, scratch)
        };
        if !done || scratch.found.len() < least.min(self.links.len()) {
            graph.scan(query, accepted.members(), width, scratch);
        }
    }

    pub(crate) fn graph(&self) -> Graph<'_> {
        Graph {
            links: &self.links,
            vectors: &self.vectors,
        }
    }

    pub(crate) fn accepted(&self, filter: &Filter) -> Result<Accepted<'_>> {
        filter.check()?;
        let Self {
            columns,
            postings,
            timelines,
            ..
        } = self;
        Ok(Accepted::new(
            filter,
            Catalog {
                columns,
                postings,
                timelines,
            },
        ))
    }

    /// How wide a walk is for `k` results.
    pub(crate) fn width(&self, k: usize, ef: Option<usize>) -> Result<usize> {
        match (k, ef) {
            (0, _) => Err(Error::ZeroK),
            (_, Some(0)) => Err(Error::Parameter {
                name: "ef",
                value: "0".to_owned(),
                bound: "1 or more",
            }),
            // Beyond the number of vectors no width finds more.
            _ => Ok(ef.unwrap_or(DEFAULT_EF).max(k).min(self.links.len().max(1))),
        }
    }
}
