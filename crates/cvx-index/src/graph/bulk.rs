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
                let new = self.linked(&links, &there, level);
                set_all(&mut links, &new);
            }
        }
        self.insert(&mut links, &others);
        links
    }

    /// The links of all `nodes` of a level.
    fn linked(&self, links: &Links, nodes: &[Slot], level: usize) -> Vec<NewLinks> {
        let mut place = vec![0; links.table_len()];
        for (at, node) in nodes.iter().enumerate() {
            place[node.index()] = at;
        }
        let candidates = self.candidates(nodes, &place, splitmix(self.seed ^ level as u64));
        let places: Vec<usize> = (0..nodes.len()).collect();
        let most = chosen(links.m(), level);
        let chosen = mapped(&places, |&at| {
            self.nearest_apart(nodes[at], &candidates[at], most)
        });
        drop(candidates);
        let mut asked = vec![Vec::new(); nodes.len()];
        for (&node, neighbors) in nodes.iter().zip(&chosen) {
            for neighbor in neighbors {
                asked[place[neighbor.index()]].push(node);
            }
        }
        mapped(&places, |&at| {
            let mut neighbors = [chosen[at].as_slice(), asked[at].as_slice()].concat();
            neighbors.sort_unstable();
            neighbors.dedup();
            if neighbors.len() > links.most(level) {
                neighbors = self.nearest_apart(nodes[at], &neighbors, links.most(level));
            }
            NewLinks {
                level,
                node: nodes[at],
                neighbors,
            }
        })
    }

    /// What each of `nodes` may be linked to; `place` tells where a slot stands among them.
    fn candidates(&self, nodes: &[Slot], place: &[usize], salt: u64) -> Vec<Vec<Slot>> {
        let mut leaves = Vec::new();
        let mut found: Vec<Vec<Slot>> = vec![Vec::new(); nodes.len()];
        let mut put = |node: Slot, near: &[Slot]| {
            let found = &mut found[place[node.index()]];
            for near in near {
                if *near != node && !found.contains(near) {
                    found.push(*near);
                }
            }
        };
        self.divide(nodes.to_vec(), JOINED, salt, &mut leaves, &mut put);
        for leaves in leaves.chunks(TOGETHER) {
            for (leaf, near) in leaves
                .iter()
                .zip(mapped(leaves, |leaf| self.all_pairs(leaf)))
            {
                for (&node, near) in leaf.iter().zip(near) {
                    put(node, &near);
                }
            }
        }
        for (at, found) in found.iter_mut().enumerate() {
            // Alone in all of its groups.
            if found.is_empty() {
                found.push(nodes[at.checked_sub(1).unwrap_or(1)]);
            }
        }
        found
    }

    /// Divides nodes into groups that are small enough, each node in `joined` of them, and tells each
    /// of the leaders that it joined at first, which are farther than the nearest of its groups.
    fn divide(
        &self,
        nodes: Vec<Slot>,
        joined: usize,
        salt: u64,
        leaves: &mut Vec<Vec<Slot>>,
        put: &mut impl FnMut(Slot, &[Slot]),
    ) {
        if nodes.len() <= LEAF {
            leaves.push(nodes);
            return;
        }
        let many = (PART * joined * nodes.len() / LEAF).clamp(2, LEADERS);
        let stride = nodes.len() / many;
        let drawn = |at: usize| at * stride + (splitmix(salt ^ at as u64) % stride as u64) as usize;
        let leaders: Vec<Slot> = (0..many).map(|at| nodes[drawn(at)]).collect();
        let mut packed = Packed::default();
        self.vectors.codes.slices().pack(&leaders, &mut packed);
        let chunks: Vec<&[Slot]> = nodes.chunks(TOGETHER).collect();
        let nearest = mapped(&chunks, |chunk| self.nearest(&packed, chunk, false, joined));
        let mut groups = vec![Vec::new(); many];
        for (&node, places) in nodes.iter().zip(nearest.iter().flatten()) {
            for &place in places {
                groups[place].push(node);
            }
            if joined > 1 {
                let joined: Vec<Slot> = places.iter().map(|&place| leaders[place]).collect();
                put(node, &joined);
            }
        }
        drop((chunks, nearest));
        for (mut group, at) in groups.into_iter().zip(1u64..) {
            let salt = splitmix(salt ^ at << 32);
            if group.len() > LEAF && group.len() > nodes.len() - nodes.len() / 8 {
                // No leader divides what is all but alike: chance does.
                group.sort_unstable_by_key(|node| splitmix(salt ^ u64::from(node.0)));
                leaves.extend(group.chunks(LEAF).map(|leaf| {
                    let mut leaf = leaf.to_vec();
                    // Of what is equally far the first slots are kept, as by walks.
                    leaf.sort_unstable();
                    leaf
                }));
            } else if group.len() > 1 {
                self.divide(group, 1, salt, leaves, put);
            }
        }
    }

    /// The nearest others of each node of a group.
    fn all_pairs(&self, leaf: &[Slot]) -> Vec<Vec<Slot>> {
        let mut packed = Packed::default();
        self.vectors.codes.slices().pack(leaf, &mut packed);
        let near = self.nearest(&packed, leaf, true, NEAREST);
        let slots = |places: Vec<usize>| places.into_iter().map(|place| leaf[place]).collect();
        near.into_iter().map(slots).collect()
    }

    /// The places of the rows nearest to each of `nodes`, which are the rows themselves where they are
    /// `own`.
    fn nearest(&self, packed: &Packed, nodes: &[Slot], own: bool, most: usize) -> Vec<Vec<usize>> {
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
                if own {
                    places[lane] = first + lane;
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
            for (&node, near) in leaf.iter().zip(builder(&vectors, &ids).all_pairs(&leaf)) {
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
