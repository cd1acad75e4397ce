//! Tests many orders of threads at one index, drawn from a seed: each lock decides who goes on.

use std::ops::Range;
use std::sync::Arc;

use shuttle::thread::{JoinHandle, spawn};

use super::test_locks::in_any_order;
use super::*;
use crate::id::EntityId;
use crate::index::params::IndexParams;

/// Adds nodes with these numbers; every fourth has no vector.
fn insert(shared: &SharedIndex, numbers: Range<u64>) {
    let rows: Vec<[f32; 2]> = numbers.clone().map(|n| [n as f32, 1.0]).collect();
    let node = |(n, row)| {
        let vector = (n % 4 != 3).then_some(row);
        NewNode::new(EntityId(n % 2), n as i64, vector)
    };
    let new: Vec<NewNode<'_>> = numbers
        .zip(rows.iter().map(<[f32; 2]>::as_slice))
        .map(node)
        .collect();
    shared.bulk_insert(&new, 1).unwrap();
}

/// An index of six nodes.
fn six() -> SharedIndex {
    let params = IndexParams {
        m: 2,
        ef_construction: 8,
        exact_below: 0,
        ..IndexParams::new(2)
    };
    let shared = SharedIndex::new(TemporalIndex::new(params).unwrap());
    insert(&shared, 0..6);
    shared
}

type Change = fn(&SharedIndex);

/// Each gives the index another shape.
const CHANGES: [Change; 5] = [
    |shared| insert(shared, 6..11),
    |shared| shared.delete(&[NodeId(1), NodeId(3), NodeId(4)]).unwrap(),
    |shared| shared.compact().unwrap(),
    |shared| {
        let reward = |index: &mut TemporalIndex| index.set_reward(NodeId(2), Some(0.5));
        shared.write(reward).unwrap();
    },
    |shared| shared.set_vector(NodeId(2), Some(&[-1.0, 1.0])).unwrap(),
];

fn bytes(shared: &SharedIndex) -> Vec<u8> {
    let settled = |index: &TemporalIndex| {
        index.validate().unwrap();
        Ok(index.to_bytes())
    };
    shared.read_settled(settled).unwrap()
}

/// All orders of these changes.
fn orders(changes: &[Change]) -> Vec<Vec<Change>> {
    if changes.is_empty() {
        return vec![Vec::new()];
    }
    let beginning_with = |at: usize| {
        let mut others = changes.to_vec();
        let first = others.remove(at);
        let with_first = move |order: Vec<Change>| [vec![first], order].concat();
        orders(&others).into_iter().map(with_first)
    };
    (0..changes.len()).flat_map(beginning_with).collect()
}

fn beside(
    shared: &Arc<SharedIndex>,
    work: impl FnOnce(&SharedIndex) + Send + 'static,
) -> JoinHandle<()> {
    let shared = Arc::clone(shared);
    spawn(move || work(&shared))
}

fn join(threads: impl IntoIterator<Item = JoinHandle<()>>) {
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
}

#[test]
fn changes_of_several_threads_come_to_what_they_come_to_one_after_the_other() {
    let outcome = |order: Vec<Change>| {
        let shared = six();
        order.iter().for_each(|change| change(&shared));
        bytes(&shared)
    };
    let one_after_the_other: Arc<[Vec<u8>]> = orders(&CHANGES).into_iter().map(outcome).collect();
    in_any_order(move || {
        let shared = Arc::new(six());
        join(CHANGES.map(|change| beside(&shared, change)));
        assert!(one_after_the_other.contains(&bytes(&shared)));
    });
}

#[test]
fn a_reader_sees_a_whole_index_between_any_two_steps() {
    let look = |shared: &SharedIndex| {
        for _ in 0..4 {
            let whole = |index: &TemporalIndex| {
                index.validate_between_steps().unwrap();
                for near in index.search(&[3.0, 1.0], 20, None, &Filter::default())? {
                    assert!(index.vector(near.node)?.is_some());
                }
                Ok(())
            };
            shared.read(whole).unwrap();
            // With nobody at work all of a change is there, or nothing.
            let settled = |index: &TemporalIndex| {
                index.validate().unwrap();
                Ok(index.len())
            };
            let len = shared.read_settled(settled).unwrap();
            assert!([6, 3, 11, 8].contains(&len), "{len}");
        }
    };
    in_any_order(move || {
        let shared = Arc::new(six());
        join(
            CHANGES
                .map(|change| beside(&shared, change))
                .into_iter()
                .chain([beside(&shared, look)]),
        );
    });
}

#[test]
fn batches_of_queries_and_changes_never_wait_for_each_other_in_a_circle() {
    let ask = |shared: &SharedIndex| {
        let rows = [3.0, 1.0].repeat(3 * SLICE);
        let answers = shared.search_batch(&rows, 1, None, &Filter::default(), 1);
        assert_eq!(answers.unwrap().len(), 3 * SLICE);
    };
    in_any_order(move || {
        let shared = Arc::new(six());
        join([
            beside(&shared, ask),
            beside(&shared, ask),
            beside(&shared, CHANGES[0]),
            beside(&shared, CHANGES[1]),
        ]);
    });
}
