//! The shortest posting list or window that holds every node a filter accepts.

use roaring::RoaringBitmap;

use super::{Accepted, Catalog, Window};
use crate::columns::EMBEDDED;
use crate::id::Slot;

/// Nodes taken from a bitmap at once: one by one, each asks anew where it stands.
const AT_ONCE: usize = 256;

/// Where candidates are listed from, and with it which condition they meet.
pub(super) enum Source<'a> {
    All,
    Withheld,
    Listed(&'a [Slot]),
    Window([&'a [Slot]; 2]),
    Rewards(f32, f32),
    Namespaces,
    Tag(u32, &'a RoaringBitmap),
    Entities,
}

impl<'a> Accepted<'a> {
    /// How many nodes of a bitmap may be within the window.
    fn count(&self, posting: &RoaringBitmap) -> usize {
        match &self.span {
            Some(span) => posting.range_cardinality(span.clone()) as usize,
            None => posting.len() as usize,
        }
    }

    fn namespace_postings(&self) -> impl Iterator<Item = &'a RoaringBitmap> + '_ {
        let postings = self.catalog.postings;
        self.namespaces
            .iter()
            .filter_map(|&namespace| postings.namespace(namespace))
    }

    fn lines(&self) -> impl Iterator<Item = &'a [Slot]> + '_ {
        let timelines = self.catalog.timelines;
        self.entities.iter().flatten().flat_map(move |&entity| {
            let namespaces = self.namespaces.iter();
            namespaces.map(move |&namespace| timelines.line(namespace, entity))
        })
    }

    /// The posting with the fewest candidates, and how many those are.
    pub(super) fn source(&self) -> (Source<'_>, usize) {
        let Catalog {
            columns, postings, ..
        } = self.catalog;
        let mut best = (Source::All, postings.all.len() as usize);
        let mut consider = |source, bound| {
            if bound < best.1 {
                best = (source, bound);
            }
        };
        if !self.in_all_namespaces {
            let named = self.namespace_postings().map(|posting| self.count(posting));
            consider(Source::Namespaces, named.sum());
        }
        if self.recallable == Some(false) {
            consider(Source::Withheld, self.count(&postings.withheld));
        }
        if let Some(listed) = &self.listed {
            consider(Source::Listed(listed), listed.len());
        }
        if let Some(Window { entries, .. }) = self.window {
            let [first, second] = entries;
            consider(Source::Window(entries), first.len() + second.len());
        }
        if let Some((min, max)) = self.rewards {
            consider(
                Source::Rewards(min, max),
                postings.reward_bound(columns, min, max),
            );
        }
        for &tag in &self.tags {
            if let Some(posting) = postings.tag(tag) {
                consider(Source::Tag(tag, posting), self.count(posting));
            }
        }
        if let Some(entities) = &self.entities
            // As many lookups as there are candidates are no short cut.
            && entities.len() * self.namespaces.len() < best.1
        {
            let bound = self.lines().map(<[Slot]>::len).sum();
            if bound < best.1 {
                best = (Source::Entities, bound);
            }
        }
        best
    }

    /// The candidates of a source that are accepted.
    ///
    /// First all that the source holds, then what each other condition leaves of them: a list is
    /// gone through once a condition, and no processor has to guess what comes next.
    pub(super) fn list(&self, source: &Source<'_>, bound: usize) -> Vec<Slot> {
        let Catalog {
            columns, postings, ..
        } = self.catalog;
        let mut members = Vec::with_capacity(bound);
        match source {
            Source::All => self.take(&postings.all, &mut members),
            Source::Withheld => self.take(&postings.withheld, &mut members),
            Source::Listed(nodes) => members.extend_from_slice(nodes),
            Source::Window(entries) => {
                entries
                    .iter()
                    .for_each(|run| members.extend_from_slice(run));
            }
            Source::Rewards(min, max) => {
                let buckets = postings.near_rewards(columns, *min, *max);
                for bucket in buckets.ends.into_iter().flatten() {
                    self.take(bucket, &mut members);
                }
                keep(&mut members, |node| self.has_reward(node));
                for bucket in buckets.inside {
                    self.take(bucket, &mut members);
                }
            }
            Source::Namespaces => {
                for posting in self.namespace_postings() {
                    self.take(posting, &mut members);
                }
            }
            Source::Tag(_, posting) => self.take(posting, &mut members),
            Source::Entities => {
                for line in self.lines() {
                    members.extend_from_slice(line);
                }
            }
        }
        self.keep_others(source, &mut members);
        members
    }

    /// Appends the nodes of a bitmap that may be within the window: where nodes came in the order
    /// of time, those that are.
    fn take(&self, posting: &RoaringBitmap, members: &mut Vec<Slot>) {
        let mut nodes = match &self.span {
            Some(span) => posting.range(span.clone()),
            None => posting.iter(),
        };
        let mut some = [0; AT_ONCE];
        loop {
            match &*nodes.next_many(&mut some) {
                [] => return,
                some => members.extend_from_slice(Slot::slots(some)),
            }
        }
    }

    /// Keeps the candidates that meet what their source does not prove.
    fn keep_others(&self, source: &Source<'_>, members: &mut Vec<Slot>) {
        let Catalog { columns, .. } = self.catalog;
        let of_nodes = matches!(source, Source::Listed(_) | Source::Entities);
        if of_nodes && self.vectors() < self.nodes() {
            keep(members, |node| columns.has(node, EMBEDDED));
        }
        if self.recallable.is_some() && !matches!(source, Source::Withheld) {
            keep(members, |node| self.has_recallable(node));
        }
        let named = matches!(source, Source::Namespaces | Source::Entities);
        if !self.in_all_namespaces && !named {
            keep(members, |node| self.has_namespace(node));
        }
        // Of a bitmap the part within the span was taken.
        let in_window = matches!(source, Source::Window(_)) || self.span.is_some() && !of_nodes;
        if self.window.is_some() && !in_window {
            keep(members, |node| self.in_window(node));
        }
        if self.rewards.is_some() && !matches!(source, Source::Rewards(..)) {
            keep(members, |node| self.has_reward(node));
        }
        for &tag in &self.tags {
            if !matches!(source, Source::Tag(from, _) if *from == tag) {
                keep(members, |node| self.has_tag(node, tag));
            }
        }
        if self.entities.is_some() && !matches!(source, Source::Entities) {
            keep(members, |node| self.has_entity(node));
        }
        if self.listed.is_some() && !matches!(source, Source::Listed(_)) {
            keep(members, |node| self.is_listed(node));
        }
    }
}

/// Keeps what is accepted, in order, without a branch on what that is.
#[inline]
fn keep(nodes: &mut Vec<Slot>, accepts: impl Fn(Slot) -> bool) {
    let mut kept = 0;
    for at in 0..nodes.len() {
        let node = nodes[at];
        nodes[kept] = node;
        kept += usize::from(accepts(node));
    }
    nodes.truncate(kept);
}
