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
use crate::distance::kernel::{EIGHT, Kernel, Work};
use crate::graph::insert::{Builder, NewLinks, chosen, mapped, set_all};
use crate::graph::links::Links;
use crate::graph::ranked::Ranked;
use crate::graph::scratch::with_scratch;
use crate::hash::splitmix;
use crate::id::Slot;
use crate::vectors::codes::{CodeSlices, Coded, Packed};

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
/// Words of eight that hold the nearest of a query, be it to leaders or in a group.
const KEPT: usize = JOINED.div_ceil(EIGHT);
const _: () = assert!(NEAREST < JOINED);
/// Distances held against a bound at once.
const SEEN: usize = 2 * PACK;
/// How often the range of distances is halved to find that bound.
const HALVED: usize = 6;
/// Products in a cache line.
const LINE: usize = 16;
/// What stands for no place.
const NONE: u32 = u32::MAX;
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
/// 832 bytes a node. Each time all groups are read again, so that fewer would cost time.
const CHOOSING: usize = 1 << 20;
/// So many are told their links before the next choose.
const STEP: usize = TOGETHER * TOGETHER;

/// The nearest `most` rows of a pack to each of `nodes`, which are rows themselves where it is said
/// from which place on, the first of a [`PACK`].
struct Nearest<'a> {
    codes: &'a CodeSlices<'a>,
    compared: &'a mut Compared,
    nodes: &'a [Slot],
    own: Option<usize>,
    most: usize,
}

/// Rows that are compared with many, and what came of it.
#[derive(Default)]
pub(crate) struct Compared {
    packed: Packed,
    /// Of queries with rows.
    products: Vec<i32>,
    /// Of one query to all rows.
    distances: Vec<f32>,
}

impl Work for Nearest<'_> {
    /// Places, `most` of each node; [`NONE`] where there are fewer.
    type Output = Vec<u32>;

    /// Two rows are compared once, if each is to know how far the other is.
    #[inline(always)]
    fn run(self, kernel: impl Kernel) -> Vec<u32> {
        let Nearest {
            codes,
            compared,
            nodes,
            own,
            most,
        } = self;
        let Compared {
            packed,
            products,
            distances,
        } = compared;
        let width = packed.len();
        // Rows of products are of an odd number of cache lines: columns are written, and lines at the
        // same place of a page are few in a cache.
        let stride = width + LINE;
        distances.resize(width, 0.0);
        let blocks = nodes.len().div_ceil(PACK);
        // What is compared with rows alone is done with before the next comes.
        let kept = if own.is_some() { blocks } else { 1 };
        if products.len() < kept * PACK * stride {
            products.resize(kept * PACK * stride, 0);
        }
        let mut queries: [Coded; PACK] = Default::default();
        let mut nearest = Vec::with_capacity(nodes.len() * most);
        for (block, some) in nodes.chunks(PACK).enumerate() {
            let next = nodes.get((block + 1) * PACK..).unwrap_or(&[]);
            codes.prefetch_all(&next[..next.len().min(PACK)]);
            for (lane, query) in queries.iter_mut().enumerate() {
                // The places that are left over compare the last again.
                codes.take_row(some[lane.min(some.len() - 1)], query);
            }
            let start = if own.is_some() { block * PACK } else { 0 };
            let fours = &queries.as_chunks::<GROUP>().0[..some.len().div_ceil(GROUP)];
            for pack in 0..width / PACK {
                // Where the rows of the pack are among the nodes.
                let other = match own {
                    Some(own) => pack.wrapping_sub(own / PACK),
                    None => usize::MAX,
                };
                if other < block {
                    continue;
                }
                for (four, first) in fours.iter().zip((start..).step_by(GROUP)) {
                    let tile = packed.products(kernel, four, pack);
                    let rows = products[first * stride..].chunks_exact_mut(stride);
                    for (row, products) in tile.iter().zip(rows) {
                        products[pack * PACK..][..PACK].copy_from_slice(row);
                    }
                    if other > block && other < blocks {
                        let column = own.unwrap_or(0) + first;
                        let [a, b, c, d] = &tile;
                        let rows = products[other * PACK * stride..].chunks_exact_mut(stride);
                        for (row, products) in rows.take(PACK).enumerate() {
                            let four = [a[row], b[row], c[row], d[row]];
                            products[column..][..GROUP].copy_from_slice(&four);
                        }
                    }
                }
            }
            for (lane, query) in queries[..some.len()].iter().enumerate() {
                let products = &products[(start + lane) * stride..][..width];
                let least = packed.distances(query, products, distances);
                let (own, reach) = match own {
                    Some(own) => (own + block * PACK + lane, most + 1),
                    None => (usize::MAX, most),
                };
                let bound = above(kernel, &least, reach);
                let mut found = [[u64::MAX; EIGHT]; KEPT];
                for (some, first) in distances.chunks(SEEN).zip((0..).step_by(SEEN)) {
                    let mut near = kernel.within(some, bound);
                    while near != 0 {
                        let lane = near.trailing_zeros() as usize;
                        near &= near - 1;
                        if first + lane != own {
                            let near = Ranked::new(some[lane], Slot::at(first + lane));
                            kernel.put(&mut found, near.word());
                        }
                    }
                }
                // The lower half of a word is the place; that of the word above all is NONE.
                for &word in &found.as_flattened()[..most] {
                    nearest.push(word as u32);
                }
            }
        }
        nearest
    }
}

