//! Plain search: the nearest accepted nodes, by a scan or by a walk.

use rayon::prelude::*;

use crate::accepted::{Accepted, Catalog};
use crate::error::{Error, Result};
use crate::filter::Filter;
use crate::id::NodeId;
use crate::ids::Ids;
use crate::index::{TemporalIndex, on_threads};
use crate::params::DEFAULT_EF;
use crate::plan::{self, Nodes, Route, Walking};
use crate::pool::Pool;
use crate::scratch::{Found, Ranked, Scratch, Walk, with_scratch};
use crate::search::{Accepts, Beam, Everything, Graph};
use crate::vectors::Query;

/// What rounding to codes may do to a distance, in standard deviations.
const DEVIATIONS: f32 = 3.0;

/// Queries of a batch that walk alternately on one thread.
const SIDE_BY_SIDE: usize = 4;

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
        let route = self.route(filter, &accepted, width);
        Ok(with_scratch(|scratch| {
            self.nearest(&query, want, &accepted, &route, scratch);
            neighbors(&self.columns.ids, &scratch.found.near)
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
        let route = self.route(filter, &accepted, width);
        let some = |rows: &[f32]| -> Result<Vec<Vec<Neighbor>>> {
            let rows = rows.chunks_exact(dim);
            let queries: Vec<Query> = rows
                .map(|row| self.vectors.prepared(row))
                .collect::<Result<_>>()?;
            let mut found = Vec::with_capacity(queries.len());
            with_scratch(|scratch| {
                self.nearest_of_each(&queries, want, &accepted, &route, scratch, |near| {
                    found.push(neighbors(&self.columns.ids, near));
                });
            });
            Ok(found)
        };
        let together = SIDE_BY_SIDE * dim;
        let found: Result<Vec<Vec<Vec<Neighbor>>>> = match threads {
            1 => queries.chunks(together).map(some).collect(),
            _ => on_threads(threads, || queries.par_chunks(together).map(some).collect())?,
        };
        Ok(found?.into_iter().flatten().collect())
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
        let queries = std::slice::from_ref(query);
        self.nearest_of_each(queries, want, accepted, route, scratch, |_| ());
    }

    /// Hands the nearest accepted nodes of each query to `take`, in the order of the queries, which
    /// are at most [`SIDE_BY_SIDE`]. No query has a say in the answer to another.
    fn nearest_of_each(
        &self,
        queries: &[Query],
        want: Want,
        accepted: &Accepted<'_>,
        route: &Route,
        scratch: &mut Scratch,
        mut take: impl FnMut(&[Ranked]),
    ) {
        let walking = match route {
            Route::Scan(nodes) => {
                for query in queries {
                    self.scan(query, nodes, want, scratch);
                    take(&scratch.found.near);
                }
                return;
            }
            Route::Walk(walking) => walking,
        };
        self.walk_under(queries, want.width, accepted, walking, scratch);
        for (at, query) in queries.iter().enumerate() {
            let Scratch { walks, found, .. } = &mut *scratch;
            match self.kept(&walks[at], want, accepted) {
                Some(kept) => self.finish(query, want, kept, found),
                None => self.scan(query, &walking.nodes(accepted), want, scratch),
            }
            take(&scratch.found.near);
        }
    }

    /// Leaves the accepted nodes that are nearest by their codes in `scratch.found`, as many as the
    /// walk is wide; how far their distances can be from the true ones, which is nothing where a
    /// scan measured them.
    pub(crate) fn nearest_by_codes(
        &self,
        query: &Query,
        want: Want,
        accepted: &Accepted<'_>,
        route: &Route,
        scratch: &mut Scratch,
    ) -> f32 {
        let nodes = match route {
            Route::Scan(nodes) => nodes.clone(),
            Route::Walk(walking) => {
                let queries = std::slice::from_ref(query);
                self.walk_under(queries, want.width, accepted, walking, scratch);
                let Scratch { walks, found, .. } = &mut *scratch;
                if let Some(kept) = self.kept(&walks[0], want, accepted) {
                    found.near.clear();
                    found.near.extend(kept.ranked());
                    return self.margin(query) / 2.0;
                }
                walking.nodes(accepted)
            }
        };
        self.scan(query, &nodes, want, scratch);
        0.0
    }

    /// What a walk found, if it did not give up and found enough.
    fn kept<'a>(&self, walk: &'a Walk, want: Want, accepted: &Accepted<'_>) -> Option<&'a Pool> {
        let kept = match accepted.everything() {
            true => &walk.frontier,
            false => &walk.accepted,
        };
        let enough = kept.len() >= want.least.min(self.links.len());
        (enough && !walk.gave_up).then_some(kept)
    }

    /// Walks for each query, at most [`SIDE_BY_SIDE`] of them.
    fn walk_under(
        &self,
        queries: &[Query],
        width: usize,
        accepted: &Accepted<'_>,
        walking: &Walking,
        scratch: &mut Scratch,
    ) {
        let budget = walking.budget;
        match &walking.selection {
            _ if accepted.everything() => {
                let accepts = Everything;
                self.walk_all(
                    queries,
                    &Beam {
                        width,
                        level: 0,
                        budget,
                        accepts,
                    },
                    scratch,
                );
            }
            Some(selection) => {
                let bits = selection.bits();
                let accepts = |node| bits.has(node);
                self.walk_all(
                    queries,
                    &Beam {
                        width,
                        level: 0,
                        budget,
                        accepts,
                    },
                    scratch,
                );
            }
            None => {
                let accepts = |node| accepted.has_embedded(node);
                self.walk_all(
                    queries,
                    &Beam {
                        width,
                        level: 0,
                        budget,
                        accepts,
                    },
                    scratch,
                );
            }
        }
    }

    fn scan(&self, query: &Query, nodes: &Nodes, want: Want, scratch: &mut Scratch) {
        match nodes {
            Nodes::Run(run) => self
                .vectors
                .scan_run(query, run.clone(), want.measured, scratch),
            Nodes::List(list) => self.vectors.scan(query, list, want.measured, scratch),
        }
    }

    fn walk_all<A: Accepts>(&self, queries: &[Query], beam: &Beam<A>, scratch: &mut Scratch) {
        let graph = self.graph();
        let (walks, buffers) = scratch.walks(queries.len());
        for (query, walk) in queries.iter().zip(&mut *walks) {
            let start = graph.descend(&query.coded, beam.level, &mut walk.hop, buffers);
            graph.begin(&query.coded, start.as_slice(), beam, walk, buffers);
        }
        // All have asked for their rows before the first of them looks at what came.
        let mut going = [false; SIDE_BY_SIDE];
        for (going, walk) in going.iter_mut().zip(&mut *walks) {
            *going = graph.advance(beam, walk);
        }
        while going.contains(&true) {
            for ((going, walk), query) in going.iter_mut().zip(&mut *walks).zip(queries) {
                if *going {
                    graph.look(&query.coded, beam, walk, buffers);
                    *going = graph.advance(beam, walk);
                }
            }
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

    /// How to search among what a filter, resolved, accepts.
    pub(crate) fn route(&self, filter: &Filter, accepted: &Accepted<'_>, width: usize) -> Route {
        plan::route(
            filter,
            accepted,
            &self.remembered,
            width,
            self.params.exact_below,
        )
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

fn neighbors(ids: &Ids, near: &[Ranked]) -> Vec<Neighbor> {
    let neighbor = |near: &Ranked| Neighbor {
        node: ids.id(near.node()),
        distance: near.distance(),
    };
    near.iter().map(neighbor).collect()
}
