//! The index of cvx: a seeded HNSW whose nodes have a time, an owner, an outcome and typed edges.
//!
//! [`TemporalIndex`] is the only facade. Its parts, bottom up; no file uses one that uses it:
//!
//! - [`Error`], ids, `hash`, and `distance`: [`Metric`] and its kernels, which give the same bits on every
//!   instruction set;
//! - `columns`, `codes`: tables of plain values, in memory or mapped, with what is known of a node, its vector
//!   and the bytes that stand for it;
//! - `edges`: typed edges and walks over them;
//! - `graph`: links, THE beam search, and how nodes are linked;
//! - `filter`: [`Filter`], what it accepts, who is found by it, and whether to scan for it or to walk;
//! - `index`: [`TemporalIndex`], how it changes, [`SharedIndex`], regions;
//! - `query`: what is asked of it;
//! - `snapshot`: the file, and the only I/O.
//!
//! ```
//! use cvx_index::{EntityId, Filter, IndexParams, NewNode, TemporalIndex};
//!
//! # fn main() -> cvx_index::Result<()> {
//! let mut index = TemporalIndex::new(IndexParams::new(2))?;
//! let before = index.insert(NewNode::new(EntityId(7), 10, Some(&[1.0, 0.0])))?;
//! let after = index.insert(NewNode::new(EntityId(7), 20, Some(&[0.0, 1.0])))?;
//!
//! let nearest = index.search(&[0.9, 0.1], 1, None, &Filter::default())?;
//! assert_eq!(nearest[0].node, before);
//! assert_eq!(index.successors(before, 1)?, [after]);
//!
//! let late = Filter { since: Some(15), ..Filter::default() };
//! assert_eq!(index.search(&[0.9, 0.1], 1, None, &late)?[0].node, after);
//! # Ok(())
//! # }
//! ```

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
mod snapshot;

pub use columns::NewNode;
pub use distance::Metric;
pub use edges::{Ancestor, Ancestry, Direction, Edge, EdgeKind, HalfEdge, Path};
pub use error::{Error, Result};
pub use filter::Filter;
pub use id::{EntityId, NodeId, RegionId};
pub use index::{
    Center, DEFAULT_EF, IndexParams, MOST_THREADS, RegionTrajectory, SharedIndex, Stats,
    TemporalIndex,
};
pub use query::{GraphHit, Moment, Neighbor, Reach, Scored, Surrounded, WalkedEdge};
pub use snapshot::LoadOptions;
