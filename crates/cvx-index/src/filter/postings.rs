//! Posting lists: the nodes with vectors by namespace, tag, time and reward.

use std::ops;
use std::sync::OnceLock;

use roaring::RoaringBitmap;
use serde::{Deserialize, Serialize};

use crate::columns::{Columns, EMBEDDED, RECALLABLE};
use crate::filter::reward_buckets::{BucketRange, RewardBuckets};
use crate::id::Slot;

/// So many late arrivals wait at least before they are merged into the order of time; more of them
/// where there is more to merge them into.
const LATE: usize = 4096;

/// Nodes by timestamp, then slot. Arrivals in order are appended; late ones wait in a short second
/// list, so that one of them does not move the whole first.
#[derive(Clone, Debug, Default)]
pub(crate) struct TimeOrder {
    nodes: Vec<Slot>,
    late: Vec<Slot>,
    /// Whether some of `nodes` are not in the order of slots.
    shuffled: bool,
}

/// When a node happened, then which it is.
fn dated(columns: &Columns, node: Slot) -> (i64, Slot) {
    (columns.time[node.index()], node)
}

impl TimeOrder {
    fn add(&mut self, columns: &Columns, node: Slot) {
        let entry = dated(columns, node);
        let earlier = |&other: &Slot| dated(columns, other) < entry;
        if self.nodes.last().is_none_or(earlier) {
            self.shuffled |= self.nodes.last().is_some_and(|&last| last > node);
            self.nodes.push(node);
            return;
        }
        let place = self.late.partition_point(earlier);
        self.late.insert(place, node);
        if self.late.len() >= LATE.max(16 * self.nodes.len().isqrt()) {
            self.nodes = self.nodes(columns);
            self.shuffled = !self.nodes.is_sorted();
            self.late.clear();
        }
    }

    /// Takes nodes out, ascending, some of which may not be there.
    fn remove(&mut self, columns: &Columns, gone: &[Slot]) {
        if let &[node] = gone {
            let earlier = |&other: &Slot| dated(columns, other) < dated(columns, node);
            let place = self.nodes.partition_point(earlier);
            if self.nodes.get(place) == Some(&node) {
                self.nodes.remove(place);
            }
        } else {
            self.nodes.retain(|node| gone.binary_search(node).is_err());
        }
        self.late.retain(|node| gone.binary_search(node).is_err());
    }

    /// All nodes in order.
    pub(crate) fn nodes(&self, columns: &Columns) -> Vec<Slot> {
        let mut all = [self.nodes.as_slice(), &self.late].concat();
        if !self.late.is_empty() {
            // Two runs merge in linear time.
            all.sort_by_key(|&node| dated(columns, node));
        }
        all
    }

    /// The order of `nodes`, if that is the order they are in.
    fn restored(columns: &Columns, nodes: Vec<Slot>) -> Option<Self> {
        let inside = nodes.iter().all(|node| node.index() < columns.time.len());
        let in_order = |a: &Slot, b: &Slot| dated(columns, *a) < dated(columns, *b);
        (inside && nodes.is_sorted_by(in_order)).then(|| TimeOrder {
            shuffled: !nodes.is_sorted(),
            nodes,
            late: Vec::new(),
        })
    }

    /// The nodes within `since <= t < until`, as two runs in the order of time.
    pub(crate) fn window(
        &self,
        columns: &Columns,
        since: Option<i64>,
        until: Option<i64>,
    ) -> [&[Slot]; 2] {
        let within = |run| {
            let run: &[Slot] = run;
            let before = |bound| run.partition_point(|node| columns.time[node.index()] < bound);
            let end = until.map_or(run.len(), before);
            let start = since.map_or(0, before);
            &run[start.min(end)..end]
        };
        [within(&self.nodes), within(&self.late)]
    }

    /// The slots from the first to the last of a window, of nodes that came in the order of time:
    /// all nodes in between are within it.
    pub(crate) fn span(&self, [nodes, _]: [&[Slot]; 2]) -> Option<ops::Range<u32>> {
        if self.shuffled || !self.late.is_empty() {
            return None;
        }
        Some(match (nodes.first(), nodes.last()) {
            (Some(first), Some(last)) => first.0..last.0 + 1,
            _ => 0..0,
        })
    }
}

/// Postings for a snapshot: each bitmap in its portable form.
#[derive(Serialize, Deserialize)]
pub(crate) struct StoredPostings {
    all: Vec<u8>,
    withheld: Vec<u8>,
    by_namespace: Vec<Vec<u8>>,
    by_tag: Vec<Vec<u8>>,
}

