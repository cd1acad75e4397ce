//! The naive twin of the index: rows in a list, every question a loop, distances in f64.

use std::collections::BTreeMap;

use cvx_index::{EdgeKind, EntityId, Filter, Metric, NewNode, NodeId};

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

    /// Rows as if they had been inserted and deleted.
    pub fn skip(&mut self, count: usize) {
        let gone = Row {
            entity: 0,
            time: 0,
            vector: None,
            reward: None,
            namespace: "",
            tags: Vec::new(),
            action: None,
            recallable: true,
            live: false,
        };
        self.rows.extend(vec![gone; count]);
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
