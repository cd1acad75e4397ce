//! Times of the index alone: insert, search, search under each kind of filter, around hits.
//!
//! Seeded clustered vectors, sizes small enough for a few minutes. Recall beside hnswlib, on real
//! vectors, is measured by `benches/peers`; each instruction set by `kernels.rs`.

use std::time::Duration;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use cvx_benches::clustered::{Data, K, Numbers, ROWS, data, node, params};
use cvx_index::{EdgeKind, EntityId, Filter, Metric, NewNode, NodeId, TemporalIndex};

const EDGES: usize = 8;

fn built(data: &Data) -> TemporalIndex {
    let mut index =
        TemporalIndex::new(params(Metric::Cosine, 0)).expect("parameters within bounds");
    let tags = |row: usize| -> &[&str] {
        match row % 100 {
            3 => &["tenth", "hundredth"],
            row if row % 10 == 3 => &["tenth"],
            _ => &[],
        }
    };
    let rows = data.rows.iter().enumerate();
    let nodes: Vec<NewNode<'_>> = rows
        .map(|(row, vector)| NewNode {
            namespace: if row % 2 == 0 { "" } else { "other" },
            ..node(row, vector, tags(row))
        })
        .collect();
    index
        .bulk_insert(&nodes, 2)
        .expect("rows of the index's dimension");
    let mut numbers = Numbers(1);
    for from in 0..ROWS as u32 {
        for _ in 0..EDGES {
            let to = numbers.below(ROWS) as u32;
            if to != from {
                index
                    .add_edge(NodeId(from), NodeId(to), EdgeKind::CausedSuccess, 0.5)
                    .expect("both nodes exist");
            }
        }
    }
    index
}

/// Both namespaces, so that a filter asks for what its name says and no more.
fn open() -> Filter {
    Filter {
        namespaces: Some(vec![String::new(), "other".to_owned()]),
        ..Filter::default()
    }
}

fn inserts(criterion: &mut Criterion, data: &Data) {
    let mut group = criterion.benchmark_group("insert");
    group
        .sample_size(10)
        .measurement_time(Duration::from_secs(5));
    for rows in [500, 2_000] {
        let id = BenchmarkId::new("one by one", rows);
        group.bench_with_input(id, &rows, |bencher, &rows| {
            bencher.iter(|| {
                let mut index =
                    TemporalIndex::new(params(Metric::Cosine, 0)).expect("parameters in bounds");
                for (row, vector) in data.rows[..rows].iter().enumerate() {
                    index
                        .insert(node(row, vector, &[]))
                        .expect("a row of the index's dimension");
                }
                index.len()
            });
        });
    }
    group.finish();
}

fn searches(criterion: &mut Criterion, data: &Data, index: &TemporalIndex) {
    let mut group = criterion.benchmark_group(format!("search, {ROWS} rows, k = {K}"));
    let anything = open();
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
    let boosts = [(EdgeKind::CausedSuccess, 0.3)];
    group.bench_function("graph search, 8 edges a node, 2 hops", |bencher| {
        bencher.iter(|| {
            index
                .graph_search(query(), K, &boosts, 2, Some(100), &anything)
                .expect("a good query")
        });
    });
    group.bench_function("with 5 steps either side", |bencher| {
        bencher.iter(|| {
            let found = index
                .search(query(), K, Some(100), &anything)
                .expect("a good query");
            let nodes: Vec<NodeId> = found.iter().map(|near| near.node).collect();
            let around = index.surrounded(&nodes, 5).expect("nodes that were found");
            let steps = around
                .iter()
                .flat_map(|hit| hit.before().chain(hit.after()));
            steps.map(|step| step.timestamp).max()
        });
    });
    group.finish();
}

/// A filter of one kind; the turn moves its bounds, so that it never came before.
type Asked = fn(usize) -> Filter;

const KINDS: [(&str, Asked); 6] = [
    ("window 1%", |turn| {
        let since = (turn * 37 % (ROWS - 120)) as i64;
        Filter {
            since: Some(since),
            until: Some(since + 120),
            ..open()
        }
    }),
    ("entity", |turn| Filter {
        entities: Some(vec![EntityId((turn % (ROWS / 50)) as u64)]),
        ..open()
    }),
    ("reward 1%", |turn| {
        let lowest = (turn * 7 % 990) as f32 / 1000.0;
        Filter {
            min_reward: Some(lowest),
            max_reward: Some(lowest + 0.009),
            ..open()
        }
    }),
    ("tag 1%, window 50%", |turn| {
        let since = (turn * 37 % (ROWS / 2)) as i64;
        Filter {
            tags: Some(vec!["hundredth".to_owned()]),
            since: Some(since),
            until: Some(since + ROWS as i64 / 2),
            ..open()
        }
    }),
    ("tag 10%, walked or scanned", |turn| Filter {
        tags: Some(vec!["tenth".to_owned()]),
        since: Some(-(turn as i64)),
        ..open()
    }),
    ("namespace 50%", |turn| Filter {
        since: Some(-(turn as i64)),
        ..Filter::default()
    }),
];

/// Each kind cold, its bounds new at every call, and warm, the same filter again.
fn filters(criterion: &mut Criterion, data: &Data, index: &TemporalIndex) {
    let mut group = criterion.benchmark_group(format!("filter, {ROWS} rows, k = {K}"));
    for (name, asked) in KINDS {
        for (state, moves) in [("cold", 1), ("warm", 0)] {
            let mut turn = 0;
            group.bench_function(BenchmarkId::new(name, state), |bencher| {
                bencher.iter(|| {
                    turn += 1;
                    let query = &data.queries[turn % data.queries.len()];
                    index
                        .search(query, K, None, &asked(turn * moves))
                        .expect("a good query")
                });
            });
        }
    }
    group.finish();
}

fn index(criterion: &mut Criterion) {
    let data = data();
    inserts(criterion, &data);
    let index = built(&data);
    searches(criterion, &data, &index);
    filters(criterion, &data, &index);
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
