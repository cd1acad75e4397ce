//! Inserts nodes into the graph: draws levels from the seed and chooses links.
//!
//! The nodes of a batch search the graph as it stood before the batch, in parallel, look at those
//! that come before them in the batch, and are merged in the order of slots: the graph depends on the
//! order of insertion and the seed, never on threads.

use rayon::prelude::*;

use crate::columns::ids::Ids;
use crate::distance::code_products::GROUP;
use crate::distance::kernel::{Kernel, Work};
use crate::graph::beam::{Beam, Everything, Graph};
use crate::graph::candidate_pool::BeamWidth;
use crate::graph::links::Links;
use crate::graph::ranked::Ranked;
use crate::graph::scratch::{Scratch, with_scratch};
use crate::hash::splitmix;
use crate::id::{NodeId, Slot};
use crate::vectors::Vectors;
use crate::vectors::codes::{Buffers, CodeSlices, Coded};

/// A batch is at most this part of the graph that it searches.
const BATCH_SHARE: usize = 16;
/// And never more: each of its nodes is compared with all before it.
const LARGEST_BATCH: usize = 256;
/// Neighbours are kept apart as if they were farther from each other than they are, by this share:
/// some are kept that the rule of the paper takes out, and a walk needs fewer steps. It is alpha - 1
/// of Jayaram Subramanya et al. 2019, for squared distances.
const APART: f32 = 0.1;
/// Rows asked for ahead of the candidate that is looked at.
const AHEAD: usize = 4;
/// Below this many nodes threads cost more than they save.
pub(crate) const WORTH_THREADS: usize = 64;

/// What links are made by.
#[derive(Clone, Copy)]
pub(crate) struct Builder<'a> {
    pub(crate) vectors: &'a Vectors,
    /// Levels are those of nodes, wherever they lie.
    pub(crate) ids: &'a Ids,
    pub(crate) seed: u64,
    /// `efConstruction` in the paper.
    pub(crate) width: usize,
}

/// A new node that asks to be linked from a node of its links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Request {
    level: usize,
    target: Slot,
    node: Slot,
}

impl Request {
    pub(crate) fn new(level: usize, target: Slot, node: Slot) -> Self {
        Request {
            level,
            target,
            node,
        }
    }
}

/// All links of a node at a level.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NewLinks {
    pub(crate) level: usize,
    pub(crate) node: Slot,
    pub(crate) neighbors: Vec<Slot>,
}

/// The level of a node: a hash of seed and id, with the distribution floor(-ln(u) / ln(m)).
///
/// The thresholds m^-l are compared with u itself, so that no logarithm of some platform decides.
pub(crate) fn level_of(seed: u64, node: NodeId, m: usize) -> usize {
    let hash = splitmix(splitmix(seed) ^ u64::from(node.0));
    // 53 bits are a float without rounding.
    let u = ((hash >> 11) + 1) as f64;
    let mut bound = (1u64 << 53) as f64 / m as f64;
    let mut level = 0;
    while u <= bound {
        bound /= m as f64;
        level += 1;
    }
    level
}

