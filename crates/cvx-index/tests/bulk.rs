//! Bulk build: as good a graph as one by one, the same on any number of threads.

mod common;

use common::Numbers;
use cvx_index::{EntityId, Filter, IndexParams, Metric, NewNode, NodeId, TemporalIndex};

const DIM: usize = 24;
const ROWS: usize = 9_000;
const K: usize = 10;

fn empty(metric: Metric) -> TemporalIndex {
    let params = IndexParams::new(DIM).metric(metric).ef_construction(100);
    TemporalIndex::new(params.exact_below(0)).unwrap()
}

fn insert(index: &mut TemporalIndex, rows: &[Vec<f32>], threads: usize) {
    let first = index.node_count();
    let numbered = rows.iter().zip(first..);
    let nodes: Vec<NewNode<'_>> = numbered
        .map(|(row, n)| NewNode::new(EntityId(n as u64), n as i64, Some(row)))
        .collect();
    index.bulk_insert(&nodes, threads).unwrap();
}

fn nearest(index: &TemporalIndex, query: &[f32], ef: usize) -> Vec<NodeId> {
    let found = index.search(query, K, Some(ef), &Filter::default());
    found.unwrap().iter().map(|near| near.node).collect()
}

/// The share of the ten nearest that a walk of this width finds.
fn recall(index: &TemporalIndex, queries: &[Vec<f32>], ef: usize) -> f64 {
    let mut hits = 0;
    for query in queries {
        let truth = nearest(index, query, index.len());
        let found = nearest(index, query, ef);
        hits += found.iter().filter(|node| truth.contains(node)).count();
    }
    hits as f64 / (K * queries.len()) as f64
}

/// Requirement: V2
#[test]
fn the_bytes_do_not_depend_on_the_number_of_threads() {
    let rows = Numbers(1).clustered(ROWS, DIM, 90);
    for metric in [Metric::Cosine, Metric::L2, Metric::InnerProduct] {
        let of = |threads| {
            let mut index = empty(metric);
            insert(&mut index, &rows, threads);
            index.to_bytes()
        };
        let alone = of(1);
        assert!(alone == of(2) && alone == of(5), "{metric:?}");
    }
}

#[test]
fn nodes_put_part_by_part_and_linked_at_the_end_make_the_graph_of_one_call() {
    let rows = Numbers(7).clustered(5_000, DIM, 90);
    let (mut once, mut parts) = (empty(Metric::Cosine), empty(Metric::Cosine));
    insert(&mut once, &rows, 2);
    for (part, rows) in rows.chunks(1_999).enumerate() {
        let nodes: Vec<NewNode<'_>> = rows
            .iter()
            .zip(1_999 * part..)
            .map(|(row, n)| NewNode::new(EntityId(n as u64), n as i64, Some(row)))
            .collect();
        let given = parts.bulk_insert_unlinked(&nodes).unwrap();
        assert_eq!(given[0], NodeId(1_999 * part as u32));
    }
    parts.relink(1).unwrap();
    parts.validate().unwrap();
    assert!(once.to_bytes() == parts.to_bytes());
    assert!(
        parts
            .bulk_insert_unlinked(&[NewNode::new(EntityId(0), 0, Some(&[f32::NAN; DIM]))])
            .is_err()
    );
    assert!(parts.relink(0).is_err());
}

#[test]
fn linked_at_once_a_graph_finds_what_one_does_that_grew() {
    let mut rows = Numbers(2).clustered(ROWS + 300, DIM, 90);
    let queries = rows.split_off(ROWS);
    for metric in [Metric::Cosine, Metric::L2] {
        let (mut bulk, mut grown) = (empty(metric), empty(metric));
        insert(&mut bulk, &rows, 2);
        for some in rows.chunks(100) {
            insert(&mut grown, some, 1);
        }
        bulk.validate().unwrap();
        for ef in [12, 20, 32] {
            let (bulk, grown) = (recall(&bulk, &queries, ef), recall(&grown, &queries, ef));
            assert!(
                bulk >= grown - 0.003,
                "{metric:?}, ef {ef}: {bulk}, grown {grown}"
            );
        }
    }
}

