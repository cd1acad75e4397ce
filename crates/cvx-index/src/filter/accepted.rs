//! A filter resolved against the columns: tests nodes, and counts or lists those accepted.

mod candidates;

use std::ops::Range;

use roaring::RoaringBitmap;

use crate::columns::{Columns, EMBEDDED, RECALLABLE};
use crate::filter::Filter;
use crate::filter::postings::Postings;
use crate::filter::timelines::Timelines;
use crate::id::Slot;

/// Nodes looked at to estimate how many a filter accepts.
const SAMPLE: usize = 256;

/// What filters are resolved against.
#[derive(Clone, Copy)]
pub(crate) struct Catalog<'a> {
    pub(crate) columns: &'a Columns,
    pub(crate) postings: &'a Postings,
    pub(crate) timelines: &'a Timelines,
}

/// A filter in terms of columns. Conditions that every node meets are left out.
pub(crate) struct Accepted<'a> {
    catalog: Catalog<'a>,
    /// Ascending.
    namespaces: Vec<u32>,
    in_all_namespaces: bool,
    window: Option<Window<'a>>,
    /// The nodes of the window, where they came in the order of time: it then asks for no column.
    span: Option<Range<u32>>,
    rewards: Option<(f32, f32)>,
    recallable: Option<bool>,
    entities: Option<Vec<u64>>,
    tags: Vec<u32>,
    /// Ascending.
    listed: Option<Vec<Slot>>,
    /// Whether a name in the filter is unknown, or a list empty.
    nothing: bool,
}

/// A range of time, and the entries within it.
#[derive(Clone, Copy)]
struct Window<'a> {
    since: Option<i64>,
    until: Option<i64>,
    entries: [&'a [Slot]; 2],
}

/// A set of nodes, a bit each.
pub(crate) struct Bits(Vec<u64>);

impl Bits {
    pub(crate) fn of(nodes: &[Slot], len: usize) -> Self {
        let mut words = vec![0u64; len.div_ceil(64)];
        for &node in nodes {
            words[node.index() / 64] |= 1 << (node.0 % 64);
        }
        Bits(words)
    }

    #[inline]
    pub(crate) fn has(&self, node: Slot) -> bool {
        let word = self.0.get(node.index() / 64);
        word.is_some_and(|word| word >> (node.0 % 64) & 1 == 1)
    }
}

impl<'a> Accepted<'a> {
    /// Resolves a checked filter.
    pub(crate) fn new(filter: &Filter, catalog: Catalog<'a>) -> Self {
        let Catalog {
            columns, postings, ..
        } = catalog;
        let places = filter
            .namespaces()
            .filter_map(|name| columns.namespaces.place(name));
        let namespaces = ascending(places.collect());
        let wanted = filter.tags.as_deref().unwrap_or(&[]);
        let places = wanted
            .iter()
            .filter_map(|tag| columns.tag_names.place(tag.as_str()));
        let tags: Vec<u32> = places.collect();
        let entities = filter.entities.as_ref();
        let listed = filter.ids.as_ref().map(|ids| {
            let nodes = ids.iter().filter_map(|&id| columns.ids.slot(id));
            ascending(nodes.filter(|&node| node.index() < columns.len()).collect())
        });
        let (since, until) = (filter.since, filter.until);
        let window = (since.is_some() || until.is_some()).then(|| Window {
            since,
            until,
            entries: postings.by_time.window(columns, since, until),
        });
        let withheld = postings.withheld.len();
        let all = postings.all.len();
        let named: u64 = namespaces
            .iter()
            .filter_map(|&n| postings.namespace(n))
            .map(RoaringBitmap::len)
            .sum();
        Accepted {
            in_all_namespaces: named == all,
            span: window.and_then(|window| postings.by_time.span(window.entries)),
            window,
            rewards: (filter.min_reward.is_some() || filter.max_reward.is_some()).then(|| {
                let (min, max) = (filter.min_reward, filter.max_reward);
                (min.unwrap_or(f32::MIN), max.unwrap_or(f32::MAX))
            }),
            recallable: filter.recallable.filter(|&wanted| match wanted {
                true => withheld > 0,
                false => withheld < all,
            }),
            entities: entities.map(|list| ascending(list.iter().map(|entity| entity.0).collect())),
            nothing: namespaces.is_empty()
                || tags.len() < wanted.len()
                || filter.tags.as_ref().is_some_and(Vec::is_empty),
            namespaces,
            tags,
            listed,
            catalog,
        }
    }

    /// Whether every node with a vector is accepted.
    pub(crate) fn everything(&self) -> bool {
        !self.nothing && self.in_all_namespaces && self.window.is_none() && self.no_other()
    }

    /// Whether there is no condition but on namespaces and time.
    fn no_other(&self) -> bool {
        self.rewards.is_none()
            && self.recallable.is_none()
            && self.entities.is_none()
            && self.tags.is_empty()
            && self.listed.is_none()
    }

    /// Whether no node is accepted, whatever it is.
    pub(crate) fn nothing(&self) -> bool {
        self.nothing
    }