impl Builder<'_> {
    pub(super) fn level(&self, slot: Slot, links: &Links) -> usize {
        level_of(self.seed, self.ids.id(slot), links.m())
    }

    /// Inserts `nodes`, ascending slots that have rows and are not in the graph.
    pub(crate) fn insert(&self, links: &mut Links, nodes: &[Slot]) {
        let mut rest = nodes;
        while !rest.is_empty() {
            let (batch, later) = rest.split_at(self.next_batch(links, rest));
            let chosen = self.choose_batch(links, batch);
            let requests = self.add_batch(links, batch, &chosen);
            set_all(links, &self.back_links(links, &requests));
            rest = later;
        }
    }

    /// How many of `nodes` are inserted together, the first ones.
    pub(crate) fn next_batch(&self, links: &Links, nodes: &[Slot]) -> usize {
        let top = links.top();
        let rises = |node: Slot| top.is_none_or(|top| self.level(node, links) > top);
        // A node that rises above all is alone in its batch: the next ones are to see it there.
        if nodes.first().is_some_and(|&first| rises(first)) {
            return 1;
        }
        let most = (links.len() / BATCH_SHARE).clamp(1, LARGEST_BATCH);
        let together = nodes.iter().take(most).take_while(|&&node| !rises(node));
        together.count()
    }

    /// The links of each node of a batch, level by level.
    pub(crate) fn choose_batch(&self, links: &Links, batch: &[Slot]) -> Vec<Vec<Vec<Slot>>> {
        let places: Vec<usize> = (0..batch.len()).collect();
        mapped(&places, |&at| self.choose(links, batch[at], &batch[..at]))
    }

    /// Puts a batch into the graph with the links chosen for it; who is to link back to whom.
    pub(crate) fn add_batch(
        &self,
        links: &mut Links,
        batch: &[Slot],
        chosen: &[Vec<Vec<Slot>>],
    ) -> Vec<Request> {
        let mut requests = Vec::new();
        for (&node, levels) in batch.iter().zip(chosen) {
            links.add(node, self.level(node, links));
            for (level, neighbors) in levels.iter().enumerate() {
                links.set(node, level, neighbors);
                let ask = |&neighbor: &Slot| Request::new(level, neighbor, node);
                requests.extend(neighbors.iter().map(ask));
            }
        }
        requests.sort_unstable();
        requests
    }

    /// The links of all who were asked to link back.
    pub(crate) fn back_links(&self, links: &Links, requests: &[Request]) -> Vec<NewLinks> {
        let same_row = |a: &Request, b: &Request| (a.level, a.target) == (b.level, b.target);
        let targets: Vec<&[Request]> = requests.chunk_by(same_row).collect();
        mapped(&targets, |requests| self.link_back(links, requests))
    }

    /// The links of a new node at each of its levels that the graph has: among the nodes there and
    /// those that come with it before it, its `mates`.
    fn choose(&self, links: &Links, node: Slot, mates: &[Slot]) -> Vec<Vec<Slot>> {
        let Some(top) = links.top() else {
            return Vec::new();
        };
        let level = self.level(node, links).min(top);
        let mut levels = vec![Vec::new(); level + 1];
        with_scratch(|scratch| {
            let graph = Graph::new(links, &self.vectors.codes);
            let codes = self.vectors.codes.slices();
            let query = codes.coded_row(node);
            let Scratch { walk, buffers, .. } = scratch;
            let mut starts: Vec<Slot> = graph.descend(&query, level, buffers).into_iter().collect();
            for level in (0..=level).rev() {
                let beam = Beam {
                    room: BeamWidth::of(self.width),
                    level,
                    budget: usize::MAX,
                    accepts: Everything,
                };
                graph.beam(&query, &starts, &beam, walk, buffers);
                starts = walk.frontier.ranked().map(Ranked::node).collect();
                let near = codes.distances(&query, mates, buffers);
                let mut ranked: Vec<Ranked> = walk.frontier.ranked().collect();
                let bound = walk.frontier.bound();
                for (&mate, &distance) in mates.iter().zip(near) {
                    if distance <= bound && self.level(mate, links) >= level {
                        ranked.push(Ranked::new(distance, mate));
                    }
                }
                ranked.sort_unstable();
                ranked.truncate(self.width);
                levels[level] = self.select(node, &ranked, chosen(links.m(), level), buffers);
            }
        });
        levels
    }

    /// The links of a node after others asked to be linked from it.
    pub(crate) fn link_back(&self, links: &Links, requests: &[Request]) -> NewLinks {
        let Request { level, target, .. } = requests[0];
        let mut neighbors = links.neighbors(target, level).to_vec();
        for &Request { node, .. } in requests {
            // A node that took another vector may still be linked from where it was.
            if !neighbors.contains(&node) {
                neighbors.push(node);
            }
        }
        let most = links.most(level);
        if neighbors.len() > most {
            neighbors = self.nearest_apart(target, &neighbors, most);
        }
        NewLinks {
            level,
            node: target,
            neighbors,
        }
    }

    /// At most `most` of `candidates`, by the rule of [`select`](Self::select).
    pub(crate) fn nearest_apart(&self, node: Slot, candidates: &[Slot], most: usize) -> Vec<Slot> {
        with_scratch(|scratch| {
            let ranked = self.ranked(node, candidates, &mut scratch.buffers);
            self.select(node, &ranked, most, &mut scratch.buffers)
        })
    }

    /// `kept`, and those of `candidates`, nearest first, that lie apart from them, at most `most` in all.
    pub(crate) fn also_apart(
        &self,
        node: Slot,
        kept: Vec<Slot>,
        candidates: &[Slot],
        most: usize,
    ) -> Vec<Slot> {
        with_scratch(|scratch| {
            let codes = self.vectors.codes.slices();
            let ranked = self.ranked(node, candidates, &mut scratch.buffers);
            codes.isa().run(Choice {
                codes: &codes,
                candidates: &ranked,
                kept,
                places: most,
                buffers: &mut scratch.buffers,
            })
        })
    }

    /// Candidates by their distance to a node, each once, without those that have none: they are gone.
    fn ranked(&self, node: Slot, candidates: &[Slot], buffers: &mut Buffers) -> Vec<Ranked> {
        let codes = self.vectors.codes.slices();
        let query = codes.coded_row(node);
        let pairs = candidates
            .iter()
            .zip(codes.distances(&query, candidates, buffers));
        let there = pairs.filter(|(_, distance)| !distance.is_nan());
        let mut ranked: Vec<Ranked> = there.map(|(&node, &d)| Ranked::new(d, node)).collect();
        ranked.sort_unstable();
        ranked.dedup();
        ranked
    }

    /// Chooses neighbours that lie in different directions, algorithm 4 of Malkov & Yashunin.
    ///
    /// A candidate is kept if it is nearer to the node than to any kept before it, give or take
    /// [`APART`]. Copies of the
    /// node itself would turn every other candidate away and make an island of any set of equal
    /// vectors: they get a quarter of the places, drawn by a hash, and turn nobody away.
    fn select(
        &self,
        node: Slot,
        ranked: &[Ranked],
        most: usize,
        buffers: &mut Buffers,
    ) -> Vec<Slot> {
        let codes = self.vectors.codes.slices();
        let (copies, others): (Vec<Ranked>, Vec<Ranked>) = ranked
            .iter()
            .partition(|seen| codes.same(seen.node(), node));
        let mut copies: Vec<Slot> = copies.into_iter().map(Ranked::node).collect();
        let spare = most.saturating_sub(others.len());
        copies.sort_unstable_by_key(|&copy| splitmix(u64::from(node.0) << 32 | u64::from(copy.0)));
        copies.truncate((most / 4).max(1).max(spare));
        let places = most - copies.len();
        let mut kept = codes.isa().run(Choice {
            codes: &codes,
            candidates: &others,
            kept: Vec::with_capacity(places),
            places,
            buffers,
        });
        kept.extend(copies);
        kept
    }
}

