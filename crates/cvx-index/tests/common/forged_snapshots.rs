//! Forged snapshots: taken apart, changed, and put together again with checksums that fit.

use bytemuck::Pod;
use cvx_index::{EntityId, IndexParams, Metric, NewNode, TemporalIndex};
use serde::{Deserialize, Serialize};

use super::corrupted::{ENTRY, FIXED, reseal_first, reseal_sections};

/// The section META of a format that lists its sections.
#[derive(Clone, Serialize, Deserialize)]
pub struct Meta {
    pub params: IndexParams,
    pub nodes: u64,
    pub live: u64,
    pub vectors: u64,
    pub namespaces: Vec<String>,
    pub tag_names: Vec<String>,
    pub tag_sets: Vec<Vec<u32>>,
    pub actions: Vec<String>,
    pub center: Option<Vec<f32>>,
    pub epoch: u64,
    pub epoch_nodes: u64,
    pub epoch_vectors: u64,
    pub entry: Option<u32>,
    pub worst: [f32; 3],
    pub next_id: Option<u32>,
}

/// The section POST: bitmaps in their portable form.
#[derive(Clone, Serialize, Deserialize)]
pub struct Postings {
    pub all: Vec<u8>,
    pub withheld: Vec<u8>,
    pub by_namespace: Vec<Vec<u8>>,
    pub by_tag: Vec<Vec<u8>>,
}

/// The sections of a snapshot, by name.
#[derive(Clone)]
pub struct Sections {
    version: u32,
    bodies: Vec<([u8; 4], Vec<u8>)>,
}

impl Sections {
    /// Takes a sound snapshot without metadata apart.
    pub fn of(bytes: &[u8]) -> Self {
        let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let long = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
        assert_eq!(number(20), 0, "no metadata");
        let entries = (0..number(16) as usize).map(|place| FIXED + ENTRY * place);
        let body = |at| {
            (
                bytes[at..at + 4].try_into().unwrap(),
                &bytes[long(at + 8)..][..long(at + 16)],
            )
        };
        Sections {
            version: number(8),
            bodies: entries
                .map(body)
                .map(|(name, body)| (name, body.to_vec()))
                .collect(),
        }
    }

    /// The snapshot of these sections, every checksum of which holds.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = b"CVXINDEX".to_vec();
        bytes.extend(self.version.to_le_bytes());
        bytes.extend([0; 4]);
        bytes.extend((self.bodies.len() as u32).to_le_bytes());
        bytes.extend([0; 4]);
        let mut end = FIXED + ENTRY * self.bodies.len();
        for (name, body) in &self.bodies {
            let start = end.next_multiple_of(64);
            bytes.extend(name);
            bytes.extend([0; 4]);
            bytes.extend((start as u64).to_le_bytes());
            bytes.extend((body.len() as u64).to_le_bytes());
            end = start + body.len();
        }
        for (_, body) in &self.bodies {
            bytes.resize(bytes.len().next_multiple_of(64), 0);
            bytes.extend(body);
        }
        reseal_sections(&mut bytes);
        bytes
    }

    /// The names of the sections that hold anything.
    pub fn names(&self) -> Vec<String> {
        let filled = self.bodies.iter().filter(|(_, body)| !body.is_empty());
        filled
            .map(|(name, _)| String::from_utf8(name.to_vec()).unwrap())
            .collect()
    }

    /// The bytes of a section.
    pub fn body(&mut self, name: &str) -> &mut Vec<u8> {
        let found = self
            .bodies
            .iter_mut()
            .find(|(own, _)| own == name.as_bytes());
        &mut found.unwrap_or_else(|| panic!("no section {name}")).1
    }

    /// Changes a section that is a table.
    pub fn table<T: Pod>(&mut self, name: &str, change: impl FnOnce(&mut Vec<T>)) {
        let mut table: Vec<T> = bytemuck::pod_collect_to_vec(self.body(name));
        change(&mut table);
        *self.body(name) = bytemuck::cast_slice(&table).to_vec();
    }

    /// Changes a section that is a record.
    pub fn record<T: Serialize + for<'a> Deserialize<'a>>(
        &mut self,
        name: &str,
        change: impl FnOnce(&mut T),
    ) {
        let mut record: T = postcard::from_bytes(self.body(name)).unwrap();
        change(&mut record);
        *self.body(name) = postcard::to_stdvec(&record).unwrap();
    }
}

/// An index of `nodes` live nodes, of which the first has a vector of zeros.
pub fn sparse(dim: usize, nodes: usize) -> TemporalIndex {
    let params = IndexParams::new(dim).metric(Metric::L2);
    let mut index = TemporalIndex::new(params).unwrap();
    let row = vec![0.0; dim];
    for n in 0..nodes {
        let row = (n == 0).then_some(row.as_slice());
        index
            .insert(NewNode::new(EntityId(0), n as i64, row))
            .unwrap();
    }
    index
}

/// A snapshot of the first format: `nodes` live nodes, of which the last has a vector of zeros.
pub fn sparse_first(dim: usize, m: usize, nodes: usize) -> Vec<u8> {
    #[derive(Serialize)]
    struct First {
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
        entry: Option<u32>,
    }
    let meta = First {
        params: IndexParams::new(dim).metric(Metric::L2).m(m),
        nodes: nodes as u64,
        namespaces: vec![String::new()],
        tag_names: Vec::new(),
        tag_sets: vec![Vec::new()],
        actions: Vec::new(),
        center: None,
        epoch: 0,
        epoch_nodes: 0,
        epoch_vectors: 0,
        entry: Some(nodes as u32 - 1),
    };
    let mut columns = vec![0; (8 + 8) * nodes];
    columns.extend(f32::NAN.to_le_bytes().repeat(nodes));
    columns.extend(vec![0; (4 + 4) * nodes]);
    columns.extend(u32::MAX.to_le_bytes().repeat(nodes));
    // Live, and the last one embedded, too.
    columns.extend(vec![1; nodes - 1]);
    columns.push(1 | 2);
    // No edges, and no kinds of them.
    let sections: [(&[u8; 4], Vec<u8>); 5] = [
        (b"META", postcard::to_stdvec(&meta).unwrap()),
        (b"COLS", columns),
        (b"ROWS", vec![0; 4 * dim]),
        (b"LINK", vec![0; 4]),
        (b"EDGE", vec![0; 2]),
    ];
    let mut bytes = b"CVXINDEX\x01\0\0\0".to_vec();
    for (name, body) in sections {
        bytes.extend(name);
        bytes.extend((body.len() as u64).to_le_bytes());
        bytes.extend([0; 4]);
        bytes.extend(body);
    }
    reseal_first(&mut bytes);
    bytes
}
