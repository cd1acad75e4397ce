//! After any sequence of operations the index answers as its naive twin does.

mod common;

use common::{DIM, KINDS, Step, Twin, filter, lived, metric, params, steps, vector};
use cvx_index::{Direction, EdgeKind, EntityId, Filter, NodeId, TemporalIndex};
use proptest::prelude::*;
use proptest::strategy::ValueTree;

fn check_search(index: &TemporalIndex, twin: &Twin, query: &[f32], k: usize, filter: &Filter) {
    let found = index.search(query, k, None, filter).expect("a good query");
    let expected = twin.nearest(query, filter);
    assert_eq!(found.len(), k.min(expected.len()));
    for (near, (distance, _)) in found.iter().zip(&expected) {
        let own = twin
            .distance(query, near.node.0)
            .expect("found nodes have vectors");
        assert!((f64::from(near.distance) - distance).abs() < 1e-5 * (1.0 + distance.abs()));
        assert!((f64::from(near.distance) - own).abs() < 1e-5 * (1.0 + own.abs()));
        assert!(twin.accepts(near.node.0, filter));
    }
    let mut nodes: Vec<NodeId> = found.iter().map(|near| near.node).collect();
    nodes.sort_unstable();
    nodes.dedup();
    assert_eq!(nodes.len(), found.len());
    assert!(found.is_sorted_by_key(|near| near.distance));
}

fn check_nodes(index: &TemporalIndex, twin: &Twin) {
    assert_eq!(index.len(), twin.live().count());
    assert_eq!(index.node_count(), twin.rows.len());
    assert!(index.node_ids().map(|node| node.0).eq(twin.live()));
    for (row, node) in twin.rows.iter().zip(0..) {
        let id = NodeId(node);
        assert_eq!(index.contains(id), row.live);
        if !row.live {
            assert!(index.entity(id).is_err());
            continue;
        }
        assert_eq!(index.entity(id).unwrap(), EntityId(row.entity));
        assert_eq!(index.timestamp(id).unwrap(), row.time);
        assert_eq!(index.reward(id).unwrap(), row.reward);
        assert_eq!(index.recallable(id).unwrap(), row.recallable);
        assert_eq!(index.namespace(id).unwrap(), row.namespace);
        assert_eq!(index.tags(id).unwrap(), row.tags);
        assert_eq!(index.action(id).unwrap(), row.action);
        assert_eq!(index.vector(id).unwrap(), row.vector.as_deref());
    }
}

fn check_timelines(index: &TemporalIndex, twin: &Twin, n: usize) {
    let plain = |nodes: Vec<NodeId>| nodes.into_iter().map(|node| node.0).collect::<Vec<_>>();
    for node in twin.live() {
        let (before, after) = twin.around(node);
        let last = before[before.len().saturating_sub(n)..].to_vec();
        let first: Vec<u32> = after.into_iter().take(n).collect();
        assert_eq!(plain(index.predecessors(NodeId(node), n).unwrap()), last);
        assert_eq!(plain(index.successors(NodeId(node), n).unwrap()), first);
        let row = &twin.rows[node as usize];
        let mut line = twin.timeline(row.namespace, row.entity);
        let whole = index.trajectory(row.namespace, EntityId(row.entity), None, None);
        assert_eq!(plain(whole.unwrap()), line);
        line.retain(|&n| (-1..3).contains(&twin.rows[n as usize].time));
        let part = index.trajectory(row.namespace, EntityId(row.entity), Some(-1), Some(3));
        assert_eq!(plain(part.unwrap()), line);
    }
    assert!(index.trajectory("never", EntityId(0), None, None).is_err());
}

