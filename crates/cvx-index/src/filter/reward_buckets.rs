//! Posting lists of nodes by bucket of reward, for filters on reward.

use roaring::RoaringBitmap;

use crate::columns::Columns;
use crate::id::Slot;

/// How many buckets there are: of a range of rewards only the two at its ends are looked through.
const BUCKETS: usize = 1024;

/// The buckets of a range of rewards.
pub(crate) struct BucketRange<'a> {
    /// Those at either end, which hold nodes outside the range too.
    pub(crate) ends: [Option<&'a RoaringBitmap>; 2],
    /// Those in between, which do not.
    pub(crate) inside: &'a [RoaringBitmap],
}

/// Nodes sorted into ranges of reward. Rewards change more often than any other column, and moving
/// a node from one bucket to another costs no more than adding it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RewardBuckets {
    nodes: Vec<RoaringBitmap>,
    counts: Vec<usize>,
}

impl Default for RewardBuckets {
    fn default() -> Self {
        RewardBuckets {
            nodes: vec![RoaringBitmap::new(); BUCKETS],
            counts: vec![0; BUCKETS],
        }
    }
}

impl RewardBuckets {
    /// Sorts nodes, ascending, by the reward that the columns tell.
    pub(crate) fn of(columns: &Columns, nodes: &RoaringBitmap) -> Self {
        let mut buckets = RewardBuckets::default();
        for node in nodes {
            if let Some(reward) = columns.reward(Slot(node)) {
                let place = place(reward);
                // Ascending nodes are appended, which is ten times faster than put in place.
                let appended = buckets.nodes[place].try_push(node).is_ok();
                buckets.counts[place] += usize::from(appended);
            }
        }
        buckets
    }

    /// Moves a node to where its reward belongs.
    pub(crate) fn note(&mut self, node: Slot, before: Option<f32>, after: Option<f32>) {
        if let Some(before) = before.map(place) {
            self.counts[before] -= usize::from(self.nodes[before].remove(node.0));
        }
        if let Some(after) = after.map(place) {
            self.counts[after] += usize::from(self.nodes[after].insert(node.0));
        }
    }

    /// At most so many nodes have a reward from `min` to `max`.
    pub(crate) fn bound(&self, min: f32, max: f32) -> usize {
        self.counts[place(min)..=place(max)].iter().sum()
    }

    /// All nodes with a reward from `min` to `max`.
    pub(crate) fn within(&self, min: f32, max: f32) -> BucketRange<'_> {
        match &self.nodes[place(min)..=place(max)] {
            [first, inside @ .., last] => BucketRange {
                ends: [Some(first), Some(last)],
                inside,
            },
            one => BucketRange {
                ends: [one.first(), None],
                inside: &[],
            },
        }
    }
}

fn place(reward: f32) -> usize {
    // Rewards are in [0, 1]; bounds may lie outside, and what is negative becomes 0.
    ((reward * BUCKETS as f32) as usize).min(BUCKETS - 1)
}
