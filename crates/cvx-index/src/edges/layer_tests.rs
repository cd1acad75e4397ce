use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::edges::{EdgeRecords, HalfEdge};

fn node(n: u32) -> Slot {
    Slot(n)
}

fn all(row: EdgeRow<'_>) -> Vec<HalfEdge<Slot>> {
    row.iter().collect()
}

/// A layer without adjacency: every question is a scan.
#[derive(Default)]
struct Naive(BTreeMap<(Slot, EdgeKind, Slot), f32>);

impl Naive {
    fn half_edges(&self, node: Slot, direction: Direction) -> Vec<HalfEdge<Slot>> {
        let mut found: Vec<HalfEdge<Slot>> = self
            .0
            .iter()
            .filter_map(|(&(from, kind, to), &weight)| match direction {
                Direction::Out if from == node => Some(HalfEdge {
                    node: to,
                    kind,
                    weight,
                }),
                Direction::In if to == node => Some(HalfEdge {
                    node: from,
                    kind,
                    weight,
                }),
                _ => None,
            })
            .collect();
        found.sort_by_key(|edge| (edge.kind, edge.node));
        found
    }
}

#[derive(Clone, Debug)]
enum Op {
    Add(u32, u32, EdgeKind, f32),
    Remove(u32, u32, EdgeKind),
    RemoveNode(u32),
}

fn any_kind() -> impl Strategy<Value = EdgeKind> {
    prop::sample::select(vec![
        EdgeKind::Caused,
        EdgeKind::CausedSuccess,
        EdgeKind::Irrelevant,
        EdgeKind::Custom(0),
    ])
}

fn any_op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (0..8u32, 0..8u32, any_kind(), 0.0..=1.0f32)
            .prop_map(|(a, b, kind, w)| Op::Add(a, b, kind, w)),
        2 => (0..8u32, 0..8u32, any_kind()).prop_map(|(a, b, kind)| Op::Remove(a, b, kind)),
        1 => (0..8u32).prop_map(Op::RemoveNode),
    ]
}

proptest! {
    /// Requirement: V7, V9
    #[test]
    fn agrees_with_a_naive_twin_after_any_operations(ops in prop::collection::vec(any_op(), 0..80)) {
        let mut layer = TypedEdgeLayer::new();
        layer.declare_kind("tried_first").unwrap();
        let mut twin = Naive::default();
        for op in ops {
            match op {
                Op::Add(a, b, ..) if a == b => (),
                Op::Add(a, b, kind, w) => {
                    let new = layer.add(node(a), node(b), kind, w).unwrap();
                    prop_assert_eq!(new, twin.0.insert((node(a), kind, node(b)), w).is_none());
                }
                Op::Remove(a, b, kind) => {
                    let removed = layer.remove(node(a), node(b), kind);
                    prop_assert_eq!(removed, twin.0.remove(&(node(a), kind, node(b))).is_some());
                }
                Op::RemoveNode(a) => {
                    layer.remove_node(node(a));
                    twin.0.retain(|&(from, _, to), _| from != node(a) && to != node(a));
                }
            }
            prop_assert_eq!(layer.len(), twin.0.len());
        }
        for n in 0..9 {
            for direction in [Direction::Out, Direction::In] {
                let expected = twin.half_edges(node(n), direction);
                prop_assert_eq!(&all(layer.neighbors(node(n), direction)), &expected);
                let caused: Vec<_> =
                    expected.into_iter().filter(|e| e.kind == EdgeKind::Caused).collect();
                prop_assert_eq!(
                    all(layer.neighbors_of(node(n), EdgeKind::Caused, direction)),
                    caused
                );
            }
        }
        let edges: Vec<_> = layer.edges().map(|e| ((e.from, e.kind, e.to), e.weight)).collect();
        prop_assert_eq!(edges, twin.0.into_iter().collect::<Vec<_>>());
    }

    /// Requirement: V10
    #[test]
    fn survives_postcard_and_does_not_remember_the_order_of_insertion(
        edges in prop::collection::btree_map((0..9u32, 0..9u32, any_kind()), 0.0..=1.0f32, 0..40),
    ) {
        let edges: Vec<_> = edges.into_iter().filter(|((a, b, _), _)| a != b).collect();
        let build = |edges: &mut dyn Iterator<Item = &((u32, u32, EdgeKind), f32)>| {
            let mut layer = TypedEdgeLayer::new();
            layer.declare_kind("tried_first").unwrap();
            for &((a, b, kind), w) in edges {
                layer.add(node(a), node(b), kind, w).unwrap();
            }
            layer
        };
        let forward = build(&mut edges.iter());
        let bytes = postcard::to_stdvec(&forward.to_records()).unwrap();
        let backward = build(&mut edges.iter().rev());
        prop_assert_eq!(&bytes, &postcard::to_stdvec(&backward.to_records()).unwrap());
        let table: EdgeRecords = postcard::from_bytes(&bytes).unwrap();
        let read = TypedEdgeLayer::from_records(&table, 9).unwrap();
        prop_assert_eq!(read.to_records(), forward.to_records());
    }

    #[test]
    fn any_bytes_are_a_layer_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(table) = postcard::from_bytes::<EdgeRecords>(&bytes)
            && let Ok(layer) = TypedEdgeLayer::from_records(&table, 10)
        {
            prop_assert_eq!(layer.len(), table.edges.len());
        }
    }
}

