//! Corrupted snapshots, with checksums made to fit again.

use std::path::Path;

use cvx_index::{Error, TemporalIndex};

use super::sample;

/// Magic, version, checksum, two counts.
pub const FIXED: usize = 24;
/// Of the table of sections.
pub const ENTRY: usize = 24;

pub fn read(bytes: &[u8]) -> Result<TemporalIndex, Error> {
    TemporalIndex::from_bytes(bytes, Path::new("a.cvx"))
}

/// Makes what checksums there are fit the bytes.
pub type Reseal = fn(&mut [u8]);

/// Every format of the same index.
pub fn snapshots() -> [(Vec<u8>, Reseal); 4] {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden");
    let golden = |name| std::fs::read(folder.join(name)).expect("tests/golden is there");
    [
        (golden("v1.cvx"), reseal_first),
        (golden("v2.cvx"), reseal_sections),
        (golden("v3.cvx"), reseal_sections),
        (sample().to_bytes(), reseal_sections),
    ]
}

/// Makes every checksum of the first format fit that can be found.
pub fn reseal_first(bytes: &mut [u8]) {
    let mut at = 12;
    while at + 16 <= bytes.len() {
        let length = u64::from_le_bytes(bytes[at + 4..at + 12].try_into().unwrap());
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let end = (at + 16).saturating_add(length);
        if end > bytes.len() {
            return;
        }
        let mut crc = crc32fast::Hasher::new();
        crc.update(&bytes[at..at + 12]);
        crc.update(&bytes[at + 16..end]);
        bytes[at + 12..at + 16].copy_from_slice(&crc.finalize().to_le_bytes());
        at = end;
    }
}

/// Makes every checksum of a later format fit that can be found.
pub fn reseal_sections(bytes: &mut [u8]) {
    let number =
        |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let long = |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let sections = number(bytes, 16) as usize;
    let metadata = number(bytes, 20) as usize;
    let end = sections
        .saturating_mul(ENTRY)
        .saturating_add(FIXED + metadata);
    if end > bytes.len() {
        return;
    }
    for entry in (FIXED..FIXED + ENTRY * sections).step_by(ENTRY) {
        let start = usize::try_from(long(bytes, entry + 8)).unwrap_or(usize::MAX);
        let length = usize::try_from(long(bytes, entry + 16)).unwrap_or(usize::MAX);
        if let Some(body) = bytes.get(start..start.saturating_add(length)) {
            let crc = crc32fast::hash(body).to_le_bytes();
            bytes[entry + 4..entry + 8].copy_from_slice(&crc);
        }
    }
    let mut crc = crc32fast::Hasher::new();
    crc.update(&bytes[..12]);
    crc.update(&bytes[16..end]);
    bytes[12..16].copy_from_slice(&crc.finalize().to_le_bytes());
}
