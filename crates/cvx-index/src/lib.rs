#![doc = include_str!("../README.md")]

// The parts, bottom up; no file uses one that uses it:
//
// - `error`, `id`, `hash`, and `distance`: `Metric` and its kernels, which give the same bits on every
//   instruction set;
// - `columns`, `codes`: tables of plain values, in memory or mapped, with what is known of a node, its vector
//   and the bytes that stand for it;
// - `edges`: typed edges and walks over them;
// - `graph`: links, THE beam search, and how nodes are linked;
// - `filter`: `Filter`, what it accepts, who is found by it, and whether to scan for it or to walk;
// - `index`: `TemporalIndex`, how it changes, regions;
// - `query`: what is asked of it;
// - `shared`: `SharedIndex`, for threads;
// - `snapshot`: the file, and the only I/O.

mod codes;
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
mod shared;
mod snapshot;

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