#[test]
fn nodes_come_in_bulk_to_others_that_were_there_and_go_on_coming() {
    let mut rows = Numbers(3).clustered(ROWS + 300, DIM, 90);
    let queries = rows.split_off(ROWS);
    let mut index = empty(Metric::Cosine);
    insert(&mut index, &rows[..1_500], 1);
    let gone: Vec<NodeId> = (0..500).map(|n| NodeId(3 * n)).collect();
    for &node in &gone {
        index.delete(&[node]).unwrap();
    }
    // Anew with those that were there, then to them.
    insert(&mut index, &rows[1_500..8_500], 2);
    index.validate().unwrap();
    insert(&mut index, &rows[8_500..], 1);
    index.validate().unwrap();
    assert_eq!(index.len(), ROWS - gone.len());
    assert!(recall(&index, &queries, 32) >= 0.99);
    assert!(rows.iter().enumerate().step_by(7).all(|(n, row)| {
        let node = NodeId(n as u32);
        gone.contains(&node) || nearest(&index, row, 32).contains(&node)
    }));
    let all: Vec<NodeId> = index.node_ids().collect();
    index.delete(&all).unwrap();
    assert!(nearest(&index, &queries[0], 32).is_empty());
    insert(&mut index, &rows, 2);
    index.validate().unwrap();
    assert!(recall(&index, &queries, 32) >= 0.99);
}

/// Requirement: V19
#[test]
fn rows_that_are_all_equal_or_all_alone_are_found_as_in_a_graph_that_grew() {
    let one = Numbers(4).clustered(1, DIM, 1).remove(0);
    let others = Numbers(5).clustered(5_000, DIM, 50);
    let mut rows = vec![one.clone(); 6_000];
    rows.extend(others.iter().cloned());
    let (mut bulk, mut grown) = (empty(Metric::Cosine), empty(Metric::Cosine));
    insert(&mut bulk, &rows, 2);
    rows.chunks(1_000)
        .for_each(|some| insert(&mut grown, some, 2));
    bulk.validate().unwrap();
    let copies = nearest(&bulk, &one, 32);
    assert_eq!(copies.len(), K);
    assert!(copies.iter().all(|node| node.index() < 6_000));
    // A walk that came to copies alone has no way on, in any graph.
    let finds = |index: &TemporalIndex| {
        let found = |n: &usize| nearest(index, &rows[*n], 64)[0].index() == *n;
        (6_000..rows.len()).filter(found).count()
    };
    let (bulk, grown) = (finds(&bulk), finds(&grown));
    assert!(bulk + 10 >= grown, "{bulk}, grown {grown} of 5000");
    // Each far from every other: nothing but noise, of lengths over many sizes.
    let alone = |n: u64| -> Vec<f32> {
        let row = Numbers(100 + n).clustered(1, DIM, 1).remove(0);
        row.iter().map(|x| x * 1.001f32.powi(n as i32)).collect()
    };
    let rows: Vec<Vec<f32>> = (0..5_000).map(alone).collect();
    for metric in [Metric::Cosine, Metric::L2] {
        let mut index = empty(metric);
        insert(&mut index, &rows, 2);
        index.validate().unwrap();
        let itself = |n: &usize| nearest(&index, &rows[*n], 64)[0] == NodeId(*n as u32);
        let found = (0..5_000).step_by(10).filter(itself).count();
        // By a graph that grew under l2 493.
        assert!(found >= 490, "{metric:?}: {found} of 500");
    }
}

#[test]
fn a_filter_that_accepts_one_of_many_finds_it() {
    let rows = Numbers(6).clustered(ROWS, DIM, 90);
    let mut index = empty(Metric::Cosine);
    insert(&mut index, &rows, 2);
    for n in (0..ROWS).step_by(500) {
        let filter = Filter {
            entities: Some(vec![EntityId(n as u64)]),
            ..Filter::default()
        };
        let found = index.search(&rows[ROWS - 1 - n], K, None, &filter).unwrap();
        let nodes: Vec<NodeId> = found.iter().map(|near| near.node).collect();
        assert_eq!(nodes, [NodeId(n as u32)]);
    }
}
