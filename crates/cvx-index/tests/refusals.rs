//! Invalid input is refused with the right error and changes nothing.

mod common;

use common::{DIM, params};
use cvx_index::{
    Center, EdgeKind, EntityId, Error, Filter, IndexParams, Metric, NewNode, NodeId, TemporalIndex,
};

const GOOD: [f32; DIM] = [1.0, 2.0, 0.0, -1.0];

fn two() -> TemporalIndex {
    let mut index = TemporalIndex::new(params(Metric::Cosine, 0)).unwrap();
    index
        .insert(NewNode::new(EntityId(1), 5, Some(&GOOD)))
        .unwrap();
    index.insert(NewNode::new(EntityId(1), 6, None)).unwrap();
    index
}

fn refused(index: &mut TemporalIndex, node: NewNode<'_>) -> Error {
    let before = index.to_bytes();
    let alone = index.insert(node).unwrap_err();
    let good = NewNode::new(EntityId(1), 7, Some(&GOOD));
    let among = index.bulk_insert(&[good, node, good], 2).unwrap_err();
    assert_eq!(alone.to_string(), among.to_string());
    assert!(index.to_bytes() == before);
    index.validate().unwrap();
    alone
}

#[test]
fn a_vector_that_has_no_distances_is_refused_whole_batches_with_it() {
    let index = &mut two();
    let mut vector = |v: &[f32]| refused(index, NewNode::new(EntityId(1), 1, Some(v)));
    assert!(matches!(
        vector(&[1.0]),
        Error::Dimension {
            found: 1,
            expected: DIM
        }
    ));
    assert!(matches!(vector(&[]), Error::Dimension { found: 0, .. }));
    assert!(matches!(
        vector(&[0.0, 1.0, f32::NAN, 0.0]),
        Error::NonFinite { position: 2, .. }
    ));
    assert!(matches!(
        vector(&[f32::INFINITY, 1.0, 0.0, 0.0]),
        Error::NonFinite { position: 0, .. }
    ));
    assert!(matches!(
        vector(&[0.0; DIM]),
        Error::ZeroVector { centered: false }
    ));
    let mut l2 = TemporalIndex::new(params(Metric::L2, 0)).unwrap();
    let long = [3e38; DIM];
    let error = refused(&mut l2, NewNode::new(EntityId(1), 1, Some(&long)));
    assert!(error.to_string().contains("1e18"));
    l2.insert(NewNode::new(EntityId(1), 1, Some(&[0.0; DIM])))
        .unwrap();
    // Lengths are no matter to cosine, however great or small.
    index
        .insert(NewNode::new(EntityId(1), 1, Some(&long)))
        .unwrap();
    index
        .insert(NewNode::new(EntityId(1), 1, Some(&[1e-45, 0.0, 0.0, 0.0])))
        .unwrap();
    let found = index
        .search(&[f32::MAX; DIM], 1, None, &Filter::default())
        .unwrap();
    assert!(found[0].distance.abs() < 1e-6);
}

#[test]
fn a_reward_outside_its_range_is_refused() {
    let index = &mut two();
    for reward in [-0.1, 1.1, f32::NAN, f32::INFINITY] {
        let node = NewNode {
            reward: Some(reward),
            ..NewNode::new(EntityId(1), 1, None)
        };
        assert!(matches!(refused(index, node), Error::RewardRange { .. }));
        assert!(matches!(
            index.set_reward(NodeId(0), Some(reward)),
            Err(Error::RewardRange { .. })
        ));
    }
    assert_eq!(index.reward(NodeId(0)).unwrap(), None);
}

#[test]
fn a_search_for_nothing_or_among_nothing_is_told_apart() {
    let index = two();
    let all = Filter::default();
    assert!(matches!(
        index.search(&GOOD, 0, None, &all),
        Err(Error::ZeroK)
    ));
    let narrow = index.search(&GOOD, 1, Some(0), &all);
    assert!(matches!(narrow, Err(Error::Parameter { name: "ef", .. })));
    assert!(matches!(
        index.search(&[0.0; DIM], 1, None, &all),
        Err(Error::ZeroVector { .. })
    ));
    assert!(matches!(
        index.search(&[1.0], 1, None, &all),
        Err(Error::Dimension { .. })
    ));
    assert!(matches!(
        index.search_batch(&[1.0; DIM + 1], 1, None, &all, 1),
        Err(Error::Dimension { .. })
    ));
    assert!(matches!(
        index.search_batch(&GOOD, 1, None, &all, 0),
        Err(Error::Parameter {
            name: "threads",
            ..
        })
    ));
    assert_eq!(
        index.search(&GOOD, usize::MAX, None, &all).unwrap().len(),
        1
    );
    let empty = TemporalIndex::new(params(Metric::Cosine, 0)).unwrap();
    assert_eq!(empty.search(&GOOD, 3, None, &all).unwrap(), []);
    assert_eq!(empty.hybrid_search(&GOOD, 3, 0.5, None, &all).unwrap(), []);
    assert_eq!(
        empty
            .graph_search(&GOOD, 3, &[(EdgeKind::Temporal, 1.0)], 2, None, &all)
            .unwrap(),
        []
    );
    let inverted = Filter {
        since: Some(3),
        until: Some(3),
        ..Filter::default()
    };
    assert!(matches!(
        index.search(&GOOD, 1, None, &inverted),
        Err(Error::InvertedRange { .. })
    ));
}

