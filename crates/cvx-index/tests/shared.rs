//! Many threads at one index: searches beside changes, changes one after the other.

mod common;

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use common::{MAPPED, Numbers};
use cvx_index::{
    EntityId, Error, Filter, IndexParams, NewNode, NodeId, SharedIndex, TemporalIndex,
};

const DIM: usize = 16;

fn params() -> IndexParams {
    IndexParams::new(DIM)
        .m(6)
        .ef_construction(40)
        .exact_below(0)
}

fn nodes(rows: &[Vec<f32>]) -> Vec<NewNode<'_>> {
    let node = |(row, n): (_, u64)| NewNode::new(EntityId(n % 7), n as i64, Some(row));
    rows.iter().map(Vec::as_slice).zip(0..).map(node).collect()
}

/// Tells the thread beside that it is over, also where the one that it stands beside failed.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Does `change`, while a thread beside looks at the index again and again.
fn beside(
    shared: &SharedIndex,
    look: impl Fn(&TemporalIndex) -> Result<(), Error> + Sync,
    change: impl FnOnce(),
) {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Relaxed) {
                shared.read(&look).unwrap();
            }
        });
        let _over = Over(&over);
        change();
    });
}

#[test]
fn a_shared_index_becomes_the_same_as_one_alone_at_any_number_of_threads() {
    let rows = Numbers(1).clustered(3000, DIM, 20);
    let gone: Vec<NodeId> = (0..3000).step_by(7).map(NodeId).collect();
    let mut alone = TemporalIndex::new(params()).unwrap();
    alone.bulk_insert(&nodes(&rows), 1).unwrap();
    alone.delete(&gone).unwrap();
    for node in 1..7 {
        alone.set_vector(NodeId(node), Some(&rows[1000])).unwrap();
    }
    for threads in [1, 3] {
        let shared = SharedIndex::new(TemporalIndex::new(params()).unwrap());
        let search = |index: &TemporalIndex| {
            index.search(&rows[5], 5, None, &Filter::default())?;
            Ok(())
        };
        beside(&shared, search, || {
            shared.bulk_insert(&nodes(&rows), threads).unwrap();
            shared.delete(&gone).unwrap();
            for node in 1..7 {
                shared.set_vector(NodeId(node), Some(&rows[1000])).unwrap();
            }
        });
        let same = shared.read(|index| Ok(index.to_bytes() == alone.to_bytes()));
        assert!(same.unwrap(), "{threads} threads");
    }
}

#[test]
fn between_the_steps_of_changes_the_index_is_whole() {
    /// Large enough to take many steps, and so many of them that one is looked at on any machine.
    const BATCH: usize = 500;
    let rows = Numbers(2).clustered(40 * BATCH, DIM, 20);
    let mut index = TemporalIndex::new(params()).unwrap();
    index.bulk_insert(&nodes(&rows[..BATCH]), 1).unwrap();
    let shared = SharedIndex::new(index);
    // A batch of which a search saw a part, and not the rest, was looked at between its steps.
    let parts_seen = AtomicBool::new(false);
    let look = |index: &TemporalIndex| {
        index.validate_between_steps().unwrap();
        parts_seen.fetch_or(!index.len().is_multiple_of(BATCH), Relaxed);
        for near in index.search(&rows[1], 20, None, &Filter::default())? {
            assert!(index.contains(near.node));
            assert_eq!(index.vector(near.node)?.map(<[f32]>::len), Some(DIM));
            index.predecessors(near.node, 3)?;
        }
        Ok(())
    };
    beside(&shared, look, || {
        for batch in rows[BATCH..].chunks(BATCH) {
            shared.bulk_insert(&nodes(batch), 2).unwrap();
            if parts_seen.load(Relaxed) {
                break;
            }
        }
        assert!(parts_seen.load(Relaxed));
        for node in (0..200).map(NodeId) {
            shared.delete(&[node]).unwrap();
            shared
                .write(|index| index.set_reward(NodeId(node.0 + 200), Some(0.5)))
                .unwrap();
        }
    });
    let sound = shared.read_settled(|index| Ok(index.validate()));
    assert_eq!(sound.unwrap(), Ok(()));
}

