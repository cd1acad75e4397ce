//! What the fuzz targets run, over their corpus and over drawn bytes: `fuzz/` needs a nightly
//! toolchain, and these tests run the same functions everywhere.

#[path = "../../../fuzz/targets.rs"]
mod targets;

use std::path::Path;

use proptest::prelude::*;

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/corpus")
        .join(target);
    let files = std::fs::read_dir(folder).expect("the corpus is part of the repository");
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

proptest! {
    #[test]
    fn drawn_bytes_are_harmless(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        targets::ALL.iter().for_each(|(_, run)| run(&bytes));
    }
}
