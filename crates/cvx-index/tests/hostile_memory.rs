//! Snapshots from anywhere never ask for much memory. The peak is that of the process: no other test
//! may run in it.

mod common;

use common::spoilt::{read, snapshots};
use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

#[test]
fn lengths_beyond_all_bounds_ask_for_no_memory() {
    const MOST: usize = 64 << 20;
    for (whole, reseal) in snapshots() {
        // Every byte in turn is made a length, where it is one: the largest, and one that is not
        // obviously absurd.
        for at in 12..whole.len().min(1500) {
            for huge in [
                [0xFF; 8],
                [0xFF, 0xFF, 0xFF, 0x0F, 0, 0, 0, 0],
                [0, 0, 0, 0x10, 0, 0, 0, 0],
            ] {
                let mut spoilt = whole.clone();
                let end = (at + 8).min(whole.len());
                spoilt[at..end].copy_from_slice(&huge[..end - at]);
                reseal(&mut spoilt);
                MEMORY.reset_peak_usage();
                drop(read(&spoilt));
                let peak = MEMORY.peak_usage();
                assert!(peak < MOST, "{peak} bytes for a length at {at}");
            }
        }
    }
}
