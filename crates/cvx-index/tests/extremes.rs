//! Extreme input: copies, zeros, huge values, emptiness, compaction.

mod common;

use common::Numbers;
use cvx_index::{EntityId, Error, Filter, IndexParams, Metric, NewNode, NodeId, TemporalIndex};

fn of(rows: &[Vec<f32>], params: IndexParams) -> TemporalIndex {
    let mut index = TemporalIndex::new(params).unwrap();
    let node = |(row, n): (_, u64)| NewNode::new(EntityId(n % 50), n as i64, Some(row));
    let nodes: Vec<NewNode<'_>> = rows.iter().map(Vec::as_slice).zip(0..).map(node).collect();
    index.bulk_insert(&nodes, 2).unwrap();
    index
}

fn walked(dim: usize, metric: Metric) -> IndexParams {
    IndexParams::new(dim)
        .metric(metric)
        .m(6)
        .ef_construction(40)
        .exact_below(0)
}

fn found(index: &TemporalIndex, query: &[f32], k: usize) -> Vec<u32> {
    let near = index.search(query, k, None, &Filter::default()).unwrap();
    near.iter().map(|near| near.node.0).collect()
}

/// The share of the ten nearest that a walk finds.
fn recall(index: &TemporalIndex, queries: &[Vec<f32>]) -> f64 {
    let every = index.node_count();
    let hits = queries.iter().map(|query| {
        let exact = index.search(query, 10, Some(every), &Filter::default());
        let exact: Vec<NodeId> = exact.unwrap().iter().map(|near| near.node).collect();
        let near = index
            .search(query, 10, Some(60), &Filter::default())
            .unwrap();
        near.iter()
            .filter(|near| exact.contains(&near.node))
            .count()
    });
    hits.sum::<usize>() as f64 / (10 * queries.len()) as f64
}

#[test]
fn a_hundred_thousand_copies_are_all_found_and_do_not_hide_the_rest() {
    let mut rows = vec![vec![1.0, 2.0, 3.0, 4.0]; 100_000];
    rows.push(vec![4.0, -3.0, 2.0, -1.0]);
    let params = walked(4, Metric::L2).m(4).ef_construction(16);
    let index = of(&rows, params);
    assert_eq!(found(&index, &rows[100_000], 1), [100_000]);
    let copies = found(&index, &rows[0], 1000);
    assert_eq!(copies.len(), 1000);
    assert!(copies.iter().all(|&node| node < 100_000));
}

#[test]
fn equal_vectors_zeros_and_giants_are_found_under_every_metric() {
    for metric in [Metric::Cosine, Metric::L2, Metric::InnerProduct] {
        let equal = of(&vec![vec![0.5; 8]; 500], walked(8, metric));
        equal.validate().unwrap();
        assert_eq!(found(&equal, &[0.5; 8], 500).len(), 500);
    }
    for metric in [Metric::L2, Metric::InnerProduct] {
        let zeros = of(&vec![vec![0.0; 8]; 300], walked(8, metric));
        assert_eq!(found(&zeros, &[0.0; 8], 9).len(), 9);
        assert_eq!(found(&zeros, &[1.0; 8], 9).len(), 9);
    }
    let mut numbers = Numbers(3);
    let sizes = [1e-30f32, 1e-12, 1.0, 1e12, 1e17];
    let row = |n: usize| {
        let row = numbers.vector(8);
        row.iter().map(|x| x * sizes[n % sizes.len()]).collect()
    };
    let rows: Vec<Vec<f32>> = (0..600).map(row).collect();
    for metric in [Metric::Cosine, Metric::L2, Metric::InnerProduct] {
        let index = of(&rows, walked(8, metric));
        index.validate().unwrap();
        for query in rows.iter().take(20) {
            let near = index.search(query, 10, None, &Filter::default()).unwrap();
            assert_eq!(near.len(), 10);
            assert!(near.iter().all(|near| near.distance.is_finite()));
            assert!(near.is_sorted_by_key(|near| near.distance));
        }
    }
}

/// Each row is as far off by its code as it is long: scans of a list, of a run and of copies find the
/// nearest all the same, and so do they when long rows are gone and when the index was compacted.
#[test]
fn scans_are_exact_among_rows_of_all_lengths() {
    const DIM: usize = 24;
    for metric in [Metric::L2, Metric::InnerProduct] {
        let mut numbers = Numbers(9);
        let sizes = [1e-3f32, 1.0, 1.0, 1.0, 30.0, 1e3, 1e6];
        let sized = |numbers: &mut Numbers, n: usize| -> Vec<f32> {
            let row = numbers.vector(DIM);
            row.iter().map(|x| x * sizes[n % sizes.len()]).collect()
        };
        let rows: Vec<Vec<f32>> = (0..1500).map(|n| sized(&mut numbers, n)).collect();
        let queries: Vec<Vec<f32>> = (0..35).map(|n| sized(&mut numbers, n)).collect();
        let params = IndexParams::new(DIM).metric(metric);
        let mut index = of(&rows, params);
        let window = Filter {
            since: Some(100),
            until: Some(1400),
            ..Filter::default()
        };
        let entities = Filter {
            entities: Some((0..25).map(EntityId).collect()),
            ..Filter::default()
        };
        let long = (0..1500).filter(|n| sizes[n % sizes.len()] > 1e5);
        let long: Vec<NodeId> = long.map(|n| NodeId(n as u32)).collect();
        let changes: [&dyn Fn(&mut TemporalIndex); 3] =
            [&|_| (), &|index| index.delete(&long).unwrap(), &|index| {
                index.compact().unwrap()
            }];
        for change in changes {
            change(&mut index);
            index.validate().unwrap();
            // The codes of a filter that comes again are copied.
            for filter in [&Filter::default(), &window, &entities, &entities, &entities] {
                for query in &queries {
                    check_exact(&index, &rows, query, filter);
                }
            }
        }
    }
}

