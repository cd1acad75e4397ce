//! The columns of the nodes: entity, time, reward, namespace, tags, action and flags.

pub(crate) mod column;
pub(crate) mod huge_pages;
pub(crate) mod ids;
mod interned;
mod mapped_table;
pub(crate) mod pieces;

use crate::columns::column::Column;
use crate::columns::ids::Ids;
use crate::columns::interned::Interned;
use crate::id::EntityId;
use crate::id::Slot;

/// A node on its way into the index.
///
/// ```
/// use cvx_index::{EntityId, NewNode};
///
/// let row = [1.0, 0.0];
/// let node = NewNode::new(EntityId(7), 10, Some(&row))
///     .reward(0.5)
///     .tags(&["kitchen"])
///     .action("open");
/// assert_eq!(node.namespace, "");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct NewNode<'a> {
    /// Who.
    pub entity: EntityId,
    /// When it happened, in any unit.
    pub timestamp: i64,
    /// Where it lies; without one, timelines and edges hold the node and no search returns it.
    pub vector: Option<&'a [f32]>,
    /// Outcome, in [0, 1].
    pub reward: Option<f32>,
    /// Which memory it is part of; the default one is `""`.
    pub namespace: &'a str,
    /// Labels to filter by.
    pub tags: &'a [&'a str],
    /// What was done there.
    pub action: Option<&'a str>,
    /// Whether it may advise.
    pub recallable: bool,
}

impl<'a> NewNode<'a> {
    /// A recallable node of the default namespace, without reward, tags and action.
    #[must_use]
    pub fn new(entity: EntityId, timestamp: i64, vector: Option<&'a [f32]>) -> Self {
        NewNode {
            entity,
            timestamp,
            vector,
            reward: None,
            namespace: "",
            tags: &[],
            action: None,
            recallable: true,
        }
    }

    /// With this outcome, in [0, 1].
    #[must_use]
    pub fn reward(mut self, reward: f32) -> Self {
        self.reward = Some(reward);
        self
    }

    /// In this namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: &'a str) -> Self {
        self.namespace = namespace;
        self
    }

    /// With these labels.
    #[must_use]
    pub fn tags(mut self, tags: &'a [&'a str]) -> Self {
        self.tags = tags;
        self
    }

    /// With what was done there.
    #[must_use]
    pub fn action(mut self, action: &'a str) -> Self {
        self.action = Some(action);
        self
    }

    /// Whether it may advise.
    #[must_use]
    pub fn recallable(mut self, recallable: bool) -> Self {
        self.recallable = recallable;
        self
    }
}

pub(crate) const LIVE: u8 = 1;
pub(crate) const EMBEDDED: u8 = 2;
pub(crate) const RECALLABLE: u8 = 4;
/// Of a node without an action.
pub(crate) const NO_ACTION: u32 = u32::MAX;

/// The columns; a row a node, rows of deleted nodes wiped.
#[derive(Clone, Debug)]
pub(crate) struct Columns {
    pub(crate) entity: Column<u64>,
    pub(crate) time: Column<i64>,
    /// NaN is no reward.
    pub(crate) reward: Column<f32>,
    pub(crate) namespace: Column<u32>,
    pub(crate) tags: Column<u32>,
    pub(crate) action: Column<u32>,
    pub(crate) flags: Column<u8>,
    pub(crate) namespaces: Interned<String>,
    pub(crate) tag_names: Interned<String>,
    /// Distinct sets of tags, each ascending.
    pub(crate) tag_sets: Interned<Vec<u32>>,
    pub(crate) actions: Interned<String>,
    /// Which node each row is.
    pub(crate) ids: Ids,
}

impl Columns {
    pub(crate) fn new() -> Self {
        Columns {
            entity: Column::new(),
            time: Column::new(),
            reward: Column::new(),
            namespace: Column::new(),
            tags: Column::new(),
            action: Column::new(),
            flags: Column::new(),
            namespaces: Interned::new(),
            tag_names: Interned::new(),
            tag_sets: Interned::new(),
            actions: Interned::new(),
            ids: Ids::default(),
        }
    }

    /// Columns without a row over these names; `None` where they contradict themselves.
    pub(crate) fn named(
        namespaces: &[String],
        tag_names: &[String],
        tag_sets: &[Vec<u32>],
        actions: &[String],
    ) -> Option<Self> {
        let sets_fit = tag_sets.iter().all(|set| {
            set.is_sorted_by(|a, b| a < b)
                && set
                    .last()
                    .is_none_or(|&tag| (tag as usize) < tag_names.len())
        });
        Some(Columns {
            namespaces: Interned::from_values(namespaces.to_vec())?,
            tag_names: Interned::from_values(tag_names.to_vec())?,
            tag_sets: Interned::from_values(tag_sets.to_vec()).filter(|_| sets_fit)?,
            actions: Interned::from_values(actions.to_vec())?,
            ..Columns::new()
        })
    }

