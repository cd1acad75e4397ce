//! Decoding a corrupted snapshot never takes much memory. The peak is that of the process: no other
//! test may run in it.

mod common;

use std::path::Path;

use common::corrupted::{read, snapshots};
use common::forged_snapshots::sparse_first;
use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

const MOST: usize = 64 << 20;

/// The most memory that reading these bytes takes, beside the bytes.
fn peak(bytes: &[u8]) -> usize {
    MEMORY.reset_peak_usage();
    let before = MEMORY.current_usage();
    drop(read(bytes));
    MEMORY.peak_usage() - before
}

/// One test: the peak is that of the process.
#[test]
fn reading_takes_memory_for_what_is_there_and_not_for_what_is_stated() {
    lengths_beyond_all_bounds_ask_for_no_memory();
    few_rows_among_many_nodes_ask_for_no_memory();
    the_corpus_asks_for_no_memory();
}

/// A row of a high dimension behind many nodes without one: rows and links reach up to it.
fn few_rows_among_many_nodes_ask_for_no_memory() {
    for (dim, m, nodes) in [(65_536, 2, 1_000), (1, 256, 100_000), (4_096, 256, 20_000)] {
        let peak = peak(&sparse_first(dim, m, nodes));
        assert!(
            peak < MOST,
            "{peak} bytes for {nodes} nodes and one row of {dim}, {m} links"
        );
    }
}

fn the_corpus_asks_for_no_memory() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/snapshot");
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let peak = peak(&std::fs::read(&path).unwrap());
        assert!(peak < MOST, "{peak} bytes for {}", path.display());
    }
}

fn lengths_beyond_all_bounds_ask_for_no_memory() {
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
                let peak = peak(&spoilt);
                assert!(peak < MOST, "{peak} bytes for a length at {at}");
            }
        }
    }
}
