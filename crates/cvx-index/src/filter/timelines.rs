//! Timelines: the nodes of each entity in order of time.

use std::collections::{BTreeMap, HashMap};

use crate::columns::{Columns, LIVE};
use crate::id::Slot;

/// A namespace, and an entity in it.
type EntityKey = (u32, u64);

/// Per (namespace, entity) its live nodes by timestamp, then slot, in whatever order they arrived.
///
/// Lines that came with a snapshot lie one behind the other; a line moves out to be changed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timelines {
    loaded: TimelineTables,
    /// Of each namespace where its loaded lines begin, and of the last where they end.
    spans: Vec<usize>,
    /// The lines that changed since; an empty one is no more.
    changed: HashMap<EntityKey, Vec<Slot>>,
    len: usize,
}

/// Lines one behind the other, by namespace, then entity; none of them empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TimelineTables {
    pub(crate) namespaces: Vec<u32>,
    pub(crate) entities: Vec<u64>,
    /// Where each line ends in `nodes`.
    pub(crate) ends: Vec<u32>,
    pub(crate) nodes: Vec<Slot>,
}

impl TimelineTables {
    fn at(&self, place: usize) -> &[Slot] {
        let start = match place {
            0 => 0,
            _ => self.ends[place - 1],
        };
        &self.nodes[start as usize..self.ends[place] as usize]
    }

    fn push(&mut self, (namespace, entity): EntityKey, line: &[Slot]) {
        self.namespaces.push(namespace);
        self.entities.push(entity);
        self.nodes.extend_from_slice(line);
        // There are as many nodes in all lines as in the index, which holds fewer than u32::MAX.
        self.ends.push(self.nodes.len() as u32);
    }

    /// Whether these are the lines of the live nodes: each node on that of its entity, in order.
    pub(crate) fn sound(&self, columns: &Columns) -> bool {
        let keys = || self.namespaces.iter().zip(&self.entities);
        let line_sound = |(place, (&namespace, &entity)): (usize, (&u32, &u64))| {
            let line = self.at(place);
            let fits = |&node: &Slot| {
                columns.has(node, LIVE) && Timelines::whose(columns, node) == (namespace, entity)
            };
            let key = |&node: &Slot| (columns.time[node.index()], node);
            line.iter().all(fits) && line.is_sorted_by(|a, b| key(a) < key(b))
        };
        self.entities.len() == self.namespaces.len()
            && self.ends.len() == self.namespaces.len()
            && self.ends.last().map_or(0, |&end| end as usize) == self.nodes.len()
            && self.ends.first().is_none_or(|&end| end > 0)
            && self.ends.is_sorted_by(|a, b| a < b)
            && keys().is_sorted_by(|a, b| a < b)
            && self
                .namespaces
                .last()
                .is_none_or(|&last| (last as usize) < columns.namespaces.values().len())
            && self.nodes.len() == columns.live().count()
            && keys().enumerate().all(line_sound)
    }
}

impl Timelines {
    /// The timelines of a snapshot; the lines were found [`sound`](TimelineTables::sound).
    pub(crate) fn loaded(lines: TimelineTables) -> Self {
        let begins = |namespace| lines.namespaces.partition_point(|&other| other < namespace);
        let namespaces = lines.namespaces.last().map_or(0, |&last| last + 1);
        Timelines {
            spans: (0..=namespaces).map(begins).collect(),
            len: lines.ends.len(),
            loaded: lines,
            changed: HashMap::new(),
        }
    }

    /// Which of the loaded lines is that of an entity.
    fn place(&self, (namespace, entity): EntityKey) -> Option<usize> {
        let [start, end] = *self.spans.get(namespace as usize..)?.first_chunk()?;
        let place = self.loaded.entities[start..end].binary_search(&entity);
        Some(start + place.ok()?)
    }

    fn loaded_line(&self, whose: EntityKey) -> &[Slot] {
        let place = self.place(whose);
        place.map_or(&[], |place| self.loaded.at(place))
    }

