//! Times of the index alone: distance, insert, search, filtered search, graph search.
//!
//! Seeded clustered vectors, sizes small enough for a minute or two. Recall beside hnswlib, on
//! real vectors, is measured by `benches/peers`.

use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use cvx_index::{EdgeKind, EntityId, Filter, IndexParams, Metric, NewNode, NodeId, TemporalIndex};

const DIM: usize = 384;
const ROWS: usize = 12_000;
const CLUSTERS: usize = 200;
const K: usize = 10;

/// A small generator of our own: the benches need no distribution, only the same numbers.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// About normal: the sum of four uniform numbers.
    fn normal(&mut self) -> f32 {
        let sum: f32 = (0..4)
            .map(|_| (self.next() >> 40) as f32 / (1u32 << 24) as f32)
            .sum();
        (sum - 2.0) * 1.732
    }

    fn vector(&mut self) -> Vec<f32> {
        (0..DIM).map(|_| self.normal()).collect()
    }
}

struct Data {
    rows: Vec<Vec<f32>>,
    queries: Vec<Vec<f32>>,
}

fn data() -> Data {
    let mut numbers = Numbers(0);
    let centres: Vec<Vec<f32>> = (0..CLUSTERS).map(|_| numbers.vector()).collect();
    let mut near_a_centre = |_| {
        let centre = &centres[(numbers.next() % CLUSTERS as u64) as usize];
        centre
            .iter()
            .map(|x| x + 0.8 * numbers.normal())
            .collect::<Vec<f32>>()
    };
    let rows = (0..ROWS).map(&mut near_a_centre).collect();
    let queries = (0..256).map(&mut near_a_centre).collect();
    Data { rows, queries }
}

fn params(exact_below: usize) -> IndexParams {
    IndexParams {
        dim: DIM,
        metric: Metric::Cosine,
        m: 16,
        ef_construction: 200,
        seed: 0,
        exact_below,
    }
}

fn node<'a>(row: usize, vector: &'a [f32], tags: &'a [&'a str]) -> NewNode<'a> {
    NewNode {
        entity: EntityId(row as u64 / 50),
        timestamp: row as i64,
        vector: Some(vector),
        reward: None,
        namespace: "",
        tags,
        action: None,
        recallable: true,
    }
}

fn built(data: &Data) -> TemporalIndex {
    let mut index = TemporalIndex::new(params(0)).expect("parameters within bounds");
    let tags = |row: usize| -> &[&str] { if row % 10 == 3 { &["tenth"] } else { &[] } };
    let nodes: Vec<NewNode<'_>> = data
        .rows
        .iter()
        .enumerate()
        .map(|(row, vector)| node(row, vector, tags(row)))
        .collect();
    index
        .bulk_insert(&nodes, 2)
        .expect("rows of the index's dimension");
    let mut numbers = Numbers(1);
    for from in 0..ROWS as u32 {
        for _ in 0..8 {
            let to = (numbers.next() % ROWS as u64) as u32;
            if to != from {
                index
                    .add_edge(NodeId(from), NodeId(to), EdgeKind::CausedSuccess, 0.5)
                    .expect("both nodes exist");
            }
        }
    }
    index
}

/// Distances as a search uses them: a scan of every row, by metric.
fn distances(criterion: &mut Criterion, data: &Data) {
    const SCANNED: usize = 2_000;
    let mut group = criterion.benchmark_group("distance, exact scan of 2,000 rows");
    group.throughput(Throughput::Elements(SCANNED as u64));
    for (name, metric) in [
        ("cosine", Metric::Cosine),
        ("l2", Metric::L2),
        ("ip", Metric::InnerProduct),
    ] {
        let params = IndexParams {
            metric,
            ..params(usize::MAX)
        };
        let mut index = TemporalIndex::new(params).expect("parameters within bounds");
        let nodes: Vec<NewNode<'_>> = data.rows[..SCANNED]
            .iter()
            .enumerate()
            .map(|(row, vector)| node(row, vector, &[]))
            .collect();
        index
            .bulk_insert(&nodes, 2)
            .expect("rows of the index's dimension");
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                index
                    .search(&data.queries[0], K, None, &Filter::default())
                    .expect("a good query")
            });
        });
    }
    group.finish();
}

fn inserts(criterion: &mut Criterion, data: &Data) {
    let mut group = criterion.benchmark_group("insert");
    group
        .sample_size(10)
        .measurement_time(Duration::from_secs(8));
    for rows in [500, 2_000] {
        group.bench_with_input(
            BenchmarkId::new("one by one", rows),
            &rows,
            |bencher, &rows| {
                bencher.iter(|| {
                    let mut index =
                        TemporalIndex::new(params(0)).expect("parameters within bounds");
                    for (row, vector) in data.rows[..rows].iter().enumerate() {
                        index
                            .insert(node(row, vector, &[]))
                            .expect("a row of the index's dimension");
                    }
                    index.len()
                });
            },
        );
    }
    group.finish();
}

fn searches(criterion: &mut Criterion, data: &Data, index: &TemporalIndex) {
    let mut group = criterion.benchmark_group(format!("search, {ROWS} rows, k = {K}"));
    let anything = Filter::default();
    let tenth = Filter {
        tags: Some(vec!["tenth".to_owned()]),
        ..Filter::default()
    };
    let window = Filter {
        since: Some(6_000),
        until: Some(6_120),
        ..Filter::default()
    };
    let mut turn = 0;
    let mut query = || {
        turn = (turn + 1) % data.queries.len();
        &data.queries[turn]
    };
    for ef in [50, 100, 200] {
        group.bench_function(BenchmarkId::new("ef", ef), |bencher| {
            bencher.iter(|| {
                index
                    .search(query(), K, Some(ef), &anything)
                    .expect("a good query")
            });
        });
    }
    for (name, filter) in [("10% by tag", &tenth), ("1% by time", &window)] {
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                index
                    .search(query(), K, None, filter)
                    .expect("a good query")
            });
        });
    }
    let boosts = [(EdgeKind::CausedSuccess, 0.3)];
    group.bench_function("graph search, 8 edges a node, 2 hops", |bencher| {
        bencher.iter(|| {
            index
                .graph_search(query(), K, &boosts, 2, Some(100), &anything)
                .expect("a good query")
        });
    });
    group.finish();
}

fn index(criterion: &mut Criterion) {
    let data = data();
    distances(criterion, &data);
    inserts(criterion, &data);
    let index = built(&data);
    searches(criterion, &data, &index);
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
        .sample_size(30);
    targets = index
}
criterion_main!(benches);
