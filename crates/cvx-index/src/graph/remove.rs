//! Removes nodes from the graph: nodes that linked to them are linked to their neighbours.
//!
//! Links go one way, so nobody knows who links to a node. Few nodes are looked for as a search would
//! find them, among what is near and among what they link to themselves; for many it is cheaper to
//! look at all links. What a search did not find keeps a link to a row that has no distance: walks
//! pass over it, and it goes when the links of that node are next chosen, or at compaction.
//!
//! References: Xu et al. 2025, "In-place updates of a graph index for streaming approximate nearest
//! neighbor search" (IP-DiskANN), for the search towards the node that goes.

use crate::filter::accepted::Bits;
use crate::graph::beam::{Beam, Everything, Graph};
use crate::graph::candidate_pool::BeamWidth;
use crate::graph::insert::{Builder, NewLinks, Request, mapped, set_all};
use crate::graph::links::Links;
use crate::graph::ranked::Ranked;
use crate::graph::scratch::{Scratch, with_scratch};
use crate::id::Slot;

/// To look at the links of so many nodes takes as long as to search for one.
const LOOKS: usize = 2048;
/// So many of those near a node that goes are candidates for the links of who was linked to it.
const SOME_NEAR: usize = 64;

/// What a search towards a node that goes came by at a level.
#[derive(Clone)]
struct Nearby {
    level: usize,
    /// Nearest first.
    near: Vec<Slot>,
    /// Those that link to the node.
    orphans: Vec<Slot>,
}