    /// All lines, one behind the other.
    pub(crate) fn lines(&self) -> TimelineTables {
        let places = 0..self.loaded.ends.len();
        let key = |place| (self.loaded.namespaces[place], self.loaded.entities[place]);
        let mut all: BTreeMap<EntityKey, &[Slot]> = places
            .map(|place| (key(place), self.loaded.at(place)))
            .collect();
        all.extend(
            self.changed
                .iter()
                .map(|(&whose, line)| (whose, line.as_slice())),
        );
        let mut lines = TimelineTables::default();
        for (whose, line) in all.into_iter().filter(|(_, line)| !line.is_empty()) {
            lines.push(whose, line);
        }
        lines
    }

    /// The line of an entity, to be changed.
    fn to_mut(&mut self, whose: EntityKey) -> &mut Vec<Slot> {
        if !self.changed.contains_key(&whose) {
            let line = self.loaded_line(whose).to_vec();
            self.changed.insert(whose, line);
        }
        self.changed.entry(whose).or_default()
    }

    /// Adds nodes that the columns hold.
    pub(crate) fn add(&mut self, columns: &Columns, nodes: impl IntoIterator<Item = Slot>) {
        let key = |node: Slot| (columns.time[node.index()], node);
        let mut late: Vec<(EntityKey, Slot)> = Vec::new();
        for node in nodes {
            let whose = Self::whose(columns, node);
            let line = self.to_mut(whose);
            if line.last().is_some_and(|&last| key(last) > key(node)) {
                late.push((whose, node));
                continue;
            }
            let begins = line.is_empty();
            line.push(node);
            self.len += usize::from(begins);
        }
        late.sort_by_key(|&(whose, _)| whose);
        for late in late.chunk_by(|a, b| a.0 == b.0) {
            let line = self.to_mut(late[0].0);
            if let &[(_, node)] = late {
                let place = line.partition_point(|&other| key(other) < key(node));
                line.insert(place, node);
            } else {
                line.extend(late.iter().map(|&(_, node)| node));
                // Runs that are in order already merge in linear time.
                line.sort_by_key(|&node| key(node));
            }
        }
    }

    /// Removes nodes, before the columns forget them.
    pub(crate) fn remove(&mut self, columns: &Columns, gone: &[Slot]) {
        let mut touched: Vec<EntityKey> = gone
            .iter()
            .map(|&node| Self::whose(columns, node))
            .collect();
        touched.sort_unstable();
        touched.dedup();
        for whose in touched {
            let line = self.to_mut(whose);
            match gone {
                &[node] => drop(line.remove(split_at(columns, line, node).0.len())),
                _ => line.retain(|node| gone.binary_search(node).is_err()),
            }
            if line.is_empty() {
                self.len -= 1;
                if self.place(whose).is_none() {
                    self.changed.remove(&whose);
                }
            }
        }
    }

    fn whose(columns: &Columns, node: Slot) -> EntityKey {
        (
            columns.namespace[node.index()],
            columns.entity[node.index()],
        )
    }

    /// The nodes of an entity in time order.
    pub(crate) fn line(&self, namespace: u32, entity: u64) -> &[Slot] {
        let whose = (namespace, entity);
        self.changed
            .get(&whose)
            .map_or_else(|| self.loaded_line(whose), Vec::as_slice)
    }

    /// The line that a node is on.
    pub(crate) fn line_of(&self, columns: &Columns, node: Slot) -> &[Slot] {
        let (namespace, entity) = Self::whose(columns, node);
        self.line(namespace, entity)
    }

    /// The nodes before and after a node, in time order.
    pub(crate) fn around<'a>(&'a self, columns: &Columns, node: Slot) -> (&'a [Slot], &'a [Slot]) {
        split_at(columns, self.line_of(columns, node), node)
    }

    /// How many entities have nodes, namespace by namespace.
    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

/// The nodes of a line before and after one of them.
pub(crate) fn split_at<'a>(
    columns: &Columns,
    line: &'a [Slot],
    node: Slot,
) -> (&'a [Slot], &'a [Slot]) {
    let key = |node: Slot| (columns.time[node.index()], node);
    // Where nodes came in the order of time their slots tell the place, without a look at times that
    // lie anywhere.
    let place = line
        .binary_search(&node)
        .unwrap_or_else(|_| line.partition_point(|&other| key(other) < key(node)));
    (&line[..place], line.get(place + 1..).unwrap_or(&[]))
}
