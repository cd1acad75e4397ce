//! Times of the kernels on every instruction set that this processor has.
//!
//! Kernels are chosen once a process: without `CVX_CPU` the bench runs itself for each of them.

use std::process::Command;
use std::time::Duration;

use criterion::{Criterion, Throughput};
use cvx_benches::clustered::{Data, K, data, node, params};
use cvx_index::{Filter, Metric, NewNode, TemporalIndex};

const SCANNED: usize = 2_000;
const PATHS: [&str; 3] = ["scalar", "avx2", "avx512"];

/// An index that compares a query with every row, and measures the best of them.
fn scanned(data: &Data, metric: Metric) -> TemporalIndex {
    let mut index =
        TemporalIndex::new(params(metric, usize::MAX)).expect("parameters within bounds");
    let rows = data.rows[..SCANNED].iter().enumerate();
    let nodes: Vec<NewNode<'_>> = rows.map(|(row, vector)| node(row, vector, &[])).collect();
    index
        .bulk_insert(&nodes, 1)
        .expect("rows of the index's dimension");
    index
}

fn scans(criterion: &mut Criterion, path: &str) {
    let data = data();
    let mut group = criterion.benchmark_group(format!("exact scan of 2,000 rows, {path}"));
    group.throughput(Throughput::Elements(SCANNED as u64));
    for (name, metric) in [
        ("cosine", Metric::Cosine),
        ("l2", Metric::L2),
        ("ip", Metric::InnerProduct),
    ] {
        let index = scanned(&data, metric);
        let mut turn = 0;
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                turn = (turn + 1) % data.queries.len();
                index
                    .search(&data.queries[turn], K, None, &Filter::default())
                    .expect("a good query")
            });
        });
    }
    group.finish();
}

/// Whether this processor has the instruction set.
fn runs(program: &std::path::Path, path: &str) -> bool {
    let asked = Command::new(program)
        .env("CVX_CPU", path)
        .arg("--list")
        .output();
    asked.is_ok_and(|output| output.status.success())
}

fn main() {
    if let Some(path) = std::env::var("CVX_CPU")
        .ok()
        .filter(|path| !path.is_empty())
    {
        TemporalIndex::new(params(Metric::Cosine, 0)).expect("CVX_CPU names what there is");
        let mut criterion = Criterion::default()
            .warm_up_time(Duration::from_millis(500))
            .measurement_time(Duration::from_secs(2))
            .sample_size(30)
            .configure_from_args();
        scans(&mut criterion, &path);
        criterion.final_summary();
        return;
    }
    let program = std::env::current_exe().expect("this program has a path");
    for path in PATHS {
        if !runs(&program, path) {
            println!("{path}: not on this processor");
            continue;
        }
        let status = Command::new(&program)
            .env("CVX_CPU", path)
            .args(std::env::args_os().skip(1))
            .status();
        assert!(status.is_ok_and(|status| status.success()), "{path} failed");
    }
}
