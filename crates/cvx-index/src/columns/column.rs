//! A table of plain values, in memory or in a mapped file.

use std::fs::File;
use std::io;
use std::ops::{Deref, Range};
use std::sync::Arc;

use bytemuck::Pod;
use memmap2::Mmap;

use crate::columns::huge;

#[cfg(target_endian = "big")]
compile_error!("snapshots hold little-endian numbers and are mapped as they are");

/// A whole file, mapped for reading.
#[derive(Debug)]
pub(crate) struct MappedFile(Mmap);

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
        Ok(Arc::new(MappedFile(map)))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Values of one type, owned or in a mapped file; a mapped table is copied before its first change.
#[derive(Clone, Debug)]
pub(crate) enum Column<T> {
    Owned(Vec<T>),
    /// `bytes` lies within the file, is aligned for `T` and a multiple of its size.
    Mapped {
        file: Arc<MappedFile>,
        bytes: Range<usize>,
    },
}

impl<T: Pod> Column<T> {
    pub(crate) const fn new() -> Self {
        Column::Owned(Vec::new())
    }

    /// The values that `bytes` of a file hold; `None` where they lie outside it or uneven.
    pub(crate) fn mapped(file: &Arc<MappedFile>, bytes: Range<usize>) -> Option<Self> {
        let part = file.bytes().get(bytes.clone())?;
        bytemuck::try_cast_slice::<u8, T>(part).ok()?;
        Some(Column::Mapped {
            file: Arc::clone(file),
            bytes,
        })
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
            Column::Mapped { .. } => self.to_vec(),
        }
    }

    /// The values to be changed.
    pub(crate) fn to_mut(&mut self) -> &mut Vec<T> {
        if let Column::Mapped { .. } = self {
            *self = self.roomy(0);
        }
        match self {
            Column::Owned(values) => values,
            Column::Mapped { .. } => unreachable!("it was made an owned one above"),
        }
    }

    /// Makes the table at least so long.
    pub(crate) fn grow(&mut self, len: usize, fill: T) {
        let more = len.saturating_sub(self.len());
        if self.lacks(more) {
            *self = self.roomy(more);
        }
        let values = self.to_mut();
        if len > values.len() {
            values.resize(len, fill);
        }
    }

    /// Whether to add so many values would copy all of them first; in a file any change does.
    pub(crate) fn lacks(&self, more: usize) -> bool {
        match self {
            Column::Owned(values) => values.capacity() - values.len() < more,
            Column::Mapped { .. } => true,
        }
    }

    /// A copy in memory that has room for so many more values. It grows by an eighth at least:
    /// doubling would leave up to half of the largest tables there are empty.
    pub(crate) fn roomy(&self, more: usize) -> Self {
        let mut values = huge::with_room(self.len() + more.max(self.len() / 8));
        values.extend_from_slice(self);
        Column::Owned(values)
    }

    pub(crate) fn push(&mut self, value: T) {
        self.grow(self.len() + 1, value);
    }

    /// The rows of `width` values that lie at these places; rows beyond the end are left out.
    pub(crate) fn gathered(&self, places: &[u32], width: usize) -> Self {
        let mut values = huge::with_room(places.len() * width);
        for &place in places {
            let start = place as usize * width;
            values.extend_from_slice(self.get(start..start + width).unwrap_or(&[]));
        }
        Column::Owned(values)
    }

    /// Bytes of memory that the values take; those of a file are the system's to keep or drop.
    pub(crate) fn heap_bytes(&self) -> usize {
        match self {
            Column::Owned(values) => values.capacity() * size_of::<T>(),
            Column::Mapped { .. } => 0,
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
