//! A table whose first rows are mapped from a file and whose later rows are in memory.
//!
//! The part of the file is mapped privately: the system copies a page when it is first written to, and
//! the file stays as it is. Behind it lies room that takes memory only where it is used, so that the
//! values are one slice, whatever the table grows to.

use std::fs::File;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut, Range};
use std::ptr::NonNull;

use bytemuck::Pod;

/// Values of one type, the first of them in a file.
#[derive(Debug)]
pub(crate) struct MappedTable<T> {
    /// Where the map begins, at the page of the first value; `bytes` of it are mapped.
    map: NonNull<u8>,
    bytes: usize,
    /// Where the first value lies within the map.
    start: usize,
    len: usize,
    /// How many of the values came from the file.
    from_file: usize,
    /// How many values the map has room for.
    room: usize,
    values: PhantomData<T>,
}

// SAFETY: the map is this table's alone, and what it holds are plain values.
unsafe impl<T: Send> Send for MappedTable<T> {}
// SAFETY: as above; it changes through `&mut` only.
unsafe impl<T: Sync> Sync for MappedTable<T> {}

impl<T: Pod> MappedTable<T> {
    /// Whether there are such tables on this system.
    pub(crate) const POSSIBLE: bool = cfg!(target_os = "linux");

    /// The values that `bytes` of a file hold, aligned for them, with room for so many in all; `None`
    /// where the system has no such map.
    #[cfg(target_os = "linux")]
    pub(crate) fn of(file: &File, bytes: Range<usize>, room: usize) -> Option<Self> {
        use std::os::fd::AsRawFd;
        use std::ptr;

        // SAFETY: it asks for a number.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).ok()?;
        let start = bytes.start.checked_rem(page)?;
        let all = room.checked_mul(size_of::<T>())?.checked_add(start)?;
        let all = all
            .max(start + bytes.len())
            .checked_next_multiple_of(page)?;
        let (access, private) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE);
        // SAFETY: a new map at a place of the system's choice.
        let place = unsafe {
            let kind = private | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            libc::mmap(ptr::null_mut(), all, access, kind, -1, 0)
        };
        if place == libc::MAP_FAILED {
            return None;
        }
        let grown = MappedTable {
            map: NonNull::new(place.cast())?,
            bytes: all,
            start,
            len: bytes.len() / size_of::<T>(),
            from_file: bytes.len() / size_of::<T>(),
            room: (all - start) / size_of::<T>(),
            values: PhantomData,
        };
        let offset = libc::off_t::try_from(bytes.start - start).ok()?;
        if !bytes.is_empty() {
            // SAFETY: it takes the place of the first pages of the map made above, which is ours alone;
            // the file holds `bytes`, as its own map has shown. What may happen to the file meanwhile
            // is told at `MappedFile::open`.
            let part = unsafe {
                let kind = private | libc::MAP_FIXED | libc::MAP_NORESERVE;
                libc::mmap(
                    place,
                    start + bytes.len(),
                    access,
                    kind,
                    file.as_raw_fd(),
                    offset,
                )
            };
            if part == libc::MAP_FAILED {
                return None;
            }
        }
        Some(grown)
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn of(_: &File, _: Range<usize>, _: usize) -> Option<Self> {
        None
    }

    /// How many values there is room for.
    pub(crate) fn room(&self) -> usize {
        self.room
    }

    /// Makes the table so long, within its room.
    pub(crate) fn grow(&mut self, len: usize, fill: T) {
        assert!(self.len <= len && len <= self.room, "within its room");
        let before = std::mem::replace(&mut self.len, len);
        // What lies there may be the next table of the file.
        self[before..].fill(fill);
    }

    /// Bytes of memory that the values behind those of the file take.
    pub(crate) fn heap_bytes(&self) -> usize {
        (self.len - self.from_file) * size_of::<T>()
    }
}

impl<T> Drop for MappedTable<T> {
    fn drop(&mut self) {
        #[cfg(target_os = "linux")]
        // SAFETY: the whole map, made in `of`, that nobody borrows any more.
        unsafe {
            libc::munmap(self.map.as_ptr().cast(), self.bytes);
        }
    }
}

impl<T: Pod> Deref for MappedTable<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: `start + len` values lie within the map, which is readable, and aligned: pages are,
        // and `start` is as far from one as in the file, where a slice of `T` begins there. Any bytes
        // are a `T`.
        unsafe {
            let first = self.map.as_ptr().add(self.start).cast::<T>();
            std::slice::from_raw_parts(first, self.len)
        }
    }
}

impl<T: Pod> DerefMut for MappedTable<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above; the map is writable, and borrowed mutably.
        unsafe {
            let first = self.map.as_ptr().add(self.start).cast::<T>();
            std::slice::from_raw_parts_mut(first, self.len)
        }
    }
}
