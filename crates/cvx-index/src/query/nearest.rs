//! Nearest-neighbour search under a filter, by a scan or by a graph walk.

use std::mem;

use rayon::prelude::*;

use crate::columns::ids::Ids;
use crate::error::{Error, Result};
use crate::filter::Filter;
use crate::filter::accepted::{Accepted, Catalog};
use crate::filter::plan::{self, Nodes, Route, WalkBounds};
use crate::graph::beam::{Accepts, Beam, Everything};
use crate::graph::candidate_pool::{BeamWidth, CandidatePool};
use crate::graph::ranked::Ranked;
use crate::graph::scratch::{Found, Scratch, Walk, with_scratch};
use crate::id::NodeId;
use crate::index::params::DEFAULT_EF;
use crate::index::{TemporalIndex, on_threads};
use crate::vectors::Query;

/// What rounding to codes may do to a distance, in standard deviations.
const DEVIATIONS: f32 = 3.0;

/// Queries of a batch that a thread takes at a time.
const TOGETHER: usize = 16;

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
#[non_exhaustive]
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
    /// [`Error::Parameter`] for no threads or more than [`MOST_THREADS`](crate::MOST_THREADS).
    pub fn search_batch(
        &self,
        queries: &[f32],
        k: usize,
        ef: Option<usize>,
        filter: &Filter,
        threads: usize,
    ) -> Result<Vec<Vec<Neighbor>>> {
        self.check_batch(queries, k, ef, filter)?;
        batched(threads, || {
            self.search_rows(queries, k, ef, filter, threads)
        })?
    }

    /// Refuses what [`search_rows`](Self::search_rows) would, but for a row.
    pub(crate) fn check_batch(
        &self,
        queries: &[f32],
        k: usize,
        ef: Option<usize>,
        filter: &Filter,
    ) -> Result<()> {
        self.width(k, ef)?;
        filter.check()?;
        let dim = self.params.dim;
        match queries.len() % dim {
            0 => Ok(()),
            found => Err(Error::Dimension {
                found,
                expected: dim,
            }),
        }
    }

    /// [`search_batch`](Self::search_batch) on the threads that are there.
    pub(crate) fn search_rows(
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
        let route = self.route(filter, &accepted, width);
        let some = |rows: &[f32]| -> Result<Vec<Vec<Neighbor>>> {
            let mut found = Vec::with_capacity(rows.len() / dim);
            let mut query = Query::default();
            for row in rows.chunks_exact(dim) {
                self.vectors.prepare(row, &mut query)?;
                with_scratch(|scratch| {
                    self.nearest(&query, want, &accepted, &route, scratch);
                    found.push(neighbors(&self.columns.ids, &scratch.found.near));
                });
            }
            Ok(found)
        };
        let together = TOGETHER * dim;
        let found: Result<Vec<Vec<Vec<Neighbor>>>> = match threads {
            1 => queries.chunks(together).map(some).collect(),
            _ => queries.par_chunks(together).map(some).collect(),
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
        let bounds = match route {
            Route::Scan(nodes) => return self.scan(query, nodes, want, scratch),
            Route::Walk(bounds) => bounds,
        };
        let room = BeamWidth::around(want.least, want.width);
        self.walk_under(query, room, accepted, bounds, scratch);
        let Scratch { walk, found, .. } = &mut *scratch;
        match self.kept(walk, want, accepted) {
            Some(kept) => self.finish(query, want, kept, found),
            None => self.scan(query, &bounds.nodes(accepted), want, scratch),
        }
    }

    /// Leaves the accepted nodes that are nearest by their codes in `scratch.found`, as many as the
    /// walk is wide; what part of the error of each code its distance is taken to be off by, which
    /// is none where a scan measured them.
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
            Route::Walk(bounds) => {
                let room = BeamWidth::of(want.width);
                self.walk_under(query, room, accepted, bounds, scratch);
                let Scratch { walk, found, .. } = &mut *scratch;
                if let Some(kept) = self.kept(walk, want, accepted) {
                    found.near.clear();
                    found.near.extend(kept.ranked());
                    return self.share();
                }
                bounds.nodes(accepted)
            }
        };
        self.scan(query, &nodes, want, scratch);
        0.0
    }

    /// What a walk found, if it did not give up and found enough.
    fn kept<'a>(
        &self,
        walk: &'a Walk,
        want: Want,
        accepted: &Accepted<'_>,
    ) -> Option<&'a CandidatePool> {
        let kept = match accepted.everything() {
            true => &walk.frontier,
            false => &walk.accepted,
        };
        let enough = kept.len() >= want.least.min(self.links.len());
        (enough && !walk.gave_up).then_some(kept)
    }

    fn walk_under(
        &self,
        query: &Query,
        room: BeamWidth,
        accepted: &Accepted<'_>,
        bounds: &WalkBounds,
        scratch: &mut Scratch,
    ) {
        let budget = bounds.budget;
        match &bounds.members {
            _ if accepted.everything() => self.walk(query, room, budget, Everything, scratch),
            Some(members) => {
                let bits = members.bits();
                self.walk(query, room, budget, |node| bits.has(node), scratch);
            }
            None => {
                let accepts = |node| accepted.has_embedded(node);
                self.walk(query, room, budget, accepts, scratch);
            }
        }
    }

    fn scan(&self, query: &Query, nodes: &Nodes, want: Want, scratch: &mut Scratch) {
        match nodes {
            Nodes::Run(run) => self
                .vectors
                .scan_run(query, run.clone(), want.measured, scratch),
            Nodes::List(list) => self.vectors.scan(query, list, want.measured, scratch),
            Nodes::Known(members) => {
                let (nodes, codes) = (members.nodes(), members.codes(&self.vectors.codes));
                match codes {
                    Some(codes) => {
                        self.vectors
                            .scan_copies(query, nodes, codes, want.measured, scratch);
                    }
                    None => self.vectors.scan(query, nodes, want.measured, scratch),
                }
            }
        }
    }

    fn walk<A: Accepts>(
        &self,
        query: &Query,
        room: BeamWidth,
        budget: usize,
        accepts: A,
        scratch: &mut Scratch,
    ) {
        let (graph, level) = (self.graph(), 0);
        let Scratch { walk, buffers, .. } = scratch;
        let start = graph.descend(&query.coded, level, buffers);
        let beam = Beam {
            room,
            level,
            budget,
            accepts,
        };
        graph.beam(&query.coded, start.as_slice(), &beam, walk, buffers);
    }

    /// Measures what may be among the nearest of a walk in full precision: as many as are wanted,
    /// and those that their codes put not much farther than the last of them is.
    fn finish(&self, query: &Query, want: Want, kept: &CandidatePool, found: &mut Found) {
        let nearest = want.measured.min(kept.len());
        found.near.clear();
        found.near.extend(kept.ranked().take(nearest));
        self.vectors.measure(query, want.measured, found);
        let farthest = found.near.last().map_or(0.0, |near| near.distance());
        let codes = &self.vectors.codes;
        let reach = farthest + self.share() * codes.largest_error(&query.coded);
        let others = nearest..kept.within(reach).max(nearest);
        if others.is_empty() {
            return;
        }
        let measured = mem::take(&mut found.near);
        let (codes, share) = (codes.slices(), self.share());
        let least =
            |near: &Ranked| near.distance() - share * codes.error(&query.coded, near.node());
        let others = kept.ranked().take(others.end).skip(nearest);
        found
            .near
            .extend(others.filter(|near| least(near) <= farthest));
        self.vectors.measure(query, want.measured, found);
        found.near.extend(measured);
        found.near.sort_unstable();
        found.near.truncate(want.measured);
    }

    /// What part of the error of a code a row may lie nearer, or farther.
    ///
    /// What codes lose is spread over the dimensions and all but cancels: rarely is it above
    /// [`DEVIATIONS`] times the error divided by the root of the dimension.
    fn share(&self) -> f32 {
        (DEVIATIONS / (self.params.dim as f32).sqrt()).min(1.0)
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

    /// One filter that accepts what any of these does, as the index stands: by the ids of the nodes.
    ///
    /// It names the namespaces of all of them, which [`graph_search`](Self::graph_search) walks in.
    ///
    /// # Errors
    /// Those of [`Filter::check`].
    pub fn any_of(&self, filters: &[Filter]) -> Result<Filter> {
        let (mut slots, mut namespaces) = (Vec::new(), Vec::new());
        for filter in filters {
            slots.extend(self.accepted(filter)?.members());
            namespaces.extend(filter.namespaces().map(str::to_owned));
        }
        slots.sort_unstable();
        slots.dedup();
        Ok(Filter {
            ids: Some(slots.into_iter().map(|slot| self.id(slot)).collect()),
            namespaces: Some(namespaces),
            recallable: None,
            ..Filter::default()
        })
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

/// Does the work of a batch of queries: one thread needs no other.
pub(crate) fn batched<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> Result<T> {
    match threads {
        1 => Ok(work()),
        _ => on_threads(threads, work),
    }
}

fn neighbors(ids: &Ids, near: &[Ranked]) -> Vec<Neighbor> {
    let neighbor = |near: &Ranked| Neighbor {
        node: ids.id(near.node()),
        distance: near.distance(),
    };
    near.iter().map(neighbor).collect()
}
