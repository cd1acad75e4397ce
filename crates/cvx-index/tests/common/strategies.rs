//! Proptest strategies: rows, filters, and operations applied to an index and its twin alike.

use cvx_index::{EntityId, Filter, IndexParams, Metric, NewNode, NodeId, TemporalIndex};
use proptest::prelude::*;

use super::twin::{Row, Twin};
use super::{DIM, KINDS, MAPPED};

pub fn params(metric: Metric, exact_below: usize) -> IndexParams {
    IndexParams::new(DIM)
        .metric(metric)
        .m(4)
        .ef_construction(40)
        .exact_below(exact_below)
}

/// Small whole numbers: exact in f32, with ties and copies, never zero.
pub fn vector() -> impl Strategy<Value = Vec<f32>> {
    let numbers = proptest::collection::vec((-3i8..=3).prop_map(f32::from), DIM);
    numbers.prop_filter("not zero", |v| v.iter().any(|x| *x != 0.0))
}

pub fn metric() -> impl Strategy<Value = Metric> {
    prop_oneof![
        Just(Metric::Cosine),
        Just(Metric::L2),
        Just(Metric::InnerProduct)
    ]
}

pub fn row() -> impl Strategy<Value = Row> {
    let tags = proptest::sample::subsequence(vec!["x", "y"], 0..=2);
    let reward = proptest::sample::select(vec![None, Some(0.0), Some(0.25), Some(0.5), Some(1.0)]);
    let namespace = proptest::sample::select(vec!["", "", "a", "b"]);
    let action = proptest::sample::select(vec![None, Some("go"), Some("take")]);
    let columns = (0u64..4, -4i64..5, reward, namespace, tags, action);
    let rest = (
        proptest::option::weighted(0.85, vector()),
        proptest::bool::weighted(0.8),
    );
    (columns, rest).prop_map(
        |((entity, time, reward, namespace, tags, action), (vector, recallable))| Row {
            entity,
            time,
            vector,
            reward,
            namespace,
            tags,
            action,
            recallable,
            live: true,
        },
    )
}

pub fn filter() -> impl Strategy<Value = Filter> {
    let strings = |names: Vec<&'static str>, most| {
        let some = proptest::sample::subsequence(names, 0..=most);
        some.prop_map(|names| names.into_iter().map(str::to_owned).collect::<Vec<_>>())
    };
    let times = (-5i64..5, 1i64..7, any::<[bool; 2]>());
    let rewards = (
        0u8..3,
        0u8..3,
        proptest::option::weighted(0.3, any::<[bool; 2]>()),
    );
    let names = (
        proptest::option::weighted(0.4, strings(vec!["", "a", "never"], 3)),
        proptest::option::weighted(0.3, strings(vec!["x", "y", "never"], 2)),
    );
    let lists = (
        proptest::option::weighted(0.3, proptest::collection::vec(0u64..5, 0..3)),
        proptest::option::weighted(0.2, proptest::collection::vec(0u32..50, 0..20)),
    );
    let recallable = proptest::sample::select(vec![Some(true), Some(true), Some(false), None]);
    (times, rewards, names, lists, recallable).prop_map(
        |(
            (since, span, sides),
            (a, b, reward_sides),
            (namespaces, tags),
            (entities, ids),
            recallable,
        )| {
            let [has_min, has_max] = reward_sides.unwrap_or([false, false]);
            Filter {
                since: sides[0].then_some(since),
                until: sides[1].then_some(since + span),
                min_reward: has_min.then_some(f32::from(a.min(b)) / 2.0),
                max_reward: has_max.then_some(f32::from(a.max(b)) / 2.0),
                namespaces,
                tags,
                entities: entities.map(|e| e.into_iter().map(EntityId).collect()),
                ids: ids.map(|ids| ids.into_iter().map(NodeId).collect()),
                recallable,
            }
        },
    )
}

#[derive(Clone, Debug)]
pub enum Step {
    Insert(Row),
    Bulk(Vec<Row>),
    /// Nodes by their place among the live ones.
    Delete(Vec<usize>),
    Edge(usize, usize, usize, f32),
    Reward(usize, Option<f32>),
    Recallable(usize, bool),
    Vector(usize, Option<Vec<f32>>),
    Tags(usize, Vec<&'static str>),
    Center(Option<Vec<f32>>),
    Refresh,
    Compact,
    Skip(usize),
    /// Saved, and mapped again.
    Reopen,
}

pub fn steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    // Quarters are no difference of whole numbers: no vector is its own center.
    let center = proptest::collection::vec((-3i8..3).prop_map(|x| f32::from(x) + 0.25), DIM);
    let weight = proptest::sample::select(vec![0.25f32, 0.5, 1.0]);
    let step = prop_oneof![
        6 => row().prop_map(Step::Insert),
        3 => proptest::collection::vec(row(), 0..12).prop_map(Step::Bulk),
        2 => proptest::collection::vec(0usize..100, 0..4).prop_map(Step::Delete),
        5 => (0usize..100, 0usize..100, 0usize..3, weight).prop_map(|(a, b, k, w)| Step::Edge(a, b, k, w)),
        1 => (0usize..100, proptest::option::of(0.0f32..=1.0)).prop_map(|(n, r)| Step::Reward(n, r)),
        1 => (0usize..100, any::<bool>()).prop_map(|(n, r)| Step::Recallable(n, r)),
        2 => (0usize..100, proptest::option::weighted(0.8, vector())).prop_map(|(n, v)| Step::Vector(n, v)),
        1 => (0usize..100, proptest::sample::subsequence(vec!["x", "y"], 0..=2)).prop_map(|(n, t)| Step::Tags(n, t)),
        1 => proptest::option::of(center).prop_map(Step::Center),
        1 => Just(Step::Refresh),
        1 => Just(Step::Compact),
        1 => (0usize..4).prop_map(Step::Skip),
        1 => Just(Step::Reopen),
    ];
    proptest::collection::vec(step, 0..most)
}

