//! The functions that are fuzzed: bytes in, no panic, whatever they are.

use std::path::Path;

use cvx_index::{EntityId, Filter, IndexParams, NewNode, NodeId, TemporalIndex};

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

/// A filter is refused, or every node found is one that it accepts by id.
pub fn filter(bytes: &[u8]) {
    let mut index = TemporalIndex::new(params()).expect("good parameters");
    for n in 0..20u8 {
        let row = [f32::from(n), 1.0];
        let node = NewNode::new(EntityId(u64::from(n % 3)), i64::from(n), Some(&row));
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
        tags: (some & 64 > 0).then(Vec::new),
        ..Filter::default()
    };
    if let Ok(found) = index.search(&[1.0, 1.0], 1 + usize::from(some), None, &filter) {
        let listed = |node| filter.ids.as_ref().is_none_or(|ids| ids.contains(node));
        assert!(found.iter().all(|near| listed(&near.node)));
    }
}

/// Whatever is done to an index, it stays sound.
pub fn operations(bytes: &[u8]) {
    let mut index = TemporalIndex::new(params()).expect("good parameters");
    let mut bytes = Bytes(bytes);
    while !bytes.0.is_empty() {
        let node = NodeId(u32::from(bytes.next()));
        // What is refused changes nothing, which the validation below sees.
        let _ = match bytes.next() % 6 {
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
            _ => index.add_edge(
                node,
                NodeId(u32::from(bytes.next())),
                cvx_index::EdgeKind::Caused,
                0.5,
            ),
        };
        index.validate().expect("sound after every step");
    }
}

fn params() -> IndexParams {
    IndexParams {
        m: 2,
        ef_construction: 8,
        exact_below: 0,
        ..IndexParams::new(2)
    }
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
