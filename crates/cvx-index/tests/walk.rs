//! Nearest-neighbour search by graph walk: under filters, after deletions, among copies.

mod common;

use std::process::Command;
use std::sync::LazyLock;

use common::Numbers;
use cvx_index::{EntityId, Filter, IndexParams, Metric, Neighbor, NewNode, NodeId, TemporalIndex};

const DIM: usize = 24;
const ROWS: usize = 9_000;
const K: usize = 10;

fn params(exact_below: usize) -> IndexParams {
    IndexParams::new(DIM)
        .ef_construction(100)
        .exact_below(exact_below)
}

/// Rows in the order of time, a tenth of them after another recallable or tagged.
fn node(row: &[f32], n: usize) -> NewNode<'_> {
    NewNode {
        reward: Some((n * 7919 % 1000) as f32 / 1000.0),
        tags: if n % 100 == 3 { &["hundredth"] } else { &[] },
        ..NewNode::new(EntityId(n as u64 / 20), n as i64, Some(row))
    }
}

fn bulk(rows: &[Vec<f32>], params: IndexParams, threads: usize) -> TemporalIndex {
    let mut index = TemporalIndex::new(params).unwrap();
    let nodes: Vec<NewNode<'_>> = rows
        .iter()
        .enumerate()
        .map(|(n, row)| node(row, n))
        .collect();
    index.bulk_insert(&nodes, threads).unwrap();
    index
}

struct Shared {
    rows: Vec<Vec<f32>>,
    queries: Vec<Vec<f32>>,
    index: TemporalIndex,
}

static SHARED: LazyLock<Shared> = LazyLock::new(|| {
    let mut all = Numbers(11).clustered(ROWS + 60, DIM, 150);
    let queries = all.split_off(ROWS);
    let index = bulk(&all, params(0), 2);
    index.validate().unwrap();
    Shared {
        rows: all,
        queries,
        index,
    }
});

/// The share of the nearest `K` accepted that are found; all of them must be as many as there are.
fn recall(index: &TemporalIndex, queries: &[Vec<f32>], filter: &Filter) -> f64 {
    let (mut found, mut all) = (0, 0);
    for query in queries {
        // A beam as wide as the index is a scan.
        let truth = index.search(query, K, Some(index.len()), filter).unwrap();
        let walked = index.search(query, K, None, filter).unwrap();
        assert_eq!(walked.len(), truth.len());
        let farthest = truth.last().map_or(0.0, |near| near.distance);
        found += walked
            .iter()
            .filter(|near| near.distance <= farthest)
            .count();
        all += truth.len();
    }
    found as f64 / all as f64
}

/// Requirement: V19
#[test]
fn the_default_walk_finds_99_of_100_neighbours() {
    let Shared { queries, index, .. } = &*SHARED;
    assert!(recall(index, queries, &Filter::default()) >= 0.99);
}

/// Requirement: V19
#[test]
fn a_filter_costs_no_neighbours_at_any_share() {
    let Shared { queries, index, .. } = &*SHARED;
    for share in [0.5, 0.1, 0.01, 0.001] {
        let random = Filter {
            min_reward: Some(1.0 - share),
            ..Filter::default()
        };
        assert!(recall(index, queries, &random) >= 0.99, "random {share}");
        let until = Some((ROWS as f32 * share) as i64);
        let window = Filter {
            until,
            ..Filter::default()
        };
        assert!(recall(index, queries, &window) >= 0.99, "window {share}");
    }
    let tagged = Filter {
        tags: Some(vec!["hundredth".to_owned()]),
        ..Filter::default()
    };
    assert!(recall(index, queries, &tagged) >= 0.99);
    let half = (0..ROWS as u32)
        .filter(|n| n % 2 == 0)
        .map(NodeId)
        .collect();
    assert!(
        recall(
            index,
            queries,
            &Filter {
                ids: Some(half),
                ..Filter::default()
            }
        ) >= 0.99
    );
    let some = (0..40).map(EntityId).collect();
    assert!(
        recall(
            index,
            queries,
            &Filter {
                entities: Some(some),
                ..Filter::default()
            }
        ) >= 0.99
    );
}

#[test]
fn accepted_nodes_on_the_far_side_are_found() {
    let Shared { rows, index, .. } = &*SHARED;
    let mut tagged = bulk(rows, params(0), 2);
    let query = &rows[0];
    // Everything within half of the distances is refused: the farthest half is what is left.
    let mut order = index.search(query, ROWS, None, &Filter::default()).unwrap();
    for near in order.drain(..ROWS / 2) {
        tagged.set_recallable(near.node, false).unwrap();
    }
    let found = tagged.search(query, K, None, &Filter::default()).unwrap();
    let nodes = |list: &[Neighbor]| list.iter().map(|near| near.node).collect::<Vec<_>>();
    assert_eq!(nodes(&found), nodes(&order[..K]));
}

#[test]
fn a_graph_that_grew_node_by_node_is_as_good_as_one_made_at_once() {
    let Shared { rows, queries, .. } = &*SHARED;
    let mut index = TemporalIndex::new(params(0)).unwrap();
    for (n, row) in rows[..4000].iter().enumerate() {
        index.insert(node(row, n)).unwrap();
    }
    index.validate().unwrap();
    assert!(recall(&index, queries, &Filter::default()) >= 0.99);
}

