//! Checksums of a table piece by piece: a piece is held against its own when it is first read.
//!
//! What is found damaged is not reported to whoever reads it, who may be in the middle of a walk, but
//! noted: [`Pieces::damaged`] is asked before an answer leaves the index.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::columns::column::Column;

/// Bytes of a piece: a page of memory, which a first read has the system look up anyway.
pub(crate) const PIECE: usize = 4096;

/// The checksums of a table of a snapshot, and which of its pieces were held against theirs.
#[derive(Debug)]
pub(crate) struct Pieces {
    sums: Column<u32>,
    /// Bytes that the table had in the snapshot: rows that came later are nobody's to doubt.
    bytes: usize,
    /// A bit for each piece.
    seen: Vec<AtomicU64>,
    damaged: AtomicBool,
}

impl Pieces {
    /// The checksums of the pieces of a table.
    pub(crate) fn sums(table: &[u8]) -> Vec<u32> {
        table.chunks(PIECE).map(crc32fast::hash).collect()
    }

    /// The pieces of a table of so many bytes, none of which was read yet; `None` where there are
    /// not as many checksums.
    pub(crate) fn unread(sums: Column<u32>, bytes: usize) -> Option<Self> {
        let words = sums.len().div_ceil(64);
        (sums.len() == bytes.div_ceil(PIECE)).then(|| Pieces {
            sums,
            bytes,
            seen: (0..words).map(|_| AtomicU64::new(0)).collect(),
            damaged: AtomicBool::new(false),
        })
    }

    /// Holds the pieces that a part of the table lies in against their checksums, unless that was
    /// done before. To be called before the part is read, and before it is changed.
    #[inline(always)]
    pub(crate) fn check(&self, table: &[u8], part: Range<usize>) {
        for piece in part.start / PIECE..part.end.min(self.bytes).div_ceil(PIECE) {
            let seen = self.seen[piece / 64].load(Ordering::Relaxed);
            if seen >> (piece % 64) & 1 == 0 {
                self.look(table, piece);
            }
        }
    }

    /// [`check`](Self::check) for all of the table.
    pub(crate) fn check_all(&self, table: &[u8]) {
        self.check(table, 0..self.bytes);
    }

    #[cold]
    #[inline(never)]
    fn look(&self, table: &[u8], piece: usize) {
        let place = piece * PIECE..((piece + 1) * PIECE).min(self.bytes);
        let sound = table.get(place).map(crc32fast::hash) == self.sums.get(piece).copied();
        if sound {
            self.seen[piece / 64].fetch_or(1 << (piece % 64), Ordering::Relaxed);
        } else {
            self.damaged.store(true, Ordering::Relaxed);
        }
    }

    /// Whether something that was read is not what was written.
    #[inline]
    pub(crate) fn damaged(&self) -> bool {
        self.damaged.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(table: &[u8]) -> Pieces {
        Pieces::unread(Pieces::sums(table).into(), table.len()).expect("their own checksums")
    }

    #[test]
    fn a_damaged_piece_is_noticed_by_who_reads_it_and_by_nobody_else() {
        let mut table: Vec<u8> = (0..3 * PIECE + 100).map(|x| (x % 251) as u8).collect();
        for at in [
            0,
            PIECE - 1,
            PIECE,
            3 * PIECE - 1,
            3 * PIECE,
            3 * PIECE + 99,
        ] {
            let pieces = pieces(&table);
            table[at] ^= 1;
            for piece in 0..4 {
                if piece != at / PIECE {
                    pieces.check(&table, piece * PIECE..piece * PIECE + 1);
                }
            }
            assert!(!pieces.damaged());
            pieces.check(&table, at..at + 1);
            assert!(pieces.damaged(), "at {at}");
            table[at] ^= 1;
        }
    }

    #[test]
    fn what_was_read_before_it_changed_and_what_came_later_are_no_damage() {
        let mut table = vec![7u8; PIECE + 10];
        let pieces = pieces(&table);
        pieces.check(&table, 5..6);
        table[5] = 9;
        table.resize(4 * PIECE, 1);
        pieces.check(&table, 0..PIECE);
        pieces.check(&table, 2 * PIECE..3 * PIECE);
        assert!(!pieces.damaged());
        pieces.check_all(&table);
        assert!(!pieces.damaged());
    }

    #[test]
    fn another_number_of_checksums_is_refused() {
        assert!(Pieces::unread(vec![0; 2].into(), PIECE).is_none());
        assert!(Pieces::unread(vec![].into(), 1).is_none());
        assert!(Pieces::unread(vec![].into(), 0).is_some());
    }
}
