//! Which id lies in which slot: ids are never used again, slots are freed by compaction.
//!
//! Inside the index a node is its [`Slot`]. Slots ascend with ids, so that whatever is ordered by one is
//! ordered by the other, and as long as nothing was compacted or passed over the two are the same number.

use crate::id::{NodeId, Slot};

/// The ids of the slots.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Ids(Option<Given>);

/// What an index remembers of its ids from its first compaction, or gap, on.
#[derive(Clone, Debug, PartialEq)]
struct Given {
    /// The id of each slot, ascending.
    ids: Vec<u32>,
    next: u32,
}

impl Ids {
    /// The ids of slots, and the next one; `None` where they are not ascending below it.
    pub(crate) fn restored(ids: Vec<u32>, next: u32) -> Option<Self> {
        let sound = ids.is_sorted_by(|a, b| a < b) && ids.last().is_none_or(|&last| last < next);
        sound.then_some(Ids(Some(Given { ids, next })))
    }

    /// The ids of the slots and the next one, where they are not just the numbers from 0 on.
    pub(crate) fn given(&self) -> Option<(&[u32], u32)> {
        let given = self.0.as_ref()?;
        Some((&given.ids, given.next))
    }

    /// The id of a slot; one that is not there yet has the id it will be given.
    #[inline]
    pub(crate) fn id(&self, slot: Slot) -> NodeId {
        NodeId(self.0.as_ref().map_or(slot.0, |Given { ids, next }| {
            let known = ids.get(slot.index()).copied();
            known.unwrap_or_else(|| next + (slot.0 - ids.len() as u32))
        }))
    }

    /// The slot of an id; as long as nothing was compacted any number is one.
    #[inline]
    pub(crate) fn slot(&self, node: NodeId) -> Option<Slot> {
        match &self.0 {
            None => Some(Slot(node.0)),
            Some(given) => given.ids.binary_search(&node.0).ok().map(Slot::at),
        }
    }

    /// Gives the next slot its id.
    pub(crate) fn push(&mut self) {
        if let Some(Given { ids, next }) = &mut self.0 {
            ids.push(*next);
            *next += 1;
        }
    }

    /// Passes over ids behind those of `slots` slots: the next slot's comes so many later.
    pub(crate) fn skip(&mut self, slots: usize, count: u32) {
        let known = || Given {
            ids: (0..slots as u32).collect(),
            next: slots as u32,
        };
        self.0.get_or_insert_with(known).next += count;
    }

    /// The ids when only these slots of `slots` are kept, ascending.
    pub(crate) fn kept(&self, kept: &[Slot], slots: usize) -> Self {
        Ids(Some(Given {
            ids: kept.iter().map(|&slot| self.id(slot).0).collect(),
            next: self.id(Slot::at(slots)).0,
        }))
    }
}