/// A bound that at least `many` of some distances are not above, and few more; infinite ones are.
#[inline(always)]
fn above(kernel: impl Kernel, distances: &[f32; PACK], many: usize) -> f32 {
    let (mut low, mut high) = (f32::MAX, f32::MIN);
    for &distance in distances {
        low = if distance < low { distance } else { low };
        high = if distance > high { distance } else { high };
    }
    for _ in 0..HALVED {
        let middle = low + (high - low) / 2.0;
        if kernel.within(distances, middle).count_ones() as usize >= many {
            high = middle;
        } else {
            low = middle;
        }
    }
    high.min(f32::MAX)
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

/// What nodes may be linked to, some of it more than once.
struct Candidates {
    /// [`ROOM`](Self::ROOM) places a node.
    slots: Vec<u32>,
    counts: Vec<u8>,
}

impl Candidates {
    const ROOM: usize = JOINED * (NEAREST + 1);

    fn new(nodes: usize) -> Self {
        Candidates {
            slots: vec![0; nodes * Self::ROOM],
            counts: vec![0; nodes],
        }
    }

    fn put(&mut self, at: usize, near: impl Iterator<Item = Slot>) {
        let row = &mut self.slots[at * Self::ROOM..][..Self::ROOM];
        for near in near {
            row[usize::from(self.counts[at])] = near.0;
            self.counts[at] += 1;
        }
    }

    fn of(&self, at: usize) -> &[Slot] {
        Slot::slots(&self.slots[at * Self::ROOM..][..usize::from(self.counts[at])])
    }
}

/// Who chose each node, in one table.
struct Asked {
    /// Where those of each node end.
    ends: Vec<usize>,
    slots: Vec<u32>,
}

impl Asked {
    fn of(links: &Links, level: usize, nodes: &[Slot]) -> Self {
        let each = || {
            let linked = |&node| {
                links
                    .neighbors(node, level)
                    .iter()
                    .map(move |&to| (node, to))
            };
            nodes.iter().flat_map(linked)
        };
        let mut ends = vec![0; nodes.len() + 1];
        for (_, to) in each() {
            ends[place(nodes, to) + 1] += 1;
        }
        for at in 1..ends.len() {
            ends[at] += ends[at - 1];
        }
        let mut slots = vec![0; ends[nodes.len()]];
        for (node, to) in each() {
            let end = &mut ends[place(nodes, to)];
            slots[*end] = node.0;
            *end += 1;
        }
        Asked { ends, slots }
    }

    fn of_node(&self, at: usize) -> &[Slot] {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        Slot::slots(&self.slots[start..self.ends[at]])
    }
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
        let end = nodes.last().map_or(0, |last| last.index() + 1);
        let mut links = Links::new(m);
        // At once: a table that grows is copied, and is there twice meanwhile.
        links = links.roomy(end).unwrap_or(links);
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
        for (part, first) in nodes.chunks(CHOOSING).zip((0..).step_by(CHOOSING)) {
            let candidates = self.candidates(nodes, first..first + part.len(), &groups);
            self.set_each(links, level, part, |_, at| {
                self.nearest_apart(part[at], candidates.of(at), most)
            });
        }
        drop(groups);
        let asked = Asked::of(links, level, nodes);
        let most = links.most(level);
        self.set_each(links, level, nodes, |links, at| {
            let mut neighbors = [links.neighbors(nodes[at], level), asked.of_node(at)].concat();
            neighbors.sort_unstable();
            neighbors.dedup();
            if neighbors.len() > most {
                neighbors = self.nearest_apart(nodes[at], &neighbors, most);
            }
            neighbors
        });
    }

    /// Gives each of `nodes` the links that are chosen for the one at its place.
    fn set_each(
        &self,
        links: &mut Links,
        level: usize,
        nodes: &[Slot],
        choose: impl Fn(&Links, usize) -> Vec<Slot> + Sync + Send,
    ) {
        let places: Vec<usize> = (0..nodes.len()).collect();
        for places in places.chunks(STEP) {
            let new = mapped(places, |&at| NewLinks {
                level,
                node: nodes[at],
                neighbors: choose(links, at),
            });
            set_all(links, &new);
        }
    }

    /// What each of those `nodes` that stand in a range may be linked to.
    fn candidates(&self, nodes: &[Slot], range: Range<usize>, groups: &Groups) -> Candidates {
        let part = &nodes[range.clone()];
        let mut found = Candidates::new(part.len());
        if !groups.leaders.is_empty() {
            let leaders = &groups.leaders[range.start * JOINED..range.end * JOINED];
            for (at, leaders) in leaders.chunks(JOINED).enumerate() {
                let others = leaders.iter().copied().filter(|&leader| leader != part[at]);
                found.put(at, others);
            }
        }
        let within = |leaf: &Vec<Slot>| {
            leaf.partition_point(|node| *node < part[0])
                ..leaf.partition_point(|node| *node <= part[part.len() - 1])
        };
        for leaves in groups.leaves.chunks(TOGETHER) {
            let near = mapped(leaves, |leaf| {
                let range = within(leaf);
                let own = Some(range.start);
                self.nearest(leaf, &leaf[range], own, NEAREST)
            });
            for (leaf, near) in leaves.iter().zip(near) {
                for (&node, near) in leaf[within(leaf)].iter().zip(near.chunks(NEAREST)) {
                    let near = near.iter().take_while(|&&at| at != NONE);
                    found.put(place(part, node), near.map(|&at| leaf[at as usize]));
                }
            }
        }
        for (place, at) in (0..part.len()).zip(range) {
            // Alone in all of its groups.
            if found.of(place).is_empty() {
                found.put(place, [nodes[at.checked_sub(1).unwrap_or(1)]].into_iter());
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
        let mut groups = vec![Vec::new(); many];
        for nodes in nodes.chunks(STEP) {
            let chunks: Vec<&[Slot]> = nodes.chunks(TOGETHER).collect();
            let nearest = mapped(&chunks, |chunk| self.nearest(&leaders, chunk, None, joined));
            let places = nearest.iter().flat_map(|nearest| nearest.chunks(joined));
            for (&node, places) in nodes.iter().zip(places) {
                let places = || places.iter().take_while(|&&at| at != NONE);
                for &at in places() {
                    groups[at as usize].push(node);
                }
                if joined > 1 {
                    let joined = places().map(|&at| leaders[at as usize]);
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

    /// The places of those of `rows` that are nearest to each of `nodes`, see [`Nearest`].
    fn nearest(&self, rows: &[Slot], nodes: &[Slot], own: Option<usize>, most: usize) -> Vec<u32> {
        if nodes.is_empty() {
            return Vec::new();
        }
        let codes = self.vectors.codes.slices();
        with_scratch(|scratch| {
            let compared = &mut scratch.compared;
            codes.pack(rows, &mut compared.packed);
            // Rows that are nodes are taken from the first of a pack on.
            let before = own.map_or(0, |own| own % PACK);
            let nodes = own.map_or(nodes, |own| &rows[own - before..own + nodes.len()]);
            let mut nearest = codes.isa().run(Nearest {
                codes: &codes,
                compared,
                nodes,
                own: own.map(|own| own - before),
                most,
            });
            nearest.drain(..before * most);
            nearest
        })
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
        let candidates = |part: Range<usize>| -> Vec<Vec<Slot>> {
            let found = builder.candidates(&nodes, part.clone(), &groups);
            (0..part.len()).map(|at| found.of(at).to_vec()).collect()
        };
        let whole = candidates(0..LEAST);
        let parts = [0..1_000, 1_000..1_001, 1_001..LEAST].map(candidates);
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
            let nearest = builder(&vectors, &ids).nearest(&leaf, &leaf, Some(0), NEAREST);
            for (&node, near) in leaf.iter().zip(nearest.chunks(NEAREST)) {
                let mut distances = |nodes: &[Slot]| {
                    codes
                        .distances(&codes.coded_row(node), nodes, &mut buffers)
                        .to_vec()
                };
                let others: Vec<Slot> = leaf.iter().copied().filter(|&n| n != node).collect();
                let mut expected = distances(&others);
                expected.sort_by(f32::total_cmp);
                expected.truncate(NEAREST);
                let near = near.iter().take_while(|&&at| at != NONE);
                let near: Vec<Slot> = near.map(|&at| leaf[at as usize]).collect();
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
