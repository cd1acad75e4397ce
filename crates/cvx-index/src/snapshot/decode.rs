//! Decodes a snapshot; every table is checked, because the bytes may come from anywhere.
//!
//! Nothing is believed: lengths are held against what is there before anything is allocated, and
//! whatever is used as an index later is held against its bounds here.

use std::path::Path;
use std::sync::Arc;

use bytemuck::Pod;
use serde::Deserialize;

use super::byte_source::Source;
use super::container::Header;
use super::{MOST_EPOCHS, Meta, Name, corrupted, format_v1, plain, section_names};
use crate::columns::column::Column;
use crate::columns::ids::Ids;
use crate::columns::pieces::Pieces;
use crate::columns::{Columns, EMBEDDED, LIVE};
use crate::edges::{FlatEdges, TypedEdgeLayer};
use crate::error::{Error, Result};
use crate::filter::postings::{Postings, StoredPostings};
use crate::filter::timelines::{TimelineTables, Timelines};
use crate::graph::links::{LinkTables, Links, with_block};
use crate::id::Slot;
use crate::index::region_epoch::RegionEpoch;
use crate::index::{MOST_NODES, TemporalIndex};
use crate::vectors::codes::CodeTables;

/// The first format that has checksums of pieces.
const PIECEWISE: u32 = 4;

/// The first format that says where upper links begin only for nodes that have any.
const BLOCKS_ONLY: u32 = 5;

/// A snapshot of the second format or a later one whose header is sound.
struct Sections<'a> {
    version: u32,
    source: Source<'a>,
    header: Header,
    /// Whether rows and codes are held against their checksums at once.
    verified: bool,
}

impl Sections<'_> {
    /// A table whose checksum holds, in the file where that is mapped.
    fn column<T: Pod>(&self, name: Name) -> Result<Column<T>> {
        let column = self.source.column(name, self.header.place(name))?;
        if self.verified || !section_names::CHECKED_WHEN_READ.contains(&name) {
            self.header.verify(name, bytemuck::cast_slice(&column))?;
        }
        Ok(column)
    }

    /// The checksums of the pieces of a table, unless it was checked as a whole.
    fn pieces<T: Pod>(&self, name: Name, table: &Column<T>) -> Result<Option<Arc<Pieces>>> {
        if self.version < PIECEWISE {
            return Ok(None);
        }
        let pieces = Pieces::unread(self.column(name)?, size_of_val(&**table));
        let pieces = pieces.ok_or_else(|| corrupted(name, "another number of checksums"))?;
        Ok((!self.verified).then(|| Arc::new(pieces)))
    }

    /// A table in memory.
    fn table<T: Pod>(&self, name: Name) -> Result<Vec<T>> {
        Ok(self.column(name)?.into_vec())
    }

    fn plain<T: for<'a> Deserialize<'a>>(&self, name: Name) -> Result<T> {
        plain(name, &self.column(name)?)
    }
}

impl TemporalIndex {
    pub(super) fn from_source(source: Source<'_>, path: &Path, verified: bool) -> Result<Self> {
        let version = source.version(path)?;
        if version == 1 {
            let file = source.bytes(0..source.len())?;
            return format_v1::read(&file.ok_or(Error::Truncated { section: "header" })?);
        }
        let index = Self::from_sections(&Sections {
            version,
            header: Header::read(version, &source)?,
            source,
            verified: verified || version < PIECEWISE,
        })?;
        if verified {
            let unsound = |reason| corrupted(section_names::ROWS, reason);
            index.validate_rows().map_err(unsound)?;
        }
        Ok(index)
    }

    fn from_sections(sections: &Sections<'_>) -> Result<Self> {
        let meta: Meta = sections.plain(section_names::META)?;
        if meta.nodes > MOST_NODES as u64
            || meta.live > meta.nodes
            || meta.vectors > meta.live
            || meta.epoch_nodes > meta.nodes
            || meta.epoch_vectors > meta.epoch_nodes
            || meta.epoch > MOST_EPOCHS
        {
            return Err(corrupted(section_names::META, "impossible counts"));
        }
        let mut index = Self::new(meta.params.clone())
            .map_err(|error| corrupted(section_names::META, error))?;
        index.columns = columns(sections, &meta)?;
        let scales = sections.column(section_names::SCALES)?;
        index.links = links(sections, &meta, &index.columns, &scales)?;
        index.map_rows(sections, &meta, scales)?;
        index.postings = postings(sections, &index.columns)?;
        index.timelines = Timelines::loaded(lines(sections, &index.columns)?);
        index.edges = match sections.version {
            2 => format_v1::edges(&sections.plain(section_names::EDGES)?, &index.columns)?,
            _ => mapped_edges(sections, &index.columns)?,
        };
        index.live = meta.live as usize;
        index.epoch = RegionEpoch::restored(
            meta.epoch,
            meta.epoch_nodes as usize,
            meta.epoch_vectors as usize,
        );
        index.metadata.clone_from(&sections.header.metadata);
        Ok(index)
    }

