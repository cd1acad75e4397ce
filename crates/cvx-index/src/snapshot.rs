//! Saves and loads an index; nothing else in this crate reads or writes files.
//!
//! A header with the caller's metadata, then sections: see `container` for the frame and `names`
//! for what a section holds. Numbers are little-endian, tables lie in the file as they lie in
//! memory, and the bytes are a function of state and metadata alone. A snapshot is written beside
//! its place, and moved there when it is whole and on disk.
//!
//! Opening reads the file, or maps it where that is asked for ([`LoadOptions`]). Header and metadata,
//! and every section but the rows and their codes, are held against their checksums, their bounds and
//! each other before the index is handed out. Rows and codes, which make up most of the file, are
//! numbers and lead nowhere: each piece of 4,096 bytes is held against a checksum of its own when it
//! is first read, and no answer that read a damaged one leaves the index.
//!
//! The fifth format says where upper links begin for the nodes that have any, those before it said it
//! for all. The fourth brought the checksums of pieces; of an earlier one rows and codes are checked at
//! opening. The third holds typed edges as tables of both directions, which are mapped; the second
//! held records.

mod byte_source;
mod container;
mod decode;
mod encode;
mod format_v1;
mod section_names;

use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::columns::column::MappedFile;
use crate::error::{Error, Result};
use crate::id::Slot;
use crate::index::TemporalIndex;
use crate::index::params::IndexParams;
use byte_source::Source;
use container::{Header, MOST_METADATA};
use section_names::Name;

const MAGIC: &[u8; 8] = b"CVXINDEX";
/// No index lives to see so many epochs.
const MOST_EPOCHS: u64 = 1 << 53;
/// Of the format that is written; those before are read.
const VERSION: u32 = 5;

#[derive(Serialize, Deserialize)]
struct Meta {
    params: IndexParams,
    nodes: u64,
    live: u64,
    vectors: u64,
    namespaces: Vec<String>,
    tag_names: Vec<String>,
    tag_sets: Vec<Vec<u32>>,
    actions: Vec<String>,
    center: Option<Vec<f32>>,
    epoch: u64,
    epoch_nodes: u64,
    epoch_vectors: u64,
    entry: Option<Slot>,
    /// Of the codes.
    worst: [f32; 3],
    /// After a compaction.
    next_id: Option<u32>,
}

/// How a snapshot is opened.
///
/// ```
/// use cvx_index::{EntityId, IndexParams, LoadOptions, NewNode, TemporalIndex};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let path = std::env::temp_dir().join(format!("cvx-doc-{}.cvx", std::process::id()));
/// let mut index = TemporalIndex::new(IndexParams::new(2))?;
/// index.insert(NewNode::new(EntityId(7), 10, Some(&[1.0, 0.0])))?;
/// index.save(&path, b"of 7 May")?;
///
/// let opened = TemporalIndex::load_with(&path, LoadOptions::new().mmap(true))?;
/// assert_eq!((opened.len(), opened.metadata()), (1, &b"of 7 May"[..]));
/// # std::fs::remove_file(path)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoadOptions {
    /// Whether the rows and their codes, too, are held against their checksums at once, and the rows
    /// against what insertion asks of a vector.
    pub verify: bool,
    /// Whether the file is mapped instead of read: opening then takes milliseconds, and only the
    /// part of it that is used takes memory.
    ///
    /// Nobody may write to a mapped file: it may be replaced by another one, as
    /// [`save`](TemporalIndex::save) does, or removed. To cut it off, or to copy another file over
    /// it, ends the process (SIGBUS).
    pub mmap: bool,
}

impl LoadOptions {
    /// The file is read, and its rows are checked when they are first needed.
    #[must_use]
    pub const fn new() -> Self {
        LoadOptions {
            verify: false,
            mmap: false,
        }
    }

    /// Holds the rows against their checksums at once, or when they are first read.
    #[must_use]
    pub const fn verify(mut self, verify: bool) -> Self {
        self.verify = verify;
        self
    }

    /// Maps the file, or reads it.
    #[must_use]
    pub const fn mmap(mut self, mmap: bool) -> Self {
        self.mmap = mmap;
        self
    }
}