fn check_exact(index: &TemporalIndex, rows: &[Vec<f32>], query: &[f32], filter: &Filter) {
    let distance = |row: &[f32]| -> f64 {
        let pairs = query.iter().zip(row);
        let pairs = pairs.map(|(a, b)| (f64::from(*a), f64::from(*b)));
        match index.params().metric {
            Metric::L2 => pairs.map(|(a, b)| (a - b) * (a - b)).sum(),
            _ => 1.0 - pairs.map(|(a, b)| a * b).sum::<f64>(),
        }
    };
    let accepted = |n: &usize| {
        let node = NodeId(*n as u32);
        let listed = |entities: &Vec<EntityId>| entities.contains(&index.entity(node).unwrap());
        index.contains(node)
            && filter.since.is_none_or(|since| *n as i64 >= since)
            && filter.until.is_none_or(|until| (*n as i64) < until)
            && filter.entities.as_ref().is_none_or(listed)
    };
    let accepted = (0..rows.len()).filter(accepted);
    let mut expected: Vec<f64> = accepted.map(|n| distance(&rows[n])).collect();
    expected.sort_by(f64::total_cmp);
    let found = index.search(query, 10, None, filter).unwrap();
    assert_eq!(found.len(), 10);
    for (near, expected) in found.iter().zip(expected) {
        let own = distance(&rows[near.node.index()]);
        assert!(
            (own - expected).abs() <= 2e-6 * expected.abs().max(1.0),
            "{own} where {expected} is next: {filter:?}"
        );
    }
}

#[test]
fn k_and_ef_far_beyond_the_number_of_nodes_find_all_of_them() {
    let rows = Numbers(4).clustered(300, 8, 5);
    for exact_below in [0, 10_000] {
        let params = walked(8, Metric::Cosine).exact_below(exact_below);
        let index = of(&rows, params);
        for (k, ef) in [
            (usize::MAX, None),
            (301, Some(usize::MAX)),
            (1 << 40, Some(1)),
        ] {
            let near = index.search(&rows[0], k, ef, &Filter::default()).unwrap();
            assert_eq!(near.len(), 300);
        }
    }
}

#[test]
fn an_index_that_lost_half_is_that_of_the_other_half_after_compaction() {
    let rows = Numbers(5).clustered(4000, 16, 30);
    let queries = Numbers(6).clustered(50, 16, 30);
    let mut index = of(&rows, walked(16, Metric::Cosine));
    let kept: Vec<Vec<f32>> = rows.iter().skip(1).step_by(2).cloned().collect();
    let fresh = of(&kept, walked(16, Metric::Cosine));
    let gone: Vec<NodeId> = (0..4000).step_by(2).map(NodeId).collect();
    let epoch = index.region_epoch();
    index.delete(&gone).unwrap();
    assert_eq!(index.stats().deleted_rows, 2000);
    index.compact().unwrap();
    index.validate().unwrap();
    assert!(index.region_epoch() > epoch, "hubs were deleted");
    // Columns grow by doubling; a compacted one is as long as its rows.
    assert!(index.stats().bytes <= fresh.stats().bytes);
    let (left, made) = (recall(&index, &queries), recall(&fresh, &queries));
    assert!(left >= made - 0.02, "{left} where {made} was to be had");
    for node in (1..4000).step_by(2).map(NodeId) {
        assert_eq!(index.vector(node).unwrap(), Some(&rows[node.index()][..]));
    }
    assert!(!index.contains(NodeId(0)) && index.entity(NodeId(2)).is_err());

    let before = index.to_bytes();
    index.compact().unwrap();
    assert!(index.to_bytes() == before, "there was nothing to compact");
}

#[test]
fn ids_are_never_given_again_even_when_nothing_is_left() {
    let rows = Numbers(7).clustered(200, 8, 4);
    let mut index = of(&rows, walked(8, Metric::L2));
    let all: Vec<NodeId> = (0..200).map(NodeId).collect();
    index.delete(&all).unwrap();
    index.compact().unwrap();
    assert_eq!((index.len(), index.node_count()), (0, 200));
    assert!(found(&index, &rows[0], 5).is_empty());
    let next = index
        .insert(NewNode::new(EntityId(1), 5, Some(&rows[9])))
        .unwrap();
    assert_eq!(next, NodeId(200));
    let read = TemporalIndex::from_bytes(&index.to_bytes(), "a.cvx".as_ref()).unwrap();
    assert_eq!((read.len(), read.node_count()), (1, 201));
    assert_eq!(found(&read, &rows[9], 5), [200]);
    assert!(!read.contains(NodeId(0)));
}

/// Requirement: B16
#[test]
fn ids_that_are_passed_over_take_no_room_and_never_more_than_there_are() {
    let mut index = TemporalIndex::new(IndexParams::new(4)).expect("good parameters");
    let far = u32::MAX as usize - 10;
    index.skip_ids(far).expect("ids enough");
    let node = NewNode::new(EntityId(1), 5, Some(&[1.0, 0.0, 0.0, 0.0]));
    assert_eq!(index.insert(node).expect("a good node").index(), far);
    assert_eq!((index.len(), index.stats().deleted_rows), (1, 0));
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    index.save(file.path(), b"").expect("room");
    assert!(file.as_file().metadata().expect("a file").len() < 100_000);
    let loaded = TemporalIndex::load(file.path()).expect("what was saved");
    assert_eq!(loaded.node_count(), far + 1);
    let refused = index.skip_ids(100);
    assert!(
        matches!(refused, Err(Error::Capacity { .. })),
        "{refused:?}"
    );
    assert_eq!(index.node_count(), far + 1);
}
