//! Bulk build: links many nodes at once, in overlapping partitions.
//!
//! Each node joins the groups of its nearest leaders; a group is divided again until it is small enough
//! to compare all its rows with each other, in tiles of whole numbers. What was nearest in each group
//! is what the node chooses its links from, by the rule of insertion, and so are the links back. The
//! graph depends on the rows, their order and the seed, never on threads or instruction sets.
//!
//! References: Rubel et al. 2026, "PiPNN: Ultra-scalable graph-based nearest neighbor indexing",
//! arXiv 2602.21247.

use std::collections::HashMap;
use std::iter::repeat;
use std::ops::Range;

use crate::distance::code_products::{GROUP, PACK};
use crate::distance::kernel::{Kernel, Work};
use crate::graph::insert::{Builder, NewLinks, chosen, mapped, set_all};
use crate::graph::links::Links;
use crate::hash::splitmix;
use crate::id::Slot;
use crate::vectors::codes::{Coded, Packed, Tiles};

/// Fewer nodes than this are inserted one by one.
const LEAST: usize = 4096;
/// Nodes of the graph are linked anew if they are at most so many times those that come: about what
/// an insertion costs, in nodes linked in bulk.
const ANEW: usize = 2;
/// Rows of a group are compared with each other if there are no more than this.
const LEAF: usize = 1000;
/// Groups that a node joins.
const JOINED: usize = 16;
/// The nearest so many of each group become candidates.
const NEAREST: usize = 12;
/// Leaders of one division, at most: every row is compared with each.
const LEADERS: usize = 1000;
/// Groups are of this part of [`LEAF`] on average.
const PART: usize = 2;
/// So many nodes with the same row are linked in bulk: more would fill the groups of others with nothing
/// but themselves, and are inserted.
const ALIKE: u8 = 8;
/// Groups compared before what they found is put down, and rows compared by one thread in turn.
const TOGETHER: usize = 256;
/// So many nodes choose their links before candidates of the next are looked for: what is found takes
/// a thousand bytes a node. Each time all groups are read again, so that fewer would cost time.
const CHOOSING: usize = 1 << 21;

/// The nearest rows of a pack to each of four queries.
struct Nearest<'a> {
    packed: &'a Packed,
    queries: &'a [Coded; GROUP],
    keep: Keep<'a>,
}

/// The nearest `most` rows that came by of each query.
struct Keep<'a> {
    most: usize,
    /// The place of each query among the rows, where it is one.
    own: [usize; GROUP],
    bounds: [f32; GROUP],
    /// Nearest first: distances and places.
    found: &'a mut [Vec<(f32, usize)>; GROUP],
}

impl Tiles for Keep<'_> {
    #[inline(always)]
    fn see(&mut self, kernel: impl Kernel, query: usize, first: usize, distances: &[f32; PACK]) {
        let (found, bound) = (&mut self.found[query], &mut self.bounds[query]);
        let mut near = kernel.within(distances, *bound);
        while near != 0 {
            let lane = near.trailing_zeros() as usize;
            near &= near - 1;
            let (distance, place) = (distances[lane], first + lane);
            if place == self.own[query] {
                continue;
            }
            if found.len() == self.most {
                if distance >= *bound {
                    continue;
                }
                found.pop();
            }
            let mut at = found.len();
            while at > 0 && found[at - 1].0 > distance {
                at -= 1;
            }
            found.insert(at, (distance, place));
            if found.len() == self.most {
                *bound = found[self.most - 1].0;
            }
        }
    }
}

impl Work for Nearest<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self, kernel: impl Kernel) {
        let Nearest {
            packed,
            queries,
            mut keep,
        } = self;
        packed.compare(kernel, queries, &mut keep);
    }
}

/// The groups that nodes were divided into.
#[derive(Default)]
struct Groups {
    /// Ascending slots.
    leaves: Vec<Vec<Slot>>,
    /// Leaders that each node joined at first, which are farther than the nearest of its groups; a node
    /// that joined fewer stands for the rest itself. None where all nodes are one group.
    leaders: Vec<Slot>,
}