fn check_edges(index: &TemporalIndex, twin: &Twin) {
    let listed: Vec<((u32, u32, EdgeKind), f32)> = index
        .edges()
        .map(|e| ((e.from.0, e.to.0, e.kind), e.weight))
        .collect();
    let mut expected: Vec<_> = twin
        .edges
        .iter()
        .map(|(key, weight)| (*key, *weight))
        .collect();
    expected.sort_by_key(|((from, to, kind), _)| (*from, *kind, *to));
    assert_eq!(listed, expected);
    let open = ["", "a"];
    for node in twin.live() {
        let (before, after) = twin.around(node);
        let reachable = |n: &u32| open.contains(&twin.rows[*n as usize].namespace);
        for kind in KINDS {
            let out = twin
                .edges
                .keys()
                .filter(|key| key.0 == node && key.2 == kind);
            let out: Vec<u32> = out.map(|key| key.1).filter(reachable).collect();
            let into = twin
                .edges
                .keys()
                .filter(|key| key.1 == node && key.2 == kind);
            let into: Vec<u32> = into.map(|key| key.0).filter(reachable).collect();
            for (direction, expected) in [(Direction::Out, out), (Direction::In, into)] {
                let found =
                    index.typed_neighbors(NodeId(node), Some(kind), 0.0, direction, Some(&open));
                let found: Vec<u32> = found.unwrap().iter().map(|half| half.node.0).collect();
                assert_eq!(found, expected);
            }
        }
        let next = index.typed_neighbors(
            NodeId(node),
            Some(EdgeKind::Temporal),
            1.0,
            Direction::Out,
            None,
        );
        let next: Vec<u32> = next.unwrap().iter().map(|half| half.node.0).collect();
        assert_eq!(next, after.first().copied().into_iter().collect::<Vec<_>>());
        let last = index.typed_neighbors(
            NodeId(node),
            Some(EdgeKind::Temporal),
            1.0,
            Direction::In,
            None,
        );
        let last: Vec<u32> = last.unwrap().iter().map(|half| half.node.0).collect();
        assert_eq!(last, before.last().copied().into_iter().collect::<Vec<_>>());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// Requirement: V19, X14
    #[test]
    fn a_search_is_a_search_among_what_the_filter_accepts(
        steps in steps(40), metric in metric(), queries in proptest::collection::vec((vector(), filter()), 1..8),
        k in 1usize..30, exact in any::<bool>(),
    ) {
        let (index, twin) = lived(&steps, params(metric, if exact { 10_000 } else { 0 }));
        for (query, filter) in &queries {
            check_search(&index, &twin, query, k, filter);
            check_search(&index, &twin, query, k, &Filter::default());
        }
    }

    #[test]
    fn a_search_for_any_of_several_filters_is_a_search_among_what_one_of_them_accepts(
        steps in steps(40), metric in metric(), query in vector(),
        filters in proptest::collection::vec(filter(), 0..4), k in 1usize..30,
    ) {
        let (index, twin) = lived(&steps, params(metric, 0));
        let any = index.any_of(&filters).expect("good filters");
        let accepted = twin.live().filter(|&node| filters.iter().any(|f| twin.accepts(node, f)));
        let ids: Vec<NodeId> = accepted.map(NodeId).collect();
        prop_assert_eq!(any.ids.as_ref(), Some(&ids));
        check_search(&index, &twin, &query, k, &any);
        let spaces = any.namespaces.clone().unwrap_or_default();
        prop_assert!(filters.iter().flat_map(|f| twin.spaces(f)).all(|name| spaces.iter().any(|s| s == name)));
    }

    /// Requirement: V2, V7, V8, V9
    #[test]
    fn columns_timelines_and_edges_hold_what_was_put_in(
        steps in steps(50), metric in metric(), n in 0usize..4,
    ) {
        let (index, twin) = lived(&steps, params(metric, 10_000));
        check_nodes(&index, &twin);
        check_timelines(&index, &twin, n);
        check_edges(&index, &twin);
    }

    /// Requirement: V10, V19
    #[test]
    fn a_snapshot_brings_everything_back_and_the_next_change_does_the_same_to_both(
        steps in steps(40), more in steps(10), metric in metric(), query in vector(),
    ) {
        let (mut index, mut twin) = lived(&steps, params(metric, 0));
        let bytes = index.to_bytes();
        let mut read = TemporalIndex::from_bytes(&bytes, "a.cvx".as_ref()).expect("a snapshot");
        read.validate().map_err(TestCaseError::fail)?;
        prop_assert_eq!(&read.to_bytes(), &bytes);
        let mut again = twin.clone();
        for step in &more {
            common::apply(step, &mut index, &mut twin);
            common::apply(step, &mut read, &mut again);
        }
        prop_assert_eq!(read.to_bytes(), index.to_bytes());
        check_nodes(&read, &twin);
        check_search(&read, &twin, &query, 9, &Filter::default());
    }
}

/// A case that comes up once in ten thousand is found at night, not in somebody else's change.
#[test]
fn the_cases_of_a_run_are_drawn_from_a_seed() {
    let seed = ProptestConfig::default().rng_seed;
    assert_ne!(seed, proptest::test_runner::RngSeed::Random);
}

#[test]
fn an_index_that_was_emptied_fills_again() {
    let steps: Vec<Step> = {
        let mut runner = proptest::test_runner::TestRunner::deterministic();
        let tree = proptest::collection::vec(common::row(), 60)
            .new_tree(&mut runner)
            .unwrap();
        vec![Step::Bulk(tree.current()), Step::Refresh]
    };
    let (mut index, mut twin) = lived(&steps, params(cvx_index::Metric::Cosine, 0));
    let all: Vec<NodeId> = twin.live().map(NodeId).collect();
    index.delete(&all).unwrap();
    all.iter().for_each(|node| twin.delete(node.0));
    index.validate().unwrap();
    assert!(index.is_empty());
    assert_eq!(
        index
            .search(&[1.0; DIM], 5, None, &Filter::default())
            .unwrap(),
        []
    );
    assert!(index.region_levels().is_empty());
    common::apply(&steps[0], &mut index, &mut twin);
    index.validate().unwrap();
    check_nodes(&index, &twin);
    check_search(
        &index,
        &twin,
        &[1.0, 2.0, -1.0, 0.5],
        30,
        &Filter::default(),
    );
}
