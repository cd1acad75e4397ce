//! Corrupted snapshots are refused with a typed error or harmless; never a panic.

mod common;

use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use common::corrupted::{ENTRY, FIXED, read, reseal_sections, snapshots};
use common::forged_snapshots::{Meta, Postings, Sections};
use common::{MAPPED, Numbers, VERIFIED, sample};
use cvx_index::{
    Center, Direction, EdgeKind, EntityId, Error, Filter, IndexParams, LoadOptions, NewNode,
    NodeId, Reach, SharedIndex, TemporalIndex,
};
use proptest::prelude::*;
use roaring::RoaringBitmap;

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
        if let Ok(index) = TemporalIndex::load_with(&path, MAPPED) {
            opened += 1;
            ask(&index);
        }
    }
    assert!(opened > 0);
}

/// The bytes of a section of a sound snapshot.
fn place_of(bytes: &[u8], name: &str) -> std::ops::Range<usize> {
    let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let long = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
    let mut entries = (0..number(16) as usize).map(|place| FIXED + ENTRY * place);
    let at = entries.find(|&at| &bytes[at..at + 4] == name.as_bytes());
    let at = at.expect("a section of every snapshot");
    long(at + 8)..long(at + 8) + long(at + 16)
}

fn refused<T>(answer: Result<T, Error>, section: &str) -> bool {
    matches!(answer, Err(Error::Corrupted { section: found, .. }) if found == section)
}

/// Requirement: V10
#[test]
fn a_damaged_row_is_found_when_it_is_read_and_no_answer_of_it_leaves_the_index() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.cvx");
    let whole = walked().to_bytes();
    let sound = TemporalIndex::from_bytes(&whole, &path).unwrap();
    let query = sound.vector(NodeId(7)).unwrap().unwrap().to_vec();
    let search = |index: &TemporalIndex| index.search(&query, 5, None, &Filter::default());
    let expected = search(&sound).unwrap();
    for section in ["ROWS", "CODE"] {
        let place = place_of(&whole, section);
        for part in 0..=20 {
            let mut spoilt = whole.clone();
            spoilt[place.start + part * (place.len() - 1) / 20] ^= 4;
            for options in [MAPPED, LoadOptions::default()] {
                std::fs::write(&path, &spoilt).unwrap();
                let opened = || {
                    let index = TemporalIndex::load_with(&path, options);
                    SharedIndex::new(index.expect("rows are not looked at"))
                };
                assert!(refused(TemporalIndex::load_with(&path, VERIFIED), section));
                // A search may not come to the row; then its answer is right.
                let index = opened();
                match index.read(search) {
                    Ok(found) => assert_eq!(found, expected),
                    other => assert!(refused(other, section)),
                }
                let all = |index: &TemporalIndex| {
                    ask(index);
                    Ok(())
                };
                assert!(refused(index.read(all), section));
                assert!(refused(index.read(search), section), "from then on");
                assert_eq!(index.tell(|index| Ok(index.len())).unwrap(), 400);
                // Nobody writes it on, or moves it.
                let copy = folder.path().join("b.cvx");
                let save = |index: &TemporalIndex| index.save(&copy, b"");
                assert!(refused(opened().read_settled(save), section));
                let bytes = |index: &TemporalIndex| Ok(index.to_bytes());
                assert!(refused(opened().read_settled(bytes), section));
                assert!(refused(opened().compact(), section));
                assert!(!copy.exists());
                let all: Vec<NodeId> = (0..400).map(NodeId).collect();
                assert!(refused(opened().delete(&all), section));
                std::fs::remove_file(&path).unwrap();
            }
        }
    }
}

