//! A small index with every kind of content, which the golden snapshots hold.

use cvx_index::{Center, EntityId, IndexParams, Metric, NewNode, NodeId, TemporalIndex};

use super::{KINDS, Numbers};

/// A small index with every kind of content; its vectors are whole numbers, so that no
/// instruction set and no library version has a say in its bytes.
pub fn sample() -> TemporalIndex {
    let mut numbers = Numbers(1);
    let params = IndexParams::new(5).m(4).ef_construction(30).seed(3);
    let mut index = TemporalIndex::new(params.metric(Metric::L2)).unwrap();
    let rows: Vec<Vec<f32>> = (0..60)
        .map(|_| (0..5).map(|_| numbers.below(9) as f32 - 4.0).collect())
        .collect();
    let nodes: Vec<NewNode<'_>> = rows
        .iter()
        .zip(0u64..)
        .map(|(row, n)| NewNode {
            reward: n.is_multiple_of(3).then_some(0.5),
            namespace: if n % 4 == 1 { "other" } else { "" },
            tags: if n % 2 == 1 { &["x", "y"] } else { &[] },
            action: n.is_multiple_of(5).then_some("go to the desk"),
            recallable: n % 7 != 2,
            ..NewNode::new(EntityId(n % 6), 100 - n as i64, (n != 20).then_some(row))
        })
        .collect();
    index.bulk_insert(&nodes, 1).unwrap();
    let reminds = index.declare_edge_kind("reminds_of").unwrap();
    index.add_edge(NodeId(1), NodeId(2), KINDS[1], 0.5).unwrap();
    index
        .add_edge(NodeId(2), NodeId(59), reminds, 0.25)
        .unwrap();
    index.delete(&[NodeId(7), NodeId(8)]).unwrap();
    index
        .set_center(Center::Vector(vec![0.5, 0.0, -0.5, 1.0, 0.0]))
        .unwrap();
    index
}
