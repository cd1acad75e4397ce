//! What is saved comes back, mapped or read, and old formats keep opening.

mod common;

use std::path::{Path, PathBuf};

use common::{VERIFIED, sample};
use cvx_index::{EntityId, Error, Filter, IndexParams, NewNode, NodeId, TemporalIndex};

/// Requirement: V19
#[test]
fn saving_replaces_the_file_and_leaves_nothing_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.cvx");
    let mut index = sample();
    index.save(&path, b"first").unwrap();
    index
        .insert(NewNode::new(EntityId(1), 1, Some(&[1.0; 5])))
        .unwrap();
    index.save(&path, b"second").unwrap();
    let read = TemporalIndex::load(&path).unwrap();
    read.validate().unwrap();
    assert_eq!(read.to_bytes(), index.to_bytes());
    let mut stats = index.stats();
    stats.bytes = read.stats().bytes;
    assert_eq!(read.stats(), stats);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    let nowhere = folder.path().join("nowhere").join("a.cvx");
    assert!(matches!(index.save(&nowhere, b""), Err(Error::Io { .. })));
    assert!(matches!(
        TemporalIndex::load(&nowhere),
        Err(Error::Io { .. })
    ));
}

#[test]
fn metadata_comes_back_and_can_be_read_without_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.cvx");
    let index = sample();
    index.save(&path, b"whose this is").unwrap();
    assert_eq!(index.metadata(), b"");
    assert_eq!(
        TemporalIndex::read_metadata(&path).unwrap(),
        b"whose this is"
    );
    assert_eq!(
        TemporalIndex::load(&path).unwrap().metadata(),
        b"whose this is"
    );
    assert_eq!(TemporalIndex::read_metadata(golden("v1")).unwrap(), b"");

    index.save(&path, &[7; 65_536]).unwrap();
    assert_eq!(TemporalIndex::read_metadata(&path).unwrap(), [7; 65_536]);
    let refused = index.save(&path, &[7; 65_537]);
    assert!(matches!(
        refused,
        Err(Error::Parameter {
            name: "metadata",
            ..
        })
    ));
}

/// Two machines, or two containers, on one folder: their processes have the same numbers.
#[test]
fn saving_leaves_files_alone_that_somebody_else_made_beside() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.cvx");
    let others: Vec<PathBuf> = (0..1000)
        .map(|n| {
            folder
                .path()
                .join(format!("a.cvx.{}-{n}.tmp", std::process::id()))
        })
        .collect();
    others
        .iter()
        .for_each(|other| std::fs::write(other, "of another").unwrap());
    let index = sample();
    index.save(&path, b"").unwrap();
    assert_eq!(
        TemporalIndex::load(&path).unwrap().to_bytes(),
        index.to_bytes()
    );
    for other in &others {
        assert_eq!(std::fs::read(other).unwrap(), b"of another");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1001);
}

#[test]
fn many_threads_that_save_to_one_place_leave_one_of_their_snapshots_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.cvx");
    let index = sample();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| (0..8).for_each(|_| index.save(&path, b"").unwrap()));
        }
    });
    assert_eq!(std::fs::read(&path).unwrap(), index.to_bytes());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[cfg(unix)]
#[test]
fn saving_onto_what_is_no_regular_file_is_refused_and_leaves_it_there() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    std::fs::write(place("target"), "kept").unwrap();
    std::os::unix::fs::symlink(place("target"), place("link")).unwrap();
    std::os::unix::fs::symlink(place("nowhere"), place("dangling")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(place("socket")).unwrap();
    std::fs::create_dir(place("folder")).unwrap();
    for name in ["link", "dangling", "socket", "folder"] {
        let before = std::fs::symlink_metadata(place(name)).unwrap().file_type();
        let refused = sample().save(place(name), b"").unwrap_err();
        assert!(matches!(refused, Error::Io { .. }), "{name}: {refused:?}");
        assert!(refused.to_string().contains("no regular file"), "{refused}");
        let after = std::fs::symlink_metadata(place(name)).unwrap().file_type();
        assert_eq!(before, after, "{name}");
    }
    assert_eq!(std::fs::read(place("target")).unwrap(), b"kept");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 5);
}

