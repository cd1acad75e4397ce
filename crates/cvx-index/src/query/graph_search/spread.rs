//! Spreads similarity along boosted edges: the best path to each node reached.

mod walk;

use std::cell::Cell;

use super::WalkedEdge;
use crate::edges::{EdgeKind, HalfEdge};
use crate::hash::ByNode;
use crate::id::{NodeId, Slot};

/// A node of S, or one that a path came to.
#[derive(Clone, Copy)]
pub(super) struct Reached {
    pub(super) node: Slot,
    /// It is at least so similar, as far as is known. Of a node that only leads on nothing is known.
    pub(super) lowest: f32,
    /// And no more than this.
    pub(super) highest: f32,
    /// In full precision, once it was measured.
    pub(super) distance: Option<f32>,
    best: Best,
}

/// The end of a path: where it began, how it came here, and what it carries.
#[derive(Clone, Copy)]
struct Arrival {
    /// Places in `reached`.
    at: u32,
    start: u32,
    /// The arrival one edge before; that of a start is its own.
    before: u32,
    edge: HalfEdge<Slot>,
    boost: f32,
    /// The product of boosts and weights.
    carries: f32,
    /// No more than this is brought: the highest similarity of the start, carried on.
    value: f32,
}

/// The best two arrivals at a node, of different starts.
///
/// A path may not end where it began, so the best arrival may be barred from going on to a node
/// that the second best may still reach. A third never helps: two starts are not both that node.
#[derive(Clone, Copy, Default)]
struct Best([Option<u32>; 2]);

/// An edge to a node outside S, of which only the codes tell whether it may be among the best.
#[derive(Clone, Copy)]
struct Pending {
    before: u32,
    edge: HalfEdge<Slot>,
    boost: f32,
    value: f32,
}

/// A walk over edges: S first, then the nodes that paths came to, each with its best arrivals.
///
/// The first arrivals are those of S at themselves, place by place.
#[derive(Default)]
pub(super) struct Spread {
    reached: Vec<Reached>,
    places: ByNode<u32>,
    arrivals: Vec<Arrival>,
    pending: Vec<Pending>,
    /// How many nodes are in S.
    near: usize,
}

/// Lends this thread's buffers.
pub(super) fn with_spread<T>(work: impl FnOnce(&mut Spread) -> T) -> T {
    thread_local!(static SPREAD: Cell<Option<Box<Spread>>> = const { Cell::new(None) });
    SPREAD.with(|cell| {
        let mut spread = cell.take().unwrap_or_default();
        let result = work(&mut spread);
        cell.set(Some(spread));
        result
    })
}

impl Spread {
    /// Begins anew.
    pub(super) fn clear(&mut self) {
        self.reached.clear();
        self.places.clear();
        self.arrivals.clear();
        self.pending.clear();
        self.near = 0;
    }

    /// Adds a node of S, of which the nearest come first.
    pub(super) fn begin_at(
        &mut self,
        node: Slot,
        lowest: f32,
        highest: f32,
        distance: Option<f32>,
    ) {
        let place = self.reached.len() as u32;
        self.places.insert(node, place);
        self.reached.push(Reached {
            node,
            lowest,
            highest,
            distance,
            best: Best::default(),
        });
        self.arrivals.push(Arrival {
            at: place,
            start: place,
            before: place,
            edge: HalfEdge {
                node,
                kind: EdgeKind::Temporal,
                weight: 0.0,
            },
            boost: 0.0,
            carries: 1.0,
            value: highest,
        });
        self.near += 1;
    }

    /// The nodes of S, nearest first.
    pub(super) fn near(&self) -> &[Reached] {
        &self.reached[..self.near]
    }

    /// Every node there is a place for.
    pub(super) fn reached(&self) -> &[Reached] {
        &self.reached
    }

    pub(super) fn reached_mut(&mut self, place: usize) -> &mut Reached {
        &mut self.reached[place]
    }

    /// Where the best path to a node began, as a place, and what part of that start's similarity
    /// it brings.
    pub(super) fn lender(&self, place: usize) -> Option<(usize, f32)> {
        self.best(place)
            .map(|best| (best.start as usize, best.carries))
    }

    fn best(&self, place: usize) -> Option<&Arrival> {
        let [best, _] = self.reached[place].best.0;
        best.map(|at| &self.arrivals[at as usize])
    }

    /// The edges of the best path to a node, between named nodes.
    pub(super) fn path(&self, place: usize, name: impl Fn(Slot) -> NodeId) -> Vec<WalkedEdge> {
        let mut path = Vec::new();
        let mut next = self.best(place);
        while let Some(arrival) = next.filter(|arrival| arrival.boost > 0.0) {
            let before = &self.arrivals[arrival.before as usize];
            path.push(WalkedEdge {
                from: name(self.node(before.at)),
                to: name(arrival.edge.node),
                kind: arrival.edge.kind,
                weight: arrival.edge.weight,
                boost: arrival.boost,
            });
            next = Some(before);
        }
        path.reverse();
        path
    }

    fn node(&self, place: u32) -> Slot {
        self.reached[place as usize].node
    }

    /// The place of a node, which is given one if it has none.
    fn place(&mut self, node: Slot, [lowest, highest]: [f32; 2]) -> u32 {
        let next = self.reached.len() as u32;
        let place = *self.places.entry(node).or_insert(next);
        if place == next {
            self.reached.push(Reached {
                node,
                lowest,
                highest,
                distance: None,
                best: Best::default(),
            });
        }
        place
    }

    /// Says of a node outside S how similar it is.
    fn tell(&mut self, place: u32, similarities: [f32; 2]) {
        if place as usize >= self.near {
            let reached = &mut self.reached[place as usize];
            [reached.lowest, reached.highest] = similarities;
        }
    }

    /// Lets an edge lead on from an arrival.
    fn arrive(&mut self, at: u32, by: Pending) {
        let from = &self.arrivals[by.before as usize];
        self.admit(Arrival {
            at,
            start: from.start,
            before: by.before,
            edge: by.edge,
            boost: by.boost,
            carries: from.carries * (by.boost * by.edge.weight),
            value: by.value,
        });
    }

    /// Keeps an arrival if it is among the best two of different starts.
    fn admit(&mut self, arrival: Arrival) {
        let next = self.arrivals.len() as u32;
        let best = &mut self.reached[arrival.at as usize].best;
        let [first, second] = best.0.map(|at| at.map(|at| &self.arrivals[at as usize]));
        let beats = |other: Option<&Arrival>| other.is_none_or(|other| arrival.value > other.value);
        let of_first = first.is_some_and(|first| first.start == arrival.start);
        if beats(first) {
            if !of_first {
                best.0[1] = best.0[0];
            }
            best.0[0] = Some(next);
        } else if !of_first && beats(second) {
            best.0[1] = Some(next);
        } else {
            return;
        }
        self.arrivals.push(arrival);
    }
}
