//! A column of plain values: in memory, in a memory-mapped file, or part in each.

use std::fs::File;
use std::io;
use std::ops::{Deref, Range};
use std::sync::Arc;

use bytemuck::Pod;
use memmap2::Mmap;

use crate::columns::huge_pages;
use crate::columns::mapped_table::MappedTable;

/// Tables that are copied get room for this part of them more.
pub(crate) const SPARE: usize = 8;

#[cfg(target_endian = "big")]
compile_error!("snapshots hold little-endian numbers and are mapped as they are");

/// A whole file, mapped for reading.
#[derive(Debug)]
pub(crate) struct MappedFile {
    map: Mmap,
    /// For maps of parts of it that are to be changed.
    file: Option<File>,
}

impl MappedFile {
    /// Maps a file that is written once, renamed into place, and never written again.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn open(file: &File) -> io::Result<Arc<Self>> {
        // SAFETY: the bytes of a map change, or vanish with a SIGBUS, only if somebody writes to or
        // truncates the file itself. Snapshots are written beside their place and renamed there, so
        // a newer one is another file; removing a file leaves its maps whole. Whoever edits a
        // snapshot in place while it is open breaks that promise: what they write is then read as
        // other numbers (every number used as an index is held against its table at use), and only
        // what they cut off faults.
        let map = unsafe { Mmap::map(file)? };
        // Whoever has no second handle copies what they change.
        let file = file.try_clone().ok();
        Ok(Arc::new(MappedFile { map, file }))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.map
    }
}

/// Values of one type, owned or in a mapped file. A mapped table that is changed stays in the file,
/// but for the pages that change and what it grows by; where the system has no such maps, it is copied
/// before its first change.
#[derive(Debug)]
pub(crate) enum Column<T> {
    Owned(Vec<T>),
    /// `bytes` lies within the file, is aligned for `T` and a multiple of its size.
    Mapped {
        file: Arc<MappedFile>,
        bytes: Range<usize>,
    },
    MappedTable(MappedTable<T>),
}

impl<T: Pod> Column<T> {
    pub(crate) const fn new() -> Self {
        Column::Owned(Vec::new())
    }

    /// The values that `bytes` of a file hold; `None` where they lie outside it or uneven.
    ///
    /// Where the system has such maps it can be changed at once: what searches found of the file is
    /// then found by the first change too.
    pub(crate) fn mapped(file: &Arc<MappedFile>, bytes: Range<usize>) -> Option<Self> {
        let part = file.bytes().get(bytes.clone())?;
        bytemuck::try_cast_slice::<u8, T>(part).ok()?;
        let handle = file.file.as_ref();
        let grown = handle.and_then(|handle| {
            MappedTable::of(handle, bytes.clone(), 2 * (bytes.len() / size_of::<T>()))
        });
        Some(grown.map_or_else(
            || Column::Mapped {
                file: Arc::clone(file),
                bytes,
            },
            Column::MappedTable,
        ))
    }

    /// The values that `bytes` hold, copied; `None` for a part of a value.
    pub(crate) fn copied(bytes: &[u8]) -> Option<Self> {
        let whole = bytes.len().is_multiple_of(size_of::<T>());
        whole.then(|| Column::Owned(bytemuck::allocation::pod_collect_to_vec(bytes)))
    }

    /// The values in memory; those that are there are not copied.
    pub(crate) fn into_vec(self) -> Vec<T> {
        match self {
            Column::Owned(values) => values,
            others => others.copy(0),
        }
    }

    /// The values to be changed.
    pub(crate) fn to_mut(&mut self) -> &mut [T] {
        if let Column::Mapped { .. } = self {
            self.own(0);
        }
        match self {
            Column::Owned(values) => values,
            Column::MappedTable(values) => values,
            Column::Mapped { .. } => unreachable!("it was made its own above"),
        }
    }

    /// Makes the table one that can be changed, and has room for so many more values.
    fn own(&mut self, more: usize) {
        let grown = match self {
            Column::Mapped { file, bytes } => {
                let count = bytes.len() / size_of::<T>();
                let handle = file.file.as_ref();
                handle.and_then(|file| MappedTable::of(file, bytes.clone(), 2 * count + more))
            }
            _ => None,
        };
        *self = grown.map_or_else(|| self.roomy(more), Column::MappedTable);
    }

    /// Makes the table at least so long.
    pub(crate) fn grow(&mut self, len: usize, fill: T) {
        let more = len.saturating_sub(self.len());
        if more == 0 {
            return;
        }
        if self.lacks(more) || matches!(self, Column::Mapped { .. }) {
            self.own(more);
        }
        match self {
            Column::Owned(values) => values.resize(len, fill),
            Column::MappedTable(values) => values.grow(len, fill),
            Column::Mapped { .. } => unreachable!("it was made its own above"),
        }
    }

    /// Whether to add so many values would copy all of them first.
    pub(crate) fn lacks(&self, more: usize) -> bool {
        match self {
            Column::Owned(values) => values.capacity() - values.len() < more,
            Column::MappedTable(values) => values.room() - values.len() < more,
            Column::Mapped { file, .. } => !MappedTable::<T>::POSSIBLE || file.file.is_none(),
        }
    }

    /// Gives back what the table has in reserve.
    pub(crate) fn shrink(&mut self) {
        if let Column::Owned(values) = self {
            values.shrink_to_fit();
        }
    }

    /// A copy in memory that has room for so many more values. It grows by an eighth at least:
    /// doubling would leave up to half of the largest tables there are empty.
    pub(crate) fn roomy(&self, more: usize) -> Self {
        Column::Owned(self.copy(more))
    }

