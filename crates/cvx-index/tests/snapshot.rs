//! Snapshots: no damage goes unnoticed, and old ones keep opening.

mod common;

use std::path::{Path, PathBuf};

use common::{KINDS, Numbers};
use cvx_index::{
    Center, EntityId, Error, Filter, IndexParams, Metric, NewNode, NodeId, TemporalIndex,
};

/// A small index with every kind of content; its vectors are whole numbers, so that no
/// instruction set and no library version has a say in its bytes.
fn sample() -> TemporalIndex {
    let mut numbers = Numbers(1);
    let params = IndexParams {
        m: 4,
        ef_construction: 30,
        seed: 3,
        ..IndexParams::new(5)
    };
    let mut index = TemporalIndex::new(IndexParams {
        metric: Metric::L2,
        ..params
    })
    .unwrap();
    let rows: Vec<Vec<f32>> = (0..60)
        .map(|_| (0..5).map(|_| numbers.below(9) as f32 - 4.0).collect())
        .collect();
    let nodes: Vec<NewNode<'_>> = rows
        .iter()
        .zip(0u64..)
        .map(|(row, n)| NewNode {
            reward: n.is_multiple_of(3).then_some(0.5),
            namespace: if n % 4 == 1 { "other" } else { "" },
            tags: if n % 2 == 1 { &["x", "y"] } else { &[] },
            action: n.is_multiple_of(5).then_some("go to the desk"),
            recallable: n % 7 != 2,
            ..NewNode::new(EntityId(n % 6), 100 - n as i64, (n != 20).then_some(row))
        })
        .collect();
    index.bulk_insert(&nodes, 1).unwrap();
    let reminds = index.declare_edge_kind("reminds_of").unwrap();
    index.add_edge(NodeId(1), NodeId(2), KINDS[1], 0.5).unwrap();
    index
        .add_edge(NodeId(2), NodeId(59), reminds, 0.25)
        .unwrap();
    index.delete(&[NodeId(7), NodeId(8)]).unwrap();
    index
        .set_center(Center::Vector(vec![0.5, 0.0, -0.5, 1.0, 0.0]))
        .unwrap();
    index
}

fn read(bytes: &[u8]) -> Result<TemporalIndex, Error> {
    TemporalIndex::from_bytes(bytes, Path::new("a.cvx"))
}

/// Requirement: V10
#[test]
fn a_snapshot_that_ends_anywhere_is_refused() {
    let whole = sample().to_bytes();
    for length in 0..whole.len() {
        match read(&whole[..length]).err() {
            Some(Error::NotASnapshot { .. }) => assert!(length < 8),
            Some(Error::Truncated { .. }) => assert!(length >= 8),
            other => panic!("{length} of {} bytes: {other:?}", whole.len()),
        }
    }
    let longer = [whole.as_slice(), &[0]].concat();
    assert!(matches!(read(&longer), Err(Error::Corrupted { .. })));
}

/// Requirement: V10
#[test]
fn a_flipped_bit_is_noticed_wherever_it_is() {
    let whole = sample().to_bytes();
    let mut numbers = Numbers(2);
    let header = 0..8 * 64;
    let bits = header.chain((0..500).map(|_| numbers.below(8 * whole.len())));
    for bit in bits.collect::<Vec<_>>() {
        let mut spoilt = whole.clone();
        spoilt[bit / 8] ^= 1 << (bit % 8);
        match read(&spoilt).err() {
            Some(Error::NotASnapshot { .. }) => assert!(bit < 64),
            Some(Error::UnsupportedVersion { .. }) => assert!((64..96).contains(&bit)),
            Some(Error::Truncated { .. } | Error::Corrupted { .. }) => assert!(bit >= 96),
            other => panic!("bit {bit}: {other:?}"),
        }
    }
}

