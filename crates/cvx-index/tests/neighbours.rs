//! Searches that use neighbours: hybrid and causal in time, graph search over edges.

mod common;

use std::collections::BTreeMap;

use common::{KINDS, Numbers, filter, lived, metric, params, steps, vector};
use cvx_index::{
    EdgeKind, EntityId, Error, Filter, IndexParams, Metric, NewNode, NodeId, TemporalIndex,
};
use proptest::prelude::*;

fn close(a: f32, b: f64) -> bool {
    (f64::from(a) - b).abs() < 1e-4 * (1.0 + b.abs())
}

/// The scores found are the best of those expected, each that of its node.
fn check_scores(found: &[(u32, f32)], expected: &BTreeMap<u32, f64>, k: usize) {
    let mut best: Vec<f64> = expected.values().copied().collect();
    best.sort_by(|a, b| b.total_cmp(a));
    assert_eq!(found.len(), k.min(best.len()));
    assert!(found.is_sorted_by(|a, b| a.1 >= b.1));
    for ((node, score), best) in found.iter().zip(best) {
        assert!(close(*score, best), "{score} is not the next best {best}");
        assert!(
            close(*score, expected[node]),
            "node {node}: {score}, not {}",
            expected[node]
        );
    }
    let mut nodes: Vec<u32> = found.iter().map(|pair| pair.0).collect();
    nodes.sort_unstable();
    nodes.dedup();
    assert_eq!(nodes.len(), found.len());
}

