//! The search planner: scan or graph walk for a filter, and a cache of filters seen before.
//!
//! | route | when |
//! |---|---|
//! | scan  | few vectors in all, few accepted, or a beam so wide that it would see most of the graph |
//! | walk  | otherwise; refused nodes bridge, and past its budget a walk becomes a scan |
//!
//! A scan of a window of time on nodes that came in the order of time is a run of rows; any other
//! lists its nodes from the most selective posting and checks the rest of the filter on each. A
//! filter that comes again before anything changed finds its nodes listed, and one that comes once
//! more, if they are few, their codes one behind the other.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::filter::Filter;
use crate::filter::accepted::{Accepted, Bits};
use crate::id::Slot;
use crate::vectors::codes::Codes;

/// Rows that a scan of a list compares in the time that a walk takes for a place of its beam where
/// every node is accepted. `benches/planner.py` measures it where the two routes meet, at 14 to 40%
/// of 21,000 text and 40,000 mixed vectors: 40 to 62. The walk is the one that can miss something,
/// and on larger tables the dearer one.
const ROWS_OF_A_LIST: usize = 56;
/// The same for rows that lie one behind the other: 63 to 83.
const ROWS_OF_A_RUN: usize = 72;
/// Filters remembered.
const REMEMBERED: usize = 16;
/// A filter by more ids than this is not remembered: to compare it takes as long as to list it.
const MOST_IDS: usize = 256;

/// Codes of more nodes than these are not copied: what is remembered stays below 64 MB at 1,024
/// dimensions.
const MOST_COPIED: usize = 4096;

/// How to find the nearest accepted nodes.
pub(crate) enum Route {
    /// Compare with each of these.
    Scan(Nodes),
    /// Walk the graph.
    Walk(WalkBounds),
}

/// Nodes to be compared.
#[derive(Clone)]
pub(crate) enum Nodes {
    Run(Range<u32>),
    List(Arc<[Slot]>),
    /// Those of a filter that came before.
    Known(Arc<Members>),
}

impl Nodes {
    /// As a list.
    pub(crate) fn to_vec(&self) -> Vec<Slot> {
        match self {
            Nodes::Run(run) => run.clone().map(Slot).collect(),
            Nodes::List(list) => list.to_vec(),
            Nodes::Known(members) => members.nodes.to_vec(),
        }
    }
}

/// What bounds a walk.
pub(crate) struct WalkBounds {
    /// Distances it may measure: by then a scan of the accepted nodes would have come to its end.
    pub(crate) budget: usize,
    /// The accepted nodes, where the filter is known from before.
    pub(crate) members: Option<Arc<Members>>,
}

impl WalkBounds {
    /// The accepted nodes, for a walk that did not find enough of them.
    pub(crate) fn nodes(&self, accepted: &Accepted<'_>) -> Nodes {
        if let Some(run) = accepted.run() {
            return Nodes::Run(run);
        }
        match &self.members {
            Some(members) => Nodes::Known(Arc::clone(members)),
            None => Nodes::List(accepted.members().into()),
        }
    }
}

/// The nodes that a filter accepts.
pub(crate) struct Members {
    nodes: Vec<Slot>,
    len: usize,
    bits: OnceLock<Bits>,
    /// Whether it was found again after it was listed.
    again: AtomicBool,
    codes: OnceLock<Codes>,
}

impl Members {
    fn of(accepted: &Accepted<'_>) -> Self {
        Members {
            nodes: accepted.members(),
            len: accepted.nodes(),
            bits: OnceLock::new(),
            again: AtomicBool::new(false),
            codes: OnceLock::new(),
        }
    }

    pub(crate) fn nodes(&self) -> &[Slot] {
        &self.nodes
    }

    /// The codes of the nodes one behind the other, where they are worth the copy.
    pub(crate) fn codes(&self, all: &Codes) -> Option<&Codes> {
        let worth = self.again.load(Ordering::Relaxed) && self.nodes.len() <= MOST_COPIED;
        worth.then(|| self.codes.get_or_init(|| all.gathered(&self.nodes)))
    }

    /// As a set, which a walk asks about each node it comes by.
    pub(crate) fn bits(&self) -> &Bits {
        self.bits.get_or_init(|| Bits::of(&self.nodes, self.len))
    }
}

/// Filters that came, latest first, and their nodes from the second time on.
#[derive(Default)]
pub(crate) struct FilterCache(Mutex<Vec<(Filter, Option<Arc<Members>>)>>);

impl FilterCache {
    /// Forgets all: something changed that filters ask about.
    pub(crate) fn forget(&mut self) {
        self.0
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }

    /// The nodes of a filter that came before.
    fn members(&self, filter: &Filter, accepted: &Accepted<'_>) -> Option<Arc<Members>> {
        if filter.ids.as_ref().is_some_and(|ids| ids.len() > MOST_IDS) {
            return None;
        }
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        {
            let mut known = lock();
            let Some(place) = known.iter().position(|(other, _)| other == filter) else {
                known.truncate(REMEMBERED - 1);
                known.insert(0, (filter.clone(), None));
                return None;
            };
            known[..=place].rotate_right(1);
            if let Some(members) = &known[0].1 {
                members.again.store(true, Ordering::Relaxed);
                return Some(Arc::clone(members));
            }
        }
        // Listed without the lock: other searches go on.
        let members = Arc::new(Members::of(accepted));
        if let Some(entry) = lock().iter_mut().find(|(other, _)| other == filter) {
            entry.1 = Some(Arc::clone(&members));
        }
        Some(members)
    }
}

/// The cheaper way to the nearest `width` accepted nodes of a graph.
pub(crate) fn route(
    filter: &Filter,
    accepted: &Accepted<'_>,
    remembered: &FilterCache,
    width: usize,
    exact_below: usize,
) -> Route {
    let vectors = accepted.vectors();
    if accepted.nothing() {
        return Route::Scan(Nodes::Run(0..0));
    }
    // Beyond that, a beam sees most of the graph.
    let too_wide = width >= vectors / 8;
    // A walk among a share s of the nodes takes 1/s times as long.
    let worth_scanning = |count: usize, rows_of_a_place: usize| {
        let walk = width.saturating_mul(rows_of_a_place);
        vectors < exact_below
            || too_wide
            || count.saturating_mul(count) <= walk.saturating_mul(vectors)
    };
    if accepted.everything() && !too_wide && vectors >= exact_below {
        let (budget, members) = (usize::MAX, None);
        return Route::Walk(WalkBounds { budget, members });
    }
    // Whether a node is in a run is told without a list: there is nothing to remember.
    if let Some(run) = accepted.run() {
        return match worth_scanning(run.len(), ROWS_OF_A_RUN) {
            true => Route::Scan(Nodes::Run(run)),
            false => Route::Walk(WalkBounds {
                budget: run.len(),
                members: None,
            }),
        };
    }
    if accepted.everything() {
        return Route::Scan(Nodes::List(accepted.members().into()));
    }
    let worth_listing = |count| worth_scanning(count, ROWS_OF_A_LIST);
    let members = remembered.members(filter, accepted);
    let (scan, budget) = match &members {
        Some(members) => (worth_listing(members.nodes.len()), members.nodes.len()),
        None if worth_listing(accepted.bound()) => (true, 0),
        None => {
            let likely = accepted.estimate();
            (worth_listing(likely), likely)
        }
    };
    match (scan, members) {
        (true, Some(members)) => Route::Scan(Nodes::Known(members)),
        (true, None) => Route::Scan(Nodes::List(accepted.members().into())),
        (false, members) => Route::Walk(WalkBounds { budget, members }),
    }
}