/// Checksums that hold prove nothing: whatever the bytes say, the index is sound or refused.
#[test]
fn damage_with_fitting_checksums_is_refused_or_harmless() {
    let whole = sample().to_bytes();
    let mut numbers = Numbers(5);
    let mut opened = 0;
    for _ in 0..4000 {
        let mut spoilt = whole.clone();
        for _ in 0..=numbers.below(3) {
            let at = 12 + numbers.below(whole.len() - 12);
            spoilt[at] = numbers.next() as u8;
        }
        reseal(&mut spoilt);
        if let Ok(index) = read(&spoilt) {
            opened += 1;
            let found = index.search(&[1.0, 2.0, 0.0, 0.0, 1.0], 5, None, &Filter::default());
            assert!(found.is_ok_and(|found| found.len() <= 5));
        }
    }
    assert!(opened > 0, "the test should reach beyond the checksums");
}

/// Makes every checksum that can be found fit what is there.
fn reseal(bytes: &mut [u8]) {
    let mut at = 12;
    while at + 16 <= bytes.len() {
        let length = u64::from_le_bytes(bytes[at + 4..at + 12].try_into().unwrap());
        let Some(end) = usize::try_from(length)
            .ok()
            .and_then(|l| (at + 16).checked_add(l))
        else {
            return;
        };
        if end > bytes.len() {
            return;
        }
        let mut crc = crc32fast::Hasher::new();
        crc.update(&bytes[at..at + 12]);
        crc.update(&bytes[at + 16..end]);
        let crc = crc.finalize().to_le_bytes();
        bytes[at + 12..at + 16].copy_from_slice(&crc);
        at = end;
    }
}

/// Requirement: V19
#[test]
fn saving_replaces_the_file_and_leaves_nothing_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.cvx");
    let mut index = sample();
    index.save(&path).unwrap();
    index
        .insert(NewNode::new(EntityId(1), 1, Some(&[1.0; 5])))
        .unwrap();
    index.save(&path).unwrap();
    let read = TemporalIndex::load(&path).unwrap();
    read.validate().unwrap();
    assert_eq!(read.to_bytes(), index.to_bytes());
    assert_eq!(
        read.stats(),
        cvx_index::Stats {
            bytes: read.stats().bytes,
            ..index.stats()
        }
    );
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    let nowhere = folder.path().join("nowhere").join("a.cvx");
    assert!(matches!(index.save(&nowhere), Err(Error::Io { .. })));
    assert!(matches!(
        TemporalIndex::load(&nowhere),
        Err(Error::Io { .. })
    ));
}

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/v1.cvx")
}

/// Requirement: V10
#[test]
fn the_snapshot_of_the_first_format_keeps_opening() {
    let index =
        TemporalIndex::load(golden()).expect("tests/golden/v1.cvx is part of the repository");
    index.validate().unwrap();
    assert_eq!((index.len(), index.node_count()), (58, 60));
    assert_eq!(index.params().seed, 3);
    assert_eq!(index.center(), Some(&[0.5, 0.0, -0.5, 1.0, 0.0][..]));
    assert_eq!(index.action(NodeId(55)).unwrap(), Some("go to the desk"));
    assert_eq!(index.namespace(NodeId(1)).unwrap(), "other");
    assert_eq!(index.tags(NodeId(1)).unwrap(), ["x", "y"]);
    assert_eq!(index.reward(NodeId(3)).unwrap(), Some(0.5));
    assert_eq!(index.vector(NodeId(20)).unwrap(), None);
    assert_eq!(index.edges().count(), 2);
    assert_eq!(index.edge_kinds().last(), Some("reminds_of"));
    let row = index.vector(NodeId(31)).unwrap().unwrap();
    let nearest = index.search(row, 1, None, &Filter::default()).unwrap();
    assert_eq!(nearest[0].distance, 0.0);
}

#[test]
fn a_snapshot_that_was_opened_is_written_as_the_same_bytes() {
    let bytes = std::fs::read(golden()).unwrap();
    // Not through assert_eq, which would print all of both.
    assert!(
        read(&bytes).unwrap().to_bytes() == bytes,
        "to_bytes differs from tests/golden/v1.cvx"
    );
}
