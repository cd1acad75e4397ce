//! The beam search over codes. Insertion, search, regions and graph search all walk by it.
//!
//! A walk takes turns: [`Graph::advance`] picks a node and asks for the rows of its neighbours,
//! [`Graph::look`] compares them. Walks side by side take their turns alternately, so that the
//! rows of one arrive while another computes; each goes its way as if it were alone.

use crate::codes::{self, Buffers, Coded, Codes};
use crate::links::{self, Links};
use crate::scratch::{Ranked, Walk};

/// The graph over its codes.
#[derive(Clone, Copy)]
pub(crate) struct Graph<'a> {
    links: links::Table<'a>,
    codes: codes::Table<'a>,
    /// Where walks begin, and the level there.
    entry: Option<(u32, usize)>,
}

impl<'a> Graph<'a> {
    pub(crate) fn new(links: &'a Links, codes: &'a Codes) -> Self {
        Graph {
            links: links.table(),
            codes: codes.table(),
            entry: links.entry().zip(links.top()),
        }
    }
}

/// How a beam goes about it.
#[derive(Clone, Copy)]
pub(crate) struct Beam<A> {
    /// How many accepted nodes it keeps, `ef` in the paper.
    pub(crate) width: usize,
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
    fn accepts(&self, node: u32) -> bool;
}

/// Every node.
#[derive(Clone, Copy)]
pub(crate) struct Everything;

impl Accepts for Everything {
    const ALL: bool = true;

    #[inline(always)]
    fn accepts(&self, _: u32) -> bool {
        true
    }
}

impl<F: Fn(u32) -> bool + Copy> Accepts for F {
    const ALL: bool = false;

    #[inline(always)]
    fn accepts(&self, node: u32) -> bool {
        self(node)
    }
}

impl Graph<'_> {
    /// Walks from `start` towards `query` at one level, algorithm 2 of Malkov & Yashunin.
    ///
    /// Leaves the nearest accepted nodes in [`Walk::accepted`], or, where every node is, in
    /// [`Walk::frontier`].
    pub(crate) fn beam<A: Accepts>(
        &self,
        query: &Coded,
        starts: &[u32],
        beam: &Beam<A>,
        walk: &mut Walk,
        buffers: &mut Buffers,
    ) {
        self.begin(query, starts, beam, walk, buffers);
        while self.advance(beam, walk) {
            self.look(query, beam, walk, buffers);
        }
    }

    /// Puts a walk at its start.
    pub(crate) fn begin<A: Accepts>(
        &self,
        query: &Coded,
        starts: &[u32],
        beam: &Beam<A>,
        walk: &mut Walk,
        buffers: &mut Buffers,
    ) {
        walk.visited.forget(self.links.nodes);
        walk.frontier
            .clear(if A::ALL { beam.width } else { usize::MAX });
        walk.accepted.clear(beam.width);
        walk.measured = 0;
        walk.gave_up = false;
        walk.hop.clear();
        let Walk { visited, hop, .. } = walk;
        hop.extend(starts.iter().filter(|&&node| visited.first(node)));
        self.look(query, beam, walk, buffers);
    }

    /// Takes the nearest node not yet expanded and asks for the rows of its neighbours; whether
    /// there is one that may lead nearer.
    #[inline]
    pub(crate) fn advance<A: Accepts>(&self, beam: &Beam<A>, walk: &mut Walk) -> bool {
        let Some(nearest) = walk.frontier.expand() else {
            return false;
        };
        if !A::ALL && nearest.distance() > walk.accepted.bound() {
            return false;
        }
        walk.hop.clear();
        for &node in self.links.neighbors(nearest.node(), beam.level) {
            if walk.visited.first(node) {
                self.codes.prefetch(node);
                walk.hop.push(node);
            }
        }
        walk.measured += walk.hop.len();
        walk.gave_up = walk.measured > beam.budget;
        !walk.gave_up
    }

    /// Compares the nodes that the walk came to.
    #[inline]
    pub(crate) fn look<A: Accepts>(
        &self,
        query: &Coded,
        beam: &Beam<A>,
        walk: &mut Walk,
        buffers: &mut Buffers,
    ) {
        let Walk {
            frontier,
            accepted,
            hop,
            ..
        } = walk;
        self.codes.distances(query, hop, buffers);
        let mut bound = if A::ALL {
            frontier.bound()
        } else {
            accepted.bound()
        };
        for (&node, &distance) in hop.iter().zip(&buffers.distances) {
            if distance > bound {
                continue;
            }
            let seen = Ranked::new(distance, node);
            if frontier.insert(seen) && beam.level == 0 {
                self.links.prefetch(node);
            }
            if A::ALL {
                bound = frontier.bound();
            } else if beam.accepts.accepts(node) {
                accepted.insert(seen);
                bound = accepted.bound();
            }
        }
    }

    /// The node nearest to `query` above `level` that a greedy descent finds.
    pub(crate) fn descend(
        &self,
        query: &Coded,
        level: usize,
        hop: &mut Vec<u32>,
        buffers: &mut Buffers,
    ) -> Option<u32> {
        let (entry, top) = self.entry?;
        self.codes.distances(query, &[entry], buffers);
        let mut best = Ranked::new(buffers.distances[0], entry);
        for level in (level + 1..=top).rev() {
            loop {
                hop.clear();
                let neighbors = self.links.neighbors(best.node(), level).iter();
                hop.extend(neighbors.filter(|&&node| (node as usize) < self.links.nodes));
                hop.iter().for_each(|&node| self.codes.prefetch(node));
                self.codes.distances(query, hop, buffers);
                let near = hop.iter().zip(&buffers.distances);
                let nearest = near
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
