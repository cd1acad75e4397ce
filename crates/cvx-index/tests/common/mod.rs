//! What the tests share: the naive twin of the index, and proptest strategies.

#![allow(dead_code, unused_imports)] // Each test binary uses its own part.

pub mod corrupted;
pub mod forged_snapshots;
mod sample;
mod strategies;
mod twin;

use cvx_index::{EdgeKind, LoadOptions};

pub use sample::sample;
pub use strategies::{Step, apply, filter, lived, metric, params, row, steps, vector};
pub use twin::{Row, Twin};

pub const DIM: usize = 4;
pub const KINDS: [EdgeKind; 3] = [
    EdgeKind::Caused,
    EdgeKind::CausedSuccess,
    EdgeKind::Irrelevant,
];

/// A file that is mapped, and whose rows nobody checks.
pub const MAPPED: LoadOptions = LoadOptions::new().mmap(true);
/// As a store opens its snapshots.
pub const VERIFIED: LoadOptions = LoadOptions::new().verify(true).mmap(true);

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
