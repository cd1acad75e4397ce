//! The file of an index, and the only I/O.
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
//!
//! Numbers are little-endian. The bytes are a function of the state alone; timelines, postings,
//! levels and compared rows follow from it and are made anew. A snapshot is written beside its
//! place, and moved there when it is whole and on disk.

mod decode;
mod encode;

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::index::TemporalIndex;
use crate::params::IndexParams;

const MAGIC: &[u8; 8] = b"CVXINDEX";
/// Of the format; a change of it keeps the readers of those before.
const VERSION: u32 = 1;
const META: &str = "META";
const COLUMNS: &str = "COLS";
const ROWS: &str = "ROWS";
const LINKS: &str = "LINK";
const EDGES: &str = "EDGE";
/// Name, length and checksum of a section.
const SECTION_HEADER: usize = 16;

#[derive(Serialize, Deserialize)]
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
    entry: Option<u32>,
}

impl TemporalIndex {
    /// Writes a snapshot: afterwards all of it is there, on disk, or what was there before.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let bytes = self.to_bytes();
        let beside = beside(path);
        let written = write_synced(&beside, &bytes).and_then(|()| fs::rename(&beside, path));
        if let Err(source) = written {
            // The first failure is the one to tell; what is left over has a name of its own.
            let _ = fs::remove_file(&beside);
            return Err(Error::Io {
                action: "write",
                path: path.to_owned(),
                source,
            });
        }
        sync_folder(path).map_err(|source| Error::Io {
            action: "sync",
            path: path.to_owned(),
            source,
        })
    }

    /// Reads a snapshot, and checks all of it.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::NotASnapshot`], [`Error::UnsupportedVersion`],
    /// [`Error::Truncated`], [`Error::Corrupted`], [`Error::InvalidEdgeTable`].
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let bytes = fs::read(path).map_err(|source| Error::Io {
            action: "read",
            path: path.to_owned(),
            source,
        })?;
        Self::from_bytes(&bytes, path)
    }
}

fn corrupted(section: &'static str, reason: impl ToString) -> Error {
    Error::Corrupted {
        section,
        reason: reason.to_string(),
    }
}

/// A name in the folder of `path` that no other writer uses.
fn beside(path: &Path) -> PathBuf {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let number = COUNTER.fetch_add(1, Ordering::Relaxed);
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}-{number}.tmp", std::process::id()));
    path.with_file_name(name)
}

fn write_synced(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = File::create_new(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Makes a rename last. On Unix a folder is a file that can be synced; elsewhere there is no such.
fn sync_folder(path: &Path) -> std::io::Result<()> {
    let folder = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    if cfg!(unix) {
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
    } else {
        Ok(())
    }
}
