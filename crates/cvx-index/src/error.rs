//! Every error of the index; each message names the value, the bound and the cure.

use std::io;
use std::path::PathBuf;

use crate::id::{EntityId, NodeId, RegionId};

/// What the index returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why the index refused. Whatever was refused changed nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A parameter of the index or of a call outside its bounds.
    #[error("{name} is {value}: it must be {bound}")]
    Parameter {
        /// Which one.
        name: &'static str,
        /// What it was.
        value: String,
        /// What it may be.
        bound: &'static str,
    },
    /// No result was asked for.
    #[error("k is 0: ask for 1 result or more")]
    ZeroK,
    /// A vector of another length than the index holds.
    #[error(
        "the vector has {found} dimensions, the index {expected}: embed it with the model the index was built with"
    )]
    Dimension {
        /// Its length.
        found: usize,
        /// That of the index.
        expected: usize,
    },
    /// NaN or infinity in a vector.
    #[error("the vector holds {value} at position {position}: every component must be finite")]
    NonFinite {
        /// Where.
        position: usize,
        /// NaN or an infinity.
        value: f32,
    },
    /// A vector without a direction.
    #[error(
        "the vector is zero{}, which has no direction under the cosine metric: leave it out, or use the l2 metric",
        if *centered { " once the center is taken away" } else { "" }
    )]
    ZeroVector {
        /// Whether it is zero only relative to the center.
        centered: bool,
    },
    /// A vector so long that distances to it overflow.
    #[error(
        "the vector has length {norm:e}, and beyond {bound:e} distances overflow: scale it down"
    )]
    TooLong {
        /// Its length.
        norm: f64,
        /// The largest one that is safe.
        bound: f64,
    },
    /// An outcome outside its range.
    #[error("reward {reward} is outside [0, 1]: scale it to that range, or leave it out")]
    RewardRange {
        /// What it was.
        reward: f32,
    },
    /// A filter that cannot be understood.
    #[error("the filter's {field} is {value}: it must be {bound}")]
    Filter {
        /// Which field.
        field: &'static str,
        /// What it was.
        value: String,
        /// What it may be.
        bound: &'static str,
    },
    /// A range that ends before it begins.
    #[error("the {range} range {from}..{to} is inverted or empty: swap its ends, or leave one out")]
    InvertedRange {
        /// "time" or "reward".
        range: &'static str,
        /// Where it begins.
        from: String,
        /// Where it ends.
        to: String,
    },
    /// A node id that was never given, or whose node was deleted.
    #[error("there is no node {node}: of the {count} inserted, use one that was not deleted")]
    UnknownNode {
        /// The id.
        node: NodeId,
        /// How many ids were given.
        count: usize,
    },
    /// An entity without a node in the namespace asked.
    #[error(
        "entity {entity} has no node in namespace {namespace:?}: insert one, or name another namespace"
    )]
    UnknownEntity {
        /// Who.
        entity: EntityId,
        /// Where.
        namespace: String,
    },
    /// A level that has no region.
    #[error("level {level} has no regions: the levels are {known:?}, which grow with the index")]
    UnknownLevel {
        /// The level.
        level: usize,
        /// Those that have.
        known: Vec<usize>,
    },
    /// A node that is no hub.
    #[error(
        "node {region} is no region of level {level} in epoch {epoch}: take one of regions({level})"
    )]
    UnknownRegion {
        /// The node.
        region: RegionId,
        /// The level.
        level: usize,
        /// The epoch in force.
        epoch: u64,
    },
    /// A vector was needed where there is none.
    #[error("{what} has no vector: insert one first")]
    NoVector {
        /// What needed it.
        what: &'static str,
    },
    /// More nodes than ids.
    #[error("{wanted} nodes do not fit into an index, which holds {bound}: start another index")]
    Capacity {
        /// How many there would be.
        wanted: usize,
        /// The most there can be.
        bound: usize,
    },
    /// An edge kind that is neither built in nor declared.
    #[error("unknown edge kind {name:?}: it is one of {}, or declare it first", known.join(", "))]
    UnknownEdgeKind {
        /// The name.
        name: String,
        /// The known names.
        known: Vec<String>,
    },
    /// A name that cannot name an edge kind.
    #[error(
        "{name:?} cannot name an edge kind: use lower snake case of 1 to 64 bytes, starting with a letter"
    )]
    InvalidEdgeKindName {
        /// The name.
        name: String,
    },
    /// No room for another edge kind.
    #[error("there are 1,024 declared edge kinds already, which is the most: use one of them")]
    TooManyEdgeKinds,
    /// A boost outside its range.
    #[error("boost {boost} is outside [0, 1]: scale it to that range")]
    Boost {
        /// What it was.
        boost: f32,
    },
    /// The weight of an edge outside its range.
    #[error("edge weight {weight} is outside [0, 1]: scale it to that range")]
    EdgeWeight {
        /// What it was.
        weight: f32,
    },
    /// A temporal edge cannot be added or removed.
    #[error(
        "temporal edges follow from entities and timestamps and cannot be added: insert the nodes under one entity"
    )]
    ImpliedEdgeKind,
    /// An edge from a node to itself.
    #[error("an edge from node {node} to itself: an edge joins two nodes")]
    SelfEdge {
        /// The node.
        node: NodeId,
    },
    /// An edge that does not exist.
    #[error(
        "there is no {kind} edge from node {from} to node {to}: typed_neighbors lists those that exist"
    )]
    UnknownEdge {
        /// Where it would start.
        from: NodeId,
        /// Where it would end.
        to: NodeId,
        /// Its kind.
        kind: String,
    },
    /// Edges of a snapshot that contradict themselves.
    #[error("damaged edges, {reason}: the snapshot cannot be used")]
    InvalidEdgeTable {
        /// How.
        reason: String,
    },
    /// A file that is not a snapshot.
    #[error("{} is not a cvx snapshot: pass a file that save wrote", path.display())]
    NotASnapshot {
        /// The file.
        path: PathBuf,
    },
    /// A snapshot of a format that this version does not read.
    #[error(
        "the snapshot has format {found}, this version reads {supported}: load it with the version that wrote it"
    )]
    UnsupportedVersion {
        /// Its format.
        found: u32,
        /// The newest format known here.
        supported: u32,
    },
    /// A snapshot that ends before it should.
    #[error("the snapshot ends within section {section}: restore the file, or rebuild the index")]
    Truncated {
        /// Where it ends.
        section: &'static str,
    },
    /// A snapshot whose checksums or contents do not hold.
    #[error(
        "section {section} of the snapshot is damaged ({reason}): restore the file, or rebuild the index"
    )]
    Corrupted {
        /// Which part.
        section: &'static str,
        /// What does not hold.
        reason: String,
    },
    /// A change broke off half way, and what is there cannot be relied on.
    #[error(
        "an earlier change to this index broke off half way: load it from its last snapshot, or build it again"
    )]
    Poisoned,
    /// The file system refused.
    #[error("cannot {action} {}, {source}: check the path, its permissions and the free space", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}
