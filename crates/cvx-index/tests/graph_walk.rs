//! Graph search by pruned walks finds what its definition says.

mod common;

use std::collections::HashMap;

use common::Numbers;
use cvx_index::{EdgeKind, EntityId, Filter, IndexParams, Metric, NewNode, NodeId, TemporalIndex};

const DIM: usize = 24;
const ROWS: usize = 4_000;
const EDGES: usize = 8;
const K: usize = 10;
const EF: usize = 64;

/// A graph with typed edges, each to a node not far away or to any.
struct World {
    index: TemporalIndex,
    edges: HashMap<u32, HashMap<u32, f32>>,
    queries: Vec<Vec<f32>>,
}

fn world(metric: Metric) -> World {
    let mut numbers = Numbers(5);
    let mut rows = numbers.clustered(ROWS + 40, DIM, 60);
    let queries = rows.split_off(ROWS);
    let params = IndexParams::new(DIM)
        .metric(metric)
        .ef_construction(100)
        .exact_below(0);
    let mut index = TemporalIndex::new(params).unwrap();
    let nodes: Vec<NewNode<'_>> = rows
        .iter()
        .enumerate()
        .map(|(n, row)| NewNode {
            tags: if n % 2 == 0 { &["even"] } else { &[] },
            ..NewNode::new(EntityId(n as u64 / 20), n as i64, Some(row))
        })
        .collect();
    index.bulk_insert(&nodes, 2).unwrap();
    let mut edges: HashMap<u32, HashMap<u32, f32>> = HashMap::new();
    for from in 0..ROWS as u32 {
        let beside = index
            .search(&rows[from as usize], 40, None, &Filter::default())
            .unwrap();
        for at in 0..EDGES {
            let to = match at % 2 {
                0 => beside[numbers.below(beside.len())].node.0,
                _ => numbers.below(ROWS) as u32,
            };
            if to != from {
                let weight = numbers.below(100) as f32 / 100.0;
                let (start, end) = (NodeId(from), NodeId(to));
                index
                    .add_edge(start, end, EdgeKind::Caused, weight)
                    .unwrap();
                edges.entry(from).or_default().insert(to, weight);
            }
        }
    }
    World {
        index,
        edges,
        queries,
    }
}

impl World {
    /// The scores by definition, from S as plain search finds it.
    fn scores(&self, query: &[f32], boost: f32, hops: usize, filter: &Filter) -> HashMap<u32, f32> {
        let metric = self.index.params().metric;
        let all = Some(ROWS);
        let everything = self.index.search(query, ROWS, all, &Filter::default());
        let similarity: HashMap<u32, f32> = everything
            .unwrap()
            .iter()
            .map(|near| (near.node.0, metric.similarity(near.distance)))
            .collect();
        let near = self.index.search(query, EF, Some(EF), filter).unwrap();
        let mut lent: HashMap<u32, f32> = near.iter().map(|near| (near.node.0, 0.0)).collect();
        for start in near.iter().map(|near| near.node.0) {
            let mut ends = vec![(vec![start], similarity[&start])];
            for _ in 0..hops {
                let mut next = Vec::new();
                for (path, value) in ends {
                    let last = path[path.len() - 1];
                    for (&to, weight) in self.edges.get(&last).into_iter().flatten() {
                        if !path.contains(&to) {
                            next.push(([&path[..], &[to]].concat(), value * boost * weight));
                        }
                    }
                }
                for (path, value) in &next {
                    let best = lent.entry(path[path.len() - 1]).or_default();
                    *best = best.max(*value);
                }
                ends = next;
            }
        }
        let accepts = |node: &u32| filter.tags.is_none() || node.is_multiple_of(2);
        lent.into_iter()
            .filter(|(node, _)| accepts(node))
            .map(|(node, lent)| (node, similarity[&node] + lent))
            .collect()
    }
}

/// Requirement: V8
#[test]
fn a_walk_finds_the_best_scores_and_tells_the_paths_that_make_them() {
    let tagged = Filter {
        tags: Some(vec!["even".to_owned()]),
        ..Filter::default()
    };
    for metric in [Metric::Cosine, Metric::L2, Metric::InnerProduct] {
        let world = world(metric);
        let (mut agreed, mut all) = (0, 0);
        for (hops, filter) in [
            (1, &Filter::default()),
            (2, &tagged),
            (2, &Filter::default()),
        ] {
            for query in &world.queries {
                let expected = world.scores(query, 0.4, hops, filter);
                let hits = world
                    .index
                    .graph_search(query, K, &[(EdgeKind::Caused, 0.4)], hops, Some(EF), filter)
                    .unwrap();
                assert_eq!(hits.len(), K);
                assert!(hits.is_sorted_by(|a, b| a.score >= b.score));
                for hit in &hits {
                    // The path that is told makes the score, and none is better by more than
                    // what codes may lose of the similarity of its start.
                    let lent = hit.score - hit.similarity;
                    assert_eq!(lent > 0.0, !hit.path.is_empty());
                    assert!(hit.path.len() <= hops);
                    let best = expected[&hit.node.0];
                    assert!((hit.score - best).abs() <= 0.01 * best.abs().max(1.0));
                }
                let mut scores: Vec<f32> = expected.into_values().collect();
                scores.sort_unstable_by(|a, b| b.total_cmp(a));
                let last = scores[K - 1] - 1e-4 * scores[K - 1].abs();
                agreed += hits.iter().filter(|hit| hit.score >= last).count();
                all += K;
            }
        }
        let share = agreed as f64 / all as f64;
        assert!(share >= 0.99, "{metric:?}: {share}");
    }
}
