//! Reads snapshots of the first format, which is no longer written.
//!
//! ```text
//! magic "CVXINDEX" | format version u32
//! per section: name [u8; 4] | length u64 | crc32 u32 of name, length and body | body
//! ```
//!
//! | section | holds |
//! |---|---|
//! | META | postcard: parameters, counts, names, regions, center |
//! | COLS | the columns, one behind the other |
//! | ROWS | the vectors as they came, of the nodes that have one |
//! | LINK | per node and level how many links, and the links |
//! | EDGE | postcard: kinds and typed edges |

use serde::Deserialize;

use super::{MAGIC, MOST_EPOCHS, Name, corrupted, plain};
use crate::columns::{Columns, EMBEDDED, LIVE};
use crate::edges::{EdgeRecords, TypedEdgeLayer};
use crate::error::{Error, Result};
use crate::graph::insert::level_of;
use crate::graph::links::Links;
use crate::id::{NodeId, Slot};
use crate::index::params::IndexParams;
use crate::index::region_epoch::RegionEpoch;
use crate::index::{MOST_NODES, TemporalIndex};

const META: Name = "META";
const COLUMNS: Name = "COLS";
const ROWS: Name = "ROWS";
const LINKS: Name = "LINK";
const EDGES: Name = "EDGE";
/// Name, length and checksum of a section.
const SECTION_HEADER: usize = 16;
/// Bytes of a node in the columns.
const COLUMN_BYTES: u64 = 8 + 8 + 4 + 4 + 4 + 4 + 1;
/// Rows and links may take so many times the bytes of the file.
const MOST_SPREAD: usize = 16;
/// And so many bytes, however short it is.
const ALWAYS_FITS: usize = 16 << 20;

#[derive(Deserialize)]
struct Meta {
    params: IndexParams,
    nodes: u64,
    namespaces: Vec<String>,
    tag_names: Vec<String>,
    tag_sets: Vec<Vec<u32>>,
    actions: Vec<String>,
    center: Option<Vec<f32>>,
    epoch: u64,
    epoch_nodes: u64,
    epoch_vectors: u64,
    entry: Option<Slot>,
}

/// Reads the whole of a file that begins with the magic and this version.
///
/// # Errors
/// [`Error::Truncated`], [`Error::Corrupted`], [`Error::InvalidEdgeTable`].
pub(super) fn read(file: &[u8]) -> Result<TemporalIndex> {
    let mut rest = &file[MAGIC.len() + 4..];
    let meta = section(&mut rest, META)?;
    let columns = section(&mut rest, COLUMNS)?;
    let rows = section(&mut rest, ROWS)?;
    let links = section(&mut rest, LINKS)?;
    let table = section(&mut rest, EDGES)?;
    if !rest.is_empty() {
        return Err(corrupted(
            "after the last",
            format!("{} bytes too many", rest.len()),
        ));
    }
    let meta: Meta = plain(META, meta)?;
    let mut index =
        TemporalIndex::new(meta.params.clone()).map_err(|error| corrupted(META, error))?;
    index.columns = read_columns(&meta, columns)?;
    index.check_spread(file.len())?;
    index.read_rows(&meta, rows)?;
    index.links = index.read_links(&meta, links)?;
    index.edges = edges(&plain(EDGES, table)?, &index.columns)?;
    index.live = index.columns.live().count();
    let live: Vec<Slot> = index.columns.live().collect();
    for &node in &live {
        index.postings.add(&index.columns, node);
    }
    index.timelines.add(&index.columns, live);
    if meta.epoch_nodes > meta.nodes
        || meta.epoch_vectors > meta.epoch_nodes
        || meta.epoch > MOST_EPOCHS
    {
        return Err(corrupted(META, "regions over more nodes than there are"));
    }
    index.epoch = RegionEpoch::restored(
        meta.epoch,
        meta.epoch_nodes as usize,
        meta.epoch_vectors as usize,
    );
    Ok(index)
}

impl TemporalIndex {
    /// Refuses a few vectors spread over so many nodes that the tables, which hold a row for each
    /// node up to the last that has a vector, would take far more than the file does.
    fn check_spread(&self, file: usize) -> Result<()> {
        let embedded = |&node: &Slot| self.columns.has(node, EMBEDDED);
        let rows = self.columns.slots().rfind(embedded);
        let rows = rows.map_or(0, |last| last.index() + 1);
        let a_row = self.vectors.row_bytes() + self.links.row_bytes();
        match rows.saturating_mul(a_row) {
            bytes if bytes <= ALWAYS_FITS.max(file.saturating_mul(MOST_SPREAD)) => Ok(()),
            bytes => Err(corrupted(
                ROWS,
                format!("{bytes} bytes of tables for a file of {file}"),
            )),
        }
    }

    fn read_rows(&mut self, meta: &Meta, bytes: &[u8]) -> Result<()> {
        let nodes: Vec<Slot> = self
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
        let embedded: Vec<Slot> = self
            .columns
            .live()
            .filter(|&node| self.columns.has(node, EMBEDDED))
            .collect();
        // Each node has a count at least: no tables are made for nodes that are not there.
        if words.len() < embedded.len() {
            return refused("fewer counts than nodes".to_owned());
        }
        let mut links = Links::new(m);
        for &node in &embedded {
            links.add(node, level_of(self.params.seed, NodeId(node.0), m));
        }
        let mut words = words.iter().map(|word| u32::from_le_bytes(*word));
        for &node in &embedded {
            for level in 0..=links.level(node).unwrap_or(0) {
                let count = words.next().unwrap_or(u32::MAX) as usize;
                let neighbors: Vec<Slot> = words
                    .by_ref()
                    .take(count.min(links.most(level)))
                    .map(Slot)
                    .collect();
                if neighbors.len() < count {
                    return refused(format!("{count} links of node {node} at level {level}"));
                }
                let mut sorted = neighbors.clone();
                sorted.sort_unstable();
                sorted.dedup();
                let known = |&other: &Slot| {
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

fn read_columns(meta: &Meta, bytes: &[u8]) -> Result<Columns> {
    let refused = |reason: &str| Err(corrupted(COLUMNS, reason));
    if meta.nodes.checked_mul(COLUMN_BYTES) != Some(bytes.len() as u64)
        || meta.nodes > MOST_NODES as u64
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
    let named = Columns::named(
        &meta.namespaces,
        &meta.tag_names,
        &meta.tag_sets,
        &meta.actions,
    );
    let columns = Columns {
        entity: entity.into(),
        time: time.into(),
        reward: reward.into(),
        namespace: namespace.into(),
        tags: tags.into(),
        action: action.into(),
        flags: flags.into(),
        ..named.ok_or_else(|| corrupted(META, "impossible names"))?
    };
    match columns.sound() {
        true => Ok(columns),
        false => refused("an impossible node"),
    }
}

/// The edges of a snapshot of an earlier format, all of them between live nodes.
pub(super) fn edges(table: &EdgeRecords, columns: &Columns) -> Result<TypedEdgeLayer> {
    let edges = TypedEdgeLayer::from_records(table, columns.len())?;
    let dead = |node: Slot| !columns.has(node, LIVE);
    if let Some(edge) = edges.edges().find(|edge| dead(edge.from) || dead(edge.to)) {
        let reason = format!("an edge {} -> {} at a deleted node", edge.from, edge.to);
        return Err(Error::InvalidEdgeTable { reason });
    }
    Ok(edges)
}