/// Requirement: V10
#[test]
fn rows_of_a_format_without_checksums_of_pieces_are_checked_at_opening() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden");
    let file = tempfile::NamedTempFile::new().unwrap();
    for name in ["v2.cvx", "v3.cvx"] {
        let whole = std::fs::read(folder.join(name)).unwrap();
        for section in ["ROWS", "CODE"] {
            let mut spoilt = whole.clone();
            let place = place_of(&whole, section);
            spoilt[place.start + place.len() / 2] ^= 4;
            std::fs::write(file.path(), &spoilt).unwrap();
            let opened = TemporalIndex::load_with(file.path(), MAPPED);
            assert!(refused(opened, section), "{section} of {name}");
        }
    }
}

/// What changed after it was read, and what came later, is no damage.
#[test]
fn an_index_that_was_opened_and_changed_stays_undamaged() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), walked().to_bytes()).unwrap();
    for options in [MAPPED, LoadOptions::default()] {
        let index = SharedIndex::new(TemporalIndex::load_with(file.path(), options).unwrap());
        let row = vec![0.25; 8];
        for node in (0..400).step_by(7).map(NodeId) {
            index.set_vector(node, Some(&row)).unwrap();
            index.delete(&[NodeId(node.0 + 1)]).unwrap();
            let new = NewNode::new(EntityId(3), 5, Some(&row));
            index.bulk_insert(&[new], 1).unwrap();
        }
        index.compact().unwrap();
        let all = |index: &TemporalIndex| {
            ask(index);
            Ok(())
        };
        index.read(all).unwrap();
        index.read_settled(|index| Ok(index.to_bytes())).unwrap();
        // And of everything nothing is left.
        let all = index.read(|index| Ok((0..index.node_count() as u32).map(NodeId).collect()));
        let all: Vec<NodeId> = all.unwrap();
        let live = |index: &TemporalIndex| {
            Ok(all
                .iter()
                .copied()
                .filter(|&node| index.contains(node))
                .collect())
        };
        let live: Vec<NodeId> = index.read(live).unwrap();
        index.delete(&live).unwrap();
        assert_eq!(index.read(|index| Ok(index.len())).unwrap(), 0);
    }
}