/// The most links that a new node makes at a level; the others are left for those that come later.
pub(super) fn chosen(m: usize, level: usize) -> usize {
    if level == 0 { m + m / 2 } else { m }
}

/// A choice of candidates, nearest first, that lie in different directions.
struct Choice<'a> {
    codes: &'a CodeSlices<'a>,
    candidates: &'a [Ranked],
    /// Chosen before.
    kept: Vec<Slot>,
    /// Of them and of those that are chosen now.
    places: usize,
    buffers: &'a mut Buffers,
}

impl Work for Choice<'_> {
    type Output = Vec<Slot>;

    #[inline(always)]
    fn run(self, kernel: impl Kernel) -> Vec<Slot> {
        let Choice {
            codes,
            candidates,
            mut kept,
            places,
            buffers,
        } = self;
        let mut row = Coded::default();
        let mut ahead = candidates.iter().skip(AHEAD);
        for candidate in candidates {
            if kept.len() == places {
                break;
            }
            if let Some(later) = ahead.next() {
                codes.prefetch(later.node());
            }
            codes.take_row(candidate.node(), &mut row);
            let mut apart = true;
            for kept in kept.chunks(GROUP) {
                let between = codes.distances_by(kernel, &row, kept, &[], buffers);
                for &between in between {
                    apart &= candidate.distance() < between + APART * between.abs();
                }
                if !apart {
                    break;
                }
            }
            if apart {
                kept.push(candidate.node());
            }
        }
        kept
    }
}

/// Gives nodes the links that were worked out for them.
pub(crate) fn set_all(links: &mut Links, new: &[NewLinks]) {
    for NewLinks {
        level,
        node,
        neighbors,
    } in new
    {
        links.set(*node, *level, neighbors);
    }
}

/// Maps in order, on the threads of the pool that the caller runs in.
pub(crate) fn mapped<T: Sync, U: Send>(items: &[T], map: impl Fn(&T) -> U + Sync + Send) -> Vec<U> {
    if items.len() < WORTH_THREADS || rayon::current_num_threads() == 1 {
        items.iter().map(map).collect()
    } else {
        items.par_iter().map(map).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requirement: V2
    #[test]
    fn levels_follow_their_law_and_the_seed() {
        const NODES: u32 = 200_000;
        for (seed, m) in [(0, 2), (0, 16), (7, 16)] {
            let mut counts = [0u32; 64];
            for node in 0..NODES {
                for count in &mut counts[..=level_of(seed, NodeId(node), m)] {
                    *count += 1;
                }
            }
            for (level, count) in counts.into_iter().enumerate().take(5) {
                let expected = f64::from(NODES) / (m as f64).powi(level as i32);
                let tolerance = 5.0 * expected.sqrt() + 1.0;
                assert!(
                    (f64::from(count) - expected).abs() < tolerance,
                    "{level}: {count}"
                );
            }
            assert_eq!(counts[40], 0);
        }
        let levels = |seed| {
            (0..1000)
                .map(|n| level_of(seed, NodeId(n), 4))
                .collect::<Vec<_>>()
        };
        assert_eq!(levels(3), levels(3));
        assert_ne!(levels(3), levels(4));
    }
}
