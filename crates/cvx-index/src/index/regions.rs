//! Regions: hubs of a graph level, which nodes belong to each, how an entity moves among them.
//!
//! The hubs are a snapshot with a number, the epoch: the nodes with a vector that there were when
//! the epoch began, by level. Nodes that come later are assigned to these hubs and become hubs in
//! the next epoch at the earliest. An epoch begins with the vector that doubles their number, when a
//! hub of a level above the ground is deleted or takes another vector, when the center moves, and on request. Regions span
//! all namespaces: they describe the space.

use std::sync::Arc;

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::graph::beam::Beam;
use crate::graph::candidate_pool::BeamWidth;
use crate::graph::ranked::Ranked;
use crate::graph::scratch::{Scratch, with_scratch};
use crate::id::{EntityId, NodeId, RegionId, Slot};
use crate::index::TemporalIndex;
use crate::index::region_epoch::NONE;
use crate::vectors::Query;

/// Up to so many hubs the nearest is found by comparing with all of them.
const SCAN_AT_MOST: usize = 16_384;
/// How wide the walk among more hubs is.
const WIDTH: usize = 256;
/// The most numbers of a region trajectory.
const MOST_SHARES: i128 = 1 << 27;

/// How an entity moves through the regions of a level.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RegionTrajectory {
    /// The regions, ascending.
    pub regions: Vec<RegionId>,
    /// The middle of each window, in units of time.
    pub centres: Vec<f64>,
    /// Smoothed shares, window by window: `centres.len()` rows of `regions.len()`.
    pub shares: Vec<f64>,
}

impl TemporalIndex {
    /// The levels that have regions, finest first; at level 0 every node of the snapshot is one.
    #[must_use]
    pub fn region_levels(&self) -> Vec<usize> {
        (0..self.region_level_count()).collect()
    }

    fn region_level_count(&self) -> usize {
        *self.epoch.known().levels.get_or_insert_with(|| {
            let hubs = self
                .links
                .nodes()
                .take_while(|&node| self.epoch.covers(node));
            hubs.filter_map(|node| self.links.level(node))
                .max()
                .map_or(0, |top| top + 1)
        })
    }

    /// Which snapshot of the hubs is in force; every new one has a higher number.
    #[must_use]
    pub fn region_epoch(&self) -> u64 {
        self.epoch.number()
    }

    /// Begins an epoch with the hubs of now.
    ///
    /// # Errors
    /// None today.
    pub fn refresh_regions(&mut self) -> Result<()> {
        self.epoch.begin(self.columns.len(), self.links.len());
        Ok(())
    }

    /// The regions of a level, ascending; a region's id is that of its hub.
    ///
    /// # Errors
    /// [`Error::UnknownLevel`].
    pub fn regions(&self, level: usize) -> Result<Vec<RegionId>> {
        Ok(self
            .hubs(level)?
            .iter()
            .map(|&hub| self.region(hub))
            .collect())
    }

    fn region(&self, hub: Slot) -> RegionId {
        RegionId(self.id(hub))
    }

    fn hubs(&self, level: usize) -> Result<Arc<[Slot]>> {
        if level >= self.region_level_count() {
            return Err(Error::UnknownLevel {
                level,
                known: self.region_levels(),
            });
        }
        let list = || {
            let hubs = self
                .links
                .nodes()
                .take_while(|&node| self.epoch.covers(node));
            hubs.filter(|&node| self.links.level(node).is_some_and(|l| l >= level))
                .collect()
        };
        Ok(Arc::clone(
            self.epoch.known().hubs.entry(level).or_insert_with(list),
        ))
    }

    /// The region of a vector: the hub nearest to it, of equally near ones the lowest id.
    ///
    /// # Errors
    /// [`Error::UnknownLevel`], those of a vector.
    pub fn assign_region(&self, vector: &[f32], level: usize) -> Result<RegionId> {
        let hubs = self.hubs(level)?;
        let query = self.vectors.prepared(vector)?;
        Ok(self.region(self.nearest_hub(&query, level, &hubs)))
    }

    fn nearest_hub(&self, query: &Query, level: usize, hubs: &[Slot]) -> Slot {
        with_scratch(|scratch| {
            let Scratch { walk, buffers, .. } = &mut *scratch;
            let mut near: Vec<Slot> = Vec::new();
            if hubs.len() > SCAN_AT_MOST {
                let graph = self.graph();
                let start = graph.descend(&query.coded, level, buffers);
                let beam = Beam {
                    room: BeamWidth::of(WIDTH),
                    level,
                    budget: usize::MAX,
                    accepts: |node| self.epoch.covers(node),
                };
                graph.beam(&query.coded, start.as_slice(), &beam, walk, buffers);
                near.extend(walk.accepted.ranked().map(Ranked::node));
            }
            let near = if near.is_empty() { hubs } else { &near };
            self.vectors.scan(query, near, 1, scratch);
            scratch.found.near.first().map_or(NONE, |near| near.node())
        })
    }

    /// Every node with a vector, ascending, and its region; a hub is in its own.
    ///
    /// # Errors
    /// [`Error::UnknownLevel`].
    pub fn region_assignments(&self, level: usize) -> Result<Vec<(NodeId, RegionId)>> {
        let assigned = self.assigned(level)?;
        let pairs = assigned
            .iter()
            .zip(self.columns.slots())
            .filter(|(hub, _)| **hub != NONE);
        Ok(pairs
            .map(|(&hub, node)| (self.id(node), self.region(hub)))
            .collect())
    }

