//! Search results as rows that Python reads later.
//!
//! A Python object costs as much as a step of the walk, and a hit with its steps is a hundred of
//! them. Everything is copied when the search is made: later changes of the index do not show.

use std::ops::Range;

use cvx_index::{GraphHit, Moment, Surrounded, TemporalIndex, WalkedEdge};
use pyo3::prelude::*;

/// (node, entity, timestamp, action, reward)
type StepRow<'a> = (u32, u64, i64, Option<&'a str>, Option<f32>);
/// (node, distance, score, similarity, entity, timestamp, reward, action)
type HitRow<'a> = (u32, f32, f32, f32, u64, i64, Option<f32>, Option<&'a str>);
/// A hit, the steps before it, the steps after it.
type CausalRow<'a> = (HitRow<'a>, Vec<StepRow<'a>>, Vec<StepRow<'a>>);
/// (from, to, kind, weight, boost)
type WalkedRow<'a> = (u32, u32, &'a str, f32, f32);

/// The most steps that room is made for at once.
const MOST_ROOM: usize = 256;

/// Texts one behind the other.
#[derive(Default)]
struct Texts(String);

impl Texts {
    fn add(&mut self, text: &str) -> Range<usize> {
        let start = self.0.len();
        self.0.push_str(text);
        start..self.0.len()
    }
}

/// A node, as it was when it was found.
struct Seen {
    node: u32,
    entity: u64,
    timestamp: i64,
    reward: Option<f32>,
    action: Option<Range<usize>>,
}

impl Seen {
    fn new(moment: Moment<'_>, texts: &mut Texts) -> Self {
        Seen {
            node: moment.node.0,
            entity: moment.entity.0,
            timestamp: moment.timestamp,
            reward: moment.reward,
            action: moment.action.map(|action| texts.add(action)),
        }
    }

    fn action<'a>(&self, texts: &'a Texts) -> Option<&'a str> {
        self.action.clone().map(|range| &texts.0[range])
    }

    fn step<'a>(&self, texts: &'a Texts) -> StepRow<'a> {
        (
            self.node,
            self.entity,
            self.timestamp,
            self.action(texts),
            self.reward,
        )
    }
}

/// A hit without what surrounds it.
pub struct Score {
    pub distance: f32,
    pub score: f32,
    pub similarity: f32,
}

struct Scored {
    seen: Seen,
    score: Score,
}

impl Scored {
    fn new(moment: Moment<'_>, score: Score, texts: &mut Texts) -> Self {
        let seen = Seen::new(moment, texts);
        Scored { seen, score }
    }

    fn row<'a>(&self, texts: &'a Texts) -> HitRow<'a> {
        let Scored { seen, score } = self;
        (
            seen.node,
            score.distance,
            score.score,
            score.similarity,
            seen.entity,
            seen.timestamp,
            seen.reward,
            seen.action(texts),
        )
    }
}

/// Hits with the steps around them.
#[pyclass(frozen)]
pub struct CausalRows {
    /// Each hit, and where its steps before and after end in `steps`.
    hits: Vec<(Scored, [usize; 2])>,
    steps: Vec<Seen>,
    texts: Texts,
}

impl CausalRows {
    /// With room for as many hits, each with up to `context` steps on either side.
    pub fn with_capacity(hits: usize, context: usize) -> Self {
        let steps = hits
            .saturating_mul(context.saturating_mul(2))
            .min(MOST_ROOM);
        CausalRows {
            hits: Vec::with_capacity(hits),
            steps: Vec::with_capacity(steps),
            texts: Texts::default(),
        }
    }

    /// Takes in a hit and the steps on either side of it.
    pub fn push(&mut self, around: &Surrounded<'_>, score: Score) {
        let texts = &mut self.texts;
        let mut ends = [0; 2];
        self.steps
            .extend(around.before().map(|step| Seen::new(step, texts)));
        ends[0] = self.steps.len();
        self.steps
            .extend(around.after().map(|step| Seen::new(step, texts)));
        ends[1] = self.steps.len();
        let hit = Scored::new(around.moment(), score, texts);
        self.hits.push((hit, ends));
    }
}

#[pymethods]
impl CausalRows {
    fn __len__(&self) -> usize {
        self.hits.len()
    }

    /// All rows.
    fn rows(&self) -> Vec<CausalRow<'_>> {
        let mut start = 0;
        let mut steps = |end: usize| {
            let part = &self.steps[std::mem::replace(&mut start, end)..end];
            part.iter().map(|step| step.step(&self.texts)).collect()
        };
        let row = |(hit, [before, after]): &(Scored, [usize; 2])| {
            (hit.row(&self.texts), steps(*before), steps(*after))
        };
        self.hits.iter().map(row).collect()
    }
}

/// Hits with the edges that lead to them.
#[pyclass(frozen)]
#[derive(Default)]
pub struct GraphRows {
    hits: Vec<(Scored, Vec<Walked>)>,
    texts: Texts,
}

struct Walked {
    edge: WalkedEdge,
    kind: Range<usize>,
}

impl GraphRows {
    /// Takes in a hit, what is known of it, and the edges that lead to it.
    pub fn push(&mut self, index: &TemporalIndex, moment: Moment<'_>, hit: GraphHit) {
        let score = Score {
            distance: hit.distance,
            score: hit.score,
            similarity: hit.similarity,
        };
        let scored = Scored::new(moment, score, &mut self.texts);
        let walked = |edge: WalkedEdge| Walked {
            // Kinds come out of the index only after they were declared in it.
            kind: self
                .texts
                .add(index.edge_kind_name(edge.kind).unwrap_or("undeclared")),
            edge,
        };
        let path = hit.path.into_iter().map(walked).collect();
        self.hits.push((scored, path));
    }
}

#[pymethods]
impl GraphRows {
    fn __len__(&self) -> usize {
        self.hits.len()
    }

    /// All rows.
    fn rows(&self) -> Vec<(HitRow<'_>, Vec<WalkedRow<'_>>)> {
        let walked = |Walked { edge, kind }: &Walked| {
            let kind = &self.texts.0[kind.clone()];
            (edge.from.0, edge.to.0, kind, edge.weight, edge.boost)
        };
        let row = |(hit, path): &(Scored, Vec<Walked>)| {
            (hit.row(&self.texts), path.iter().map(walked).collect())
        };
        self.hits.iter().map(row).collect()
    }
}
