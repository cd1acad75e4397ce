//! An index as bytes.

use super::{COLUMNS, EDGES, LINKS, MAGIC, META, Meta, ROWS, VERSION};
use crate::index::TemporalIndex;

impl TemporalIndex {
    /// The snapshot as bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        section(&mut bytes, META, |body| postcard(body, &self.meta()));
        section(&mut bytes, COLUMNS, |body| self.write_columns(body));
        section(&mut bytes, ROWS, |body| {
            for node in self.links.nodes() {
                body.extend(self.vectors.raw(node).iter().flat_map(|x| x.to_le_bytes()));
            }
        });
        section(&mut bytes, LINKS, |body| {
            for node in self.links.nodes() {
                for level in 0..=self.links.level(node).unwrap_or(0) {
                    let neighbors = self.links.neighbors(node, level);
                    body.extend((neighbors.len() as u32).to_le_bytes());
                    body.extend(neighbors.iter().flat_map(|node| node.to_le_bytes()));
                }
            }
        });
        section(&mut bytes, EDGES, |body| {
            postcard(body, &self.edges.to_table())
        });
        bytes
    }

    fn meta(&self) -> Meta {
        let (epoch_nodes, epoch_vectors) = self.regions.extent();
        Meta {
            params: self.params.clone(),
            nodes: self.columns.len() as u64,
            namespaces: self.columns.namespaces.values().to_vec(),
            tag_names: self.columns.tag_names.values().to_vec(),
            tag_sets: self.columns.tag_sets.values().to_vec(),
            actions: self.columns.actions.values().to_vec(),
            center: self.vectors.center().map(<[f32]>::to_vec),
            epoch: self.regions.epoch(),
            epoch_nodes: epoch_nodes as u64,
            epoch_vectors: epoch_vectors as u64,
            entry: self.links.entry(),
        }
    }

    fn write_columns(&self, body: &mut Vec<u8>) {
        let columns = &self.columns;
        body.extend(columns.entity.iter().flat_map(|x| x.to_le_bytes()));
        body.extend(columns.time.iter().flat_map(|x| x.to_le_bytes()));
        body.extend(columns.reward.iter().flat_map(|x| x.to_le_bytes()));
        for column in [&columns.namespace, &columns.tags, &columns.action] {
            body.extend(column.iter().flat_map(|x| x.to_le_bytes()));
        }
        body.extend_from_slice(&columns.flags);
    }
}

fn section(bytes: &mut Vec<u8>, name: &str, write: impl FnOnce(&mut Vec<u8>)) {
    let start = bytes.len();
    bytes.extend(name.as_bytes());
    bytes.extend([0; 12]);
    let body = bytes.len();
    write(bytes);
    let length = (bytes.len() - body) as u64;
    bytes[start + 4..start + 12].copy_from_slice(&length.to_le_bytes());
    let mut crc = crc32fast::Hasher::new();
    crc.update(&bytes[start..start + 12]);
    crc.update(&bytes[body..]);
    bytes[start + 12..body].copy_from_slice(&crc.finalize().to_le_bytes());
}

fn postcard<T: serde::Serialize>(body: &mut Vec<u8>, value: &T) {
    // Postcard refuses sequences of unknown length, of which there are none here.
    let written = postcard::to_extend(value, std::mem::take(body));
    *body = written.expect("plain data has a postcard form");
}
