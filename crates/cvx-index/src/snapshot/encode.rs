//! Encodes an index as the sections of a snapshot.

use std::borrow::Cow;
use std::convert::Infallible;

use bytemuck::Pod;

use super::container::{self, Body};
use super::{Meta, Name, VERSION, section_names};
use crate::columns::pieces::Pieces;
use crate::index::TemporalIndex;

impl TemporalIndex {
    /// The snapshot as bytes, without metadata.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        self.to_bytes_with(&[])
    }

    /// The snapshot as bytes, with at most 65,536 bytes of metadata.
    #[must_use]
    pub fn to_bytes_with(&self, metadata: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let Ok(()) = self.write(metadata, |part| {
            bytes.extend_from_slice(part);
            Ok::<(), Infallible>(())
        });
        bytes
    }

    /// Hands the snapshot to `sink`, piece by piece.
    pub(super) fn write<E>(
        &self,
        metadata: &[u8],
        sink: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        // Checksums made of damaged rows would call them sound: who has the bytes asks `undamaged`.
        self.vectors.check_all();
        let lines = self.timelines.lines();
        let by_time = self.postings.by_time.nodes(&self.columns);
        let columns = &self.columns;
        let [scales, bases] = self.vectors.codes.scales_and_bases();
        let [out, into] = self.edges.tables();
        let (levels, [ground, upper_at, upper]) = self.links.tables();
        let (rows, codes) = (self.vectors.rows(), self.vectors.codes.chunks());
        let row_sums = Pieces::sums(bytemuck::cast_slice(rows));
        let code_sums = Pieces::sums(bytemuck::cast_slice(codes));
        let bodies = [
            postcard(section_names::META, &self.meta()),
            table(
                section_names::IDS,
                columns.ids.given().map_or(&[][..], |given| given.0),
            ),
            table(section_names::ENTITIES, &columns.entity),
            table(section_names::TIMES, &columns.time),
            table(section_names::REWARDS, &columns.reward),
            table(section_names::NAMESPACES, &columns.namespace),
            table(section_names::TAGS, &columns.tags),
            table(section_names::ACTIONS, &columns.action),
            table(section_names::FLAGS, &columns.flags),
            table(section_names::ROWS, rows),
            table(section_names::ROW_SUMS, &row_sums),
            table(section_names::CODES, codes),
            table(section_names::CODE_SUMS, &code_sums),
            table(section_names::SCALES, scales),
            table(section_names::BASES, bases),
            table(section_names::LEVELS, levels),
            table(section_names::GROUND, ground),
            table(section_names::UPPER_AT, upper_at),
            table(section_names::UPPER, upper),
            postcard(section_names::POSTINGS, &self.postings.to_stored()),
            table(section_names::BY_TIME, &by_time),
            table(section_names::LINE_NAMESPACES, &lines.namespaces),
            table(section_names::LINE_ENTITIES, &lines.entities),
            table(section_names::LINE_ENDS, &lines.ends),
            table(section_names::LINE_NODES, &lines.nodes),
            postcard(section_names::EDGE_KINDS, &self.edges.custom_kinds()),
            table(section_names::OUT_ENDS, &out.ends),
            table(section_names::OUT, &out.halves),
            table(section_names::INTO_ENDS, &into.ends),
            table(section_names::INTO, &into.halves),
        ];
        container::write(VERSION, metadata, &bodies, sink)
    }

    fn meta(&self) -> Meta {
        let (epoch_nodes, epoch_vectors) = self.epoch.extent();
        Meta {
            params: self.params.clone(),
            nodes: self.columns.len() as u64,
            live: self.live as u64,
            vectors: self.links.len() as u64,
            namespaces: self.columns.namespaces.values().to_vec(),
            tag_names: self.columns.tag_names.values().to_vec(),
            tag_sets: self.columns.tag_sets.values().to_vec(),
            actions: self.columns.actions.values().to_vec(),
            center: self.vectors.center().map(<[f32]>::to_vec),
            epoch: self.epoch.number(),
            epoch_nodes: epoch_nodes as u64,
            epoch_vectors: epoch_vectors as u64,
            entry: self.links.entry(),
            worst: self.vectors.codes.worst(),
            next_id: self.columns.ids.given().map(|given| given.1),
        }
    }
}

fn table<T: Pod>(name: Name, values: &[T]) -> Body<'_> {
    Body {
        name,
        bytes: Cow::Borrowed(bytemuck::cast_slice(values)),
    }
}

fn postcard<'a, T: serde::Serialize>(name: Name, value: &T) -> Body<'a> {
    // Postcard refuses sequences of unknown length, of which there are none here.
    let bytes = postcard::to_stdvec(value).expect("plain data has a postcard form");
    Body {
        name,
        bytes: Cow::Owned(bytes),
    }
}