#[test]
fn unknown_and_deleted_nodes_are_refused_and_deletion_is_all_or_nothing() {
    let mut index = two();
    index
        .add_edge(NodeId(0), NodeId(1), EdgeKind::Caused, 0.5)
        .unwrap();
    let before = index.to_bytes();
    let unknown = |result: Result<(), Error>| matches!(result, Err(Error::UnknownNode { .. }));
    assert!(unknown(index.delete(&[NodeId(0), NodeId(2)])));
    assert!(unknown(index.add_edge(
        NodeId(0),
        NodeId(9),
        EdgeKind::Caused,
        0.5
    )));
    assert!(unknown(index.predecessors(NodeId(u32::MAX), 1).map(drop)));
    assert!(index.to_bytes() == before);
    index.delete(&[NodeId(0), NodeId(0)]).unwrap();
    assert!(unknown(index.delete(&[NodeId(0)])));
    assert!(unknown(index.set_recallable(NodeId(0), true)));
    assert!(unknown(index.vector(NodeId(0)).map(drop)));
    assert_eq!(index.edges().count(), 0);
    assert_eq!(
        index.insert(NewNode::new(EntityId(1), 1, None)).unwrap(),
        NodeId(2)
    );
}

#[test]
fn a_center_that_cannot_be_is_refused() {
    let mut index = two();
    let before = index.to_bytes();
    let mut refused = |center| index.set_center(center).unwrap_err();
    let is_center = Center::Vector(GOOD.to_vec());
    assert!(matches!(
        refused(is_center),
        Error::ZeroVector { centered: true }
    ));
    assert!(matches!(
        refused(Center::Mean),
        Error::ZeroVector { centered: true }
    ));
    assert!(matches!(
        refused(Center::Vector(vec![1.0])),
        Error::Dimension { .. }
    ));
    assert!(matches!(
        refused(Center::Vector(vec![f32::NAN; DIM])),
        Error::NonFinite { .. }
    ));
    assert!(index.to_bytes() == before);
    let mut empty = TemporalIndex::new(params(Metric::L2, 0)).unwrap();
    assert!(matches!(
        empty.set_center(Center::Mean),
        Err(Error::NoVector { .. })
    ));
}

#[test]
fn another_vector_is_checked_as_a_new_one_is_and_what_is_refused_changes_nothing() {
    let mut index = two();
    let before = index.to_bytes();
    let changes = index.changes();
    let mut refused = |node, row: &[f32]| index.set_vector(NodeId(node), Some(row)).unwrap_err();
    assert!(matches!(refused(0, &[1.0]), Error::Dimension { .. }));
    assert!(matches!(refused(0, &[0.0; DIM]), Error::ZeroVector { .. }));
    assert!(matches!(
        refused(0, &[f32::NAN; DIM]),
        Error::NonFinite { .. }
    ));
    assert!(matches!(refused(9, &GOOD), Error::UnknownNode { .. }));
    let unknown = index.set_tags(NodeId(9), &["x"]).unwrap_err();
    assert!(matches!(unknown, Error::UnknownNode { .. }));
    let inverted = Filter {
        since: Some(3),
        until: Some(3),
        ..Filter::default()
    };
    let refused = index.any_of(&[Filter::default(), inverted]).unwrap_err();
    assert!(matches!(refused, Error::InvertedRange { .. }));
    assert_eq!((index.to_bytes(), index.changes()), (before, changes));
}

#[test]
fn parameters_outside_their_bounds_are_refused() {
    let good = IndexParams::new(DIM);
    let cases = [
        ("dim", IndexParams::new(0)),
        ("dim", IndexParams::new(1 << 20)),
        ("m", good.clone().m(1)),
        ("ef_construction", good.ef_construction(0)),
    ];
    for (wanted, params) in cases {
        let error = TemporalIndex::new(params).err();
        assert!(matches!(error, Some(Error::Parameter { name, .. }) if name == wanted));
    }
}

#[test]
fn more_hops_or_threads_than_anyone_needs_are_refused() {
    let mut index = two();
    let all = Filter::default();
    let boosts = [(EdgeKind::Temporal, 1.0)];
    index
        .graph_search(&GOOD, 1, &boosts, 64, None, &all)
        .unwrap();
    let refused = [
        index
            .graph_search(&GOOD, 1, &boosts, 65, None, &all)
            .map(drop),
        index.search_batch(&GOOD, 1, None, &all, 257).map(drop),
        index
            .bulk_insert(&[NewNode::new(EntityId(1), 7, Some(&GOOD))], 257)
            .map(drop),
    ];
    let said: Vec<String> = refused
        .into_iter()
        .map(|refused| refused.unwrap_err().to_string())
        .collect();
    let threads = "threads is 257: it must be from 1 to 256";
    assert_eq!(
        said,
        ["max_hops is 65: it must be from 0 to 64", threads, threads]
    );
    assert_eq!(index.len(), 2);
}

#[test]
fn an_edge_that_cannot_be_is_told_by_ids_wherever_its_nodes_lie() {
    let mut index = two();
    index.insert(NewNode::new(EntityId(1), 7, None)).unwrap();
    // Its slots are now those before their ids.
    index.delete(&[NodeId(0)]).unwrap();
    index.compact().unwrap();
    let (a, b) = (NodeId(1), NodeId(2));
    assert!(matches!(
        index.add_edge(b, b, EdgeKind::Caused, 1.0),
        Err(Error::SelfEdge { node }) if node == b
    ));
    assert!(matches!(
        index.remove_edge(a, b, EdgeKind::Caused),
        Err(Error::UnknownEdge { from, to, .. }) if (from, to) == (a, b)
    ));
    index.add_edge(a, b, EdgeKind::Caused, 1.0).unwrap();
    index.remove_edge(a, b, EdgeKind::Caused).unwrap();
}
