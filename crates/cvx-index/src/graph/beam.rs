//! Beam search over codes: insertion, search, regions and graph search all use this one.
//!
//! A walk takes turns: it picks the nearest node and lists its neighbours, then compares those that
//! it listed a turn before, and asks for the rows of the new ones meanwhile. So it picks without
//! having looked at the last ones, which costs a few nodes of no use, and hides the memory.

use std::mem;

use crate::distance::kernel::{Kernel, Work};
use crate::graph::candidate_pool::BeamWidth;
use crate::graph::links::{LinkSlices, Links};
use crate::graph::ranked::Ranked;
use crate::graph::scratch::Walk;
use crate::id::Slot;
use crate::vectors::codes::{Buffers, CodeSlices, Coded, Codes};

/// The graph over its codes.
#[derive(Clone, Copy)]
pub(crate) struct Graph<'a> {
    links: LinkSlices<'a>,
    codes: CodeSlices<'a>,
    /// Where walks begin, and the level there.
    entry: Option<(Slot, usize)>,
}

impl<'a> Graph<'a> {
    pub(crate) fn new(links: &'a Links, codes: &'a Codes) -> Self {
        Graph {
            links: links.slices(),
            codes: codes.slices(),
            entry: links.entry().zip(links.top()),
        }
    }
}

/// How a beam goes about it.
#[derive(Clone, Copy)]
pub(crate) struct Beam<A> {
    /// How many accepted nodes it keeps, `ef` in the paper.
    pub(crate) room: BeamWidth,
    pub(crate) level: usize,
    /// How many distances it may measure before it gives up.
    pub(crate) budget: usize,
    pub(crate) accepts: A,
}

/// Which nodes a beam keeps. Nodes that are refused still bridge: skipped in the result, not in
/// the walk.
pub(crate) trait Accepts: Copy {
    /// Whether there is nothing to ask.
    const ALL: bool;
    fn accepts(&self, node: Slot) -> bool;
}

/// Every node.
#[derive(Clone, Copy)]
pub(crate) struct Everything;

impl Accepts for Everything {
    const ALL: bool = true;

    #[inline(always)]
    fn accepts(&self, _: Slot) -> bool {
        true
    }
}

impl<F: Fn(Slot) -> bool + Copy> Accepts for F {
    const ALL: bool = false;

    #[inline(always)]
    fn accepts(&self, node: Slot) -> bool {
        self(node)
    }
}

impl Graph<'_> {
    /// Walks from `starts` towards `query` at one level, algorithm 2 of Malkov & Yashunin.
    ///
    /// Leaves the nearest accepted nodes in [`Walk::accepted`], or, where every node is, in
    /// [`Walk::frontier`].
    pub(crate) fn beam<A: Accepts>(
        &self,
        query: &Coded,
        starts: &[Slot],
        beam: &Beam<A>,
        walk: &mut Walk,
        buffers: &mut Buffers,
    ) {
        self.codes.isa().run(BeamRun {
            graph: *self,
            query,
            starts,
            beam,
            walk,
            buffers,
        });
    }

    /// Puts a walk at its start.
    #[inline(always)]
    fn begin<A: Accepts>(&self, starts: &[Slot], beam: &Beam<A>, walk: &mut Walk) {
        walk.visited.forget(self.links.nodes);
        let everything = BeamWidth::of(usize::MAX);
        walk.frontier
            .clear(if A::ALL { beam.room } else { everything });
        walk.accepted.clear(beam.room);
        walk.measured = 0;
        walk.gave_up = false;
        walk.next.clear();
        walk.visited.keep_new(starts, &mut walk.hop);
        self.codes.prefetch_all(walk.hop.nodes());
    }

    /// Takes the nearest node not yet expanded and lists its neighbours.
    #[inline(always)]
    fn ask<A: Accepts>(&self, beam: &Beam<A>, walk: &mut Walk) {
        let Some(nearest) = walk.frontier.expand() else {
            return;
        };
        if !A::ALL && nearest.distance() > walk.accepted.bound() {
            return;
        }
        let neighbors = self.links.neighbors(nearest.node(), beam.level);
        walk.visited.keep_new(neighbors, &mut walk.next);
        walk.measured += walk.next.nodes().len();
        walk.gave_up = walk.measured > beam.budget;
    }

    /// Compares the nodes that the walk came to, and asks for the rows of the next.
    #[inline(always)]
    fn look<A: Accepts>(
        &self,
        kernel: impl Kernel,
        query: &Coded,
        beam: &Beam<A>,
        walk: &mut Walk,
        buffers: &mut Buffers,
    ) {
        let Walk {
            frontier,
            accepted,
            hop,
            next,
            ..
        } = walk;
        let (hop, next) = (hop.nodes(), next.nodes());
        let distances = self.codes.distances_by(kernel, query, hop, next, buffers);
        let bound = if A::ALL {
            frontier.bound()
        } else {
            accepted.bound()
        };
        for (nodes, distances) in hop.chunks(64).zip(distances.chunks(64)) {
            let mut near = kernel.within(distances, bound);
            while near != 0 {
                let at = near.trailing_zeros() as usize;
                near &= near - 1;
                let (node, distance) = (nodes[at], distances[at]);
                if !A::ALL && distance > accepted.bound() {
                    continue;
                }
                let seen = Ranked::new(distance, node);
                if frontier.insert(kernel, seen) && beam.level == 0 {
                    self.links.prefetch(node);
                }
                if !A::ALL && beam.accepts.accepts(node) {
                    accepted.insert(kernel, seen);
                }
            }
        }
    }

    /// The node nearest to `query` above `level` that a greedy descent finds.
    pub(crate) fn descend(
        &self,
        query: &Coded,
        level: usize,
        buffers: &mut Buffers,
    ) -> Option<Slot> {
        let hop = &mut Vec::new();
        let (entry, top) = self.entry?;
        let [distance] = *self.codes.distances(query, &[entry], buffers) else {
            return None;
        };
        let mut best = Ranked::new(distance, entry);
        for level in (level + 1..=top).rev() {
            loop {
                hop.clear();
                let neighbors = self.links.neighbors(best.node(), level).iter();
                hop.extend(neighbors.filter(|&&node| node.index() < self.links.nodes));
                hop.iter().for_each(|&node| self.codes.prefetch(node));
                let near = hop.iter().zip(self.codes.distances(query, hop, buffers));
                let nearest = near
                    .filter(|(_, distance)| !distance.is_nan())
                    .map(|(&node, &distance)| Ranked::new(distance, node))
                    .min();
                match nearest {
                    Some(nearest) if nearest < best => best = nearest,
                    _ => break,
                }
            }
        }
        Some(best.node())
    }
}

/// A walk about to begin.
struct BeamRun<'a, A> {
    graph: Graph<'a>,
    query: &'a Coded,
    starts: &'a [Slot],
    beam: &'a Beam<A>,
    walk: &'a mut Walk,
    buffers: &'a mut Buffers,
}

impl<A: Accepts> Work for BeamRun<'_, A> {
    type Output = ();

    #[inline(always)]
    fn run(self, kernel: impl Kernel) {
        let BeamRun {
            graph,
            query,
            starts,
            beam,
            walk,
            buffers,
        } = self;
        graph.begin(starts, beam, walk);
        loop {
            graph.ask(beam, walk);
            let idle = walk.hop.nodes().is_empty() && walk.next.nodes().is_empty();
            if idle || walk.gave_up {
                break;
            }
            graph.look(kernel, query, beam, walk, buffers);
            walk.hop.clear();
            mem::swap(&mut walk.hop, &mut walk.next);
        }
    }
}