/// The postings; they hold live nodes with vectors, nothing else.
#[derive(Clone, Debug)]
pub(crate) struct Postings {
    pub(crate) all: RoaringBitmap,
    /// The nodes that may not advise.
    pub(crate) withheld: RoaringBitmap,
    by_namespace: Vec<RoaringBitmap>,
    by_tag: Vec<RoaringBitmap>,
    pub(crate) by_time: TimeOrder,
    /// Kept from the first node on. After an index was opened, made when a filter first asks.
    by_reward: OnceLock<RewardBuckets>,
}

impl Default for Postings {
    fn default() -> Self {
        Postings {
            all: RoaringBitmap::new(),
            withheld: RoaringBitmap::new(),
            by_namespace: Vec::new(),
            by_tag: Vec::new(),
            by_time: TimeOrder::default(),
            by_reward: OnceLock::from(RewardBuckets::default()),
        }
    }
}

impl Postings {
    pub(crate) fn add(&mut self, columns: &Columns, node: Slot) {
        if !columns.has(node, EMBEDDED) {
            return;
        }
        self.all.insert(node.0);
        self.note_recallable(columns, node);
        at(&mut self.by_namespace, columns.namespace[node.index()]).insert(node.0);
        for &tag in columns.tag_places(node) {
            at(&mut self.by_tag, tag).insert(node.0);
        }
        self.by_time.add(columns, node);
        self.note_reward(columns, node, None);
    }

    /// Takes over what the columns say of the reward of a node, which was `before`.
    pub(crate) fn note_reward(&mut self, columns: &Columns, node: Slot, before: Option<f32>) {
        if let Some(buckets) = self.by_reward.get_mut()
            && columns.has(node, EMBEDDED)
        {
            buckets.note(node, before, columns.reward(node));
        }
    }

    fn buckets(&self, columns: &Columns) -> &RewardBuckets {
        self.by_reward
            .get_or_init(|| RewardBuckets::of(columns, &self.all))
    }

    /// At most so many nodes have a reward from `min` to `max`.
    pub(crate) fn reward_bound(&self, columns: &Columns, min: f32, max: f32) -> usize {
        self.buckets(columns).bound(min, max)
    }

