//! The nodes of each entity of a namespace, in the order of time.

use std::collections::HashMap;

use crate::columns::Columns;

/// Per (namespace, entity) its live nodes by timestamp, then id, in whatever order they arrived.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Timelines(HashMap<(u32, u64), Vec<u32>>);

impl Timelines {
    /// Adds nodes that the columns hold.
    pub(crate) fn add(&mut self, columns: &Columns, nodes: impl IntoIterator<Item = u32>) {
        let key = |node: u32| (columns.time[node as usize], node);
        let mut out_of_order: Vec<(u32, u64)> = Vec::new();
        for node in nodes {
            let whose = Self::whose(columns, node);
            let line = self.0.entry(whose).or_default();
            if line.last().is_some_and(|&last| key(last) > key(node)) {
                out_of_order.push(whose);
            }
            line.push(node);
        }
        out_of_order.sort_unstable();
        out_of_order.dedup();
        for whose in out_of_order {
            if let Some(line) = self.0.get_mut(&whose) {
                // Runs that are in order already merge in linear time.
                line.sort_by_key(|&node| key(node));
            }
        }
    }

    /// Removes nodes, before the columns forget them.
    pub(crate) fn remove(&mut self, columns: &Columns, gone: &[u32]) {
        let mut touched: Vec<(u32, u64)> = gone
            .iter()
            .map(|&node| Self::whose(columns, node))
            .collect();
        touched.sort_unstable();
        touched.dedup();
        for whose in touched {
            if let Some(line) = self.0.get_mut(&whose) {
                line.retain(|node| gone.binary_search(node).is_err());
                if line.is_empty() {
                    self.0.remove(&whose);
                }
            }
        }
    }

    fn whose(columns: &Columns, node: u32) -> (u32, u64) {
        (
            columns.namespace[node as usize],
            columns.entity[node as usize],
        )
    }

    /// The nodes of an entity in time order.
    pub(crate) fn line(&self, namespace: u32, entity: u64) -> &[u32] {
        self.0.get(&(namespace, entity)).map_or(&[], Vec::as_slice)
    }

    /// The nodes before and after a node, in time order.
    pub(crate) fn around<'a>(&'a self, columns: &Columns, node: u32) -> (&'a [u32], &'a [u32]) {
        let (namespace, entity) = Self::whose(columns, node);
        let line = self.line(namespace, entity);
        let key = |node: u32| (columns.time[node as usize], node);
        let place = line.partition_point(|&other| key(other) < key(node));
        (&line[..place], line.get(place + 1..).unwrap_or(&[]))
    }

    /// How many entities have nodes, namespace by namespace.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// How many nodes all timelines hold.
    pub(crate) fn nodes(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }
}
