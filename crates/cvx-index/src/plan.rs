//! From a filter to the nodes it accepts, and how to search among them.
//!
//! | route | when |
//! |---|---|
//! | scan  | few vectors in all, few accepted, or a beam so wide that it would see most of the graph |
//! | walk  | otherwise; refused nodes bridge, and past its budget a walk becomes a scan |
//!
//! A scan lists its nodes from the most selective posting and checks the rest of the filter on each.

use roaring::RoaringBitmap;

use crate::columns::{Columns, EMBEDDED, RECALLABLE};
use crate::filter::Filter;
use crate::postings::{Dated, Postings};
use crate::timelines::Timelines;

/// Distances that a walk measures for each place of its beam, as the walk on real text vectors does.
const MEASURED_PER_PLACE: usize = 16;
/// What a distance costs in a walk, where rows lie anywhere, in distances of a scan.
const WALK_COST: usize = 2;
/// Nodes looked at to estimate how many a filter accepts.
const SAMPLE: usize = 512;

/// What filters are resolved against.
#[derive(Clone, Copy)]
pub(crate) struct Catalog<'a> {
    pub(crate) columns: &'a Columns,
    pub(crate) postings: &'a Postings,
    pub(crate) timelines: &'a Timelines,
}

/// A filter in terms of columns.
pub(crate) struct Accepted<'a> {
    catalog: Catalog<'a>,
    namespaces: Vec<u32>,
    since: i64,
    until: Option<i64>,
    rewards: Option<(f32, f32)>,
    recallable: Option<bool>,
    entities: Option<Vec<u64>>,
    tags: Vec<u32>,
    ids: Option<Bits>,
    listed: Vec<u32>,
    /// Whether a name in the filter is unknown, or a list empty.
    nothing: bool,
    /// Whether every node with a vector is accepted.
    everything: bool,
}

/// How to find the nearest accepted nodes.
pub(crate) enum Route {
    /// Compare with each of these.
    Scan(Vec<u32>),
    /// Walk the graph, as long as it takes at most so many distances.
    Walk(usize),
}

struct Bits(Vec<u64>);

impl Bits {
    fn of(nodes: &[u32], len: usize) -> Self {
        let mut words = vec![0u64; len.div_ceil(64)];
        for &node in nodes {
            words[node as usize / 64] |= 1 << (node % 64);
        }
        Bits(words)
    }

    #[inline]
    fn has(&self, node: u32) -> bool {
        self.0[node as usize / 64] >> (node % 64) & 1 == 1
    }
}

/// Where candidates are listed from.
enum Source<'a> {
    All,
    Withheld,
    Listed,
    Window,
    Namespaces,
    Tag(&'a RoaringBitmap),
    Entities,
}

impl<'a> Accepted<'a> {
    /// Resolves a checked filter.
    pub(crate) fn new(filter: &Filter, catalog: Catalog<'a>) -> Self {
        let Catalog {
            columns, postings, ..
        } = catalog;
        let names = filter.namespaces();
        let mut namespaces: Vec<u32> = names
            .iter()
            .filter_map(|name| columns.namespaces.place(*name))
            .collect();
        namespaces.sort_unstable();
        namespaces.dedup();
        let wanted = filter.tags.as_deref().unwrap_or(&[]);
        let tags: Vec<u32> = wanted
            .iter()
            .filter_map(|tag| columns.tag_names.place(tag.as_str()))
            .collect();
        let entities = filter.entities.as_ref().map(|entities| {
            let mut entities: Vec<u64> = entities.iter().map(|entity| entity.0).collect();
            entities.sort_unstable();
            entities.dedup();
            entities
        });
        let mut listed: Vec<u32> = filter.ids.iter().flatten().map(|id| id.0).collect();
        listed.retain(|&node| (node as usize) < columns.len());
        listed.sort_unstable();
        listed.dedup();
        let ids = filter
            .ids
            .as_ref()
            .map(|_| Bits::of(&listed, columns.len()));
        let empty_tags = filter.tags.as_ref().is_some_and(Vec::is_empty);
        let nothing = namespaces.is_empty() || tags.len() < wanted.len() || empty_tags;
        let rewards = (filter.min_reward.is_some() || filter.max_reward.is_some()).then(|| {
            (
                filter.min_reward.unwrap_or(f32::MIN),
                filter.max_reward.unwrap_or(f32::MAX),
            )
        });
        let mut accepted = Accepted {
            catalog,
            namespaces,
            since: filter.since.unwrap_or(i64::MIN),
            until: filter.until,
            rewards,
            recallable: filter.recallable,
            entities,
            tags,
            ids,
            listed,
            nothing,
            everything: false,
        };
        accepted.everything = !nothing
            && filter.since.is_none()
            && accepted.until.is_none()
            && rewards.is_none()
            && accepted.entities.is_none()
            && wanted.is_empty()
            && accepted.ids.is_none()
            && match filter.recallable {
                Some(true) => postings.withheld.is_empty(),
                Some(false) => postings.withheld.len() == postings.all.len(),
                None => true,
            }
            && accepted.namespaces_len() == postings.all.len() as usize;
        accepted
    }

    /// Whether every node with a vector is accepted.
    pub(crate) fn everything(&self) -> bool {
        self.everything
    }

