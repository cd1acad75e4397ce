//! Allocates large tables in huge pages.
//!
//! A walk reads rows from anywhere. In pages of 4 kB nearly each of them needs an address that the
//! processor does not know any more; in pages of 2 MB it knows those of the whole table.

use std::collections::TryReserveError;

/// Tables below this size lie in few pages of any kind.
const LARGE: usize = 4 << 20;

/// From here on an allocator maps pages of their own for a table: they take memory when something is
/// first written to them (the most that `mallopt` lets glibc's threshold grow to).
const MAPPED: usize = 32 << 20;
/// Only whole huge pages count.
const HUGE: usize = 2 << 20;

/// How many bytes of memory the values of a vector take: all of its room, but for large tables, of
/// which what is behind the page of the last value was never written to.
pub(crate) fn bytes_taken<T>(values: &Vec<T>) -> usize {
    let (room, used) = (values.capacity(), values.len());
    let (room, used) = (room * size_of::<T>(), used * size_of::<T>());
    match room < MAPPED {
        true => room,
        false => used.next_multiple_of(HUGE).min(room),
    }
}

/// A vector with room for so many values, in huge pages where the system gives them.
pub(crate) fn with_room<T>(values: usize) -> Vec<T> {
    let room = Vec::with_capacity(values);
    asked(room)
}

/// [`with_room`], where there may be no such room.
pub(crate) fn try_with_room<T>(values: usize) -> Result<Vec<T>, TryReserveError> {
    let mut room = Vec::new();
    room.try_reserve_exact(values)?;
    Ok(asked(room))
}

fn asked<T>(room: Vec<T>) -> Vec<T> {
    if room.capacity() * size_of::<T>() >= LARGE {
        ask(&room);
    }
    room
}

/// Asks for huge pages below the room of a vector.
#[cfg(target_os = "linux")]
fn ask<T>(room: &Vec<T>) {
    let start = room.as_ptr().addr().next_multiple_of(HUGE);
    let end = (room.as_ptr().addr() + room.capacity() * size_of::<T>()) / HUGE * HUGE;
    if start < end {
        let place = room.as_ptr().with_addr(start).cast_mut().cast();
        // SAFETY: the whole pages from `start` to `end` lie within the allocation; the advice
        // changes what backs them and never what they hold. Whether it was heard changes nothing.
        unsafe { libc::madvise(place, end - start, libc::MADV_HUGEPAGE) };
    }
}

#[cfg(not(target_os = "linux"))]
fn ask<T>(_: &Vec<T>) {}
