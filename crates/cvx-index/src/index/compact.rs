//! Compaction: rebuilds an index without the slots of deleted nodes.

use crate::columns::{Columns, LIVE};
use crate::edges::TypedEdgeLayer;
use crate::error::Result;
use crate::id::Slot;
use crate::index::TemporalIndex;
use crate::index::region_epoch::RegionEpoch;

/// A graph that lost more than this part of its nodes is linked anew.
const MUCH: usize = 8;
/// Of a slot that is given up.
const GONE: Slot = Slot(u32::MAX);

impl TemporalIndex {
    /// Gives back what deleted nodes still take: memory, the time to pass over them, and the
    /// namespaces, tags and actions that no other node has.
    ///
    /// Ids stand, and none is given again. It takes as long as copying what is left or, where more
    /// than an eighth of the nodes was deleted, as long as linking what is left anew.
    ///
    /// # Errors
    /// None today.
    pub fn compact(&mut self) -> Result<()> {
        *self = self.compacted()?;
        Ok(())
    }

    /// The index that [`compact`](Self::compact) makes of this one.
    ///
    /// # Errors
    /// None today.
    pub fn compacted(&self) -> Result<Self> {
        let slots = self.columns.len();
        let kept: Vec<Slot> = self.columns.live().collect();
        let mut moved = vec![GONE; slots];
        for (&old, new) in kept.iter().zip(Slot::range(0, slots)) {
            moved[old.index()] = new;
        }
        let mut index = Self::new(self.params.clone())?;
        index.columns = self.columns.gathered(&kept);
        let nodes: Vec<Slot> = self.links.nodes().map(|old| moved[old.index()]).collect();
        let end = self.links.table_len();
        index.vectors = self.vectors.gathered(&kept, end, &nodes);
        if slots - kept.len() > slots / MUCH {
            // A graph that was mended around so many is no longer as good as a new one.
            index.links = index.builder().built(self.params.m, &nodes);
        } else {
            let swept = self.builder().swept(&self.links);
            index.links = self.links.gathered(&swept, &kept, &moved);
        }
        index.links.shrink();
        for slot in Slot::range(0, kept.len()) {
            index.postings.add(&index.columns, slot);
        }
        index
            .timelines
            .add(&index.columns, Slot::range(0, kept.len()));
        index.edges = self.moved_edges(&moved)?;
        let (nodes, vectors) = self.epoch.extent();
        let nodes = kept.partition_point(|&slot| slot.index() < nodes);
        index.epoch = RegionEpoch::restored(self.epoch.number(), nodes, vectors.min(nodes));
        index.live = self.live;
        index.changes = self.changes;
        index.metadata.clone_from(&self.metadata);
        Ok(index)
    }

    fn moved_edges(&self, moved: &[Slot]) -> Result<TypedEdgeLayer> {
        let mut table = self.edges.to_records();
        for edge in &mut table.edges {
            *edge = edge.named(|slot| moved[slot.index()]);
        }
        TypedEdgeLayer::from_records(&table, moved.len())
    }
}

impl Columns {
    /// The columns of these slots, and the names that these slots have.
    fn gathered(&self, kept: &[Slot]) -> Self {
        let rows = Slot::numbers(kept);
        let (namespaces, namespace) = self.namespaces.kept(&self.namespace.gathered(rows, 1));
        let (actions, action) = self.actions.kept(&self.action.gathered(rows, 1));
        let (tag_sets, tags) = self.tag_sets.kept(&self.tags.gathered(rows, 1));
        let (tag_names, renamed) = self.tag_names.kept(&tag_sets.values().concat());
        let mut columns = Columns {
            namespaces,
            actions,
            tag_names,
            ids: self.ids.kept(kept, self.len()),
            ..Columns::new()
        };
        let mut renamed = renamed.into_iter();
        for set in tag_sets.values() {
            let mut set: Vec<u32> = renamed.by_ref().take(set.len()).collect();
            set.sort_unstable();
            columns.tag_sets.intern(set.as_slice());
        }
        columns.entity = self.entity.gathered(rows, 1);
        columns.time = self.time.gathered(rows, 1);
        columns.reward = self.reward.gathered(rows, 1);
        columns.namespace = namespace.into();
        columns.tags = tags.into();
        columns.action = action.into();
        columns.flags = self.flags.gathered(rows, 1);
        debug_assert!(columns.flags.iter().all(|flags| flags & LIVE != 0));
        columns
    }
}
