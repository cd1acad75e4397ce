//! Searches: nearest, hybrid, causal, over edges, and walks over edges.

mod causal;
mod distances;
mod graph_search;
mod hybrid;
pub(crate) mod nearest;
mod scan;
mod traverse;

pub use causal::{Moment, Surrounded};
pub use graph_search::{GraphHit, WalkedEdge};
pub use hybrid::Scored;
pub use nearest::Neighbor;
pub use traverse::Reach;
