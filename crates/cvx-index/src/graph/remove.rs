//! Removal: who was linked to nodes that go is linked to their neighbours instead.

use crate::graph::insert::{Builder, NewLinks, Request, mapped, set_all};
use crate::graph::links::Links;
use crate::graph::scratch::with_scratch;
use crate::id::Slot;

impl Builder<'_> {
    /// The links, without `gone`, of every node that is linked to one of them.
    pub(crate) fn around(&self, links: &Links, gone: &[Slot]) -> Vec<NewLinks> {
        let is_gone = |node: &Slot| gone.binary_search(node).is_ok();
        let mut orphans: Vec<(Slot, usize)> = Vec::new();
        for node in links.nodes().filter(|node| !is_gone(node)) {
            for level in 0..=links.level(node).unwrap_or(0) {
                if links.neighbors(node, level).iter().any(is_gone) {
                    orphans.push((node, level));
                }
            }
        }
        mapped(&orphans, |&(node, level)| {
            let neighbors = links.neighbors(node, level);
            let beyond = neighbors.iter().filter(|node| is_gone(node));
            let beyond = beyond.flat_map(|&gone| links.neighbors(gone, level));
            let mut candidates: Vec<Slot> = neighbors.iter().chain(beyond).copied().collect();
            candidates.sort_unstable();
            candidates.dedup();
            candidates.retain(|candidate| *candidate != node && !is_gone(candidate));
            let neighbors = match candidates.len() > links.most(level) {
                true => self.nearest_apart(node, &candidates, links.most(level)),
                false => candidates,
            };
            NewLinks {
                level,
                node,
                neighbors,
            }
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

    /// Links a node that lost every neighbour at a level to the nearest of those left.
    fn rejoin(&self, links: &mut Links, node: Slot, level: usize) {
        if !links.neighbors(node, level).is_empty() {
            return;
        }
        let others = links.nodes().filter(|&other| other != node);
        let others: Vec<Slot> = others
            .filter(|&other| links.level(other).is_some_and(|l| l >= level))
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
