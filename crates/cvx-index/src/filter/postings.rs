//! Who can be found by what: nodes with vectors by namespace, tag, time
//! and reward.

use std::ops;
use std::sync::OnceLock;

use roaring::RoaringBitmap;
use serde::{Deserialize, Serialize};

use crate::columns::{Columns, EMBEDDED, RECALLABLE};
use crate::filter::rewards::{BucketRange, RewardBuckets};
use crate::id::Slot;

/// How many late arrivals wait before they are merged into the order of time.
const LATE: usize = 4096;

/// A timestamp and a node.
pub(crate) type Dated = (i64, Slot);

/// Nodes by timestamp, then slot. Arrivals in order are appended; late ones wait in a short second
/// list, so that one of them does not move the whole first.
#[derive(Clone, Debug, Default)]
pub(crate) struct TimeOrder {
    nodes: Vec<Dated>,
    late: Vec<Dated>,
    /// Whether some of `nodes` are not in the order of slots.
    shuffled: bool,
}

impl TimeOrder {
    fn add(&mut self, entry: Dated) {
        if self.nodes.last().is_none_or(|&last| last < entry) {
            self.shuffled |= self.nodes.last().is_some_and(|last| last.1 > entry.1);
            self.nodes.push(entry);
            return;
        }
        let place = self.late.partition_point(|&other| other < entry);
        self.late.insert(place, entry);
        if self.late.len() == LATE {
            self.nodes.append(&mut self.late);
            self.nodes.sort();
            self.shuffled = !self.nodes.is_sorted_by_key(|entry| entry.1);
        }
    }

    /// All nodes in order.
    pub(crate) fn nodes(&self) -> Vec<Slot> {
        let mut all = [self.nodes.as_slice(), &self.late].concat();
        // Two runs merge in linear time.
        all.sort();
        all.into_iter().map(|entry| entry.1).collect()
    }

    /// The order of `nodes`, if that is the order they are in.
    fn restored(columns: &Columns, nodes: &[Slot]) -> Option<Self> {
        let dated = |&node: &Slot| Some((*columns.time.get(node.index())?, node));
        let nodes: Vec<Dated> = nodes.iter().map(dated).collect::<Option<_>>()?;
        nodes.is_sorted_by(|a, b| a < b).then_some(TimeOrder {
            shuffled: !nodes.is_sorted_by_key(|entry| entry.1),
            nodes,
            late: Vec::new(),
        })
    }

    /// The entries within `since <= t < until`, as two ascending runs.
    pub(crate) fn window(&self, since: Option<i64>, until: Option<i64>) -> [&[Dated]; 2] {
        let within = |run| {
            let run: &[Dated] = run;
            let end = until.map_or(run.len(), |until| run.partition_point(|e| e.0 < until));
            let start = since.map_or(0, |since| run.partition_point(|e| e.0 < since));
            &run[start.min(end)..end]
        };
        [within(&self.nodes), within(&self.late)]
    }

    /// The slots from the first to the last entry of a window, of nodes that came in the order of
    /// time: all nodes in between are within it.
    pub(crate) fn span(&self, [nodes, _]: [&[Dated]; 2]) -> Option<ops::Range<u32>> {
        if self.shuffled || !self.late.is_empty() {
            return None;
        }
        Some(match (nodes.first(), nodes.last()) {
            (Some(first), Some(last)) => first.1.0..last.1.0 + 1,
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
        self.by_time.add((columns.time[node.index()], node));
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
        let stays = |entry: &Dated| gone.binary_search(&entry.1).is_err();
        self.by_time.nodes.retain(stays);
        self.by_time.late.retain(stays);
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
        by_time: &[Slot],
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
            && by_time.iter().all(|&(_, node)| embedded(node))
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
        let times = |postings: &Postings| {
            let order = &postings.by_time;
            let mut all = [order.nodes.as_slice(), &order.late].concat();
            all.sort_unstable();
            all
        };
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
