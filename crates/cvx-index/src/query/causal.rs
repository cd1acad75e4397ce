//! Causal search: the nodes found, with what came before and after each in time.
//!
//! Columns lie anywhere in memory: those of all nodes are asked for before the first is read.

use crate::columns::ids::Ids;
use crate::distance::prefetch::prefetch;
use crate::error::Result;
use crate::filter::timelines::split_at;
use crate::id::{EntityId, NodeId, Slot};
use crate::index::TemporalIndex;

/// Nodes in a cache line.
const NODES_IN_A_CACHE_LINE: usize = 16;
/// So many cache lines of a timeline are asked for: all of a short one.
const ASKED: usize = 16;

/// A node, and what is known of it beside its vector.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Moment<'a> {
    /// The node.
    pub node: NodeId,
    /// Who.
    pub entity: EntityId,
    /// When it happened.
    pub timestamp: i64,
    /// How it ended.
    pub reward: Option<f32>,
    /// What was done there.
    pub action: Option<&'a str>,
}

/// A node and those of the same entity just before and after it, in time order.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Surrounded<'a> {
    known: Known<'a>,
    slot: Slot,
    before: &'a [Slot],
    after: &'a [Slot],
}

impl<'a> Surrounded<'a> {
    /// The node itself.
    #[must_use]
    pub fn moment(&self) -> Moment<'a> {
        self.known.moment(self.slot)
    }

    /// Those before it.
    pub fn before(&self) -> impl ExactSizeIterator<Item = Moment<'a>> + use<'a> {
        let known = self.known;
        self.before.iter().map(move |&slot| known.moment(slot))
    }

    /// Those after it.
    pub fn after(&self) -> impl ExactSizeIterator<Item = Moment<'a>> + use<'a> {
        let known = self.known;
        self.after.iter().map(move |&slot| known.moment(slot))
    }
}

/// The columns as plain slices, taken once for all nodes of a call.
#[derive(Clone, Copy)]
struct Known<'a> {
    ids: &'a Ids,
    entity: &'a [u64],
    time: &'a [i64],
    reward: &'a [f32],
    action: &'a [u32],
    actions: &'a [String],
}

impl<'a> Known<'a> {
    #[inline]
    fn prefetch(&self, slot: Slot) {
        let at = slot.index();
        prefetch(&self.entity[at]);
        prefetch(&self.time[at]);
        prefetch(&self.reward[at]);
        prefetch(&self.action[at]);
    }

    #[inline]
    fn moment(&self, slot: Slot) -> Moment<'a> {
        let at = slot.index();
        Moment {
            node: self.ids.id(slot),
            entity: EntityId(self.entity[at]),
            timestamp: self.time[at],
            reward: Some(self.reward[at]).filter(|reward| !reward.is_nan()),
            action: self
                .actions
                .get(self.action[at] as usize)
                .map(String::as_str),
        }
    }
}

impl TemporalIndex {
    /// What is known of each of these nodes, in their order.
    ///
    /// # Errors
    /// [`Error::UnknownNode`](crate::Error::UnknownNode).
    pub fn moments(&self, nodes: &[NodeId]) -> Result<Vec<Moment<'_>>> {
        let slots = self.slots(nodes)?;
        let known = self.known();
        slots.iter().for_each(|&slot| known.prefetch(slot));
        Ok(slots.iter().map(|&slot| known.moment(slot)).collect())
    }

    /// Each of these nodes with up to `n` of the same entity just before and just after it.
    ///
    /// # Errors
    /// [`Error::UnknownNode`](crate::Error::UnknownNode).
    pub fn surrounded<'a>(&'a self, nodes: &[NodeId], n: usize) -> Result<Vec<Surrounded<'a>>> {
        let slots = self.slots(nodes)?;
        let known = self.known();
        for &slot in &slots {
            prefetch(&self.columns.namespace[slot.index()]);
            known.prefetch(slot);
        }
        let lines: Vec<&[Slot]> = slots
            .iter()
            .map(|&slot| self.timelines.line_of(&self.columns, slot))
            .collect();
        for line in &lines {
            line.chunks(NODES_IN_A_CACHE_LINE)
                .take(ASKED)
                .for_each(|part| prefetch(&part[0]));
        }
        let surrounded = |(slot, line): (Slot, &'a [Slot])| {
            let (before, after) = split_at(&self.columns, line, slot);
            let before = &before[before.len().saturating_sub(n)..];
            let after = &after[..n.min(after.len())];
            let steps = before.iter().chain(after);
            steps.for_each(|&step| known.prefetch(step));
            Surrounded {
                known,
                slot,
                before,
                after,
            }
        };
        Ok(slots.into_iter().zip(lines).map(surrounded).collect())
    }

    fn slots(&self, nodes: &[NodeId]) -> Result<Vec<Slot>> {
        nodes.iter().map(|&node| self.slot(node)).collect()
    }

    fn known(&self) -> Known<'_> {
        let columns = &self.columns;
        Known {
            ids: &columns.ids,
            entity: &columns.entity,
            time: &columns.time,
            reward: &columns.reward,
            action: &columns.action,
            actions: columns.actions.values(),
        }
    }
}
