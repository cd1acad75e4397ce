//! Fuzz targets, run over their corpus and over drawn bytes: `fuzz/` itself needs a nightly
//! toolchain, and these tests run the same functions everywhere.

mod common;

#[path = "../../../fuzz/targets.rs"]
mod targets;

use std::path::{Path, PathBuf};

use common::forged_snapshots::{sparse, sparse_first};
use proptest::prelude::*;

fn folder(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/corpus")
        .join(target)
}

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let files = std::fs::read_dir(folder(target)).expect("the corpus is part of the repository");
    let read = |file: std::io::Result<std::fs::DirEntry>| std::fs::read(file.unwrap().path());
    files.map(|file| read(file).unwrap()).collect()
}

#[test]
fn the_corpus_of_every_target_is_harmless() {
    for (name, run) in targets::ALL {
        let inputs = corpus(name);
        assert!(!inputs.is_empty(), "{name} has a corpus");
        inputs.iter().for_each(|input| run(input));
    }
}

/// A few rows of a high dimension among many nodes: what asks for more memory than it holds.
#[test]
fn the_corpus_has_sparse_snapshots_of_high_dimensions() {
    let seeds = [
        ("v1-sparse.cvx", sparse_first(16_384, 2, 2_000)),
        ("v5-sparse.cvx", sparse(16_384, 200).to_bytes()),
    ];
    for (name, seed) in seeds {
        let path = folder("snapshot").join(name);
        if std::env::var_os("CVX_WRITE_GOLDEN").is_some() {
            std::fs::write(&path, &seed).unwrap();
        }
        assert!(std::fs::read(&path).unwrap() == seed, "{name} is another");
    }
}

proptest! {
    #[test]
    fn drawn_bytes_are_harmless(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        targets::ALL.iter().for_each(|(_, run)| run(&bytes));
    }
}