#[test]
fn an_index_that_was_read_keeps_all_when_its_file_is_cut_off_or_written_over() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.cvx");
    for version in ["v1", "v2", "v3", "v4"] {
        std::fs::copy(golden(version), &path).unwrap();
        let bytes = TemporalIndex::load_with(&path, VERIFIED)
            .unwrap()
            .to_bytes();
        let read = TemporalIndex::load(&path).unwrap();
        std::fs::write(&path, b"short").unwrap();
        assert_eq!(read.to_bytes(), bytes);
        read.validate().unwrap();
        std::fs::File::create(&path).unwrap();
        assert_eq!(read.to_bytes(), bytes);
    }
}

#[test]
fn an_index_keeps_what_it_mapped_when_its_file_is_replaced_or_removed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.cvx");
    let index = sample();
    index.save(&path, b"").unwrap();
    let mapped = TemporalIndex::load_with(&path, VERIFIED).unwrap();
    TemporalIndex::new(index.params().clone())
        .unwrap()
        .save(&path, b"")
        .unwrap();
    assert_eq!(mapped.to_bytes(), index.to_bytes());
    std::fs::remove_file(&path).unwrap();
    assert_eq!(mapped.to_bytes(), index.to_bytes());
    assert!(mapped.stats().bytes < index.stats().bytes);
}

fn golden(version: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden");
    folder.join(format!("{version}.cvx"))
}

/// Requirement: V10
#[test]
fn the_snapshot_of_every_format_keeps_opening() {
    for version in ["v1", "v2", "v3", "v4", "v5"] {
        let index = TemporalIndex::load_with(golden(version), VERIFIED)
            .expect("tests/golden is part of the repository");
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
}

#[test]
fn a_snapshot_that_was_opened_is_written_as_the_same_bytes() {
    if std::env::var_os("CVX_WRITE_GOLDEN").is_some() {
        sample().save(golden("v5"), b"").unwrap();
    }
    let index = TemporalIndex::load(golden("v5")).unwrap();
    // Not through assert_eq, which would print all of both.
    assert!(
        std::fs::read(golden("v5")).unwrap() == index.to_bytes(),
        "to_bytes differs from tests/golden/v5.cvx"
    );
}

#[test]
fn compaction_leaves_no_name_of_a_deleted_node_in_the_snapshot() {
    let node = |time, namespace, tags, action| NewNode {
        namespace,
        tags,
        action: Some(action),
        ..NewNode::new(EntityId(1), time, Some(&[1.0, 2.0]))
    };
    let mut index = TemporalIndex::new(IndexParams::new(2)).unwrap();
    let nodes = [
        node(1, "goneplace", &["shared", "gonetag"][..], "goneact"),
        node(2, "keptplace", &["shared", "kepttag"][..], "keptact"),
        node(3, "keptplace", &[][..], "keptact"),
        node(4, "otherplace", &["gonetag", "kepttag"][..], "goneact"),
    ];
    index.bulk_insert(&nodes, 1).unwrap();
    index.delete(&[NodeId(0), NodeId(3)]).unwrap();
    index.compact().unwrap();
    index.validate().unwrap();
    let bytes = index.to_bytes();
    let holds = |name: &str| {
        bytes
            .windows(name.len())
            .any(|part| part == name.as_bytes())
    };
    for name in ["goneplace", "gonetag", "goneact", "otherplace"] {
        assert!(!holds(name), "{name}");
    }
    let read = TemporalIndex::from_bytes(&bytes, Path::new("a.cvx")).unwrap();
    for index in [index, read] {
        assert_eq!(index.namespace(NodeId(1)).unwrap(), "keptplace");
        assert_eq!(index.tags(NodeId(1)).unwrap(), ["kepttag", "shared"]);
        assert_eq!(index.tags(NodeId(2)).unwrap(), [""; 0]);
        assert_eq!(index.action(NodeId(2)).unwrap(), Some("keptact"));
        let filter = Filter {
            namespaces: Some(vec!["keptplace".to_owned()]),
            tags: Some(vec!["shared".to_owned()]),
            ..Filter::default()
        };
        let found = index.search(&[1.0, 2.0], 4, None, &filter).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].node, NodeId(1));
    }
}
