//! The container of a snapshot: header, table of sections, checksums.
//!
//! ```text
//! magic "CVXINDEX" | version u32 | crc32 of the rest of the header u32
//! sections u32 | length of the metadata u32
//! per section: name [u8; 4] | crc32 u32 | offset u64 | length u64
//! metadata
//! ```
//!
//! Each section begins at the next multiple of 64 behind what stands before it, and the file ends
//! with the last: sections cannot overlap, and a mapped one is aligned for whatever it holds. What
//! lies between them is zero.

use std::borrow::Cow;
use std::ops::Range;

use super::byte_source::Source;
use super::section_names::{self, Name};
use super::{MAGIC, corrupted};
use crate::error::{Error, Result};

/// Where sections begin: a cache line, and more than any number needs.
const ALIGNMENT: usize = 64;
/// Magic, version, checksum, two counts.
const FIXED: usize = 24;
/// An entry of the table of sections.
const ENTRY: usize = 24;
const MOST_SECTIONS: usize = 64;
/// The most metadata.
pub(super) const MOST_METADATA: usize = 1 << 16;

/// A section on its way into a file.
pub(super) struct Body<'a> {
    pub(super) name: Name,
    pub(super) bytes: Cow<'a, [u8]>,
}

/// A section of a file.
#[derive(Debug)]
struct Entry {
    name: [u8; 4],
    checksum: u32,
    place: Range<usize>,
}

/// The header of a file, found sound.
#[derive(Debug)]
pub(super) struct Header {
    entries: Vec<Entry>,
    pub(super) metadata: Vec<u8>,
}

/// Hands the bytes of a file with these sections to `sink`, piece by piece.
pub(super) fn write<E>(
    version: u32,
    metadata: &[u8],
    bodies: &[Body<'_>],
    mut sink: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let mut rest = Vec::new();
    rest.extend((bodies.len() as u32).to_le_bytes());
    rest.extend((metadata.len() as u32).to_le_bytes());
    let header = FIXED + ENTRY * bodies.len() + metadata.len();
    let mut end = header;
    for Body { name, bytes } in bodies {
        let start = end.next_multiple_of(ALIGNMENT);
        rest.extend(name.as_bytes());
        rest.extend(crc32fast::hash(bytes).to_le_bytes());
        rest.extend((start as u64).to_le_bytes());
        rest.extend((bytes.len() as u64).to_le_bytes());
        end = start + bytes.len();
    }
    rest.extend(metadata);
    sink(MAGIC)?;
    sink(&version.to_le_bytes())?;
    sink(&checksum(version, &rest).to_le_bytes())?;
    sink(&rest)?;
    let mut end = header;
    for Body { bytes, .. } in bodies {
        let start = end.next_multiple_of(ALIGNMENT);
        sink(&[0; ALIGNMENT][..start - end])?;
        sink(bytes)?;
        end = start + bytes.len();
    }
    Ok(())
}

impl Header {
    /// Reads the header of a whole file, which begins with the magic and the version.
    ///
    /// # Errors
    /// [`Error::Truncated`], [`Error::Corrupted`], [`Error::Io`].
    pub(super) fn read(version: u32, source: &Source<'_>) -> Result<Self> {
        let truncated = || Error::Truncated { section: "header" };
        let fixed = source.bytes(0..FIXED)?.ok_or_else(truncated)?;
        let (sections, metadata) = (number(&fixed[16..]), number(&fixed[20..]));
        let (sections, metadata) = (sections as usize, metadata as usize);
        if sections > MOST_SECTIONS || metadata > MOST_METADATA {
            return Err(corrupted("header", "more of it than a snapshot has"));
        }
        let mut end = FIXED + ENTRY * sections + metadata;
        let rest = source.bytes(16..end)?.ok_or_else(truncated)?;
        if checksum(version, &rest) != number(&fixed[12..]) {
            return Err(corrupted("header", CHECKSUM));
        }
        let (table, metadata) = rest[FIXED - 16..].split_at(ENTRY * sections);
        let mut entries = Vec::with_capacity(sections);
        for entry in table.chunks_exact(ENTRY) {
            let name = entry[..4].try_into().unwrap_or_default();
            let start = end.next_multiple_of(ALIGNMENT);
            let stated = usize::try_from(long(&entry[8..])).unwrap_or(usize::MAX);
            let length = usize::try_from(long(&entry[16..])).unwrap_or(usize::MAX);
            if stated != start {
                return Err(corrupted(
                    "header",
                    "a section that is not behind the one before",
                ));
            }
            let place = start..start.saturating_add(length);
            let gap = source.bytes(end..start)?;
            let Some(gap) = gap.filter(|_| place.end <= source.len()) else {
                let section = section_names::all().find(|known| known.as_bytes() == name);
                return Err(Error::Truncated {
                    section: section.unwrap_or("unknown"),
                });
            };
            if gap.iter().any(|&byte| byte != 0) {
                return Err(corrupted("header", "something between the sections"));
            }
            end = place.end;
            entries.push(Entry {
                name,
                checksum: number(&entry[4..]),
                place,
            });
        }
        if end != source.len() {
            let more = format!("{} bytes too many", source.len() - end);
            return Err(corrupted("after the last", more));
        }
        Ok(Header {
            entries,
            metadata: metadata.to_vec(),
        })
    }

    /// Where a section lies; one that is not there is empty.
    pub(super) fn place(&self, name: Name) -> Range<usize> {
        self.entry(name).map_or(0..0, |entry| entry.place.clone())
    }

    /// Holds the bytes of a section against its checksum.
    ///
    /// # Errors
    /// [`Error::Corrupted`].
    pub(super) fn verify(&self, name: Name, bytes: &[u8]) -> Result<()> {
        match self.entry(name) {
            Some(entry) if crc32fast::hash(bytes) != entry.checksum => {
                Err(corrupted(name, CHECKSUM))
            }
            _ => Ok(()),
        }
    }

    fn entry(&self, name: Name) -> Option<&Entry> {
        self.entries
            .iter()
            .find(|entry| entry.name == name.as_bytes())
    }
}

const CHECKSUM: &str = "the checksum does not hold";

fn checksum(version: u32, rest: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(MAGIC);
    crc.update(&version.to_le_bytes());
    crc.update(rest);
    crc.finalize()
}

/// The number that four bytes at the beginning of `bytes` are.
fn number(bytes: &[u8]) -> u32 {
    bytes
        .first_chunk()
        .map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

/// The number that eight bytes at the beginning of `bytes` are.
fn long(bytes: &[u8]) -> u64 {
    bytes
        .first_chunk()
        .map_or(0, |bytes| u64::from_le_bytes(*bytes))
}