    /// The buckets that hold all nodes with a reward from `min` to `max`.
    pub(crate) fn near_rewards(&self, columns: &Columns, min: f32, max: f32) -> BucketRange<'_> {
        self.buckets(columns).within(min, max)
    }

    /// Takes over what the columns say of a node.
    pub(crate) fn note_recallable(&mut self, columns: &Columns, node: Slot) {
        if columns.has(node, RECALLABLE) || !columns.has(node, EMBEDDED) {
            self.withheld.remove(node.0);
        } else {
            self.withheld.insert(node.0);
        }
    }

    /// Takes over what the columns say of the tags of a node, which were `before`.
    pub(crate) fn note_tags(&mut self, columns: &Columns, node: Slot, before: &[u32]) {
        if !columns.has(node, EMBEDDED) {
            return;
        }
        for &tag in before {
            at(&mut self.by_tag, tag).remove(node.0);
        }
        for &tag in columns.tag_places(node) {
            at(&mut self.by_tag, tag).insert(node.0);
        }
    }

    /// Removes nodes, before the columns forget them.
    pub(crate) fn remove(&mut self, columns: &Columns, gone: &[Slot]) {
        for &node in gone {
            self.all.remove(node.0);
            self.withheld.remove(node.0);
            if let Some(buckets) = self.by_reward.get_mut() {
                buckets.note(node, columns.reward(node), None);
            }
            if let Some(posting) = self
                .by_namespace
                .get_mut(columns.namespace[node.index()] as usize)
            {
                posting.remove(node.0);
            }
            for &tag in columns.tag_places(node) {
                if let Some(posting) = self.by_tag.get_mut(tag as usize) {
                    posting.remove(node.0);
                }
            }
        }
        self.by_time.remove(columns, gone);
    }

    /// The nodes of a namespace; none has none.
    pub(crate) fn namespace(&self, namespace: u32) -> Option<&RoaringBitmap> {
        self.by_namespace.get(namespace as usize)
    }

    /// The nodes that carry a tag.
    pub(crate) fn tag(&self, tag: u32) -> Option<&RoaringBitmap> {
        self.by_tag.get(tag as usize)
    }

    /// The bitmaps for a snapshot; the order of time goes beside them.
    pub(crate) fn to_stored(&self) -> StoredPostings {
        let all = |postings: &[RoaringBitmap]| postings.iter().map(bytes_of).collect();
        StoredPostings {
            all: bytes_of(&self.all),
            withheld: bytes_of(&self.withheld),
            by_namespace: all(&self.by_namespace),
            by_tag: all(&self.by_tag),
        }
    }

    /// The postings of a snapshot, if they are those of these columns.
    pub(crate) fn from_stored(
        table: &StoredPostings,
        columns: &Columns,
        by_time: Vec<Slot>,
    ) -> Option<Self> {
        let read = |bytes: &Vec<u8>| RoaringBitmap::deserialize_from(bytes.as_slice()).ok();
        let all = |postings: &[Vec<u8>]| postings.iter().map(read).collect::<Option<_>>();
        let postings = Postings {
            all: read(&table.all)?,
            withheld: read(&table.withheld)?,
            by_namespace: all(&table.by_namespace)?,
            by_tag: all(&table.by_tag)?,
            by_time: TimeOrder::restored(columns, by_time)?,
            by_reward: OnceLock::new(),
        };
        postings.fit(columns).then_some(postings)
    }

    /// Whether every posting lists the nodes that the columns say it does.
    ///
    /// Postings of one kind are together as long as the columns make them, and none lists a node that
    /// it should not. Lengths come first: a few bytes can stand for a million nodes.
    fn fit(&self, columns: &Columns) -> bool {
        let embedded = |node: Slot| columns.has(node, EMBEDDED);
        let withheld = |node: Slot| embedded(node) && !columns.has(node, RECALLABLE);
        let of_namespace = |node: Slot, place| columns.namespace[node.index()] == place;
        let of_tag = |node: Slot, place| columns.tag_places(node).binary_search(&place).is_ok();
        let (mut vectors, mut not_recallable, mut tags) = (0, 0, 0);
        for node in columns.slots().filter(|&node| embedded(node)) {
            vectors += 1;
            not_recallable += u64::from(withheld(node));
            tags += columns.tag_places(node).len() as u64;
        }
        let len = |postings: &[RoaringBitmap]| postings.iter().map(RoaringBitmap::len).sum::<u64>();
        let by_time = &self.by_time.nodes;
        [self.all.len(), len(&self.by_namespace)] == [vectors; 2]
            && by_time.len() as u64 == vectors
            && self.withheld.len() == not_recallable
            && len(&self.by_tag) == tags
            && by_time.iter().all(|&node| embedded(node))
            && self.withheld.iter().map(Slot).all(withheld)
            && self
                .by_namespace
                .iter()
                .all(|posting| posting.is_subset(&self.all))
            && listed(&self.by_namespace)
                .all(|(node, place)| embedded(node) && of_namespace(node, place))
            && listed(&self.by_tag).all(|(node, place)| embedded(node) && of_tag(node, place))
    }

    /// Whether both hold the same of these columns, however it came about.
    pub(crate) fn same(&self, other: &Postings, columns: &Columns) -> bool {
        let times = |postings: &Postings| postings.by_time.nodes(columns);
        let filled = |postings: &[RoaringBitmap]| {
            let numbered = postings.iter().cloned().enumerate();
            numbered
                .filter(|(_, posting)| !posting.is_empty())
                .collect::<Vec<_>>()
        };
        self.all == other.all
            && self.withheld == other.withheld
            && other
                .by_reward
                .get()
                .is_none_or(|buckets| *buckets == RewardBuckets::of(columns, &self.all))
            && filled(&self.by_namespace) == filled(&other.by_namespace)
            && filled(&self.by_tag) == filled(&other.by_tag)
            && times(self) == times(other)
    }
}

/// Every node of every posting, with the place of the posting.
fn listed(postings: &[RoaringBitmap]) -> impl Iterator<Item = (Slot, u32)> {
    let places = postings.iter().zip(0..);
    places.flat_map(|(posting, place)| posting.iter().map(move |node| (Slot(node), place)))
}

fn at(postings: &mut Vec<RoaringBitmap>, place: u32) -> &mut RoaringBitmap {
    let place = place as usize;
    if postings.len() <= place {
        postings.resize_with(place + 1, RoaringBitmap::new);
    }
    &mut postings[place]
}

fn bytes_of(posting: &RoaringBitmap) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(posting.serialized_size());
    // A Vec refuses nothing.
    let _ = posting.serialize_into(&mut bytes);
    bytes
}