/// Where a node stands among ascending slots.
fn place(nodes: &[Slot], node: Slot) -> usize {
    // Most often there is one of each slot.
    let guess = node.index().wrapping_sub(nodes[0].index());
    match nodes.get(guess) {
        Some(&found) if found == node => guess,
        _ => nodes.partition_point(|&one| one < node),
    }
}

/// Whether so many nodes that come are linked in bulk, and those `there` with them.
pub(crate) fn in_bulk(come: usize, there: usize) -> bool {
    come >= LEAST && there <= come.saturating_mul(ANEW)
}

impl Builder<'_> {
    /// The graph of `nodes`, ascending slots that have rows.
    pub(crate) fn built(&self, m: usize, nodes: &[Slot]) -> Links {
        let mut links = Links::new(m);
        let codes = self.vectors.codes.slices();
        let mut alike: HashMap<u64, u8> = HashMap::new();
        let (mut there, others): (Vec<Slot>, Vec<Slot>) = nodes.iter().partition(|&&node| {
            let count = alike.entry(codes.hash(node)).or_default();
            *count = count.saturating_add(1);
            *count <= ALIKE
        });
        drop(alike);
        if !in_bulk(there.len(), 0) {
            self.insert(&mut links, nodes);
            return links;
        }
        for &node in &there {
            links.add(node, self.level(node, &links));
        }
        for level in 0..=links.top().unwrap_or(0) {
            there.retain(|&node| links.reaches(node, level));
            if there.len() > 1 {
                self.link(&mut links, &there, level);
            }
        }
        self.insert(&mut links, &others);
        links
    }

    /// Links all `nodes` of a level.
    fn link(&self, links: &mut Links, nodes: &[Slot], level: usize) {
        let mut groups = Groups::default();
        let salt = splitmix(self.seed ^ level as u64);
        self.divide(nodes.to_vec(), JOINED, salt, &mut groups);
        let most = chosen(links.m(), level);
        let mut chosen = Vec::with_capacity(nodes.len());
        for (part, first) in nodes.chunks(CHOOSING).zip((0..).step_by(CHOOSING)) {
            let candidates = self.candidates(nodes, first..first + part.len(), &groups);
            let places: Vec<usize> = (0..part.len()).collect();
            chosen.extend(mapped(&places, |&at| {
                self.nearest_apart(part[at], &candidates[at], most)
            }));
        }
        drop(groups);
        let mut asked = vec![Vec::new(); nodes.len()];
        for (&node, neighbors) in nodes.iter().zip(&chosen) {
            for neighbor in neighbors {
                asked[place(nodes, *neighbor)].push(node);
            }
        }
        let most = links.most(level);
        let places: Vec<usize> = (0..nodes.len()).collect();
        for places in places.chunks(CHOOSING) {
            let new = mapped(places, |&at| {
                let mut neighbors = [chosen[at].as_slice(), asked[at].as_slice()].concat();
                neighbors.sort_unstable();
                neighbors.dedup();
                if neighbors.len() > most {
                    neighbors = self.nearest_apart(nodes[at], &neighbors, most);
                }
                NewLinks {
                    level,
                    node: nodes[at],
                    neighbors,
                }
            });
            set_all(links, &new);
        }
    }

    /// What each of those `nodes` that stand in a range may be linked to.
    fn candidates(&self, nodes: &[Slot], range: Range<usize>, groups: &Groups) -> Vec<Vec<Slot>> {
        let part = &nodes[range.clone()];
        let mut found: Vec<Vec<Slot>> = vec![Vec::new(); part.len()];
        let mut put = |at: usize, near: &[Slot]| {
            for near in near {
                if *near != part[at] && !found[at].contains(near) {
                    found[at].push(*near);
                }
            }
        };
        if !groups.leaders.is_empty() {
            let leaders = &groups.leaders[range.start * JOINED..range.end * JOINED];
            for (at, leaders) in leaders.chunks(JOINED).enumerate() {
                put(at, leaders);
            }
        }
        let within = |leaf: &Vec<Slot>| {
            leaf.partition_point(|node| *node < part[0])
                ..leaf.partition_point(|node| *node <= part[part.len() - 1])
        };
        for leaves in groups.leaves.chunks(TOGETHER) {
            let near = mapped(leaves, |leaf| self.nearest_in(leaf, within(leaf)));
            for (leaf, near) in leaves.iter().zip(near) {
                for (&node, near) in leaf[within(leaf)].iter().zip(near) {
                    put(place(part, node), &near);
                }
            }
        }
        for (found, at) in found.iter_mut().zip(range) {
            // Alone in all of its groups.
            if found.is_empty() {
                found.push(nodes[at.checked_sub(1).unwrap_or(1)]);
            }
        }
        found
    }

    /// Divides nodes, ascending slots, into groups that are small enough, each node in `joined` of them.
    fn divide(&self, nodes: Vec<Slot>, joined: usize, salt: u64, into: &mut Groups) {
        if nodes.len() <= LEAF {
            into.leaves.push(nodes);
            return;
        }
        let many = (PART * joined * nodes.len() / LEAF).clamp(2, LEADERS);
        let stride = nodes.len() / many;
        let drawn = |at: usize| at * stride + (splitmix(salt ^ at as u64) % stride as u64) as usize;
        let leaders: Vec<Slot> = (0..many).map(|at| nodes[drawn(at)]).collect();
        let mut packed = Packed::default();
        self.vectors.codes.slices().pack(&leaders, &mut packed);
        let mut groups = vec![Vec::new(); many];
        for nodes in nodes.chunks(TOGETHER * TOGETHER) {
            let chunks: Vec<&[Slot]> = nodes.chunks(TOGETHER).collect();
            let nearest = mapped(&chunks, |chunk| self.nearest(&packed, chunk, None, joined));
            for (&node, places) in nodes.iter().zip(nearest.iter().flatten()) {
                for &place in places {
                    groups[place].push(node);
                }
                if joined > 1 {
                    let joined = places.iter().map(|&place| leaders[place]);
                    into.leaders.extend(joined.chain(repeat(node)).take(JOINED));
                }
            }
        }
        let divided = nodes.len();
        drop(nodes);
        for (mut group, at) in groups.into_iter().zip(1u64..) {
            let salt = splitmix(salt ^ at << 32);
            if group.len() > LEAF && group.len() > divided - divided / 8 {
                // No leader divides what is all but alike: chance does.
                group.sort_unstable_by_key(|node| splitmix(salt ^ u64::from(node.0)));
                into.leaves.extend(group.chunks(LEAF).map(|leaf| {
                    let mut leaf = leaf.to_vec();
                    // Of what is equally far the first slots are kept, as by walks.
                    leaf.sort_unstable();
                    leaf
                }));
            } else if group.len() > 1 {
                group.shrink_to_fit();
                self.divide(group, 1, salt, into);
            }
        }
    }

    /// The nearest others of each node of a group that stands in a range.
    fn nearest_in(&self, leaf: &[Slot], range: Range<usize>) -> Vec<Vec<Slot>> {
        if range.is_empty() {
            return Vec::new();
        }
        let mut packed = Packed::default();
        self.vectors.codes.slices().pack(leaf, &mut packed);
        let near = self.nearest(&packed, &leaf[range.clone()], Some(range.start), NEAREST);
        let slots = |places: Vec<usize>| places.into_iter().map(|place| leaf[place]).collect();
        near.into_iter().map(slots).collect()
    }

    /// The places of the rows nearest to each of `nodes`, which are rows themselves where it is said
    /// from which place on.
    fn nearest(
        &self,
        packed: &Packed,
        nodes: &[Slot],
        own: Option<usize>,
        most: usize,
    ) -> Vec<Vec<usize>> {
        let codes = self.vectors.codes.slices();
        let mut queries: [Coded; GROUP] = Default::default();
        let mut found: [Vec<(f32, usize)>; GROUP] = Default::default();
        let mut nearest = Vec::with_capacity(nodes.len());
        for (first, four) in (0..).step_by(GROUP).zip(nodes.chunks(GROUP)) {
            let mut places = [usize::MAX; GROUP];
            for lane in 0..GROUP {
                // The places that are left over compare the last again.
                codes.take_row(four[lane.min(four.len() - 1)], &mut queries[lane]);
                found[lane].clear();
                if let Some(own) = own {
                    places[lane] = own + first + lane;
                }
            }
            codes.isa().run(Nearest {
                packed,
                queries: &queries,
                keep: Keep {
                    most,
                    own: places,
                    // What pads a pack is infinitely far.
                    bounds: [f32::MAX; GROUP],
                    found: &mut found,
                },
            });
            let places = |found: &Vec<(f32, usize)>| found.iter().map(|near| near.1).collect();
            nearest.extend(found[..four.len()].iter().map(places));
        }
        nearest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::ids::Ids;
    use crate::distance::Metric;
    use crate::distance::instruction_set::Isa;
    use crate::vectors::Vectors;
    use crate::vectors::codes::Buffers;

    const DIM: usize = 70;

    /// Rows of which every ninth is the one before it.
    fn vectors(isa: Isa, metric: Metric, rows: usize) -> Vectors {
        let mut vectors = Vectors::new(DIM, metric, isa);
        let number = |at: u64| (splitmix(at) % 2001) as f32 / 1000.0 - 1.0;
        for node in Slot::range(0, rows) {
            let row = u64::from(node.0 - u32::from(node.0 % 9 == 8));
            let row: Vec<f32> = (0..DIM as u64)
                .map(|x| number(row * 100 + x) + 0.01)
                .collect();
            vectors.put(node, &row);
            vectors.encode(&[node]);
        }
        vectors
    }

    fn builder<'a>(vectors: &'a Vectors, ids: &'a Ids) -> Builder<'a> {
        Builder {
            vectors,
            ids,
            seed: 5,
            width: 50,
        }
    }

    #[test]
    fn every_instruction_set_makes_the_same_graph() {
        let (ids, nodes) = (Ids::default(), Vec::from_iter(Slot::range(0, LEAST)));
        for metric in [Metric::Cosine, Metric::L2] {
            let built = |(_, isa)| builder(&vectors(isa, metric, LEAST), &ids).built(4, &nodes);
            let graphs: Vec<Links> = Isa::available().into_iter().map(built).collect();
            assert!(graphs.iter().all(|graph| *graph == graphs[0]));
        }
    }

    #[test]
    fn candidates_looked_for_in_parts_are_those_of_all_at_once() {
        let vectors = vectors(Isa::available()[0].1, Metric::L2, LEAST);
        let (ids, nodes) = (Ids::default(), Vec::from_iter(Slot::range(0, LEAST)));
        let builder = builder(&vectors, &ids);
        let mut groups = Groups::default();
        builder.divide(nodes.clone(), JOINED, 9, &mut groups);
        let whole = builder.candidates(&nodes, 0..LEAST, &groups);
        let parts = [0..1_000, 1_000..1_001, 1_001..LEAST];
        let parts = parts.map(|part| builder.candidates(&nodes, part, &groups));
        assert!(whole.iter().all(|found| found.len() > NEAREST));
        assert!(whole == parts.concat());
    }

    #[test]
    fn a_group_finds_what_comparing_one_by_one_does() {
        let ids = Ids::default();
        for (metric, rows) in [
            (Metric::Cosine, 2),
            (Metric::L2, 77),
            (Metric::InnerProduct, 131),
        ] {
            let vectors = vectors(Isa::available()[0].1, metric, rows);
            let leaf: Vec<Slot> = Slot::range(0, rows).collect();
            let codes = vectors.codes.slices();
            let mut buffers = Buffers::default();
            for (&node, near) in leaf
                .iter()
                .zip(builder(&vectors, &ids).nearest_in(&leaf, 0..rows))
            {
                let mut distances = |nodes: &[Slot]| {
                    codes
                        .distances(&codes.coded_row(node), nodes, &mut buffers)
                        .to_vec()
                };
                let others: Vec<Slot> = leaf.iter().copied().filter(|&n| n != node).collect();
                let mut expected = distances(&others);
                expected.sort_by(f32::total_cmp);
                expected.truncate(NEAREST);
                assert!(!near.contains(&node));
                let found = distances(&near);
                assert_eq!(found.len(), expected.len());
                let close = |(a, b): (&f32, &f32)| (a - b).abs() <= 1e-5 * (1.0 + b.abs());
                assert!(
                    found.iter().zip(&expected).all(close),
                    "{found:?} {expected:?}"
                );
            }
        }
    }
}
