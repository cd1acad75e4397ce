//! `TemporalIndex`, the one facade: its parts, parameters, center and search calls.
//!
//! Its other methods stand beside their concepts: here what is in it and how that changes, in `query`
//! the searches, in `snapshot` the file. None of what stands here uses one of the two.

pub(crate) mod changes;
mod compact;
mod edges;
mod nodes;
pub(crate) mod params;
pub(crate) mod region_epoch;
mod regions;
mod validate;

pub use nodes::Stats;
pub use params::{DEFAULT_EF, IndexParams};
pub use regions::RegionTrajectory;

use region_epoch::RegionEpoch;

use crate::columns::{Columns, LIVE};
use crate::distance::instruction_set::Isa;
use crate::edges::TypedEdgeLayer;
use crate::error::{Error, Result};
use crate::filter::plan::FilterCache;
use crate::filter::postings::Postings;
use crate::filter::timelines::Timelines;
use crate::graph::beam::Graph;
use crate::graph::insert::Builder;
use crate::graph::links::Links;
use crate::id::{NodeId, Slot};
use crate::vectors::Vectors;

/// The most nodes of an index; the id above is kept free.
pub(crate) const MOST_NODES: usize = u32::MAX as usize - 1;

/// The most threads that one call may ask for.
pub const MOST_THREADS: usize = 256;

/// Where distances are taken from.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Center {
    /// The origin.
    None,
    /// The mean of the vectors now stored.
    Mean,
    /// A vector.
    Vector(Vec<f32>),
}

/// Nodes in time: found by similarity, followed along timelines and typed edges.
///
/// It is changed through `&mut self`; [`SharedIndex`](crate::SharedIndex) lets threads search while
/// nodes come and go.
///
/// ```
/// use cvx_index::{EdgeKind, EntityId, Filter, IndexParams, NewNode, TemporalIndex};
///
/// # fn main() -> cvx_index::Result<()> {
/// let mut index = TemporalIndex::new(IndexParams::new(2))?;
/// let open = index.insert(NewNode::new(EntityId(1), 10, Some(&[1.0, 0.0])).action("open"))?;
/// let take = index.insert(NewNode::new(EntityId(1), 20, Some(&[0.0, 1.0])).reward(1.0))?;
/// index.add_edge(open, take, EdgeKind::Caused, 0.9)?;
///
/// // What is near "open", and what that led to.
/// let boosts = [(EdgeKind::Caused, 0.5)];
/// let hits = index.graph_search(&[1.0, 0.0], 2, &boosts, 1, None, &Filter::default())?;
/// assert_eq!(hits[1].node, take);
/// assert_eq!(hits[1].path[0].weight, 0.9);
/// # Ok(())
/// # }
/// ```
pub struct TemporalIndex {
    pub(crate) params: IndexParams,
    pub(crate) columns: Columns,
    pub(crate) vectors: Vectors,
    pub(crate) links: Links,
    pub(crate) postings: Postings,
    pub(crate) timelines: Timelines,
    pub(crate) edges: TypedEdgeLayer,
    pub(crate) epoch: RegionEpoch,
    pub(crate) remembered: FilterCache,
    pub(crate) changes: u64,
    pub(crate) live: usize,
    pub(crate) metadata: Vec<u8>,
}

impl TemporalIndex {
    /// An empty index.
    ///
    /// # Errors
    /// [`Error::Parameter`] for one outside its bounds, `CVX_CPU` included.
    pub fn new(params: IndexParams) -> Result<Self> {
        params.check()?;
        let isa = Isa::chosen()?;
        Ok(TemporalIndex {
            columns: Columns::new(),
            vectors: Vectors::new(params.dim, params.metric, isa),
            links: Links::new(params.m),
            postings: Postings::default(),
            timelines: Timelines::default(),
            edges: TypedEdgeLayer::new(),
            epoch: RegionEpoch::default(),
            remembered: FilterCache::default(),
            changes: 0,
            live: 0,
            metadata: Vec::new(),
            params,
        })
    }

    /// What the index was made with.
    #[must_use]
    pub fn params(&self) -> &IndexParams {
        &self.params
    }

    /// How many nodes there are, deleted ones not counted.
    #[must_use]
    pub fn len(&self) -> usize {
        self.live
    }

    /// Whether there is no node.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// How many ids were given so far; the next node gets this one.
    #[must_use]
    pub fn node_count(&self) -> usize {
        self.columns.ids.id(Slot::at(self.columns.len())).index()
    }

