//! A naive twin of the index, rows in a list and loops in f64, and what the tests draw from.

#![allow(dead_code)] // Each test binary uses its own part.

use std::collections::BTreeMap;

use cvx_index::{EdgeKind, EntityId, Filter, IndexParams, Metric, NewNode, NodeId, TemporalIndex};
use proptest::prelude::*;

pub const DIM: usize = 4;
pub const KINDS: [EdgeKind; 3] = [
    EdgeKind::Caused,
    EdgeKind::CausedSuccess,
    EdgeKind::Irrelevant,
];

#[derive(Clone, Debug)]
pub struct Row {
    pub entity: u64,
    pub time: i64,
    pub vector: Option<Vec<f32>>,
    pub reward: Option<f32>,
    pub namespace: &'static str,
    pub tags: Vec<&'static str>,
    pub action: Option<&'static str>,
    pub recallable: bool,
    pub live: bool,
}

impl Row {
    pub fn new_node(&self) -> NewNode<'_> {
        NewNode {
            reward: self.reward,
            namespace: self.namespace,
            tags: &self.tags,
            action: self.action,
            recallable: self.recallable,
            ..NewNode::new(EntityId(self.entity), self.time, self.vector.as_deref())
        }
    }
}

#[derive(Clone, Debug)]
pub struct Twin {
    pub metric: Metric,
    pub rows: Vec<Row>,
    pub edges: BTreeMap<(u32, u32, EdgeKind), f32>,
    pub center: Option<Vec<f32>>,
}

impl Twin {
    pub fn new(metric: Metric) -> Self {
        Twin {
            metric,
            rows: Vec::new(),
            edges: BTreeMap::new(),
            center: None,
        }
    }

