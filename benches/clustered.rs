//! Seeded vectors around centres, and nodes of them: what the benches share.

use cvx_index::{EntityId, IndexParams, Metric, NewNode};

/// Of every vector.
pub const DIM: usize = 384;
/// Of an index.
pub const ROWS: usize = 12_000;
const CLUSTERS: usize = 200;
/// Neighbours asked for.
pub const K: usize = 10;

/// A small generator of our own: the benches need no distribution, only the same numbers.
pub struct Numbers(pub u64);

impl Numbers {
    /// A number below a bound.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

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

/// Rows and queries around the same centres.
pub struct Data {
    /// To be inserted.
    pub rows: Vec<Vec<f32>>,
    /// To be asked, in turn.
    pub queries: Vec<Vec<f32>>,
}

/// The same in every run.
#[must_use]
pub fn data() -> Data {
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

/// Those of the comparison with other libraries, on one metric.
#[must_use]
pub fn params(metric: Metric, exact_below: usize) -> IndexParams {
    IndexParams::new(DIM)
        .metric(metric)
        .exact_below(exact_below)
}

/// Row `row` in the order of time, fifty to an entity.
#[must_use]
pub fn node<'a>(row: usize, vector: &'a [f32], tags: &'a [&'a str]) -> NewNode<'a> {
    NewNode {
        reward: Some((row * 7919 % 1000) as f32 / 1000.0),
        tags,
        ..NewNode::new(EntityId(row as u64 / 50), row as i64, Some(vector))
    }
}
