//! Plain search: the nearest accepted nodes, by a scan or by a walk.

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::filter::Filter;
use crate::id::NodeId;
use crate::index::{TemporalIndex, on_threads};
use crate::params::DEFAULT_EF;
use crate::plan::{Accepted, Catalog, Route};
use crate::pool::Pool;
use crate::scratch::{Found, Scratch, first, with_scratch};
use crate::search::{Beam, Everything, Graph};
use crate::vectors::Query;

/// What rounding to codes may do to a distance, in standard deviations.
const DEVIATIONS: f32 = 3.0;

/// How much of an answer is wanted.
#[derive(Clone, Copy)]
pub(crate) struct Want {
    /// So many must be found, wherever so many are accepted.
    pub(crate) least: usize,
    /// So many are measured in full precision; no more come back.
    pub(crate) measured: usize,
    /// So many a walk keeps in mind, no fewer than the others.
    pub(crate) width: usize,
}

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
        let want = Want {
            least: k,
            measured: k,
            width,
        };
        let accepted = self.accepted(filter)?;
        let query = self.vectors.prepared(query)?;
        let route = accepted.route(width, self.params.exact_below);
        Ok(with_scratch(|scratch| {
            self.neighbors(&query, want, &accepted, &route, scratch)
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
        let want = Want {
            least: k,
            measured: k,
            width,
        };
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
                self.neighbors(&query, want, &accepted, &route, scratch)
            }))
        };
        match threads {
            1 => queries.chunks_exact(dim).map(one).collect(),
            _ => on_threads(threads, || queries.par_chunks_exact(dim).map(one).collect())?,
        }
    }

    fn neighbors(
        &self,
        query: &Query,
        want: Want,
        accepted: &Accepted<'_>,
        route: &Route,
        scratch: &mut Scratch,
    ) -> Vec<Neighbor> {
        self.nearest(query, want, accepted, route, scratch);
        let found = scratch.found.near.iter();
        found
            .map(|near| Neighbor {
                node: near.id(),
                distance: near.distance(),
            })
            .collect()
    }

    /// Leaves the nearest accepted nodes in `scratch.found`, nearest first.
    pub(crate) fn nearest(
        &self,
        query: &Query,
        want: Want,
        accepted: &Accepted<'_>,
        route: &Route,
        scratch: &mut Scratch,
    ) {
        let budget = match route {
            Route::Scan(nodes) => {
                let nodes = nodes.iter().copied();
                return self.vectors.scan(query, nodes, want.measured, scratch);
            }
            Route::Walk(budget) => *budget,
        };
        let graph = self.graph();
        let Scratch {
            walks,
            buffers,
            found,
        } = &mut *scratch;
        let walk = first(walks);
        let start = graph.descend(&query.coded, 0, &mut walk.hop, buffers);
        let (start, width) = (start.as_slice(), want.width);
        if accepted.everything() {
            let beam = Beam {
                width,
                level: 0,
                budget,
                accepts: Everything,
            };
            graph.beam(&query.coded, start, &beam, walk, buffers);
            self.finish(query, want, &walk.frontier, found);
            return;
        }
        let beam = Beam {
            width,
            level: 0,
            budget,
            accepts: |node| accepted.has(node),
        };
        graph.beam(&query.coded, start, &beam, walk, buffers);
        if walk.gave_up || walk.accepted.len() < want.least.min(self.links.len()) {
            self.vectors
                .scan(query, accepted.members(), want.measured, scratch);
        } else {
            self.finish(query, want, &walk.accepted, found);
        }
    }

    /// Measures what may be among the nearest of a walk in full precision.
    fn finish(&self, query: &Query, want: Want, kept: &Pool, found: &mut Found) {
        let count = match kept.distance(want.measured - 1) {
            Some(last) => kept.within(last + self.margin(query)),
            None => kept.len(),
        };
        found.near.clear();
        found.near.extend(kept.ranked().take(count));
        self.vectors.measure(query, want.measured, found);
    }

    /// How much farther than the last one wanted a code may lie and still be worth measuring.
    ///
    /// What codes lose is spread over the dimensions and all but cancels: rarely is the error above
    /// [`DEVIATIONS`] times the bound divided by the root of the dimension.
    fn margin(&self, query: &Query) -> f32 {
        let share = (DEVIATIONS / (self.params.dim as f32).sqrt()).min(1.0);
        2.0 * query.coded.error() * share
    }

    pub(crate) fn graph(&self) -> Graph<'_> {
        Graph::new(&self.links, &self.vectors.codes)
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