fn boosts() -> impl Strategy<Value = Vec<(EdgeKind, f32)>> {
    let kinds = [&KINDS[..], &[EdgeKind::Temporal]].concat();
    let factor = proptest::sample::select(vec![0.0f32, 0.3, 0.5, 1.0]);
    let factors = proptest::collection::vec(factor, kinds.len());
    (
        proptest::sample::subsequence(kinds.clone(), 0..=kinds.len()),
        factors,
    )
        .prop_map(|(kinds, factors)| kinds.into_iter().zip(factors).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Requirement: V19, X14
    #[test]
    fn hybrid_search_scores_as_its_definition(
        steps in steps(30), metric in metric(), query in vector(), k in 1usize..12,
        beta in proptest::sample::select(vec![0.0f32, 0.3, 0.9, 1.0]), filter in filter(),
    ) {
        let (index, twin) = lived(&steps, params(metric, 10_000));
        let hits = index.hybrid_search(&query, k, beta, None, &filter).unwrap();
        let found: Vec<(u32, f32)> = hits.iter().map(|hit| (hit.node.0, hit.score)).collect();
        check_scores(&found, &twin.hybrid(&query, f64::from(beta), &filter), k);
        for hit in hits {
            assert!(close(hit.distance, twin.distance(&query, hit.node.0).unwrap()));
            assert!(close(hit.similarity, twin.similarity(&query, hit.node.0).unwrap()));
            let lent = hit.neighbor.map(|(_, similarity)| beta * similarity);
            let lent = lent.filter(|_| beta > 0.0).unwrap_or(f32::NEG_INFINITY);
            assert!(close(hit.score, f64::from(hit.similarity.max(lent))));
        }
    }

    /// Requirement: V8, X14
    #[test]
    fn graph_search_scores_as_its_definition(
        steps in steps(30), metric in metric(), query in vector(), k in 1usize..12, ef in 1usize..15,
        boosts in boosts(), max_hops in 0usize..4, filter in filter(),
    ) {
        let (index, twin) = lived(&steps, params(metric, 10_000));
        // With a tie at the edge of S its members are anybody's choice: ask for whole groups only.
        let near = twin.nearest(&query, &filter);
        let mut ef = ef.max(k);
        while ef < near.len() && near[ef].0 - near[ef - 1].0 < 1e-5 {
            ef += 1;
        }
        let expected = twin.graph(&query, ef, &boosts, max_hops, &filter);
        let hits = index.graph_search(&query, k, &boosts, max_hops, Some(ef), &filter).unwrap();
        let found: Vec<(u32, f32)> = hits.iter().map(|hit| (hit.node.0, hit.score)).collect();
        check_scores(&found, &expected, k);
        for hit in hits {
            assert!(close(hit.distance, twin.distance(&query, hit.node.0).unwrap()));
            assert!(hit.path.len() <= max_hops);
            let Some(first) = hit.path.first() else { continue };
            let start = twin.similarity(&query, first.from.0).unwrap();
            let lent = hit.path.iter().fold(start, |value, edge| {
                value * f64::from(edge.weight) * f64::from(edge.boost)
            });
            assert!(close(hit.score - hit.similarity, lent));
            assert!(hit.path.windows(2).all(|pair| pair[0].to == pair[1].from));
            assert_eq!(hit.path.last().unwrap().to, hit.node);
            assert!(near.iter().take(ef).any(|(_, node)| *node == first.from.0));
        }
    }
}

/// Requirement: V8
#[test]
fn traverse_tells_paths_strongest_first_within_the_namespaces_named() {
    let mut index = TemporalIndex::new(params(Metric::L2, 0)).unwrap();
    let at = |namespace, time| NewNode {
        namespace,
        ..NewNode::new(EntityId(1), time, None)
    };
    index
        .bulk_insert(&[at("", 1), at("", 2), at("other", 1), at("", 3)], 1)
        .unwrap();
    let n = NodeId;
    index.add_edge(n(0), n(3), EdgeKind::Caused, 0.25).unwrap();
    index.add_edge(n(0), n(2), EdgeKind::Caused, 0.75).unwrap();
    index.add_edge(n(2), n(3), EdgeKind::Caused, 1.0).unwrap();
    let kinds = [EdgeKind::Caused, EdgeKind::Temporal];
    let nodes = |namespaces: Option<&[&str]>| -> Vec<(Vec<u32>, f32)> {
        let paths = index.traverse(n(0), &kinds, 2, 10, namespaces).unwrap();
        paths
            .into_iter()
            .map(|p| (p.nodes.iter().map(|n| n.0).collect(), p.strength))
            .collect()
    };
    let home = [(vec![0, 1], 1.0), (vec![0, 1, 3], 1.0), (vec![0, 3], 0.25)];
    assert_eq!(nodes(None), home);
    let both = nodes(Some(&["", "other"]));
    assert_eq!(both[2], (vec![0, 2], 0.75));
    assert_eq!(both[3], (vec![0, 2, 3], 0.75));
    assert_eq!(nodes(Some(&["never"])), []);
}

#[test]
fn a_neighbour_far_from_the_query_is_found_over_time_and_edges_when_walking() {
    let mut numbers = Numbers(3);
    let rows = numbers.clustered(3000, 16, 40);
    let mut index =
        TemporalIndex::new(IndexParams::new(16).m(8).ef_construction(60).exact_below(0)).unwrap();
    let nodes: Vec<NewNode<'_>> = rows
        .iter()
        .zip(0u64..)
        .map(|(row, n)| NewNode::new(EntityId(n / 2), n as i64, Some(row)))
        .collect();
    index.bulk_insert(&nodes, 2).unwrap();
    let all = Filter::default();
    let mut checked = 0;
    for start in (0..60).map(|n| n * 50) {
        let query = &rows[start];
        let beside = NodeId(start as u32 + 1);
        let hybrid = index.hybrid_search(query, 300, 1.0, None, &all).unwrap();
        let hit = hybrid
            .iter()
            .find(|hit| hit.node == beside)
            .expect("it stands beside the query");
        assert!((hit.score - 1.0).abs() < 1e-5);
        let own = index.hybrid_search(query, 3000, 0.0, None, &all).unwrap();
        let own = own
            .iter()
            .find(|hit| hit.node == beside)
            .unwrap()
            .similarity;
        // Nearer ones score below 1 without an edge: 1 more brings it among the best.
        if own > 0.0 {
            index
                .add_edge(NodeId(start as u32), beside, EdgeKind::Caused, 1.0)
                .unwrap();
            let boosts = [(EdgeKind::Caused, 1.0)];
            let graph = index
                .graph_search(query, 5, &boosts, 1, None, &all)
                .unwrap();
            let hit = graph
                .iter()
                .find(|hit| hit.node == beside)
                .expect("an edge leads to it");
            assert!((hit.score - hit.similarity - 1.0).abs() < 1e-5);
            assert_eq!(hit.path.len(), 1);
            checked += 1;
        }
    }
    assert!(checked > 10);
}

#[test]
fn factors_outside_their_range_are_refused() {
    let index = TemporalIndex::new(params(Metric::Cosine, 0)).unwrap();
    let (query, all) = ([1.0; common::DIM], Filter::default());
    for factor in [-0.1, 1.1, f32::NAN, f32::INFINITY] {
        let hybrid = index.hybrid_search(&query, 1, factor, None, &all);
        assert!(matches!(hybrid, Err(Error::Parameter { name: "beta", .. })));
        let graph = index.graph_search(&query, 1, &[(EdgeKind::Caused, factor)], 1, None, &all);
        assert!(matches!(graph, Err(Error::Boost { .. })));
    }
}