    pub fn live(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.rows.len() as u32).filter(|&n| self.rows[n as usize].live)
    }

    pub fn delete(&mut self, node: u32) {
        self.rows[node as usize].live = false;
        self.edges
            .retain(|&(from, to, _), _| from != node && to != node);
    }

    fn moved(&self, vector: &[f32]) -> Vec<f64> {
        let center = self
            .center
            .clone()
            .unwrap_or_else(|| vec![0.0; vector.len()]);
        let pairs = vector.iter().zip(&center);
        let moved: Vec<f64> = pairs.map(|(x, c)| f64::from(*x) - f64::from(*c)).collect();
        let norm = match self.metric {
            Metric::Cosine => moved.iter().map(|x| x * x).sum::<f64>().sqrt(),
            _ => 1.0,
        };
        moved.iter().map(|x| x / norm).collect()
    }

    pub fn distance(&self, query: &[f32], node: u32) -> Option<f64> {
        let (a, b) = (
            self.moved(query),
            self.moved(self.rows[node as usize].vector.as_ref()?),
        );
        let pairs = a.iter().zip(&b);
        Some(match self.metric {
            Metric::L2 => pairs.map(|(x, y)| (x - y) * (x - y)).sum(),
            _ => 1.0 - pairs.map(|(x, y)| x * y).sum::<f64>(),
        })
    }

    pub fn similarity(&self, query: &[f32], node: u32) -> Option<f64> {
        let distance = self.distance(query, node)?;
        Some(if self.metric == Metric::L2 {
            1.0 / (1.0 + distance)
        } else {
            1.0 - distance
        })
    }

    pub fn spaces<'a>(&self, filter: &'a Filter) -> Vec<&'a str> {
        let named = filter.namespaces.as_ref();
        named.map_or(vec![""], |names| names.iter().map(String::as_str).collect())
    }

    pub fn accepts(&self, node: u32, f: &Filter) -> bool {
        let row = &self.rows[node as usize];
        let rewarded = |holds: &dyn Fn(f32) -> bool| row.reward.is_some_and(holds);
        row.live
            && row.vector.is_some()
            && self.spaces(f).contains(&row.namespace)
            && f.since.is_none_or(|since| row.time >= since)
            && f.until.is_none_or(|until| row.time < until)
            && f.entities
                .as_ref()
                .is_none_or(|e| e.contains(&EntityId(row.entity)))
            && f.ids.as_ref().is_none_or(|ids| ids.contains(&NodeId(node)))
            && f.min_reward.is_none_or(|min| rewarded(&|r| r >= min))
            && f.max_reward.is_none_or(|max| rewarded(&|r| r <= max))
            && f.recallable.is_none_or(|wanted| row.recallable == wanted)
            && f.tags.as_ref().is_none_or(|tags| {
                !tags.is_empty() && tags.iter().all(|tag| row.tags.contains(&tag.as_str()))
            })
    }

    /// Accepted nodes and their distances, nearest first.
    pub fn nearest(&self, query: &[f32], filter: &Filter) -> Vec<(f64, u32)> {
        let accepted = self.live().filter(|&n| self.accepts(n, filter));
        let mut found: Vec<(f64, u32)> = accepted
            .filter_map(|n| Some((self.distance(query, n)?, n)))
            .collect();
        found.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        found
    }

    pub fn timeline(&self, namespace: &str, entity: u64) -> Vec<u32> {
        let mine = |n: &u32| {
            let row = &self.rows[*n as usize];
            row.namespace == namespace && row.entity == entity
        };
        let mut line: Vec<u32> = self.live().filter(mine).collect();
        line.sort_by_key(|&n| (self.rows[n as usize].time, n));
        line
    }

    /// All that came before a node, and all that came after.
    pub fn around(&self, node: u32) -> (Vec<u32>, Vec<u32>) {
        let row = &self.rows[node as usize];
        let line = self.timeline(row.namespace, row.entity);
        let place = line
            .iter()
            .position(|&n| n == node)
            .expect("a live node is in its timeline");
        (line[..place].to_vec(), line[place + 1..].to_vec())
    }

    fn steps(&self, node: u32, boosts: &[(EdgeKind, f32)], spaces: &[&str]) -> Vec<(u32, f64)> {
        let mut steps = Vec::new();
        for &(kind, boost) in boosts {
            let typed = self
                .edges
                .iter()
                .filter(|((from, _, k), _)| *from == node && *k == kind);
            steps.extend(typed.map(|((_, to, _), w)| (*to, f64::from(*w) * f64::from(boost))));
            if kind == EdgeKind::Temporal {
                steps.extend(
                    self.around(node)
                        .1
                        .first()
                        .map(|&to| (to, f64::from(boost))),
                );
            }
        }
        steps.retain(|&(to, _)| spaces.contains(&self.rows[to as usize].namespace));
        steps
    }

    /// The score of every node that a graph search may return, by listing all simple paths.
    pub fn graph(
        &self,
        query: &[f32],
        ef: usize,
        boosts: &[(EdgeKind, f32)],
        max_hops: usize,
        filter: &Filter,
    ) -> BTreeMap<u32, f64> {
        let spaces = self.spaces(filter);
        let seeds: Vec<u32> = self
            .nearest(query, filter)
            .iter()
            .take(ef)
            .map(|p| p.1)
            .collect();
        let mut gained: BTreeMap<u32, f64> = BTreeMap::new();
        for &seed in &seeds {
            let start = self.similarity(query, seed).expect("seeds have vectors");
            let mut open = vec![(vec![seed], start)];
            for _ in 0..max_hops {
                let mut longer = Vec::new();
                for (path, value) in &open {
                    for (to, factor) in self.steps(path[path.len() - 1], boosts, &spaces) {
                        if !path.contains(&to) {
                            let value = value * factor;
                            let best = gained.entry(to).or_insert(0.0);
                            *best = best.max(value);
                            longer.push(([path.clone(), vec![to]].concat(), value));
                        }
                    }
                }
                open = longer;
            }
        }
        let reached = gained.keys().copied().filter(|&n| self.accepts(n, filter));
        let nodes: Vec<u32> = reached.chain(seeds.iter().copied()).collect();
        let lent = |n: &u32| gained.get(n).copied().unwrap_or(0.0);
        let score = |n: u32| Some((n, self.similarity(query, n)? + lent(&n)));
        nodes.into_iter().filter_map(score).collect()
    }

    /// The score of every accepted node in a hybrid search.
    pub fn hybrid(&self, query: &[f32], beta: f64, filter: &Filter) -> BTreeMap<u32, f64> {
        let score = |n: u32| {
            let (before, after) = self.around(n);
            let beside = before.last().into_iter().chain(after.first());
            let lent = beside
                .filter_map(|&m| self.similarity(query, m))
                .map(|s| beta * s);
            let own = self.similarity(query, n)?;
            Some((
                n,
                if beta > 0.0 {
                    lent.fold(own, f64::max)
                } else {
                    own
                },
            ))
        };
        self.live()
            .filter(|&n| self.accepts(n, filter))
            .filter_map(score)
            .collect()
    }
}

pub fn params(metric: Metric, exact_below: usize) -> IndexParams {
    IndexParams {
        metric,
        m: 4,
        ef_construction: 40,
        exact_below,
        ..IndexParams::new(DIM)
    }
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
    Center(Option<Vec<f32>>),
    Refresh,
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
        1 => proptest::option::of(center).prop_map(Step::Center),
        1 => Just(Step::Refresh),
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
        Step::Center(center) => {
            let wanted = center
                .clone()
                .map_or(cvx_index::Center::None, cvx_index::Center::Vector);
            index.set_center(wanted).expect("no vector is the center");
            twin.center = center.clone();
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

/// A small generator of our own: tests need no distribution, only the same numbers.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// About normal: the sum of four uniform numbers.
    pub fn normal(&mut self) -> f32 {
        let sum: f32 = (0..4)
            .map(|_| (self.next() >> 40) as f32 / (1u32 << 24) as f32)
            .sum();
        (sum - 2.0) * 1.732
    }

    pub fn vector(&mut self, dim: usize) -> Vec<f32> {
        (0..dim).map(|_| self.normal()).collect()
    }

    /// Rows around centres that are themselves scattered.
    pub fn clustered(&mut self, rows: usize, dim: usize, clusters: usize) -> Vec<Vec<f32>> {
        let centres: Vec<Vec<f32>> = (0..clusters).map(|_| self.vector(dim)).collect();
        let near = |numbers: &mut Self| {
            let centre = &centres[numbers.below(clusters)];
            centre.iter().map(|x| x + 0.6 * numbers.normal()).collect()
        };
        (0..rows).map(|_| near(self)).collect()
    }
}