    /// Whether a node exists and was not deleted.
    #[must_use]
    pub fn contains(&self, node: NodeId) -> bool {
        let slot = self.columns.ids.slot(node);
        slot.is_some_and(|slot| self.columns.has(slot, LIVE))
    }

    /// Passes over ids, which are then as those of deleted nodes: unknown, and never given again.
    ///
    /// It costs nothing, however many they are: what lies between two ids takes no room.
    ///
    /// # Errors
    /// [`Error::Capacity`].
    pub fn skip_ids(&mut self, count: usize) -> Result<()> {
        let wanted = self.node_count().saturating_add(count);
        if wanted > MOST_NODES {
            return Err(Error::Capacity {
                wanted,
                bound: MOST_NODES,
            });
        }
        if count > 0 {
            let slots = self.columns.len();
            self.columns.ids.skip(slots, count as u32);
        }
        Ok(())
    }

    /// Takes distances from another center, links the graph anew and begins an epoch of regions.
    ///
    /// # Errors
    /// Those of a vector, [`Error::NoVector`] for the mean of an index without vectors,
    /// [`Error::ZeroVector`] where a stored vector is the center and the metric is cosine.
    pub fn set_center(&mut self, center: Center) -> Result<()> {
        let center = match center {
            Center::None => None,
            Center::Vector(center) => Some(center),
            Center::Mean => {
                let mean = self.vectors.mean(self.links.nodes());
                Some(mean.ok_or(Error::NoVector {
                    what: "the index, whose mean was asked for,",
                })?)
            }
        };
        self.vectors
            .check_center(center.as_deref(), self.links.nodes())?;
        let nodes: Vec<Slot> = self.links.nodes().collect();
        self.note_change();
        self.vectors.set_center(center);
        self.vectors.recode(&nodes);
        self.links = self.builder().built(self.params.m, &nodes);
        self.epoch.begin(self.columns.len(), self.links.len());
        Ok(())
    }

    /// Where distances are taken from; `None` is the origin.
    #[must_use]
    pub fn center(&self) -> Option<&[f32]> {
        self.vectors.center()
    }

    /// How often nodes came, went, or took another reward, center or leave to advise, since the
    /// index was made or opened: whatever was learned of them holds as long as it stays the same.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Forgets what was remembered of the nodes as they were.
    pub(crate) fn note_change(&mut self) {
        self.remembered.forget();
        self.changes += 1;
    }

    /// What links are made by.
    pub(crate) fn builder(&self) -> Builder<'_> {
        Builder {
            vectors: &self.vectors,
            ids: &self.columns.ids,
            seed: self.params.seed,
            width: self.params.ef_construction,
        }
    }

    /// The same, and the links.
    pub(crate) fn building(&mut self) -> (Builder<'_>, &mut Links) {
        let builder = Builder {
            vectors: &self.vectors,
            ids: &self.columns.ids,
            seed: self.params.seed,
            width: self.params.ef_construction,
        };
        (builder, &mut self.links)
    }

    /// The graph, to be walked.
    pub(crate) fn graph(&self) -> Graph<'_> {
        Graph::new(&self.links, &self.vectors.codes)
    }

    /// The slot of a live node.
    pub(crate) fn slot(&self, node: NodeId) -> Result<Slot> {
        let slot = self.columns.ids.slot(node);
        slot.filter(|&slot| self.columns.has(slot, LIVE))
            .ok_or_else(|| Error::UnknownNode {
                node,
                count: self.node_count(),
            })
    }

    /// The same, as an offset into the columns.
    pub(crate) fn check(&self, node: NodeId) -> Result<usize> {
        self.slot(node).map(Slot::index)
    }

    /// The node in a slot.
    #[inline]
    pub(crate) fn id(&self, slot: Slot) -> NodeId {
        self.columns.ids.id(slot)
    }
}

pub(crate) fn check_reward(reward: Option<f32>) -> Result<()> {
    match reward {
        // NaN is in no range.
        Some(reward) if !(0.0..=1.0).contains(&reward) => Err(Error::RewardRange { reward }),
        _ => Ok(()),
    }
}

fn refused_threads(threads: usize, bound: &'static str) -> Error {
    Error::Parameter {
        name: "threads",
        value: threads.to_string(),
        bound,
    }
}

pub(crate) fn check_threads(threads: usize) -> Result<()> {
    match threads {
        1..=MOST_THREADS => Ok(()),
        _ => Err(refused_threads(threads, "from 1 to 256")),
    }
}

pub(crate) fn on_threads<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> Result<T> {
    check_threads(threads)?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    Ok(pool
        .map_err(|_| refused_threads(threads, "as many as the system can start"))?
        .install(work))
}
