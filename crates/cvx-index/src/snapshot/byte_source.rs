//! Reads the bytes of a snapshot from memory, a memory map or a file.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use bytemuck::Pod;

use super::{MAGIC, Name, VERSION, corrupted, io_error};
use crate::columns::column::{Column, MappedFile, SPARE};
use crate::columns::huge_pages;
use crate::error::{Error, Result};

/// The bytes of a snapshot.
#[derive(Clone, Copy)]
pub(super) enum Source<'a> {
    Bytes(&'a [u8]),
    Map(&'a Arc<MappedFile>),
    /// Read piece by piece: where it changes meanwhile, a checksum does not hold.
    File {
        file: &'a File,
        len: usize,
        path: &'a Path,
    },
}

impl<'a> Source<'a> {
    /// A file that is read.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn file(file: &'a File, path: &'a Path) -> Result<Self> {
        let metadata = file
            .metadata()
            .map_err(|source| io_error("read", path, source))?;
        let len = usize::try_from(metadata.len()).unwrap_or(usize::MAX);
        Ok(Source::File { file, len, path })
    }

    /// How many bytes there are.
    pub(super) fn len(&self) -> usize {
        match self {
            Source::Bytes(bytes) => bytes.len(),
            Source::Map(map) => map.bytes().len(),
            Source::File { len, .. } => *len,
        }
    }

    /// Some of the bytes; `None` where there are not so many.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn bytes(&self, place: Range<usize>) -> Result<Option<Cow<'a, [u8]>>> {
        match *self {
            Source::Bytes(bytes) => Ok(bytes.get(place).map(Cow::Borrowed)),
            Source::Map(map) => Ok(map.bytes().get(place).map(Cow::Borrowed)),
            Source::File { .. } => Ok(self.read(place)?.map(Cow::Owned)),
        }
    }

    /// The numbers that a section holds, in the map where there is one.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Truncated`], [`Error::Corrupted`] for a part of a number.
    pub(super) fn column<T: Pod>(&self, section: Name, place: Range<usize>) -> Result<Column<T>> {
        if !place.len().is_multiple_of(size_of::<T>()) {
            return Err(corrupted(section, "part of a number"));
        }
        let column = match *self {
            Source::Bytes(bytes) => bytes.get(place).and_then(Column::copied),
            Source::Map(map) => Column::mapped(map, place),
            Source::File { .. } => self.read(place)?.map(Column::Owned),
        };
        column.ok_or(Error::Truncated { section })
    }

    /// Numbers of a file; `None` where it ends before them.
    fn read<T: Pod>(&self, place: Range<usize>) -> Result<Option<Vec<T>>> {
        let Source::File {
            mut file,
            len,
            path,
        } = *self
        else {
            return Ok(None);
        };
        if place.start > place.end || place.end > len {
            return Ok(None);
        }
        let failed = |source| io_error("read", path, source);
        let count = place.len() / size_of::<T>();
        // A file may be longer than all memory, and all of it a hole.
        let mut values = huge_pages::try_with_room(count + count / SPARE)
            .map_err(|_| failed(io::ErrorKind::OutOfMemory.into()))?;
        values.resize(count, T::zeroed());
        let read = file
            .seek(SeekFrom::Start(place.start as u64))
            .and_then(|_| file.read_exact(bytemuck::cast_slice_mut(&mut values)));
        match read {
            Ok(()) => Ok(Some(values)),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(failed(error)),
        }
    }

    /// The format of a snapshot that this version reads.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::NotASnapshot`], [`Error::Truncated`], [`Error::UnsupportedVersion`].
    pub(super) fn version(&self, path: &Path) -> Result<u32> {
        let beginning = self.bytes(0..self.len().min(MAGIC.len() + 4))?;
        let beginning = beginning.unwrap_or_default();
        let Some(rest) = beginning.strip_prefix(MAGIC) else {
            return Err(Error::NotASnapshot {
                path: path.to_owned(),
            });
        };
        let version = rest
            .first_chunk()
            .ok_or(Error::Truncated { section: "header" })?;
        match u32::from_le_bytes(*version) {
            found @ 1..=VERSION => Ok(found),
            found => Err(Error::UnsupportedVersion {
                found,
                supported: VERSION,
            }),
        }
    }
}
