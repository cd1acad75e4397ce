#![doc = include_str!("../README.md")]

// The parts, bottom up; no file uses one that uses it:
//
// - `error`, `id`, `hash`, and `distance`: `Metric` and its kernels, which give the same bits on every
//   instruction set;
// - `columns`: what is known of each node, as tables of plain values, in memory or mapped;
// - `vectors`: rows in full precision and their 8-bit codes;
// - `edges`: typed edges and paths over them;
// - `graph`: links, THE beam search, insertion, bulk build, removal;
// - `filter`: `Filter`, which nodes it accepts, posting lists, and the choice of scan or graph walk;
// - `index`: `TemporalIndex`, inserting and deleting, regions, compaction;
// - `query`: the searches;
// - `recall`: what a recall computes over its candidates, by columns alone;
// - `shared`: `SharedIndex`, for threads;
// - `snapshot`: saving and loading, the only I/O.

mod columns;
mod distance;
mod edges;
mod error;
mod filter;
mod graph;
mod hash;
mod id;
mod index;
mod query;
pub mod recall;
mod shared;
mod snapshot;
mod vectors;

pub use columns::NewNode;
pub use distance::Metric;
pub use edges::{Ancestor, Ancestry, Direction, Edge, EdgeKind, HalfEdge, Path};
pub use error::{Error, Result};
pub use filter::Filter;
pub use id::{EntityId, NodeId, RegionId};
pub use index::{
    Center, DEFAULT_EF, IndexParams, MOST_THREADS, RegionTrajectory, Stats, TemporalIndex,
};
pub use query::{GraphHit, Moment, Neighbor, Reach, Scored, Surrounded, WalkedEdge};
pub use shared::SharedIndex;
pub use snapshot::LoadOptions;
