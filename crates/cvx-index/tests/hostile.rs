//! Snapshots from anywhere: refused with a typed error, or harmless; never a panic.

mod common;

use std::io::{Seek, SeekFrom, Write};

use common::spoilt::{ENTRY, FIXED, read, reseal_sections, snapshots};
use common::{Numbers, sample};
use cvx_index::{Direction, EdgeKind, Error, Filter, IndexParams, NodeId, Reach, TemporalIndex};

/// Requirement: V10
#[test]
fn a_snapshot_that_ends_anywhere_is_refused() {
    for (whole, _) in snapshots() {
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
}

/// Requirement: V10
#[test]
fn a_flipped_bit_is_noticed_wherever_it_is() {
    for (whole, _) in snapshots() {
        let mut numbers = Numbers(2);
        let header = 0..8 * 64;
        let bits = header.chain((0..2000).map(|_| numbers.below(8 * whole.len())));
        for bit in bits.collect::<Vec<_>>() {
            let mut spoilt = whole.clone();
            spoilt[bit / 8] ^= 1 << (bit % 8);
            match read(&spoilt).err() {
                Some(Error::NotASnapshot { .. }) => assert!(bit < 64),
                Some(Error::UnsupportedVersion { .. }) => assert!((64..96).contains(&bit)),
                Some(Error::Truncated { .. } | Error::Corrupted { .. }) => assert!(bit >= 64),
                other => panic!("bit {bit}: {other:?}"),
            }
        }
    }
}

/// Checksums that hold prove nothing: whatever the bytes say, the index is sound or refused.
#[test]
fn damage_with_fitting_checksums_is_refused_or_harmless() {
    for (whole, reseal) in snapshots() {
        let mut numbers = Numbers(5);
        let mut opened = 0;
        for _ in 0..3000 {
            let mut spoilt = whole.clone();
            for _ in 0..=numbers.below(3) {
                let at = 12 + numbers.below(whole.len() - 12);
                spoilt[at] = numbers.next() as u8;
            }
            reseal(&mut spoilt);
            if let Ok(mut index) = read(&spoilt) {
                opened += 1;
                index.validate().expect("what is opened is sound");
                ask(&index);
                let _ = index.delete(&[NodeId(3), NodeId(4)]);
                index.refresh_regions().expect("no reason not to");
            }
        }
        assert!(opened > 0, "the test should reach beyond the checksums");
    }
}

/// Opened without looking at every row, an index may be wrong, and still must not fail.
#[test]
fn damage_that_opening_does_not_look_for_is_harmless_to_searches() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.cvx");
    let whole = sample().to_bytes();
    let mut numbers = Numbers(6);
    let mut opened = 0;
    for _ in 0..2000 {
        let mut spoilt = whole.clone();
        for _ in 0..=numbers.below(3) {
            let at = FIXED + numbers.below(whole.len() - FIXED);
            spoilt[at] = numbers.next() as u8;
        }
        reseal_sections(&mut spoilt);
        std::fs::write(&path, &spoilt).unwrap();
        if let Ok(index) = TemporalIndex::load(&path) {
            opened += 1;
            ask(&index);
        }
    }
    assert!(opened > 0);
}

#[test]
fn bytes_overwritten_in_an_open_file_are_harmless_to_searches() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.cvx");
    let mut numbers = Numbers(7);
    for _ in 0..20 {
        walked().save(&path, b"").unwrap();
        let index = TemporalIndex::load(&path).unwrap();
        let mut file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        let length = file.metadata().unwrap().len() as usize;
        for _ in 0..200 {
            file.seek(SeekFrom::Start(numbers.below(length) as u64))
                .unwrap();
            file.write_all(&numbers.next().to_le_bytes()[..1 + numbers.below(8)])
                .unwrap();
        }
        // As long as it was: a shorter file is what no program survives.
        file.set_len(length as u64).unwrap();
        ask(&index);
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn sections_that_overlap_or_lie_askew_are_refused() {
    let whole = sample().to_bytes();
    let offset = |entry: usize| FIXED + ENTRY * entry + 8;
    for entry in 0..10 {
        for shift in [1i64, -1, 4, 64, -64, 4096, i64::MIN, i64::MAX] {
            let mut spoilt = whole.clone();
            let place = &mut spoilt[offset(entry)..][..8];
            let moved = u64::from_le_bytes(place.try_into().unwrap()).wrapping_add_signed(shift);
            place.copy_from_slice(&moved.to_le_bytes());
            reseal_sections(&mut spoilt);
            let refused = read(&spoilt).err();
            assert!(
                matches!(
                    refused,
                    Some(Error::Corrupted {
                        section: "header",
                        ..
                    })
                ),
                "section {entry} moved by {shift}: {refused:?}"
            );
        }
    }
}

/// Searches by scan and by walk, follows time and edges, assigns regions: none of it may fail.
fn ask(index: &TemporalIndex) {
    let dim = index.params().dim;
    let open = Filter {
        namespaces: Some(vec![String::new(), "other".to_owned()]),
        recallable: None,
        ..Filter::default()
    };
    for filter in [&Filter::default(), &open] {
        for query in [vec![1.0; dim], vec![-2.0; dim]] {
            let found = index.search(&query, 5, None, filter).expect("a good query");
            assert!(found.len() <= 5);
            assert!(
                found
                    .iter()
                    .all(|near| near.node.index() < index.node_count())
            );
            index
                .hybrid_search(&query, 5, 0.5, None, filter)
                .expect("a good query");
        }
    }
    for node in (0..index.node_count() as u32).map(NodeId) {
        if index.contains(node) {
            index.vector(node).expect("it lives");
            index.tags(node).expect("it lives");
            index.namespace(node).expect("it lives");
            index.predecessors(node, 3).expect("it lives");
            for direction in [Direction::Out, Direction::In] {
                let reach = Reach {
                    kinds: &[EdgeKind::CausedSuccess, EdgeKind::Custom(0)],
                    direction,
                    max_depth: 3,
                    budget: 50,
                    namespaces: Some(&["", "other"]),
                };
                index.ancestors(node, &reach).expect("it lives");
                index
                    .typed_neighbors(node, None, 0.0, direction, Some(&["", "other"]))
                    .expect("it lives");
            }
        }
    }
    for kind in [EdgeKind::CausedSuccess, EdgeKind::Custom(0)] {
        index
            .graph_search(&vec![1.0; dim], 5, &[(kind, 1.0)], 2, None, &open)
            .expect("a good query");
    }
    for level in index.region_levels() {
        index.region_assignments(level).expect("a known level");
    }
}

/// An index that is searched by walks.
fn walked() -> TemporalIndex {
    let mut numbers = Numbers(8);
    let rows = numbers.clustered(400, 8, 5);
    let params = IndexParams {
        m: 4,
        ef_construction: 30,
        exact_below: 0,
        ..IndexParams::new(8)
    };
    let mut index = TemporalIndex::new(params).unwrap();
    let nodes: Vec<_> = rows
        .iter()
        .zip(0..)
        .map(|(row, n)| cvx_index::NewNode::new(cvx_index::EntityId(n % 9), n as i64, Some(row)))
        .collect();
    index.bulk_insert(&nodes, 1).unwrap();
    for from in 0..400 {
        for step in 1..5 {
            let to = NodeId((from + step * step * 7) % 400);
            index
                .add_edge(NodeId(from), to, EdgeKind::CausedSuccess, 0.5)
                .unwrap();
        }
    }
    index
}
