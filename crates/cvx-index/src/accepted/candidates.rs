//! Where the nodes that a filter accepts are looked for: in the shortest list that holds them all.

use roaring::RoaringBitmap;

use super::{Accepted, Catalog, Window};
use crate::columns::EMBEDDED;
use crate::postings::Dated;

/// Where candidates are listed from, and with it which condition they meet.
pub(super) enum Source<'a> {
    All,
    Withheld,
    Listed(&'a [u32]),
    Window([&'a [Dated]; 2]),
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

    /// The nodes of a bitmap that may be within the window: where nodes came in the order of time,
    /// those that are.
    fn part<'b>(&self, posting: &'b RoaringBitmap) -> impl Iterator<Item = u32> + use<'b> {
        posting.range(self.span.clone().unwrap_or(0..u32::MAX))
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
            let bound = self.lines().map(<[u32]>::len).sum();
            if bound < best.1 {
                best = (Source::Entities, bound);
            }
        }
        best
    }

    /// Appends the candidates of a source that are accepted.
    pub(super) fn list(&self, source: &Source<'_>, members: &mut Vec<u32>) {
        let Catalog {
            columns, postings, ..
        } = self.catalog;
        let meets = |node: &u32| self.meets(*node, Some(source));
        let embedded = |node: &u32| columns.has(*node, EMBEDDED);
        match source {
            Source::All => members.extend(self.part(&postings.all).filter(meets)),
            Source::Withheld => members.extend(self.part(&postings.withheld).filter(meets)),
            Source::Listed(nodes) => {
                members.extend(nodes.iter().copied().filter(embedded).filter(meets));
            }
            Source::Window(entries) => {
                let nodes = entries.iter().copied().flatten().map(|entry| entry.1);
                members.extend(nodes.filter(meets));
            }
            Source::Rewards(min, max) => {
                let has_reward = |node: &u32| self.has_reward(*node);
                let shelves = postings.near_rewards(columns, *min, *max);
                for shelf in shelves.inside {
                    members.extend(self.part(shelf).filter(meets));
                }
                for shelf in shelves.ends.into_iter().flatten() {
                    members.extend(self.part(shelf).filter(has_reward).filter(meets));
                }
            }
            Source::Namespaces => {
                for posting in self.namespace_postings() {
                    members.extend(self.part(posting).filter(meets));
                }
            }
            Source::Tag(_, posting) => members.extend(self.part(posting).filter(meets)),
            Source::Entities => {
                let nodes = self.lines().flatten().copied();
                members.extend(nodes.filter(embedded).filter(meets));
            }
        }
    }
}
