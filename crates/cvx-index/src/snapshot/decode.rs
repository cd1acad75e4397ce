//! An index from bytes that may come from anywhere.
//!
//! Nothing is believed: lengths are held against what is there before anything is allocated, and
//! whatever the index relies on later is checked here.

use std::path::Path;

use serde::Deserialize;

use super::{COLUMNS, EDGES, LINKS, MAGIC, META, Meta, ROWS, SECTION_HEADER, VERSION, corrupted};
use crate::columns::{Columns, EMBEDDED, LIVE, NO_ACTION, RECALLABLE};
use crate::edges::{EdgeTable, TypedEdgeLayer};
use crate::error::{Error, Result};
use crate::id::NodeId;
use crate::index::{TemporalIndex, check_reward};
use crate::insert::level_of;
use crate::links::Links;
use crate::names::Names;
use crate::regions::Regions;

/// Bytes of a node in the columns.
const COLUMN_BYTES: u64 = 8 + 8 + 4 + 4 + 4 + 4 + 1;

impl TemporalIndex {
    /// An index from the bytes of a snapshot, whatever they are; `path` is for messages.
    ///
    /// # Errors
    /// [`Error::NotASnapshot`], [`Error::UnsupportedVersion`], [`Error::Truncated`],
    /// [`Error::Corrupted`], [`Error::InvalidEdgeTable`].
    pub fn from_bytes(bytes: &[u8], path: &Path) -> Result<Self> {
        let Some(rest) = bytes.strip_prefix(MAGIC) else {
            return Err(Error::NotASnapshot {
                path: path.to_owned(),
            });
        };
        let (version, mut rest) = rest
            .split_first_chunk::<4>()
            .ok_or(Error::Truncated { section: "header" })?;
        let found = u32::from_le_bytes(*version);
        if found != VERSION {
            return Err(Error::UnsupportedVersion {
                found,
                supported: VERSION,
            });
        }
        let meta = section(&mut rest, META)?;
        let columns = section(&mut rest, COLUMNS)?;
        let rows = section(&mut rest, ROWS)?;
        let links = section(&mut rest, LINKS)?;
        let edges = section(&mut rest, EDGES)?;
        if !rest.is_empty() {
            return Err(corrupted(
                "after the last",
                format!("{} bytes too many", rest.len()),
            ));
        }
        let meta: Meta = plain(META, meta)?;
        let mut index = Self::new(meta.params.clone()).map_err(|error| corrupted(META, error))?;
        index.columns = read_columns(&meta, columns)?;
        index.read_rows(&meta, rows)?;
        index.links = index.read_links(&meta, links)?;
        let table: EdgeTable = plain(EDGES, edges)?;
        index.edges = TypedEdgeLayer::from_table(&table, index.columns.len())?;
        let dead = |node: NodeId| !index.columns.has(node.0, LIVE);
        if let Some(edge) = index
            .edges
            .edges()
            .find(|edge| dead(edge.from) || dead(edge.to))
        {
            let reason = format!("an edge {} -> {} at a deleted node", edge.from, edge.to);
            return Err(corrupted(EDGES, reason));
        }
        index.live = index.columns.live().count();
        let live: Vec<u32> = index.columns.live().collect();
        for &node in &live {
            index.postings.add(&index.columns, node);
        }
        index.timelines.add(&index.columns, live);
        if meta.epoch_nodes > meta.nodes || meta.epoch_vectors > meta.epoch_nodes {
            return Err(corrupted(META, "regions over more nodes than there are"));
        }
        index.regions = Regions::restored(
            meta.epoch,
            meta.epoch_nodes as usize,
            meta.epoch_vectors as usize,
        );
        Ok(index)
    }

    fn read_rows(&mut self, meta: &Meta, bytes: &[u8]) -> Result<()> {
        let nodes: Vec<u32> = self
            .columns
            .live()
            .filter(|&node| self.columns.has(node, EMBEDDED))
            .collect();
        let size = 4 * self.params.dim;
        if nodes.len().checked_mul(size) != Some(bytes.len()) {
            return Err(corrupted(
                ROWS,
                format!("{} bytes for {} rows", bytes.len(), nodes.len()),
            ));
        }
        self.vectors
            .check_center(meta.center.as_deref(), std::iter::empty())
            .map_err(|error| corrupted(META, error))?;
        self.vectors.set_center(meta.center.clone());
        for (&node, row) in nodes.iter().zip(bytes.chunks_exact(size)) {
            let row: Vec<f32> = row
                .as_chunks()
                .0
                .iter()
                .map(|x| f32::from_le_bytes(*x))
                .collect();
            self.vectors
                .check(&row)
                .map_err(|error| corrupted(ROWS, error))?;
            self.vectors.put(node, &row);
        }
        self.vectors.recode(&nodes);
        Ok(())
    }

