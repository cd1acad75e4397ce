//! Names of the sections of a snapshot, and what each holds.

/// The name of a section: four letters.
pub(super) type Name = &'static str;

/// Postcard: parameters, counts, names, regions, center.
pub(super) const META: Name = "META";
/// Per node its id, u32; empty before the first compaction, when ids count from 0.
pub(super) const IDS: Name = "CIDS";
/// Per node its entity, u64.
pub(super) const ENTITIES: Name = "CENT";
/// Per node when it happened, i64.
pub(super) const TIMES: Name = "CTIM";
/// Per node its reward, f32, NaN for none.
pub(super) const REWARDS: Name = "CREW";
/// Per node the place of its namespace, u32.
pub(super) const NAMESPACES: Name = "CNSP";
/// Per node the place of its set of tags, u32.
pub(super) const TAGS: Name = "CTAG";
/// Per node the place of its action, u32, the highest number for none.
pub(super) const ACTIONS: Name = "CACT";
/// Per node whether it lives, has a vector, may advise, u8.
pub(super) const FLAGS: Name = "CFLG";
/// Per node its vector as it came, f32.
pub(super) const ROWS: Name = "ROWS";
/// Of each 4,096 bytes of `ROWS` a checksum, u32.
pub(super) const ROW_SUMS: Name = "RSUM";
/// Per node its vector as bytes, in lines of 64.
pub(super) const CODES: Name = "CODE";
/// Of each 4,096 bytes of `CODE` a checksum, u32.
pub(super) const CODE_SUMS: Name = "CSUM";
/// Per node the scale of its bytes, f32.
pub(super) const SCALES: Name = "SCAL";
/// Per node what its distances begin with, f32, where the metric asks for it.
pub(super) const BASES: Name = "BASE";
/// Per node its level in the graph, u8.
pub(super) const LEVELS: Name = "GLEV";
/// Per node how many links it has at the ground, and the links, u32.
pub(super) const GROUND: Name = "GLNK";
/// Per node with upper links where their block begins, u32; before the fifth format per node.
pub(super) const UPPER_AT: Name = "GUPA";
/// Blocks of upper links, u32.
pub(super) const UPPER: Name = "GUPL";
/// Postcard: who is found by what, as bitmaps.
pub(super) const POSTINGS: Name = "POST";
/// The nodes with vectors by time, u32.
pub(super) const BY_TIME: Name = "TIME";
/// Per timeline its namespace, u32.
pub(super) const LINE_NAMESPACES: Name = "LNSP";
/// Per timeline its entity, u64.
pub(super) const LINE_ENTITIES: Name = "LENT";
/// Per timeline where it ends, u32.
pub(super) const LINE_ENDS: Name = "LEND";
/// The nodes of all timelines, one behind the other, u32.
pub(super) const LINE_NODES: Name = "LNOD";
/// Postcard: kinds and typed edges, in the second format.
pub(super) const EDGES: Name = "EDGE";
/// Postcard: names of the kinds of edges.
pub(super) const EDGE_KINDS: Name = "EKND";
/// Per node where the row of the edges that start at it ends, u64.
pub(super) const OUT_ENDS: Name = "EOEN";
/// The edges by start, kind and end: of each its end and its kind, u32, and its weight, f32.
pub(super) const OUT: Name = "EOUT";
/// Per node where the row of the edges that end at it ends, u64.
pub(super) const INTO_ENDS: Name = "EIEN";
/// The edges by end, kind and start: of each its start and its kind, u32, and its weight, f32.
pub(super) const INTO: Name = "EINT";

/// The sections whose every byte is checked when a snapshot is opened.
pub(super) const CHECKED_AT_ONCE: [Name; 29] = [
    META,
    IDS,
    ENTITIES,
    TIMES,
    REWARDS,
    NAMESPACES,
    TAGS,
    ACTIONS,
    FLAGS,
    ROW_SUMS,
    CODE_SUMS,
    SCALES,
    BASES,
    LEVELS,
    GROUND,
    UPPER_AT,
    UPPER,
    POSTINGS,
    BY_TIME,
    LINE_NAMESPACES,
    LINE_ENTITIES,
    LINE_ENDS,
    LINE_NODES,
    EDGES,
    EDGE_KINDS,
    OUT_ENDS,
    OUT,
    INTO_ENDS,
    INTO,
];
/// Those that hold rows, which are checked piece by piece when they are first read.
pub(super) const CHECKED_WHEN_READ: [Name; 2] = [ROWS, CODES];

/// Every section that there can be.
pub(super) fn all() -> impl Iterator<Item = Name> {
    CHECKED_AT_ONCE.into_iter().chain(CHECKED_WHEN_READ)
}