    fn map_rows(
        &mut self,
        sections: &Sections<'_>,
        meta: &Meta,
        scales: Column<f32>,
    ) -> Result<()> {
        let rows: Column<f32> = sections.column(section_names::ROWS)?;
        let dim = self.params.dim;
        let count = rows.len() / dim;
        if !rows.len().is_multiple_of(dim)
            || count > self.columns.len()
            || count < self.links.table_len()
        {
            return Err(corrupted(section_names::ROWS, "another number of rows"));
        }
        self.vectors
            .check_center(meta.center.as_deref(), std::iter::empty())
            .map_err(|error| corrupted(section_names::META, error))?;
        self.vectors.set_center(meta.center.clone());
        let row_pieces = sections.pieces(section_names::ROW_SUMS, &rows)?;
        self.vectors.restore(rows, row_pieces);
        let rows = sections.column(section_names::CODES)?;
        let tables = CodeTables {
            pieces: sections.pieces(section_names::CODE_SUMS, &rows)?,
            rows,
            scales,
            bases: sections.column(section_names::BASES)?,
        };
        let nodes = self.links.table_len();
        match self.vectors.codes.restore(tables, meta.worst, nodes) {
            true => Ok(()),
            false => Err(corrupted(section_names::CODES, "another number of rows")),
        }
    }
}

fn columns(sections: &Sections<'_>, meta: &Meta) -> Result<Columns> {
    let ids = sections.table(section_names::IDS)?;
    let ids_fit = ids.len() as u64 == meta.next_id.map_or(0, |_| meta.nodes);
    let ids = match meta.next_id {
        Some(next) if (next as usize) <= MOST_NODES => Ids::restored(ids, next),
        Some(_) => None,
        None => Some(Ids::default()),
    };
    let ids = ids.filter(|_| ids_fit);
    let columns = Columns {
        ids: ids.ok_or_else(|| corrupted(section_names::IDS, "impossible ids"))?,
        entity: sections.column(section_names::ENTITIES)?,
        time: sections.column(section_names::TIMES)?,
        reward: sections.column(section_names::REWARDS)?,
        namespace: sections.column(section_names::NAMESPACES)?,
        tags: sections.column(section_names::TAGS)?,
        action: sections.column(section_names::ACTIONS)?,
        flags: sections.column(section_names::FLAGS)?,
        ..Columns::named(
            &meta.namespaces,
            &meta.tag_names,
            &meta.tag_sets,
            &meta.actions,
        )
        .ok_or_else(|| corrupted(section_names::META, "impossible names"))?
    };
    let fits = columns.len() as u64 == meta.nodes && columns.sound();
    if !fits || columns.live().count() as u64 != meta.live {
        return Err(corrupted("columns", "an impossible node"));
    }
    Ok(columns)
}

/// The graph, which holds the embedded nodes and no others.
fn links(sections: &Sections<'_>, meta: &Meta, columns: &Columns, scales: &[f32]) -> Result<Links> {
    let levels: Vec<u8> = sections.table(section_names::LEVELS)?;
    let mut starts: Vec<u32> = sections.table(section_names::UPPER_AT)?;
    if sections.version < BLOCKS_ONLY {
        let impossible = || corrupted(section_names::UPPER_AT, "another number of nodes");
        let of_all = Some(starts).filter(|starts| starts.len() == levels.len());
        let of_all = of_all.ok_or_else(impossible)?;
        starts = with_block(&levels).map(|at| of_all[at]).collect();
    }
    let tables = LinkTables {
        levels,
        ground: sections.column(section_names::GROUND)?,
        starts,
        upper: sections.column(section_names::UPPER)?,
    };
    let is_erased = |node: Slot| scales.get(node.index()).is_some_and(|scale| scale.is_nan());
    Links::restored(meta.params.m, tables, meta.entry, is_erased)
        .filter(|links| {
            let nodes = Slot::range(0, meta.nodes as usize);
            let same = |node| links.level(node).is_some() == columns.has(node, EMBEDDED);
            links.len() as u64 == meta.vectors
                && links.table_len() as u64 <= meta.nodes
                && nodes.clone().all(same)
        })
        .ok_or_else(|| corrupted("links", "impossible links"))
}

fn postings(sections: &Sections<'_>, columns: &Columns) -> Result<Postings> {
    let table: StoredPostings = sections.plain(section_names::POSTINGS)?;
    let by_time = sections.table(section_names::BY_TIME)?;
    Postings::from_stored(&table, columns, by_time)
        .ok_or_else(|| corrupted(section_names::POSTINGS, "impossible postings"))
}

fn lines(sections: &Sections<'_>, columns: &Columns) -> Result<TimelineTables> {
    let lines = TimelineTables {
        namespaces: sections.table(section_names::LINE_NAMESPACES)?,
        entities: sections.table(section_names::LINE_ENTITIES)?,
        ends: sections.table(section_names::LINE_ENDS)?,
        nodes: sections.table(section_names::LINE_NODES)?,
    };
    match lines.sound(columns) {
        true => Ok(lines),
        false => Err(corrupted(section_names::LINE_NODES, "impossible timelines")),
    }
}

/// The edges of a snapshot as they lie in it, all of them between live nodes.
fn mapped_edges(sections: &Sections<'_>, columns: &Columns) -> Result<TypedEdgeLayer> {
    let kinds: Vec<String> = sections.plain(section_names::EDGE_KINDS)?;
    let flat = |ends, halves| -> Result<FlatEdges> {
        Ok(FlatEdges {
            ends: sections.column(ends)?,
            halves: sections.column(halves)?,
        })
    };
    let tables = [
        flat(section_names::OUT_ENDS, section_names::OUT)?,
        flat(section_names::INTO_ENDS, section_names::INTO)?,
    ];
    let lives = |node| columns.has(node, LIVE);
    TypedEdgeLayer::restored(&kinds, tables, columns.len(), lives)
}