impl TemporalIndex {
    /// Writes a snapshot: afterwards all of it is there, on disk, or what was there before.
    ///
    /// It is written under a name that no other writer has, and renamed: a snapshot that is there
    /// is replaced, never written to, and stays whole for whoever has it mapped.
    ///
    /// `metadata` is the caller's, at most 65,536 bytes: it stands in the header, under its
    /// checksum, and comes back from [`read_metadata`](Self::read_metadata).
    ///
    /// # Errors
    /// [`Error::Io`], also where `path` is there and no regular file, such as a symbolic link;
    /// [`Error::Parameter`] for too much metadata; [`Error::Corrupted`] where rows that came from a
    /// snapshot are damaged.
    pub fn save(&self, path: impl AsRef<Path>, metadata: &[u8]) -> Result<()> {
        if metadata.len() > MOST_METADATA {
            return Err(Error::Parameter {
                name: "metadata",
                value: format!("{} bytes", metadata.len()),
                bound: "at most 65,536 bytes",
            });
        }
        self.vectors.check_all();
        self.undamaged()?;
        let path = path.as_ref();
        let refused = |source| io_error("write", path, source);
        check_place(path).map_err(refused)?;
        let (beside, file) = create_beside(path).map_err(refused)?;
        let written = write_synced(file, |file| {
            self.write(metadata, |part| file.write_all(part))
        })
        .and_then(|()| fs::rename(&beside, path));
        if let Err(source) = written {
            // The first failure is the one to tell. The file was made here: it is nobody else's.
            let _ = fs::remove_file(&beside);
            return Err(refused(source));
        }
        sync_folder(path).map_err(|source| io_error("sync", path, source))
    }

    /// Reads a snapshot into memory: everything but its rows is checked, and they when first read.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::NotASnapshot`], [`Error::UnsupportedVersion`],
    /// [`Error::Truncated`], [`Error::Corrupted`], [`Error::InvalidEdgeTable`].
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        Self::load_with(path, LoadOptions::default())
    }

    /// Opens a snapshot, mapped or verified as the options say. Rows that are not verified at once are
    /// when they are first read, and [`undamaged`](Self::undamaged) tells whether all were sound.
    ///
    /// # Errors
    /// Those of [`load`](Self::load).
    pub fn load_with(path: impl AsRef<Path>, options: LoadOptions) -> Result<Self> {
        let path = path.as_ref();
        let file = File::open(path).map_err(|source| io_error("read", path, source))?;
        if options.mmap {
            let map = MappedFile::open(&file).map_err(|source| io_error("read", path, source))?;
            return Self::from_source(Source::Map(&map), path, options.verify);
        }
        Self::from_source(Source::file(&file, path)?, path, options.verify)
    }

    /// A sound index from the bytes of a snapshot, whatever they are; `path` is for messages.
    ///
    /// # Errors
    /// Those of [`load`](Self::load); [`Error::Corrupted`] also for what good checksums hide.
    pub fn from_bytes(bytes: &[u8], path: &Path) -> Result<Self> {
        let index = Self::from_source(Source::Bytes(bytes), path, true)?;
        let unsound = |reason| corrupted("contents", reason);
        index.validate().map_err(unsound)?;
        Ok(index)
    }

    /// Refuses an index that read something from its snapshot which is not what was written: answers
    /// since may be wrong. [`SharedIndex`](crate::SharedIndex) asks this after whatever it is asked.
    ///
    /// # Errors
    /// [`Error::Corrupted`].
    pub fn undamaged(&self) -> Result<()> {
        match self.vectors.damaged() {
            None => Ok(()),
            Some(section) => Err(corrupted(section, "the checksum of a piece does not hold")),
        }
    }

    /// The metadata of a snapshot, of which nothing else is read but the header.
    ///
    /// # Errors
    /// Those of [`load`](Self::load) that concern the header.
    pub fn read_metadata(path: impl AsRef<Path>) -> Result<Vec<u8>> {
        let path = path.as_ref();
        let file = File::open(path).map_err(|source| io_error("read", path, source))?;
        let source = Source::file(&file, path)?;
        match source.version(path)? {
            1 => Ok(Vec::new()),
            version => Ok(Header::read(version, &source)?.metadata),
        }
    }

    /// The metadata that the snapshot held which this index was loaded from; otherwise none.
    #[must_use]
    pub fn metadata(&self) -> &[u8] {
        &self.metadata
    }
}

