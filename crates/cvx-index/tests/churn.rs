//! Nodes inserted and deleted one at a time in a large graph.

mod common;

use common::Numbers;
use cvx_index::{EntityId, Filter, IndexParams, NewNode, NodeId, TemporalIndex};

const DIM: usize = 24;
const ROWS: usize = 12_000;
const K: usize = 10;

fn params() -> IndexParams {
    IndexParams::new(DIM).ef_construction(100).exact_below(0)
}

fn node(row: &[f32], n: usize) -> NewNode<'_> {
    NewNode::new(EntityId(n as u64 / 20), n as i64, Some(row))
}

fn bulk(rows: &[Vec<f32>], first: usize) -> TemporalIndex {
    let mut index = TemporalIndex::new(params()).unwrap();
    let numbered = rows.iter().zip(first..);
    let nodes: Vec<NewNode<'_>> = numbered.map(|(row, n)| node(row, n)).collect();
    index.bulk_insert(&nodes, 2).unwrap();
    index
}

/// The share of the nearest that a walk of this width finds.
fn recall(index: &TemporalIndex, queries: &[Vec<f32>], ef: usize) -> f64 {
    let (mut found, mut all) = (0, 0);
    for query in queries {
        let whole = Some(index.len());
        let truth = index.search(query, K, whole, &Filter::default()).unwrap();
        let farthest = truth.last().map_or(0.0, |near| near.distance);
        let walked = index
            .search(query, K, Some(ef), &Filter::default())
            .unwrap();
        assert_eq!(walked.len(), truth.len());
        found += walked
            .iter()
            .filter(|near| near.distance <= farthest)
            .count();
        all += truth.len();
    }
    found as f64 / all as f64
}

#[test]
fn half_of_an_index_in_turn_replaced_is_found_as_well_as_a_fresh_one() {
    let mut rows = Numbers(3).clustered(ROWS * 3 / 2 + 300, DIM, 150);
    let queries = rows.split_off(ROWS * 3 / 2);
    let mut index = bulk(&rows[..ROWS], 0);
    // Every second goes, and another comes, one by one.
    for turn in 0..ROWS / 2 {
        index.delete(&[NodeId(2 * turn as u32)]).unwrap();
        index.insert(node(&rows[ROWS + turn], ROWS + turn)).unwrap();
    }
    index.validate().unwrap();
    let left = (0..ROWS / 2).map(|turn| rows[2 * turn + 1].clone());
    let now: Vec<Vec<f32>> = left.chain(rows[ROWS..].iter().cloned()).collect();
    let fresh = bulk(&now, 0);
    for ef in [12, 20, 32] {
        let (churned, fresh) = (recall(&index, &queries, ef), recall(&fresh, &queries, ef));
        assert!(
            churned >= fresh - 0.005,
            "ef {ef}: {churned}, fresh {fresh}"
        );
    }
}

/// Requirement: V19
#[test]
fn what_was_deleted_is_never_found_whoever_was_still_linked_to_it() {
    let rows = Numbers(5).clustered(6_000, DIM, 40);
    let mut index = bulk(&rows, 0);
    let gone: Vec<NodeId> = (0..2_500).map(|turn| NodeId(turn * 2)).collect();
    for &node in &gone {
        index.delete(&[node]).unwrap();
        let found = index
            .search(&rows[node.index()], K, None, &Filter::default())
            .unwrap();
        assert_eq!(found.len(), K);
        assert!(found.iter().all(|near| index.contains(near.node)));
    }
    index.validate().unwrap();
    let live: Vec<Vec<f32>> = index
        .node_ids()
        .map(|node| rows[node.index()].clone())
        .collect();
    let before = recall(&index, &live[..300], 16);
    // What is left of links to them goes with the rows.
    index.compact().unwrap();
    index.validate().unwrap();
    assert_eq!(index.len(), live.len());
    assert!(recall(&index, &live[..300], 16) >= before - 0.005);
}

#[test]
fn a_snapshot_of_a_graph_that_was_mended_opens_and_goes_on_the_same() {
    let rows = Numbers(6).clustered(5_000, DIM, 40);
    let mut index = bulk(&rows[..4_900], 0);
    for node in 0..400 {
        index.delete(&[NodeId(node * 3)]).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("it.cvx");
    index.save(&path, b"").unwrap();
    for mmap in [false, true] {
        let options = cvx_index::LoadOptions::new().verify(true).mmap(mmap);
        let mut opened = TemporalIndex::load_with(&path, options).unwrap();
        opened.validate().unwrap();
        let mut other = TemporalIndex::from_bytes(&index.to_bytes(), &path).unwrap();
        for index in [&mut opened, &mut other] {
            for (n, row) in rows.iter().enumerate().skip(4_900) {
                index.insert(node(row, n)).unwrap();
                index
                    .delete(&[NodeId(n as u32 - 4_000)])
                    .unwrap_or_default();
                index
                    .set_vector(NodeId(n as u32), Some(&rows[n - 100]))
                    .unwrap();
            }
            index.validate().unwrap();
        }
        assert!(opened.to_bytes() == other.to_bytes());
    }
}
