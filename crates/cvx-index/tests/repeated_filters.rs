//! A filter used many times answers as it did the first time, and follows changes.

mod common;

use std::path::Path;

use common::Numbers;
use cvx_index::{
    Center, EntityId, Filter, IndexParams, Metric, Neighbor, NewNode, NodeId, TemporalIndex,
};

const DIM: usize = 20;
const ROWS: usize = 600;

fn index(metric: Metric, rows: &[Vec<f32>]) -> TemporalIndex {
    let mut params = IndexParams::new(DIM);
    params.metric = metric;
    let mut index = TemporalIndex::new(params).expect("parameters in range");
    let nodes: Vec<NewNode<'_>> = rows
        .iter()
        .enumerate()
        .map(|(at, row)| NewNode {
            // Times not in the order of arrival: a window is no run of rows.
            timestamp: (at * 7 % ROWS) as i64,
            reward: (at % 3 > 0).then_some((at % 50) as f32 / 50.0),
            tags: if at % 5 == 0 { &["fifth"] } else { &["other"] },
            namespace: if at % 4 == 0 { "quarter" } else { "" },
            ..NewNode::new(EntityId(at as u64 % 9), 0, Some(row))
        })
        .collect();
    index.bulk_insert(&nodes, 1).expect("sound nodes");
    index
}

fn filters() -> Vec<Filter> {
    let named = |names: &[&str]| Some(names.iter().map(|&name| name.to_owned()).collect());
    let all = named(&["", "quarter"]);
    vec![
        Filter {
            tags: named(&["fifth"]),
            namespaces: all.clone(),
            ..Filter::default()
        },
        Filter {
            namespaces: named(&["quarter"]),
            ..Filter::default()
        },
        Filter {
            min_reward: Some(0.5),
            max_reward: Some(0.75),
            ..Filter::default()
        },
        Filter {
            since: Some(100),
            until: Some(300),
            tags: named(&["other"]),
            recallable: None,
            ..Filter::default()
        },
        Filter {
            entities: Some(vec![EntityId(2), EntityId(5)]),
            namespaces: all,
            min_reward: Some(0.1),
            ..Filter::default()
        },
        Filter {
            ids: Some((0..90).map(|at| NodeId(at * 3)).collect()),
            ..Filter::default()
        },
    ]
}

fn answers(index: &TemporalIndex, queries: &[Vec<f32>], filter: &Filter) -> Vec<Vec<Neighbor>> {
    let ask = |query: &Vec<f32>| index.search(query, 7, None, filter).expect("a sound query");
    queries.iter().map(ask).collect()
}

/// What an index says that has never been asked anything.
fn unasked(index: &TemporalIndex, query: &Vec<f32>, filter: &Filter) -> Vec<Neighbor> {
    let fresh = TemporalIndex::from_bytes(&index.to_bytes(), Path::new("memory"));
    answers(
        &fresh.expect("sound bytes"),
        std::slice::from_ref(query),
        filter,
    )
    .remove(0)
}

#[test]
fn a_filter_that_comes_again_answers_as_in_an_index_that_was_never_asked() {
    for metric in [Metric::Cosine, Metric::L2, Metric::InnerProduct] {
        let mut numbers = Numbers(7);
        let rows = numbers.clustered(ROWS, DIM, 12);
        let queries = numbers.clustered(4, DIM, 2);
        let mut index = index(metric, &rows);
        let changes: [fn(&mut TemporalIndex); 4] = [
            |_| (),
            |index| {
                index.set_reward(NodeId(5), Some(0.6)).expect("it lives");
                index.set_recallable(NodeId(20), false).expect("it lives");
            },
            |index| index.delete(&[NodeId(40)]).expect("it lives"),
            |index| index.set_center(Center::Mean).expect("no row is it"),
        ];
        for change in changes {
            change(&mut index);
            for filter in filters() {
                let expected: Vec<_> = queries
                    .iter()
                    .map(|query| unasked(&index, query, &filter))
                    .collect();
                assert!(expected.iter().all(|found| found.len() == 7));
                for time in 1..=4 {
                    let found = answers(&index, &queries, &filter);
                    assert_eq!(found, expected, "{metric:?}, time {time}, {filter:?}");
                }
            }
        }
    }
}