    /// Whether a node of the graph is accepted.
    #[inline]
    pub(crate) fn has(&self, node: u32) -> bool {
        let columns = self.catalog.columns;
        let at = node as usize;
        let flags = columns.flags[at];
        // An outlier among the conditions costs nothing where it is absent.
        !self.nothing
            && flags & EMBEDDED != 0
            && self
                .recallable
                .is_none_or(|wanted| (flags & RECALLABLE != 0) == wanted)
            && self.has_namespace(node)
            && columns.time[at] >= self.since
            && self.until.is_none_or(|until| columns.time[at] < until)
            && self.ids.as_ref().is_none_or(|ids| ids.has(node))
            && self.rewards.is_none_or(|(min, max)| {
                // NaN, which is no reward, is in no range.
                (min..=max).contains(&columns.reward[at])
            })
            && (self.tags.is_empty() || {
                let tags = columns.tag_places(node);
                self.tags.iter().all(|tag| tags.binary_search(tag).is_ok())
            })
            && self
                .entities
                .as_ref()
                .is_none_or(|entities| entities.binary_search(&columns.entity[at]).is_ok())
    }

    /// Whether a node is in one of the namespaces that the caller named.
    #[inline]
    pub(crate) fn has_namespace(&self, node: u32) -> bool {
        let namespace = self.catalog.columns.namespace[node as usize];
        match self.namespaces.as_slice() {
            [only] => *only == namespace,
            several => several.binary_search(&namespace).is_ok(),
        }
    }

    /// Every accepted node.
    pub(crate) fn members(&self) -> Vec<u32> {
        match self.nothing {
            true => Vec::new(),
            false => self.list(&self.source().0),
        }
    }

    /// The cheaper way to the nearest `width` accepted nodes of a graph.
    pub(crate) fn route(&self, width: usize, exact_below: usize) -> Route {
        let vectors = self.catalog.postings.all.len() as usize;
        if self.nothing {
            return Route::Scan(Vec::new());
        }
        // Beyond that, a beam sees most of the graph.
        let too_wide = width >= vectors / 8;
        if vectors < exact_below || (self.everything && too_wide) {
            return Route::Scan(self.members());
        }
        if self.everything {
            return Route::Walk(usize::MAX);
        }
        // A walk among a share s of the nodes measures 1/s times as many of them.
        let walk = width.saturating_mul(MEASURED_PER_PLACE * WALK_COST);
        let worth_scanning = |accepted: usize| {
            too_wide || accepted.saturating_mul(accepted) <= walk.saturating_mul(vectors)
        };
        let (source, bound) = self.source();
        if worth_scanning(bound) {
            return Route::Scan(self.list(&source));
        }
        let likely = self.estimate();
        match worth_scanning(likely) {
            true => Route::Scan(self.list(&source)),
            // By then a scan of the accepted nodes would have come to its end.
            false => Route::Walk(likely),
        }
    }

    /// About how many nodes are accepted.
    fn estimate(&self) -> usize {
        let len = self.catalog.columns.len();
        let step = (len / SAMPLE).max(1);
        let hits = (0..len)
            .step_by(step)
            .filter(|&node| self.has(node as u32))
            .count();
        hits * step
    }

    fn namespaces_len(&self) -> usize {
        self.namespace_postings()
            .map(|posting| posting.len() as usize)
            .sum()
    }

    fn namespace_postings(&self) -> impl Iterator<Item = &'a RoaringBitmap> + '_ {
        let postings = self.catalog.postings;
        self.namespaces
            .iter()
            .filter_map(|&namespace| postings.namespace(namespace))
    }

    fn lines(&self) -> impl Iterator<Item = &'a [u32]> + '_ {
        let timelines = self.catalog.timelines;
        self.entities.iter().flatten().flat_map(move |&entity| {
            self.namespaces
                .iter()
                .map(move |&namespace| timelines.line(namespace, entity))
        })
    }

    /// The posting with the fewest candidates, and how many those are.
    fn source(&self) -> (Source<'a>, usize) {
        let postings = self.catalog.postings;
        let mut best = (Source::All, postings.all.len() as usize);
        let mut consider = |source, bound| {
            if bound < best.1 {
                best = (source, bound);
            }
        };
        consider(Source::Namespaces, self.namespaces_len());
        if self.recallable == Some(false) {
            consider(Source::Withheld, postings.withheld.len() as usize);
        }
        if self.ids.is_some() {
            consider(Source::Listed, self.listed.len());
        }
        if self.since > i64::MIN || self.until.is_some() {
            let [first, second] = self.window();
            consider(Source::Window, first.len() + second.len());
        }
        for &tag in &self.tags {
            if let Some(posting) = postings.tag(tag) {
                consider(Source::Tag(posting), posting.len() as usize);
            }
        }
        // As many lookups as there are nodes are no short cut.
        if self
            .entities
            .as_ref()
            .is_some_and(|e| e.len() * self.namespaces.len() < best_of(&best))
        {
            let bound = self.lines().map(<[u32]>::len).sum();
            if bound < best.1 {
                best = (Source::Entities, bound);
            }
        }
        best
    }

    fn window(&self) -> [&'a [Dated]; 2] {
        self.catalog
            .postings
            .by_time
            .window(Some(self.since), self.until)
    }

    fn list(&self, source: &Source<'a>) -> Vec<u32> {
        let postings = self.catalog.postings;
        let accepted = |node: &u32| self.has(*node);
        if self.everything {
            return postings.all.iter().collect();
        }
        match source {
            Source::All => postings.all.iter().filter(accepted).collect(),
            Source::Withheld => postings.withheld.iter().filter(accepted).collect(),
            Source::Listed => self.listed.iter().copied().filter(accepted).collect(),
            Source::Window => {
                let [first, second] = self.window();
                first
                    .iter()
                    .chain(second)
                    .map(|entry| entry.1)
                    .filter(accepted)
                    .collect()
            }
            Source::Namespaces => self
                .namespace_postings()
                .flatten()
                .filter(accepted)
                .collect(),
            Source::Tag(posting) => posting.iter().filter(accepted).collect(),
            Source::Entities => self.lines().flatten().copied().filter(accepted).collect(),
        }
    }
}

fn best_of(best: &(Source<'_>, usize)) -> usize {
    best.1
}
