//! Reads and sets what a node has: entity, time, reward, tags, namespace, its trajectory.

use crate::columns::RECALLABLE;
use crate::distance::instruction_set::Isa;
use crate::error::{Error, Result};
use crate::id::{EntityId, NodeId, Slot};
use crate::index::{TemporalIndex, check_reward};

/// Counts of what an index holds.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// Live nodes.
    pub nodes: usize,
    /// Ids given so far.
    pub ids_given: usize,
    /// Live nodes with a vector.
    pub vectors: usize,
    /// Rows that deleted nodes left behind, until the index is compacted.
    pub deleted_rows: usize,
    /// Typed edges, temporal ones not counted.
    pub edges: usize,
    /// Entities with nodes, namespace by namespace.
    pub timelines: usize,
    /// Namespaces named by a node, deleted ones included until the index is compacted.
    pub namespaces: usize,
    /// The highest level of the graph.
    pub top_level: usize,
    /// Which snapshot of the hubs is in force.
    pub region_epoch: u64,
    /// The instruction set of the distances: "scalar", "avx2" or "avx512".
    pub kernels: &'static str,
    /// Memory of rows and links.
    pub bytes: usize,
}

impl TemporalIndex {
    /// Every node there is, ascending, those without a vector among them.
    pub fn node_ids(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.columns.live().map(|slot| self.id(slot))
    }

    /// Who a node belongs to.
    ///
    /// # Errors
    /// [`Error::UnknownNode`], here and below.
    pub fn entity(&self, node: NodeId) -> Result<EntityId> {
        Ok(EntityId(self.columns.entity[self.check(node)?]))
    }

    /// When it happened.
    ///
    /// # Errors
    /// [`Error::UnknownNode`].
    pub fn timestamp(&self, node: NodeId) -> Result<i64> {
        Ok(self.columns.time[self.check(node)?])
    }

    /// How it ended.
    ///
    /// # Errors
    /// [`Error::UnknownNode`].
    pub fn reward(&self, node: NodeId) -> Result<Option<f32>> {
        Ok(self.columns.reward(self.slot(node)?))
    }

    /// Gives a node an outcome, or takes it away.
    ///
    /// # Errors
    /// [`Error::UnknownNode`], [`Error::RewardRange`].
    pub fn set_reward(&mut self, node: NodeId, reward: Option<f32>) -> Result<()> {
        let slot = self.slot(node)?;
        check_reward(reward)?;
        let before = self.columns.reward(slot);
        self.columns.set_reward(slot.index(), reward);
        self.postings.note_reward(&self.columns, slot, before);
        self.note_change();
        Ok(())
    }

    /// Whether it may advise.
    ///
    /// # Errors
    /// [`Error::UnknownNode`].
    pub fn recallable(&self, node: NodeId) -> Result<bool> {
        Ok(self.columns.has(self.slot(node)?, RECALLABLE))
    }

    /// Lets a node advise, or keeps it from that.
    ///
    /// # Errors
    /// [`Error::UnknownNode`].
    pub fn set_recallable(&mut self, node: NodeId, recallable: bool) -> Result<()> {
        let slot = self.slot(node)?;
        self.columns.set_flag(slot, RECALLABLE, recallable);
        self.postings.note_recallable(&self.columns, slot);
        self.note_change();
        Ok(())
    }

    /// Which memory it is part of.
    ///
    /// # Errors
    /// [`Error::UnknownNode`].
    pub fn namespace(&self, node: NodeId) -> Result<&str> {
        let at = self.check(node)?;
        let name = self.columns.namespaces.get(self.columns.namespace[at]);
        Ok(name.map_or("", String::as_str))
    }

    /// Its labels, in alphabetical order.
    ///
    /// # Errors
    /// [`Error::UnknownNode`].
    pub fn tags(&self, node: NodeId) -> Result<Vec<&str>> {
        let places = self.columns.tag_places(self.slot(node)?);
        let names = places
            .iter()
            .filter_map(|&tag| self.columns.tag_names.get(tag));
        let mut names: Vec<&str> = names.map(String::as_str).collect();
        names.sort_unstable();
        Ok(names)
    }

    /// Gives a node other labels, in place of those it has.
    ///
    /// # Errors
    /// [`Error::UnknownNode`].
    pub fn set_tags(&mut self, node: NodeId, tags: &[&str]) -> Result<()> {
        let slot = self.slot(node)?;
        let before = self.columns.tag_places(slot).to_vec();
        self.columns.set_tags(slot, tags);
        self.postings.note_tags(&self.columns, slot, &before);
        self.note_change();
        Ok(())
    }

