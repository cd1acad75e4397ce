//! The functions that are fuzzed: bytes in, no panic, whatever they are.

use std::path::Path;

use cvx_index::{Center, EdgeKind, EntityId, Filter, IndexParams, NewNode, NodeId, TemporalIndex};

/// What is done with some bytes.
pub type Target = fn(&[u8]);

/// Every target, by name.
pub const ALL: [(&str, Target); 3] = [
    ("snapshot", snapshot),
    ("filter", filter),
    ("operations", operations),
];

/// A snapshot is refused, or is a sound index that writes itself again.
pub fn snapshot(bytes: &[u8]) {
    if let Ok(index) = TemporalIndex::from_bytes(bytes, Path::new("fuzzed.cvx")) {
        let again = TemporalIndex::from_bytes(&index.to_bytes(), Path::new("again.cvx"));
        assert_eq!(again.expect("what was written").len(), index.len());
    }
}

const SPACES: [&str; 3] = ["", "ana", "ben"];
const TAGS: [&str; 3] = ["red", "green", "blue"];

/// The names that the low bits of a byte choose.
fn chosen<'a>(names: &[&'a str], bits: u8) -> Vec<&'a str> {
    let wanted = |&(at, _): &(usize, _)| bits >> at & 1 > 0;
    let found = names.iter().enumerate().filter(wanted);
    found.map(|(_, &name)| name).collect()
}

/// A filter is refused, or every node found is one that it accepts by id, namespace and tags, and
/// none of those is left out.
pub fn filter(bytes: &[u8]) {
    let mut index = TemporalIndex::new(params()).expect("good parameters");
    for n in 0..20u8 {
        let row = [f32::from(n), 1.0];
        let tags = chosen(&TAGS, n);
        let node = NewNode {
            namespace: SPACES[usize::from(n) % 3],
            tags: &tags,
            ..NewNode::new(EntityId(u64::from(n % 3)), i64::from(n), Some(&row))
        };
        index.insert(node).expect("a good node");
    }
    let mut bytes = Bytes(bytes);
    let some = bytes.next();
    let number = |bytes: &mut Bytes<'_>| i64::from_le_bytes(std::array::from_fn(|_| bytes.next()));
    let reward = |bytes: &mut Bytes<'_>| f32::from_le_bytes(std::array::from_fn(|_| bytes.next()));
    let filter = Filter {
        since: (some & 1 > 0).then(|| number(&mut bytes)),
        until: (some & 2 > 0).then(|| number(&mut bytes)),
        min_reward: (some & 4 > 0).then(|| reward(&mut bytes)),
        max_reward: (some & 8 > 0).then(|| reward(&mut bytes)),
        entities: (some & 16 > 0).then(|| vec![EntityId(u64::from(bytes.next()))]),
        ids: (some & 32 > 0).then(|| vec![NodeId(u32::from(bytes.next())), NodeId(u32::MAX)]),
        tags: (some & 64 > 0).then(|| owned(&chosen(&TAGS, bytes.next()))),
        namespaces: (some & 128 > 0).then(|| owned(&chosen(&SPACES, bytes.next()))),
        ..Filter::default()
    };
    let k = 1 + usize::from(some);
    if let Ok(found) = index.search(&[1.0, 1.0], k, None, &filter) {
        let accepts = |node: NodeId| {
            let tags = index.tags(node).expect("a node that is there");
            let space = index.namespace(node).expect("a node that is there");
            let spaces = filter.namespaces.as_deref().unwrap_or(&DEFAULT);
            filter.ids.as_ref().is_none_or(|ids| ids.contains(&node))
                && spaces.iter().any(|one| one == space)
                && filter.tags.as_ref().is_none_or(|wanted| {
                    // As for ids and entities, an empty list accepts nothing.
                    !wanted.is_empty() && wanted.iter().all(|tag| tags.contains(&tag.as_str()))
                })
        };
        assert!(found.iter().all(|near| accepts(near.node)));
        // Where nothing else is asked for, what fits and what is found are the same.
        if some & 31 == 0 {
            let fitting = (0..20).filter(|&n| accepts(NodeId(n))).count();
            assert_eq!(found.len(), fitting.min(k), "{filter:?}");
        }
    }
}

static DEFAULT: [String; 1] = [String::new()];

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

/// Whatever is done to an index, it stays sound, and opens as it was saved.
pub fn operations(bytes: &[u8]) {
    let mut index = TemporalIndex::new(params()).expect("good parameters");
    let mut bytes = Bytes(bytes);
    while !bytes.0.is_empty() {
        let node = NodeId(u32::from(bytes.next()));
        // What is refused changes nothing, which the validation below sees.
        let _ = match bytes.next() % 11 {
            0 | 1 => {
                let row = [f32::from(bytes.next()), f32::from(bytes.next())];
                index
                    .insert(NewNode::new(
                        EntityId(1),
                        i64::from(bytes.next()),
                        Some(&row),
                    ))
                    .map(drop)
            }
            2 => index.delete(&[node]),
            3 => index.compact(),
            4 => index.set_reward(node, Some(f32::from(bytes.next()) / 200.0)),
            5 => index.add_edge(node, NodeId(u32::from(bytes.next())), EdgeKind::Caused, 0.5),
            6 => index.set_center(match bytes.next() {
                0 => Center::None,
                1 => Center::Mean,
                x => Center::Vector(vec![f32::from(x), f32::from(bytes.next())]),
            }),
            7 => {
                let query = [f32::from(bytes.next()), 1.0];
                let hops = usize::from(bytes.next());
                let boosts = [(EdgeKind::Caused, f32::from(bytes.next()) / 200.0)];
                let filter = Filter::default();
                index
                    .graph_search(&query, 5, &boosts, hops, None, &filter)
                    .map(|hits| {
                        assert!(hits.is_sorted_by(|a, b| a.score >= b.score));
                    })
            }
            8 => {
                let row = [f32::from(bytes.next()), f32::from(bytes.next())];
                let vector = (row[0] > 20.0).then_some(row.as_slice());
                index.set_vector(node, vector)
            }
            9 => index.set_tags(node, &chosen(&TAGS, bytes.next())),
            _ => {
                TemporalIndex::from_bytes(&index.to_bytes(), Path::new("saved.cvx")).map(|opened| {
                    assert_eq!(opened.to_bytes(), index.to_bytes());
                    index = opened;
                })
            }
        };
        index.validate().expect("sound after every step");
    }
}

fn params() -> IndexParams {
    IndexParams::new(2).m(2).ef_construction(8).exact_below(0)
}

/// Bytes one by one; zeros when there are no more.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn next(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        first
    }
}