    fn assigned(&self, level: usize) -> Result<Arc<[Slot]>> {
        let hubs = self.hubs(level)?;
        let known = self.epoch.known().assigned.get(&level).cloned();
        let known = known.unwrap_or_else(|| Arc::from([]));
        let count = self.columns.len();
        if known.len() == count {
            return Ok(known);
        }
        // Worked out without the lock: other threads may need it to get on.
        let new: Vec<Slot> = Slot::range(known.len(), count).collect();
        let hub_of = |&node: &Slot| self.hub_of(node, level, &hubs);
        let new: Vec<Slot> = new.par_iter().map(hub_of).collect();
        let assigned: Arc<[Slot]> = known.iter().copied().chain(new).collect();
        self.epoch
            .known()
            .assigned
            .insert(level, Arc::clone(&assigned));
        Ok(assigned)
    }

    /// The hub of a node; a hub is its own, and a node outside the graph has none.
    fn hub_of(&self, node: Slot, level: usize, hubs: &[Slot]) -> Slot {
        let Some(own) = self.links.level(node) else {
            return NONE;
        };
        if self.epoch.covers(node) && own >= level {
            return node;
        }
        // As a query, not as a row: its codes are finer, and `assign_region` says the same.
        let query = self.vectors.prepared(self.vectors.raw(node));
        query.map_or(NONE, |query| self.nearest_hub(&query, level, hubs))
    }

    /// The nodes of a region, ascending.
    ///
    /// # Errors
    /// [`Error::UnknownLevel`], [`Error::UnknownRegion`] for a node that is no hub of the level.
    pub fn region_members(&self, region: RegionId, level: usize) -> Result<Vec<NodeId>> {
        let hubs = self.hubs(level)?;
        let hub = self.columns.ids.slot(region.0);
        let hub = hub.filter(|hub| hubs.binary_search(hub).is_ok());
        let Some(hub) = hub else {
            return Err(Error::UnknownRegion {
                region,
                level,
                epoch: self.region_epoch(),
            });
        };
        let assigned = self.assigned(level)?;
        let members = assigned
            .iter()
            .zip(self.columns.slots())
            .filter(|(own, _)| **own == hub);
        Ok(members.map(|(_, node)| self.id(node)).collect())
    }

    /// How an entity moves through the regions.
    ///
    /// The time from its first event with a vector to its last is cut into windows of `window`.
    /// p_w are the shares of the regions among its events in window w, and
    /// `s_w = alpha * p_w + (1 - alpha) * s_(w-1)`, beginning with s_0 = p_0. A window without an
    /// event tells nothing: there `s_w = s_(w-1)`.
    ///
    /// # Errors
    /// [`Error::UnknownEntity`], [`Error::UnknownLevel`], [`Error::Parameter`] for a window below 1
    /// or so short that there would be more than 2^27 shares, or an alpha outside (0, 1].
    pub fn region_trajectory(
        &self,
        namespace: &str,
        entity: EntityId,
        level: usize,
        window: i64,
        alpha: f64,
    ) -> Result<RegionTrajectory> {
        let hubs = self.hubs(level)?;
        let refused = |name, value, bound| Err(Error::Parameter { name, value, bound });
        if window < 1 {
            return refused("window", window.to_string(), "1 or more");
        }
        if !(alpha > 0.0 && alpha <= 1.0) {
            return refused("alpha", alpha.to_string(), "above 0, at most 1");
        }
        let assigned = self.assigned(level)?;
        let line = self.line(namespace, entity)?.iter();
        let events: Vec<(i64, Slot)> = line
            .map(|&node| (self.columns.time[node.index()], assigned[node.index()]))
            .filter(|&(_, hub)| hub != NONE)
            .collect();
        let regions = hubs.iter().map(|&hub| self.region(hub)).collect();
        let (Some(&(first, _)), Some(&(last, _))) = (events.first(), events.last()) else {
            return Ok(RegionTrajectory {
                regions,
                centres: Vec::new(),
                shares: Vec::new(),
            });
        };
        let place = |time: i64| (i128::from(time) - i128::from(first)) / i128::from(window);
        let windows = place(last) + 1;
        if windows.saturating_mul(hubs.len() as i128) > MOST_SHARES {
            return refused(
                "window",
                window.to_string(),
                "longer, for at most 2^27 shares in all",
            );
        }
        let mut shares: Vec<f64> = Vec::with_capacity(windows as usize * hubs.len());
        let mut smooth = vec![0.0; hubs.len()];
        let mut rest = events.as_slice();
        for w in 0..windows {
            let (inside, later) = rest.split_at(rest.partition_point(|&(t, _)| place(t) == w));
            rest = later;
            if !inside.is_empty() {
                // The first window is all there is to smooth.
                let alpha = if w == 0 { 1.0 } else { alpha };
                smooth.iter_mut().for_each(|share| *share *= 1.0 - alpha);
                for (_, hub) in inside {
                    let column = hubs.partition_point(|other| other < hub);
                    smooth[column] += alpha / inside.len() as f64;
                }
            }
            shares.extend_from_slice(&smooth);
        }
        let middle = |w: i128| first as f64 + (w as f64 + 0.5) * window as f64;
        Ok(RegionTrajectory {
            regions,
            centres: (0..windows).map(middle).collect(),
            shares,
        })
    }
}