fn io_error(action: &'static str, path: &Path, source: io::Error) -> Error {
    Error::Io {
        action,
        path: path.to_owned(),
        source,
    }
}

fn corrupted(section: &'static str, reason: impl ToString) -> Error {
    Error::Corrupted {
        section,
        reason: reason.to_string(),
    }
}

/// Refuses a place where there is something else than a file: renaming would put the snapshot in
/// the place of a device, a socket or a link, whatever it leads to.
fn check_place(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(there) if there.is_file() => Ok(()),
        Ok(there) => {
            let what = match there.file_type() {
                kind if kind.is_symlink() => "a symbolic link",
                kind if kind.is_dir() => "a folder",
                _ => "a device, a pipe or a socket",
            };
            let refused = format!("it is {what} and no regular file");
            Err(io::Error::new(io::ErrorKind::InvalidInput, refused))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Makes a file in the folder of `path` under a name that nobody can guess, and that nobody has.
fn create_beside(path: &Path) -> io::Result<(PathBuf, File)> {
    loop {
        let random = RandomState::new().hash_one(path);
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{random:016x}.tmp"));
        let beside = path.with_file_name(name);
        match File::create_new(&beside) {
            // Processes that were forked draw the same numbers.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|file| (beside, file)),
        }
    }
}

/// So much is written before the disk has to have it.
const SYNCED_AT_ONCE: usize = 8 << 20;

/// A file that is synced part by part. To sync hundreds of megabytes at its end would keep whoever
/// else syncs a file on that disk, such as a writer of a record, waiting for seconds.
struct Synced {
    file: File,
    waiting: usize,
}

impl Write for Synced {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        let written = self.file.write(&part[..part.len().min(SYNCED_AT_ONCE)])?;
        self.waiting += written;
        if self.waiting >= SYNCED_AT_ONCE {
            self.file.sync_data()?;
            self.waiting = 0;
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn write_synced(
    file: File,
    write: impl FnOnce(&mut BufWriter<Synced>) -> io::Result<()>,
) -> io::Result<()> {
    let mut file = BufWriter::new(Synced { file, waiting: 0 });
    write(&mut file)?;
    file.into_inner()?.file.sync_all()
}

/// Makes a rename last. On Unix a folder is a file that can be synced; elsewhere there is no such.
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    if cfg!(unix) {
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
    } else {
        Ok(())
    }
}

/// A value in its postcard form.
fn plain<'a, T: Deserialize<'a>>(name: Name, bytes: &'a [u8]) -> Result<T> {
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => Ok(value),
        Ok((_, rest)) => Err(corrupted(name, format!("{} bytes too many", rest.len()))),
        Err(error) => Err(corrupted(name, error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::NewNode;
    use crate::edges::EdgeKind;
    use crate::id::{EntityId, NodeId};

    /// Small enough for Miri, which sees every read of what may be damaged.
    #[test]
    fn a_few_nodes_come_back_from_their_bytes_and_from_no_part_of_them() {
        let mut index = TemporalIndex::new(IndexParams::new(2)).unwrap();
        for (time, row) in [Some([1.0, 0.0]), Some([0.0, 1.0]), None]
            .iter()
            .enumerate()
        {
            let row = row.as_ref().map(<[f32; 2]>::as_slice);
            let node = NewNode {
                tags: &["red"],
                ..NewNode::new(EntityId(1), time as i64, row)
            };
            index.insert(node).unwrap();
        }
        index
            .add_edge(NodeId(1), NodeId(2), EdgeKind::Caused, 0.5)
            .unwrap();
        index.delete(&[NodeId(0)]).unwrap();
        index.compact().unwrap();
        let bytes = index.to_bytes_with(b"own");
        let opened = |bytes: &[u8]| TemporalIndex::from_bytes(bytes, Path::new("it.cvx"));
        let read = opened(&bytes).unwrap();
        read.validate().unwrap();
        assert_eq!(read.metadata(), b"own");
        assert_eq!(read.to_bytes_with(b"own"), bytes);
        for end in (0..bytes.len()).step_by(bytes.len() / 8) {
            assert!(opened(&bytes[..end]).is_err(), "{end} of {}", bytes.len());
        }
    }
}