    /// What was done there.
    ///
    /// # Errors
    /// [`Error::UnknownNode`].
    pub fn action(&self, node: NodeId) -> Result<Option<&str>> {
        let at = self.check(node)?;
        Ok(self
            .columns
            .actions
            .get(self.columns.action[at])
            .map(String::as_str))
    }

    /// Its vector as it was inserted.
    ///
    /// # Errors
    /// [`Error::UnknownNode`].
    pub fn vector(&self, node: NodeId) -> Result<Option<&[f32]>> {
        let slot = self.slot(node)?;
        Ok(self.links.level(slot).map(|_| self.vectors.raw(slot)))
    }

    /// Up to `n` nodes of the same entity just before a node, in time order.
    ///
    /// # Errors
    /// [`Error::UnknownNode`].
    pub fn predecessors(&self, node: NodeId, n: usize) -> Result<Vec<NodeId>> {
        self.around(node, n).map(|[before, _]| before)
    }

    /// Up to `n` nodes of the same entity just after a node, in time order.
    ///
    /// # Errors
    /// [`Error::UnknownNode`].
    pub fn successors(&self, node: NodeId, n: usize) -> Result<Vec<NodeId>> {
        self.around(node, n).map(|[_, after]| after)
    }

    /// Up to `n` nodes of the same entity just before a node, and just after it, in time order.
    ///
    /// # Errors
    /// [`Error::UnknownNode`].
    pub fn around(&self, node: NodeId, n: usize) -> Result<[Vec<NodeId>; 2]> {
        let (before, after) = self.timelines.around(&self.columns, self.slot(node)?);
        let before = &before[before.len().saturating_sub(n)..];
        Ok([before, &after[..n.min(after.len())]].map(|part| self.ids(part)))
    }

    /// The nodes just before and after a node, one each, where there are such.
    pub(crate) fn beside(&self, node: Slot) -> impl Iterator<Item = Slot> + use<> {
        let (before, after) = self.timelines.around(&self.columns, node);
        before
            .last()
            .copied()
            .into_iter()
            .chain(after.first().copied())
    }

    /// The nodes of an entity with `since <= t < until`, in time order, ties by id.
    ///
    /// # Errors
    /// [`Error::UnknownEntity`] for one without nodes in the namespace, [`Error::InvertedRange`].
    pub fn trajectory(
        &self,
        namespace: &str,
        entity: EntityId,
        since: Option<i64>,
        until: Option<i64>,
    ) -> Result<Vec<NodeId>> {
        crate::filter::check_times(since, until)?;
        let line = self.line(namespace, entity)?;
        let before = |bound: i64| line.partition_point(|&n| self.columns.time[n.index()] < bound);
        let start = since.map_or(0, before);
        Ok(self.ids(&line[start..until.map_or(line.len(), before)]))
    }

    /// When the last node of an entity happened; `None` where it has none in the namespace.
    #[must_use]
    pub fn latest(&self, namespace: &str, entity: EntityId) -> Option<i64> {
        let line = self.line(namespace, entity).ok()?;
        line.last().map(|&last| self.columns.time[last.index()])
    }

    pub(crate) fn line(&self, namespace: &str, entity: EntityId) -> Result<&[Slot]> {
        let place = self.columns.namespaces.place(namespace);
        let line = place.map_or(&[][..], |place| self.timelines.line(place, entity.0));
        if line.is_empty() {
            return Err(Error::UnknownEntity {
                entity,
                namespace: namespace.to_owned(),
            });
        }
        Ok(line)
    }

    /// Counts of what the index holds.
    #[must_use]
    pub fn stats(&self) -> Stats {
        Stats {
            nodes: self.live,
            ids_given: self.node_count(),
            vectors: self.links.len(),
            deleted_rows: self.columns.len() - self.live,
            edges: self.edges.len(),
            timelines: self.timelines.len(),
            namespaces: self.columns.namespaces.values().len(),
            top_level: self.links.top().unwrap_or(0),
            region_epoch: self.epoch.number(),
            kernels: Isa::chosen().map_or("none", Isa::name),
            bytes: self.vectors.bytes() + self.links.bytes(),
        }
    }

    fn ids(&self, slots: &[Slot]) -> Vec<NodeId> {
        slots.iter().map(|&slot| self.id(slot)).collect()
    }
}