#[test]
fn deletions_leave_a_graph_that_still_finds() {
    let Shared { rows, queries, .. } = &*SHARED;
    let mut index = bulk(&rows[..6000], params(0), 2);
    let mut numbers = Numbers(4);
    let mut left: Vec<NodeId> = (0..6000).map(NodeId).collect();
    for round in 0..8 {
        let gone: Vec<NodeId> = (0..500)
            .map(|_| left.swap_remove(numbers.below(left.len())))
            .collect();
        index.delete(&gone).unwrap();
        index.validate().unwrap();
        let reached = recall(&index, queries, &Filter::default());
        assert!(
            reached >= 0.98,
            "{reached} after {} deletions",
            500 * (round + 1)
        );
    }
}

#[test]
fn equal_vectors_are_all_found_and_hide_nobody() {
    let mut numbers = Numbers(6);
    let distinct = numbers.clustered(1500, DIM, 30);
    // Two vectors have a thousand copies each, twenty have fifty.
    let copies = (0..3000).map(|n| match n {
        0..1000 => 0,
        1000..2000 => 1,
        _ => 2 + n % 20,
    });
    let mut rows: Vec<Vec<f32>> = copies.map(|n| distinct[n].clone()).collect();
    rows.extend_from_slice(&distinct);
    for turn in 0..rows.len() {
        rows.swap(turn, numbers.below(turn + 1));
    }
    let index = bulk(&rows, params(0), 2);
    index.validate().unwrap();
    let all = recall(&index, &distinct[..100], &Filter::default());
    assert!(all >= 0.99, "{all}");
    let half = Filter {
        min_reward: Some(0.5),
        ..Filter::default()
    };
    assert!(recall(&index, &distinct[..100], &half) >= 0.99);

    let same = vec![vec![1.0; DIM]; 2000];
    let index = bulk(&same, params(0), 2);
    index.validate().unwrap();
    let found = index
        .search(&same[0], 500, None, &Filter::default())
        .unwrap();
    assert_eq!(found.len(), 500);
    assert!(found.iter().all(|near| near.distance.abs() < 1e-6));
}

#[test]
fn other_metrics_walk_as_well() {
    let mut numbers = Numbers(8);
    for metric in [Metric::L2, Metric::InnerProduct] {
        let mut rows = numbers.clustered(3060, DIM, 60);
        if metric == Metric::InnerProduct {
            // Inner products over any norms are no task for a graph.
            for row in &mut rows {
                let norm = row.iter().map(|x| x * x).sum::<f32>().sqrt();
                row.iter_mut().for_each(|x| *x /= norm);
            }
        }
        let queries = rows.split_off(3000);
        let index = bulk(&rows, params(0).metric(metric), 2);
        assert!(
            recall(&index, &queries, &Filter::default()) >= 0.98,
            "{metric:?}"
        );
    }
}

/// Requirement: V19
#[test]
fn the_number_of_threads_changes_no_bit() {
    let Shared { rows, queries, .. } = &*SHARED;
    let [one, two, four] = [1, 2, 4].map(|threads| bulk(&rows[..3000], params(0), threads));
    let bytes = one.to_bytes();
    assert!(two.to_bytes() == bytes && four.to_bytes() == bytes);
    let flat = queries.concat();
    let all = Filter::default();
    let answers = one.search_batch(&flat, K, None, &all, 1).unwrap();
    assert_eq!(two.search_batch(&flat, K, None, &all, 3).unwrap(), answers);
    let alone = queries
        .iter()
        .map(|query| one.search(query, K, None, &all).unwrap());
    assert!(alone.eq(answers));
}

/// Run by the test below, once for each instruction set.
#[test]
fn digest_of_an_index() {
    let rows = Numbers(21).clustered(1500, 50, 30);
    let mut digest = crc32fast::Hasher::new();
    for metric in [Metric::Cosine, Metric::L2] {
        let params = IndexParams::new(50).metric(metric).exact_below(0);
        let index = bulk(&rows, params, 2);
        digest.update(&index.to_bytes());
        for near in index.search(&rows[7], K, None, &Filter::default()).unwrap() {
            digest.update(&near.distance.to_le_bytes());
        }
        println!("kernels {}", index.stats().kernels);
    }
    println!("digest {:08x}", digest.finalize());
    assert_eq!(rows.len(), 1500);
}

/// Whether this processor has what `CVX_CPU` calls by this name.
fn has(cpu: &str) -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        let bits = is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("popcnt")
            && is_x86_feature_detected!("lzcnt");
        let wide = match cpu {
            "avx2" => is_x86_feature_detected!("avx2"),
            "avx512" => {
                is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("avx512vnni")
            }
            _ => false,
        };
        cpu == "scalar" || bits && wide
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        cpu == "scalar"
    }
}

#[test]
fn the_instruction_set_changes_no_bit() {
    let digests = ["scalar", "avx2", "avx512", "sse9"].map(|cpu| {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "digest_of_an_index", "--nocapture"])
            .env("CVX_CPU", cpu)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let after = |key: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(key));
            line.map(str::to_owned)
        };
        if has(cpu) {
            assert!(output.status.success(), "{cpu}: {:?}", output.status);
            assert_eq!(after("kernels ").as_deref(), Some(cpu));
            after("digest ")
        } else {
            let errors = String::from_utf8(output.stderr).unwrap();
            let refusal = format!("Parameter {{ name: \"CVX_CPU\", value: \"{cpu}\"");
            assert!(errors.contains(&refusal), "{cpu}: {errors}");
            None
        }
    });
    let [plain, wide @ .., unknown] = digests;
    assert!(plain.is_some());
    for digest in wide.iter().flatten() {
        assert_eq!(Some(digest), plain.as_ref());
    }
    assert_eq!(unknown, None);
}
