use proptest::prelude::*;

use super::super::{Direction, TypedEdgeLayer};
use super::*;

fn node(n: u32) -> Slot {
    Slot(n)
}

fn layer_of(edges: &[(u32, u32, EdgeKind, f32)]) -> TypedEdgeLayer {
    let mut layer = TypedEdgeLayer::new();
    for &(a, b, kind, w) in edges.iter().filter(|(a, b, ..)| a != b) {
        layer.add(node(a), node(b), kind, w).unwrap();
    }
    layer
}

/// Every simple path, by recursion, then sorted.
fn naive(layer: &TypedEdgeLayer, path: &Path<Slot>, max_hops: usize, found: &mut Vec<Path<Slot>>) {
    if path.kinds.len() == max_hops {
        return;
    }
    for edge in layer
        .neighbors(*path.nodes.last().unwrap(), Direction::Out)
        .iter()
    {
        if !path.nodes.contains(&edge.node) {
            let longer = path.longer_by(edge);
            naive(layer, &longer, max_hops, found);
            found.push(longer);
        }
    }
}

fn any_edges() -> impl Strategy<Value = Vec<(u32, u32, EdgeKind, f32)>> {
    // Few distinct weights, 0 and 1 among them, so that ties and dead ends occur.
    let weight = prop::sample::select(vec![0.0, 0.3, 0.5, 1.0]);
    let kind = prop::sample::select(vec![EdgeKind::Caused, EdgeKind::CausedSuccess]);
    prop::collection::vec((0..7u32, 0..7u32, kind, weight), 0..20)
}

proptest! {
    /// Requirement: V8
    #[test]
    fn finds_the_strongest_paths_of_an_exhaustive_walk(
        edges in any_edges(), max_hops in 0..5usize, max_paths in 0..30usize,
    ) {
        let layer = layer_of(&edges);
        let mut expected = Vec::new();
        naive(&layer, &Path::start(node(0)), max_hops, &mut expected);
        let mut expected: Vec<_> = expected.into_iter().map(ByStrength).collect();
        expected.sort();
        let expected: Vec<_> = expected.into_iter().take(max_paths).map(|r| r.0).collect();
        let paths = traverse(node(0), max_hops, max_paths, |n, edges| {
            edges.extend(layer.neighbors(n, Direction::Out).iter());
        });
        prop_assert_eq!(paths, expected);
    }
}

#[test]
fn a_stronger_detour_comes_before_a_weak_direct_edge() {
    let caused = EdgeKind::Caused;
    let layer = layer_of(&[
        (0, 2, caused, 0.1),
        (0, 1, caused, 0.9),
        (1, 2, caused, 0.5),
    ]);
    let paths = traverse(node(0), 3, 10, |n, edges| {
        edges.extend(layer.neighbors(n, Direction::Out).iter());
    });
    let nodes: Vec<Vec<usize>> = paths
        .iter()
        .map(|p| p.nodes.iter().map(|n| n.index()).collect())
        .collect();
    assert_eq!(nodes, [vec![0, 1], vec![0, 1, 2], vec![0, 2]]);
    assert_eq!(paths[1].strength, 0.9f32 * 0.5);
    assert_eq!(paths[1].weights, [0.9, 0.5]);
}