/// Requirement: V7
#[test]
fn every_built_in_kind_has_its_name_and_the_name_its_kind() {
    let names: Vec<_> = TypedEdgeLayer::new()
        .kind_names()
        .map(str::to_owned)
        .collect();
    assert_eq!(
        names,
        [
            "temporal",
            "caused",
            "caused_success",
            "caused_failure",
            "same_action_type",
            "region_transition",
            "granger_causal",
            "irrelevant"
        ]
    );
    let layer = TypedEdgeLayer::new();
    for kind in EdgeKind::BUILT_IN {
        assert_eq!(layer.kind(layer.kind_name(kind).unwrap()).unwrap(), kind);
    }
}

#[test]
fn a_custom_kind_must_be_declared_and_well_named() {
    let mut layer = TypedEdgeLayer::new();
    match layer.kind("helps") {
        Err(Error::UnknownEdgeKind { name, known }) => {
            assert_eq!(name, "helps");
            assert_eq!(known.len(), 8);
        }
        other => panic!("{other:?}"),
    }
    let helps = layer.declare_kind("helps").unwrap();
    assert_eq!(layer.declare_kind("helps").unwrap(), helps);
    assert_eq!(layer.kind("helps").unwrap(), helps);
    assert_eq!(layer.kind_name(helps), Some("helps"));
    assert_eq!(layer.declare_kind("caused").unwrap(), EdgeKind::Caused);
    for name in [
        "",
        "Helps",
        "helps me",
        "1st",
        "_x",
        "émeut",
        &"x".repeat(65),
    ] {
        assert!(matches!(
            layer.declare_kind(name),
            Err(Error::InvalidEdgeKindName { .. })
        ));
    }
}

#[test]
fn what_is_no_edge_is_refused_and_changes_nothing() {
    let mut layer = TypedEdgeLayer::new();
    let (a, b) = (node(0), node(1));
    assert!(matches!(
        layer.add(a, b, EdgeKind::Temporal, 1.0),
        Err(Error::ImpliedEdgeKind)
    ));
    assert!(matches!(
        layer.add(a, b, EdgeKind::Custom(0), 1.0),
        Err(Error::UnknownEdgeKind { .. })
    ));
    for weight in [-0.1, 1.1, f32::NAN, f32::INFINITY] {
        assert!(matches!(
            layer.add(a, b, EdgeKind::Caused, weight),
            Err(Error::EdgeWeight { .. })
        ));
    }
    assert!(!layer.remove(a, b, EdgeKind::Caused));
    assert_eq!(layer.to_records(), EdgeRecords::default());
}

#[test]
fn a_table_with_foreign_nodes_doubles_or_disorder_is_refused() {
    let edge = Edge {
        from: node(0),
        to: node(1),
        kind: EdgeKind::Caused,
        weight: 0.5,
    };
    let far = Edge {
        to: node(u32::MAX),
        ..edge
    };
    let back = Edge {
        from: node(1),
        to: node(0),
        ..edge
    };
    let own = Edge {
        to: edge.from,
        ..edge
    };
    for edges in [vec![edge, edge], vec![far], vec![back, edge], vec![own]] {
        let table = EdgeRecords {
            kinds: vec![],
            edges,
        };
        assert!(matches!(
            TypedEdgeLayer::from_records(&table, 2),
            Err(Error::InvalidEdgeTable { .. })
        ));
    }
    let table = EdgeRecords {
        kinds: vec!["a".into(), "a".into()],
        edges: vec![],
    };
    assert!(matches!(
        TypedEdgeLayer::from_records(&table, 2),
        Err(Error::InvalidEdgeTable { .. })
    ));
}