#[test]
fn bytes_overwritten_in_an_open_file_are_harmless_to_searches() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.cvx");
    let mut numbers = Numbers(7);
    for _ in 0..20 {
        walked().save(&path, b"").unwrap();
        let index = TemporalIndex::load_with(&path, MAPPED).unwrap();
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

/// One thing that a section says, said otherwise.
#[derive(Clone, Debug)]
enum Forgery {
    /// A number of a table, by section, place and value.
    Number(usize, usize, u32),
    /// A number of a table in the place of another one.
    Copy(usize, usize, usize),
    /// The last row of a table left out, or put twice.
    Length(usize, bool),
    /// One of the counts, places and names.
    Meta(usize, u32),
    /// A node in one of the bitmaps, or out of it.
    Posting(usize, u32),
}

/// Tables, and the bytes that a number of each takes.
const TABLES: [(&str, usize); 26] = [
    ("CIDS", 4),
    ("CENT", 8),
    ("CTIM", 8),
    ("CREW", 4),
    ("CNSP", 4),
    ("CTAG", 4),
    ("CACT", 4),
    ("CFLG", 1),
    ("ROWS", 4),
    ("RSUM", 4),
    ("CSUM", 4),
    ("SCAL", 4),
    ("BASE", 4),
    ("GLEV", 1),
    ("GLNK", 4),
    ("GUPA", 4),
    ("GUPL", 4),
    ("TIME", 4),
    ("LNSP", 4),
    ("LENT", 8),
    ("LEND", 4),
    ("LNOD", 4),
    ("EOEN", 8),
    ("EOUT", 4),
    ("EIEN", 8),
    ("EINT", 4),
];

fn forgery() -> impl Strategy<Value = Forgery> {
    let value = || {
        let odd =
            proptest::sample::select(vec![u32::MAX, u32::MAX - 1, 1 << 31, 1 << 20, 255, 127]);
        prop_oneof![8 => 0u32..70, 1 => odd]
    };
    let (table, place) = (0..TABLES.len(), any::<prop::sample::Index>());
    let place = place.prop_map(|place| place.index(1 << 20));
    prop_oneof![
        6 => (table.clone(), place.clone(), value()).prop_map(|(t, p, v)| Forgery::Number(t, p, v)),
        3 => (table.clone(), place.clone(), place).prop_map(|(t, a, b)| Forgery::Copy(t, a, b)),
        1 => (table, any::<bool>()).prop_map(|(t, longer)| Forgery::Length(t, longer)),
        2 => (0usize..13, value()).prop_map(|(field, v)| Forgery::Meta(field, v)),
        2 => (0usize..8, 0u32..64).prop_map(|(which, node)| Forgery::Posting(which, node)),
    ]
}

fn forge(sections: &mut Sections, forgery: &Forgery) {
    match *forgery {
        Forgery::Number(table, place, value) => {
            let (name, width) = TABLES[table];
            if let Some(number) = number_of(sections.body(name), width, place) {
                number.copy_from_slice(&u64::from(value).to_le_bytes()[..width]);
            }
        }
        Forgery::Copy(table, from, to) => {
            let (name, width) = TABLES[table];
            let taken = number_of(sections.body(name), width, from).map(|number| number.to_vec());
            if let (Some(taken), Some(number)) = (taken, number_of(sections.body(name), width, to))
            {
                number.copy_from_slice(&taken);
            }
        }
        Forgery::Length(table, longer) => {
            let (name, width) = TABLES[table];
            let body = sections.body(name);
            let last = body.len().saturating_sub(width);
            match longer {
                true => body.extend_from_within(last..),
                false => body.truncate(last),
            }
        }
        Forgery::Meta(field, value) => sections.record("META", |meta: &mut Meta| {
            let long = u64::from(value);
            match field {
                0 => meta.nodes = long,
                1 => meta.live = long,
                2 => meta.vectors = long,
                3 => meta.epoch = long,
                4 => meta.epoch_nodes = long,
                5 => meta.epoch_vectors = long,
                6 => meta.entry = Some(value),
                7 => meta.entry = None,
                8 => meta.next_id = Some(value),
                9 => meta.next_id = None,
                10 => meta.params.m = value as usize,
                11 => meta.params.seed = long,
                _ => {
                    meta.namespaces.pop();
                }
            }
        }),
        Forgery::Posting(which, node) => sections.record("POST", |postings: &mut Postings| {
            let mut bitmaps = [&mut postings.all, &mut postings.withheld]
                .into_iter()
                .chain(&mut postings.by_namespace)
                .chain(&mut postings.by_tag);
            if let Some(bytes) = bitmaps.nth(which) {
                let mut bitmap = RoaringBitmap::deserialize_from(&bytes[..]).unwrap();
                if !bitmap.remove(node) {
                    bitmap.insert(node);
                }
                bytes.clear();
                bitmap.serialize_into(bytes).unwrap();
            }
        }),
    }
}

/// The bytes of a number of a table; any place is one of it.
fn number_of(body: &mut [u8], width: usize, place: usize) -> Option<&mut [u8]> {
    let place = place.checked_rem(body.len() / width)?;
    Some(&mut body[place * width..][..width])
}

/// The sample as it is, and as it is after a compaction, which gives its slots ids.
fn to_be_forged() -> [Sections; 2] {
    let index = sample();
    [&index, &index.compacted().unwrap()].map(|index| Sections::of(&index.to_bytes()))
}

/// Opens a snapshot as a store does, and does to it all that changes an index.
fn live_through(bytes: &[u8]) -> bool {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    let opened = |options| TemporalIndex::load_with(file.path(), options);
    for options in [VERIFIED, MAPPED, LoadOptions::default()] {
        let Ok(mut index) = opened(options) else {
            continue;
        };
        ask(&index);
        ask(&index.compacted().expect("no reason not to"));
        index.refresh_regions().expect("no reason not to");
        let row = vec![0.25; index.params().dim];
        for n in 0..9 {
            let new = NewNode {
                namespace: "other",
                tags: &["x"],
                ..NewNode::new(EntityId(n), 5, Some(&row))
            };
            // Where there is no id left.
            let _ = index.insert(new);
        }
        for node in (0..60).step_by(4).map(NodeId) {
            let _ = index.set_reward(node, Some(0.75));
            let _ = index.set_recallable(node, false);
            let _ = index.delete(&[node, NodeId(node.0 + 1)]);
        }
        let _ = index.set_center(Center::Mean);
        ask(&index);
        index.compact().expect("no reason not to");
        ask(&index);
        let again = read(&index.to_bytes());
        assert!(!options.verify || again.is_ok(), "{:?}", again.err());
    }
    opened(MAPPED).is_ok()
}

#[test]
fn the_sections_that_are_forged_are_those_of_a_sound_index() {
    for sections in to_be_forged() {
        assert!(live_through(&sections.to_bytes()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn forged_sections_are_refused_or_harmless_to_whatever_is_done(
        forgeries in proptest::collection::vec(forgery(), 1..4), compacted in any::<bool>(),
    ) {
        let mut sections = to_be_forged()[usize::from(compacted)].clone();
        forgeries.iter().for_each(|forgery| forge(&mut sections, forgery));
        live_through(&sections.to_bytes());
    }
}

/// Makes sections say something else.
type Forge<'a> = &'a dyn Fn(&mut Sections);

/// Each contradicts what another section says, and every checksum holds.
#[test]
fn sections_that_contradict_each_other_are_refused() {
    fn set<T: bytemuck::Pod>(sections: &mut Sections, name: &str, place: usize, value: T) {
        sections.table(name, |table: &mut Vec<T>| table[place] = value);
    }
    fn one_less(sections: &mut Sections) {
        sections.record("META", |meta: &mut Meta| meta.live -= 1);
    }
    let mut sound = Sections::of(&sample().to_bytes());
    let lower = bytemuck::pod_collect_to_vec::<u8, u32>(sound.body("GUPA"))[0];
    let forgeries: [(&str, Forge<'_>); 11] = [
        ("embedded without a row", &|s| {
            set(s, "CFLG", 20, 1u8 | 2 | 4)
        }),
        ("a row, and not embedded", &|s| set(s, "CFLG", 30, 1u8 | 4)),
        ("linked but gone", &|s| set(s, "GLNK", 30 * 9 + 1, 7u32)),
        ("in the graph, and gone", &|s| {
            set(s, "CFLG", 30, 0u8);
            one_less(s);
        }),
        ("upper links of two nodes in one place", &|s| {
            set(s, "GUPA", 1, lower)
        }),
        ("fewer live nodes than are counted", &one_less),
        ("posted and not embedded", &|s| {
            forge(s, &Forgery::Posting(0, 20))
        }),
        ("posted under another namespace", &|s| {
            forge(s, &Forgery::Posting(2, 30));
            forge(s, &Forgery::Posting(3, 30));
        }),
        ("on no timeline", &|s| {
            s.table("LNOD", |nodes: &mut Vec<u32>| nodes[3] = nodes[4])
        }),
        ("later before earlier", &|s| {
            s.table("LNOD", |nodes: &mut Vec<u32>| nodes.swap(0, 1))
        }),
        ("an edge that starts and does not end", &|s| {
            set(s, "EOUT", 0, 3u32)
        }),
    ];
    for (what, forge) in forgeries {
        let mut sections = sound.clone();
        forge(&mut sections);
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), sections.to_bytes()).unwrap();
        let refused = TemporalIndex::load_with(file.path(), MAPPED).err();
        let refused = refused.unwrap_or_else(|| panic!("{what}"));
        assert!(
            matches!(
                refused,
                Error::Corrupted { .. } | Error::InvalidEdgeTable { .. }
            ),
            "{what}: {refused}"
        );
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
    let params = IndexParams::new(8).m(4).ef_construction(30).exact_below(0);
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