#[test]
fn a_batch_of_queries_finds_what_it_finds_in_an_index_alone() {
    let mut numbers = Numbers(6);
    let rows = numbers.clustered(600, DIM, 9);
    let mut index = TemporalIndex::new(params()).unwrap();
    index.bulk_insert(&nodes(&rows), 1).unwrap();
    let queries: Vec<f32> = numbers.clustered(1200, DIM, 9).concat();
    let filter = Filter {
        until: Some(400),
        ..Filter::default()
    };
    let alone = index.search_batch(&queries, 7, None, &filter, 1).unwrap();
    let shared = SharedIndex::new(index);
    for threads in [1, 2] {
        let found = shared.search_batch(&queries, 7, None, &filter, threads);
        assert_eq!(found.unwrap(), alone, "{threads} threads");
    }
    let refused = |queries: &[f32], k, threads| {
        let found = shared.search_batch(queries, k, None, &filter, threads);
        found.unwrap_err().to_string()
    };
    assert!(refused(&queries[1..], 7, 1).contains("dimensions"));
    assert!(refused(&[], 0, 1).contains("k is 0"));
    assert!(refused(&[], 7, 0).contains("threads is 0"));
}

#[test]
fn of_two_threads_that_delete_the_same_node_one_does_and_the_other_is_told() {
    let rows = Numbers(3).clustered(400, DIM, 5);
    let mut index = TemporalIndex::new(params()).unwrap();
    index.bulk_insert(&nodes(&rows), 1).unwrap();
    let shared = SharedIndex::new(index);
    let delete_all = || {
        let delete = |node| shared.delete(&[NodeId(node)]);
        (0..400).map(delete).collect::<Vec<_>>()
    };
    let (first, second) = thread::scope(|scope| {
        let other = scope.spawn(delete_all);
        (delete_all(), other.join().unwrap())
    });
    for (first, second) in first.iter().zip(&second) {
        match (first, second) {
            (Ok(()), Err(Error::UnknownNode { .. })) | (Err(Error::UnknownNode { .. }), Ok(())) => {
            }
            both => panic!("{both:?}"),
        }
    }
    let emptied = shared.read_settled(|index| Ok((index.len(), index.validate())));
    assert_eq!(emptied.unwrap(), (0, Ok(())));
}

#[test]
fn a_change_that_is_refused_changes_nothing_and_lets_the_next_one_in() {
    let shared = SharedIndex::new(TemporalIndex::new(params()).unwrap());
    let good = vec![1.0; DIM];
    let refused = [
        NewNode::new(EntityId(1), 1, Some(&good)),
        NewNode::new(EntityId(1), 2, Some(&[1.0])),
    ];
    assert!(matches!(
        shared.bulk_insert(&refused, 2),
        Err(Error::Dimension { .. })
    ));
    assert_eq!(shared.read(|index| Ok(index.node_count())).unwrap(), 0);
    let ids = shared.bulk_insert(&refused[..1], 1).unwrap();
    assert_eq!(ids, [NodeId(0)]);
}

#[test]
fn an_index_that_was_mapped_is_changed_as_one_in_memory() {
    let rows = Numbers(4).clustered(900, DIM, 9);
    let mut alone = TemporalIndex::new(params()).unwrap();
    alone.bulk_insert(&nodes(&rows[..600]), 1).unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    alone.save(file.path(), b"").unwrap();
    let shared = SharedIndex::new(TemporalIndex::load_with(file.path(), MAPPED).unwrap());
    shared.delete(&[NodeId(5)]).unwrap();
    shared.bulk_insert(&nodes(&rows[600..]), 2).unwrap();
    alone.delete(&[NodeId(5)]).unwrap();
    alone.bulk_insert(&nodes(&rows[600..]), 2).unwrap();
    let same = shared.read_settled(|index| Ok(index.to_bytes() == alone.to_bytes()));
    assert!(same.unwrap());
}

/// Requirement: V10
#[test]
fn a_change_copies_no_vectors_of_a_mapped_index() {
    let rows = Numbers(5).clustered(800, DIM, 9);
    let mut alone = TemporalIndex::new(params()).unwrap();
    alone.bulk_insert(&nodes(&rows), 1).unwrap();
    let bare = alone.insert(NewNode::new(EntityId(1), 1, None)).unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    alone.save(file.path(), b"").unwrap();
    let shared = SharedIndex::new(TemporalIndex::load_with(file.path(), MAPPED).unwrap());
    let heap = || shared.read(|index| Ok(index.stats().bytes)).unwrap();
    let opened = heap();
    shared
        .bulk_insert(&[NewNode::new(EntityId(1), 2, None)], 1)
        .unwrap();
    shared.delete(&[bare]).unwrap();
    let of_vectors = 800 * DIM * size_of::<f32>();
    assert!(heap() < opened + of_vectors);
    // Only Linux has maps that begin in a file and go on in memory.
    if cfg!(target_os = "linux") {
        shared.delete(&[NodeId(5)]).unwrap();
        shared.bulk_insert(&nodes(&rows[..9]), 1).unwrap();
        shared.set_vector(NodeId(7), Some(&rows[8])).unwrap();
        assert!(heap() < opened + of_vectors / 2);
    }
}