/// Does the same to both.
pub fn apply(step: &Step, index: &mut TemporalIndex, twin: &mut Twin) {
    let live: Vec<u32> = twin.live().collect();
    let pick = |place: usize| live.get(place % live.len().max(1)).copied();
    match step {
        Step::Insert(row) => {
            let id = index.insert(row.new_node()).expect("a good row");
            assert_eq!(id.index(), twin.rows.len());
            twin.rows.push(row.clone());
        }
        Step::Bulk(rows) => {
            let new: Vec<NewNode<'_>> = rows.iter().map(Row::new_node).collect();
            let ids = index.bulk_insert(&new, 2).expect("good rows");
            let first = twin.rows.len() as u32;
            assert!(
                ids.iter()
                    .copied()
                    .eq((first..first + rows.len() as u32).map(NodeId))
            );
            twin.rows.extend(rows.iter().cloned());
        }
        Step::Delete(places) => {
            let gone: Vec<NodeId> = places.iter().filter_map(|&p| pick(p)).map(NodeId).collect();
            index.delete(&gone).expect("live nodes");
            gone.iter().for_each(|node| twin.delete(node.0));
        }
        Step::Edge(a, b, kind, weight) => {
            if let (Some(a), Some(b)) = (pick(*a), pick(*b))
                && a != b
            {
                let kind = KINDS[*kind];
                index
                    .add_edge(NodeId(a), NodeId(b), kind, *weight)
                    .expect("a good edge");
                twin.edges.insert((a, b, kind), *weight);
            }
        }
        Step::Reward(place, reward) => {
            if let Some(node) = pick(*place) {
                index
                    .set_reward(NodeId(node), *reward)
                    .expect("a good reward");
                twin.rows[node as usize].reward = *reward;
            }
        }
        Step::Recallable(place, recallable) => {
            if let Some(node) = pick(*place) {
                index
                    .set_recallable(NodeId(node), *recallable)
                    .expect("a live node");
                twin.rows[node as usize].recallable = *recallable;
            }
        }
        Step::Vector(place, vector) => {
            if let Some(node) = pick(*place) {
                index
                    .set_vector(NodeId(node), vector.as_deref())
                    .expect("a good vector");
                twin.rows[node as usize].vector = vector.clone();
            }
        }
        Step::Tags(place, tags) => {
            if let Some(node) = pick(*place) {
                index.set_tags(NodeId(node), tags).expect("a live node");
                twin.rows[node as usize].tags = tags.clone();
            }
        }
        Step::Center(center) => {
            let wanted = center
                .clone()
                .map_or(cvx_index::Center::None, cvx_index::Center::Vector);
            index.set_center(wanted).expect("no vector is the center");
            twin.center = center.clone();
        }
        Step::Compact => {
            let before = index.stats();
            index.compact().expect("no reason not to");
            let after = index.stats();
            assert_eq!(after.deleted_rows, 0);
            assert_eq!(
                (after.nodes, after.ids_given),
                (before.nodes, before.ids_given)
            );
        }
        Step::Skip(count) => {
            index.skip_ids(*count).expect("ids enough");
            twin.skip(*count);
        }
        Step::Reopen => {
            let file = tempfile::NamedTempFile::new().expect("a temporary file");
            index.save(file.path(), b"").expect("room");
            *index = TemporalIndex::load_with(file.path(), MAPPED).expect("what was saved");
        }
        Step::Refresh => index
            .refresh_regions()
            .expect("regions can always be refreshed"),
    }
}

/// An index and its twin after these steps, the invariants checked after each.
pub fn lived(steps: &[Step], params: IndexParams) -> (TemporalIndex, Twin) {
    let mut twin = Twin::new(params.metric);
    let mut index = TemporalIndex::new(params).expect("good parameters");
    for step in steps {
        apply(step, &mut index, &mut twin);
        index
            .validate()
            .unwrap_or_else(|broken| panic!("{broken} after {step:?}"));
    }
    (index, twin)
}