    /// Whether all columns are of one length, and every row is one that [`push`](Self::push) and
    /// [`wipe`](Self::wipe) make.
    pub(crate) fn sound(&self) -> bool {
        let len = self.len();
        let lengths = [
            self.entity.len(),
            self.time.len(),
            self.reward.len(),
            self.namespace.len(),
            self.tags.len(),
            self.action.len(),
        ];
        let below = |places: &[u32], bound: usize| {
            // A fold without an early end runs at the speed of the memory.
            places.iter().fold(0, |most, &place| most.max(place)) < bound.max(1) as u32
        };
        let action =
            |&place: &u32| place == NO_ACTION || (place as usize) < self.actions.values().len();
        let reward = |&reward: &f32| reward.is_nan() || (0.0..=1.0).contains(&reward);
        let flags = |&flags: &u8| {
            flags <= LIVE | EMBEDDED | RECALLABLE && (flags == 0 || flags & LIVE != 0)
        };
        lengths == [len; 6]
            && below(&self.namespace, self.namespaces.values().len())
            && below(&self.tags, self.tag_sets.values().len())
            && self.action.iter().all(action)
            && self.reward.iter().all(reward)
            && self.flags.iter().all(flags)
    }

    /// How many nodes there ever were.
    pub(crate) fn len(&self) -> usize {
        self.flags.len()
    }

    /// Appends a checked node; its slot.
    pub(crate) fn push(&mut self, node: &NewNode<'_>) -> Slot {
        let slot = Slot::at(self.len());
        self.ids.push();
        let tags = self.tag_set(node.tags);
        self.entity.push(node.entity.0);
        self.time.push(node.timestamp);
        self.reward.push(f32::NAN);
        self.set_reward(slot.index(), node.reward);
        self.namespace.push(self.namespaces.intern(node.namespace));
        self.tags.push(tags);
        self.action.push(
            node.action
                .map_or(NO_ACTION, |action| self.actions.intern(action)),
        );
        let embedded = if node.vector.is_some() { EMBEDDED } else { 0 };
        let recallable = if node.recallable { RECALLABLE } else { 0 };
        self.flags.push(LIVE | embedded | recallable);
        slot
    }

    /// The place of a set of tags, which are given places where they have none.
    fn tag_set(&mut self, tags: &[&str]) -> u32 {
        let names = tags.iter().map(|tag| self.tag_names.intern(*tag));
        let mut tags: Vec<u32> = names.collect();
        tags.sort_unstable();
        tags.dedup();
        self.tag_sets.intern(tags.as_slice())
    }

    pub(crate) fn set_tags(&mut self, node: Slot, tags: &[&str]) {
        let tags = self.tag_set(tags);
        self.tags.to_mut()[node.index()] = tags;
    }

    pub(crate) fn set_flag(&mut self, node: Slot, flag: u8, on: bool) {
        let flags = &mut self.flags.to_mut()[node.index()];
        *flags = if on { *flags | flag } else { *flags & !flag };
    }

    pub(crate) fn set_reward(&mut self, at: usize, reward: Option<f32>) {
        // -0.0 is in the range, and must not make a second spelling of 0.
        self.reward.to_mut()[at] = reward.map_or(f32::NAN, |reward| reward + 0.0);
    }

    /// Forgets a node.
    pub(crate) fn wipe(&mut self, node: Slot) {
        let at = node.index();
        self.entity.to_mut()[at] = 0;
        self.time.to_mut()[at] = 0;
        self.reward.to_mut()[at] = f32::NAN;
        self.namespace.to_mut()[at] = 0;
        self.tags.to_mut()[at] = 0;
        self.action.to_mut()[at] = NO_ACTION;
        self.flags.to_mut()[at] = 0;
    }

    #[inline]
    pub(crate) fn has(&self, node: Slot, flag: u8) -> bool {
        self.flags
            .get(node.index())
            .is_some_and(|flags| flags & flag != 0)
    }

    pub(crate) fn reward(&self, node: Slot) -> Option<f32> {
        Some(self.reward[node.index()]).filter(|reward| !reward.is_nan())
    }

    /// The tags of a node, as places in `tag_names`.
    #[inline]
    pub(crate) fn tag_places(&self, node: Slot) -> &[u32] {
        self.tag_sets
            .get(self.tags[node.index()])
            .map_or(&[], Vec::as_slice)
    }

    /// The slots of all nodes that there ever were.
    pub(crate) fn slots(&self) -> impl DoubleEndedIterator<Item = Slot> + use<> {
        Slot::range(0, self.len())
    }

    /// The live nodes.
    pub(crate) fn live(&self) -> impl Iterator<Item = Slot> + '_ {
        self.slots().filter(|&node| self.has(node, LIVE))
    }
}