impl Builder<'_> {
    /// The links, without `gone`, of the nodes that are found to be linked to one of them.
    pub(crate) fn around(&self, links: &Links, gone: &[Slot]) -> Vec<NewLinks> {
        if gone.len().saturating_mul(LOOKS) >= links.len() {
            return mapped(&linked_anywhere(links, gone), |&(node, level)| {
                let neighbors = links.neighbors(node, level);
                let beyond = neighbors
                    .iter()
                    .filter(|node| gone.binary_search(node).is_ok());
                let beyond = beyond.flat_map(|&gone| links.neighbors(gone, level));
                self.mended(links, (node, level), beyond.copied(), gone)
            });
        }
        let nearby = mapped(gone, |&node| self.linked_nearby(links, node)).concat();
        let orphans_of = |place: usize| {
            let Nearby { level, orphans, .. } = &nearby[place];
            orphans.iter().map(move |&node| (node, *level, place))
        };
        let mut orphans: Vec<(Slot, usize, usize)> =
            (0..nearby.len()).flat_map(orphans_of).collect();
        orphans.retain(|(node, ..)| gone.binary_search(node).is_err());
        orphans.sort_unstable();
        let same_row =
            |a: &(Slot, usize, usize), b: &(Slot, usize, usize)| (a.0, a.1) == (b.0, b.1);
        let rows: Vec<&[(Slot, usize, usize)]> = orphans.chunk_by(same_row).collect();
        mapped(&rows, |row| {
            let near = row.iter().flat_map(|&(.., place)| &nearby[place].near);
            self.mended(links, (row[0].0, row[0].1), near.copied(), gone)
        })
    }

    /// The links of a node at a level without those that are `gone`: the others, and of what is near
    /// those that are, what lies apart from them. To choose all of them again would turn away the far
    /// ones, made when less was near, that walks go by.
    fn mended(
        &self,
        links: &Links,
        (node, level): (Slot, usize),
        near: impl Iterator<Item = Slot>,
        gone: &[Slot],
    ) -> NewLinks {
        let stays = |other: &Slot| {
            *other != node && gone.binary_search(other).is_err() && links.reaches(*other, level)
        };
        let neighbors = links.neighbors(node, level).iter().copied();
        let mut neighbors: Vec<Slot> = neighbors.filter(stays).collect();
        let mut near: Vec<Slot> = near.filter(stays).collect();
        near.sort_unstable();
        near.dedup();
        near.retain(|other| !neighbors.contains(other));
        if neighbors.len() + near.len() > links.most(level) {
            neighbors = self.also_apart(node, neighbors, &near, links.most(level));
        } else {
            neighbors.append(&mut near);
        }
        NewLinks {
            level,
            node,
            neighbors,
        }
    }

    /// Who links to a node, as far as a search for it comes by, level by level.
    fn linked_nearby(&self, links: &Links, gone: Slot) -> Vec<Nearby> {
        let Some(highest) = links.level(gone) else {
            return Vec::new();
        };
        with_scratch(|scratch| {
            let graph = Graph::new(links, &self.vectors.codes);
            let query = self.vectors.codes.slices().coded_row(gone);
            let Scratch { walk, buffers, .. } = scratch;
            let at_level = |level| {
                let beam = Beam {
                    room: BeamWidth::of(self.width),
                    level,
                    budget: usize::MAX,
                    accepts: Everything,
                };
                // From the node itself: nothing is nearer to it.
                graph.beam(&query, &[gone], &beam, walk, buffers);
                let mut near: Vec<Slot> = walk.frontier.ranked().map(Ranked::node).collect();
                let others = links.neighbors(gone, level).iter().copied();
                let seen = near.iter().copied().chain(others);
                let orphans = seen.filter(|&node| {
                    links.reaches(node, level) && links.neighbors(node, level).contains(&gone)
                });
                let orphans = orphans.collect();
                near.truncate(SOME_NEAR);
                Nearby {
                    level,
                    near,
                    orphans,
                }
            };
            (0..=highest).map(at_level).collect()
        })
    }

    /// Takes `gone` out of the graph, given the links [`around`](Self::around) them.
    pub(crate) fn remove(&self, links: &mut Links, gone: &[Slot], around: &[NewLinks]) {
        set_all(links, around);
        for &node in gone {
            links.remove(node);
        }
        for orphan in around {
            self.rejoin(links, orphan.node, orphan.level);
        }
    }

    /// The links of every node that has one to a node that is gone, at their best without it.
    pub(crate) fn swept(&self, links: &Links) -> Vec<NewLinks> {
        mapped(&linked_anywhere(links, &[]), |&(node, level)| {
            let neighbors = links.neighbors(node, level).iter();
            let stay = neighbors.filter(|&&neighbor| links.reaches(neighbor, level));
            let beyond = stay.flat_map(|&neighbor| links.neighbors(neighbor, level));
            self.mended(links, (node, level), beyond.copied(), &[])
        })
    }

    /// Links a node that lost every neighbour at a level to the nearest of those left.
    fn rejoin(&self, links: &mut Links, node: Slot, level: usize) {
        if !links.neighbors(node, level).is_empty() {
            return;
        }
        let others = links.nodes().filter(|&other| other != node);
        let others: Vec<Slot> = others
            .filter(|&other| links.reaches(other, level))
            .collect();
        let neighbors = with_scratch(|scratch| {
            self.vectors
                .scan(&self.vectors.query_of(node), &others, self.width, scratch);
            let nearest: Vec<Slot> = scratch.found.near.iter().map(|near| near.node()).collect();
            self.nearest_apart(node, &nearest, links.m())
        });
        links.set(node, level, &neighbors);
        for neighbor in neighbors {
            // Links go one way: the neighbour may have kept its own to this node.
            if links.neighbors(neighbor, level).contains(&node) {
                continue;
            }
            let back = self.link_back(links, &[Request::new(level, neighbor, node)]);
            set_all(links, &[back]);
        }
    }
}

/// Every node that links to one that goes, or has gone, and at which level.
fn linked_anywhere(links: &Links, gone: &[Slot]) -> Vec<(Slot, usize)> {
    let mut outside: Vec<Slot> = gone.to_vec();
    outside.extend(Slot::range(0, links.table_len()).filter(|&node| links.level(node).is_none()));
    let outside = Bits::of(&outside, links.table_len());
    let mut orphans = Vec::new();
    for node in links.nodes().filter(|&node| !outside.has(node)) {
        for level in 0..=links.level(node).unwrap_or(0) {
            let leads_out = |&neighbor: &Slot| outside.has(neighbor);
            if links.neighbors(node, level).iter().any(leads_out) {
                orphans.push((node, level));
            }
        }
    }
    orphans
}