    /// How many nodes have a vector.
    pub(crate) fn vectors(&self) -> usize {
        self.catalog.postings.all.len() as usize
    }

    /// Up to which slot there are nodes.
    pub(crate) fn nodes(&self) -> usize {
        self.catalog.columns.len()
    }

    /// Whether a node is accepted.
    #[inline]
    pub(crate) fn has(&self, node: Slot) -> bool {
        self.catalog.columns.has(node, EMBEDDED) && self.has_embedded(node)
    }

    /// Whether a node that has a vector, as those of the graph have, is accepted.
    #[inline]
    pub(crate) fn has_embedded(&self, node: Slot) -> bool {
        !self.nothing
            && self.has_recallable(node)
            && (self.in_all_namespaces || self.has_namespace(node))
            && self.in_window(node)
            && self.has_reward(node)
            && self.tags.iter().all(|&tag| self.has_tag(node, tag))
            && self.has_entity(node)
            && self.is_listed(node)
    }

    #[inline]
    fn has_reward(&self, node: Slot) -> bool {
        // NaN, which is no reward, is in no range.
        let within = |(min, max)| (min..=max).contains(&self.catalog.columns.reward[node.index()]);
        self.rewards.is_none_or(within)
    }

    #[inline]
    fn in_window(&self, node: Slot) -> bool {
        match (&self.span, self.window) {
            (Some(span), _) => span.contains(&node.0),
            (None, Some(window)) => {
                let time = self.catalog.columns.time[node.index()];
                window.since.is_none_or(|since| time >= since)
                    && window.until.is_none_or(|until| time < until)
            }
            (None, None) => true,
        }
    }

    #[inline]
    fn has_recallable(&self, node: Slot) -> bool {
        let may_advise = self.catalog.columns.flags[node.index()] & RECALLABLE != 0;
        self.recallable.is_none_or(|wanted| may_advise == wanted)
    }

    #[inline]
    fn has_tag(&self, node: Slot, tag: u32) -> bool {
        let tags = self.catalog.columns.tag_places(node);
        tags.binary_search(&tag).is_ok()
    }

    #[inline]
    fn has_entity(&self, node: Slot) -> bool {
        let entity = self.catalog.columns.entity[node.index()];
        let among = |entities: &Vec<u64>| entities.binary_search(&entity).is_ok();
        self.entities.as_ref().is_none_or(among)
    }

    #[inline]
    fn is_listed(&self, node: Slot) -> bool {
        let among = |listed: &Vec<Slot>| listed.binary_search(&node).is_ok();
        self.listed.as_ref().is_none_or(among)
    }

    /// Whether a node is in one of the namespaces that the caller named.
    #[inline]
    pub(crate) fn has_namespace(&self, node: Slot) -> bool {
        // An edge of a file that was overwritten while it was open may name a node that is none.
        let Some(&namespace) = self.catalog.columns.namespace.get(node.index()) else {
            return false;
        };
        match self.namespaces.as_slice() {
            [only] => *only == namespace,
            several => several.binary_search(&namespace).is_ok(),
        }
    }

    /// Every accepted node.
    pub(crate) fn members(&self) -> Vec<Slot> {
        if self.nothing {
            Vec::new()
        } else {
            let (source, bound) = self.source();
            self.list(&source, bound)
        }
    }

    /// The accepted nodes as an unbroken run of slots, where they are just that, as a window
    /// in time often is.
    pub(crate) fn run(&self) -> Option<Range<u32>> {
        if self.everything() {
            return (self.vectors() == self.nodes()).then_some(0..self.nodes() as u32);
        }
        let only_time = self.in_all_namespaces && !self.nothing && self.no_other();
        let span = self.span.clone().filter(|_| only_time)?;
        let [nodes, _] = self.window?.entries;
        (span.len() == nodes.len()).then_some(span)
    }

    /// At most so many nodes are accepted.
    pub(crate) fn bound(&self) -> usize {
        if self.nothing { 0 } else { self.source().1 }
    }

    /// About how many nodes are accepted.
    pub(crate) fn estimate(&self) -> usize {
        if self.bound_is_exact() {
            return self.bound();
        }
        let len = self.nodes();
        let step = (len / SAMPLE).max(1);
        let hits = (0..len)
            .step_by(step)
            .filter(|&node| self.has(Slot::at(node)))
            .count();
        (hits * step).min(self.bound())
    }

    /// Whether a window, a tag, or namespaces are all that is asked for.
    fn bound_is_exact(&self) -> bool {
        let others = self.rewards.is_some()
            || self.recallable.is_some()
            || self.entities.is_some()
            || self.listed.is_some();
        let asked = [!self.in_all_namespaces, self.window.is_some()];
        let asked = asked.iter().filter(|&&asked| asked).count() + self.tags.len();
        !self.nothing && !others && asked <= 1
    }
}

fn ascending<T: Ord>(mut values: Vec<T>) -> Vec<T> {
    values.sort_unstable();
    values.dedup();
    values
}
