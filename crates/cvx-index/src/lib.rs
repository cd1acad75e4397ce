//! The index of cvx: a seeded HNSW whose nodes have a time, an owner, an outcome and typed edges.
//!
//! [`TemporalIndex`] is the only facade. Below it, each using only what stands above it here:
//!
//! - [`Error`], ids, [`Metric`] and its kernels, which give the same bits on every instruction set;
//! - `huge`, `column`: tables of plain values, in memory or mapped;
//! - `vectors`, `codes`, `columns`, `timelines`, `postings`: what is known of a node, and who is found by it;
//! - `links`, `pool`, `scratch`, `search`, `insert`: the graph, THE beam search, and how nodes are linked;
//! - [`Filter`], `accepted`, `scan`, `plan`: what may be returned, and whether to scan for it or to walk;
//! - [`edges`]: typed edges and walks over them;
//! - `nearest`, `hybrid`, `graph_search`, `regions`: searches in which neighbours count, cells of the space;
//! - [`SharedIndex`], `changes`: searches beside insertion and removal;
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

mod accepted;
mod by_node;
mod changes;
mod codes;
mod column;
mod columns;
mod compact;
mod distance;
mod edges;
mod error;
mod filter;
mod graph_search;
mod huge;
mod hybrid;
mod id;
mod ids;
mod index;
mod insert;
mod linked;
mod links;
mod moments;
mod names;
mod nearest;
mod nodes;
mod params;
mod plan;
mod pool;
mod postings;
mod regions;
mod remove;
mod scan;
mod scratch;
mod search;
mod shared;
mod shelves;
mod snapshot;
mod timelines;
mod validate;
mod vectors;

pub use columns::NewNode;
pub use distance::Metric;
pub use edges::{Ancestor, Ancestry, Direction, Edge, EdgeKind, HalfEdge, Path};
pub use error::{Error, Result};
pub use filter::Filter;
pub use graph_search::{GraphHit, WalkedEdge};
pub use hybrid::Scored;
pub use id::{EntityId, NodeId, RegionId};
pub use index::{Center, MOST_THREADS, TemporalIndex};
pub use linked::Reach;
pub use moments::{Moment, Surrounded};
pub use nearest::Neighbor;
pub use nodes::Stats;
pub use params::{DEFAULT_EF, IndexParams};
pub use regions::RegionTrajectory;
pub use shared::SharedIndex;
pub use snapshot::LoadOptions;