    fn copy(&self, more: usize) -> Vec<T> {
        let mut values = huge_pages::with_room(self.len() + more.max(self.len() / SPARE));
        values.extend_from_slice(self);
        values
    }

    pub(crate) fn push(&mut self, value: T) {
        self.grow(self.len() + 1, value);
    }

    /// The rows of `width` values that lie at these places; rows beyond the end are left out.
    pub(crate) fn gathered(&self, places: &[u32], width: usize) -> Self {
        let mut values = huge_pages::with_room(places.len() * width);
        for &place in places {
            let start = place as usize * width;
            values.extend_from_slice(self.get(start..start + width).unwrap_or(&[]));
        }
        Column::Owned(values)
    }

    /// Bytes of memory that the values take; those of a file are the system's to keep or drop.
    pub(crate) fn heap_bytes(&self) -> usize {
        match self {
            Column::Owned(values) => huge_pages::bytes_taken(values),
            Column::Mapped { .. } => 0,
            Column::MappedTable(values) => values.heap_bytes(),
        }
    }
}

impl<T: Pod> Clone for Column<T> {
    fn clone(&self) -> Self {
        match self {
            Column::Owned(values) => Column::Owned(values.clone()),
            Column::Mapped { file, bytes } => Column::Mapped {
                file: Arc::clone(file),
                bytes: bytes.clone(),
            },
            Column::MappedTable(_) => Column::Owned(self.copy(0)),
        }
    }
}

impl<T: Pod> Deref for Column<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match self {
            Column::Owned(values) => values,
            Column::Mapped { file, bytes } => bytemuck::cast_slice(&file.bytes()[bytes.clone()]),
            Column::MappedTable(values) => values,
        }
    }
}

impl<T> From<Vec<T>> for Column<T> {
    fn from(values: Vec<T>) -> Self {
        Column::Owned(values)
    }
}

impl<T: Pod + PartialEq> PartialEq for Column<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn file_of(bytes: &[u8]) -> Arc<MappedFile> {
        let mut file = tempfile::tempfile().expect("a temporary file");
        file.write_all(bytes).expect("room for a few bytes");
        MappedFile::open(&file).expect("a map")
    }

    #[test]
    fn a_mapped_column_reads_as_its_copy_and_is_its_own_after_a_change() {
        let values: Vec<u32> = (0..100).map(|x| x * x).collect();
        let file = file_of(bytemuck::cast_slice(&values));
        let mut mapped = Column::<u32>::mapped(&file, 8..400).expect("whole and aligned");
        assert_eq!(&*mapped, &values[2..]);
        assert_eq!(
            mapped,
            Column::copied(&file.bytes()[8..400]).expect("whole")
        );
        assert_eq!(mapped.heap_bytes(), 0);

        let before = mapped.clone();
        mapped.to_mut()[0] = 7;
        mapped.push(8);
        assert_eq!((mapped[0], mapped.last()), (7, Some(&8)));
        assert_eq!(&*before, &values[2..]);
        let again = mapped.clone();
        mapped.to_mut()[1] = 9;
        assert_eq!(again[1], values[3]);
    }

    /// Requirement: V10
    #[test]
    fn a_mapped_column_that_changes_copies_its_pages_and_not_itself() {
        let values: Vec<u64> = (0..1 << 20).collect();
        let mut bytes = vec![0; 64];
        bytes.extend_from_slice(bytemuck::cast_slice(&values));
        // Of another table, behind this one.
        bytes.extend_from_slice(&[0xAB; 64]);
        let file = file_of(&bytes);
        let whole = 64..64 + size_of_val(values.as_slice());
        let mut mapped = Column::<u64>::mapped(&file, whole).expect("whole and aligned");
        assert!(!mapped.lacks(values.len()));
        mapped.to_mut()[77] = 1;
        mapped.push(5);
        mapped.grow(values.len() + 70_000, 6);
        assert_eq!((mapped[76], mapped[77], mapped[78]), (76, 1, 78));
        let tail = &mapped[values.len() - 1..];
        assert_eq!(tail[..3], [(1 << 20) - 1, 5, 6]);
        assert!(tail[2..].iter().all(|&value| value == 6));
        assert!(mapped.heap_bytes() < 70_000 * 8 + (1 << 16));
        // Beyond its room it is copied, and goes on.
        mapped.grow(3 * values.len(), 7);
        assert_eq!((mapped[77], mapped[3 * values.len() - 1]), (1, 7));
        assert_eq!(file.bytes(), bytes);
    }

    #[test]
    fn a_table_that_grows_over_many_pages_keeps_its_values_and_some_room() {
        let mut table = Column::<u64>::new();
        for len in (0..3_000_000).step_by(250_000) {
            table.grow(len, len as u64);
        }
        let of_step = |(at, &value): (usize, &u64)| value as usize == (at / 250_000 + 1) * 250_000;
        assert!(table.iter().enumerate().all(of_step));
        let copy = table.roomy(10);
        assert_eq!(copy, table);
        assert!(!copy.lacks(table.len() / 8) && copy.lacks(table.len()));
    }

    #[test]
    fn what_is_outside_uneven_or_misaligned_is_no_column() {
        let file = file_of(&[0; 64]);
        for bytes in [0..68, 60..72, 1..5, 2..64, 0..7, 100..104] {
            assert!(
                Column::<u32>::mapped(&file, bytes.clone()).is_none(),
                "{bytes:?}"
            );
        }
        assert!(Column::<u32>::mapped(&file, 64..64).is_some_and(|column| column.is_empty()));
        assert!(Column::<u32>::copied(&[0; 7]).is_none());
    }
}