    fn read_links(&self, meta: &Meta, bytes: &[u8]) -> Result<Links> {
        let refused = |reason| Err(corrupted(LINKS, reason));
        let (words, half) = bytes.as_chunks::<4>();
        if !half.is_empty() {
            return refused("half a link".to_owned());
        }
        let m = self.params.m;
        let embedded: Vec<u32> = self
            .columns
            .live()
            .filter(|&node| self.columns.has(node, EMBEDDED))
            .collect();
        let mut links = Links::new(m);
        for &node in &embedded {
            links.add(node, level_of(self.params.seed, node, m));
        }
        let mut words = words.iter().map(|word| u32::from_le_bytes(*word));
        for &node in &embedded {
            for level in 0..=links.level(node).unwrap_or(0) {
                let count = words.next().unwrap_or(u32::MAX) as usize;
                let neighbors: Vec<u32> =
                    words.by_ref().take(count.min(links.most(level))).collect();
                if neighbors.len() < count {
                    return refused(format!("{count} links of node {node} at level {level}"));
                }
                let mut sorted = neighbors.clone();
                sorted.sort_unstable();
                sorted.dedup();
                let known = |&other: &u32| {
                    other != node && links.level(other).is_some_and(|highest| highest >= level)
                };
                if sorted.len() < count || !sorted.iter().all(known) {
                    return refused(format!("impossible links of node {node} at level {level}"));
                }
                links.set(node, level, &neighbors);
            }
        }
        if words.next().is_some() {
            return refused("links of no node".to_owned());
        }
        if !links.enter(meta.entry) {
            return refused("an entry that is not at the highest level".to_owned());
        }
        Ok(links)
    }
}

fn section<'a>(rest: &mut &'a [u8], name: &'static str) -> Result<&'a [u8]> {
    let truncated = Error::Truncated { section: name };
    let Some((header, after)) = rest.split_first_chunk::<SECTION_HEADER>() else {
        return Err(truncated);
    };
    let [a, b, c, d, length @ .., w, x, y, z] = *header;
    let length = usize::try_from(u64::from_le_bytes(length)).unwrap_or(usize::MAX);
    if [a, b, c, d] != name.as_bytes() {
        return Err(corrupted(name, "another section in its place"));
    }
    let (body, after) = after.split_at_checked(length).ok_or(truncated)?;
    let mut crc = crc32fast::Hasher::new();
    crc.update(&header[..12]);
    crc.update(body);
    if crc.finalize().to_le_bytes() != [w, x, y, z] {
        return Err(corrupted(name, "the checksum does not hold"));
    }
    *rest = after;
    Ok(body)
}

fn plain<'a, T: Deserialize<'a>>(name: &'static str, bytes: &'a [u8]) -> Result<T> {
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => Ok(value),
        Ok((_, rest)) => Err(corrupted(name, format!("{} bytes too many", rest.len()))),
        Err(error) => Err(corrupted(name, error)),
    }
}

fn read_columns(meta: &Meta, bytes: &[u8]) -> Result<Columns> {
    let refused = |reason: &str| Err(corrupted(COLUMNS, reason));
    if meta.nodes.checked_mul(COLUMN_BYTES) != Some(bytes.len() as u64)
        || meta.nodes > u64::from(u32::MAX)
    {
        return refused("another number of nodes");
    }
    let nodes = meta.nodes as usize;
    let mut rest = bytes;
    let mut wide = || {
        let (column, after) = rest.split_at(8 * nodes);
        rest = after;
        column.as_chunks::<8>().0
    };
    let entity: Vec<u64> = wide().iter().map(|x| u64::from_le_bytes(*x)).collect();
    let time: Vec<i64> = wide().iter().map(|x| i64::from_le_bytes(*x)).collect();
    let mut narrow = || {
        let (column, after) = rest.split_at(4 * nodes);
        rest = after;
        column.as_chunks::<4>().0
    };
    let reward: Vec<f32> = narrow().iter().map(|x| f32::from_le_bytes(*x)).collect();
    let mut places = || -> Vec<u32> { narrow().iter().map(|x| u32::from_le_bytes(*x)).collect() };
    let (namespace, tags, action) = (places(), places(), places());
    let flags = rest.to_vec();
    let names = |values: &[String]| {
        Names::from_values(values.to_vec()).ok_or_else(|| corrupted(META, "a name twice"))
    };
    let ascending = |set: &Vec<u32>| set.is_sorted_by(|a, b| a < b);
    let in_range = |set: &Vec<u32>| {
        set.last()
            .is_none_or(|&t| (t as usize) < meta.tag_names.len())
    };
    if !meta
        .tag_sets
        .iter()
        .all(|set| ascending(set) && in_range(set))
    {
        return Err(corrupted(META, "impossible tags"));
    }
    let tag_sets = Names::from_values(meta.tag_sets.clone())
        .ok_or_else(|| corrupted(META, "a set of tags twice"))?;
    let columns = Columns {
        entity: entity.into(),
        time: time.into(),
        reward: reward.into(),
        namespace: namespace.into(),
        tags: tags.into(),
        action: action.into(),
        flags: flags.into(),
        namespaces: names(&meta.namespaces)?,
        tag_names: names(&meta.tag_names)?,
        tag_sets,
        actions: names(&meta.actions)?,
    };
    for node in 0..nodes {
        let live = columns.flags[node] & LIVE != 0;
        let sound = if live {
            (columns.namespace[node] as usize) < meta.namespaces.len()
                && (columns.tags[node] as usize) < meta.tag_sets.len()
                && (columns.action[node] == NO_ACTION
                    || (columns.action[node] as usize) < meta.actions.len())
                && check_reward(columns.reward(node as u32)).is_ok()
                && columns.flags[node] & !(LIVE | EMBEDDED | RECALLABLE) == 0
        } else {
            columns.flags[node] == 0
        };
        if !sound {
            return refused(&format!("node {node} is impossible"));
        }
    }
    Ok(columns)
}
