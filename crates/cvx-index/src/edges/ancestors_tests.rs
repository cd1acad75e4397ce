use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::{Direction, TypedEdgeLayer};
use super::*;

const NODES: u32 = 9;

fn layer_of(edges: &[(u32, u32, f32)]) -> TypedEdgeLayer {
    let mut layer = TypedEdgeLayer::new();
    for &(a, b, weight) in edges.iter().filter(|(a, b, _)| a != b) {
        layer
            .add(Slot(a), Slot(b), EdgeKind::Caused, weight)
            .expect("a good edge");
    }
    layer
}

/// The walk over one kind of edges, and how many edges it looked at.
fn walk(
    layer: &TypedEdgeLayer,
    start: u32,
    max_depth: usize,
    budget: usize,
) -> (Ancestry<Slot>, usize) {
    let mut total = 0;
    let ancestry = ancestors(Slot(start), max_depth, budget, |node, most, edges| {
        let row = layer.neighbors(node, Direction::In);
        let seen = row.len().min(most);
        edges.extend(row.iter().take(seen));
        total += seen;
        Looked {
            edges: seen,
            cut_off: seen < row.len(),
        }
    });
    (ancestry, total)
}

/// Depth and weight of every node that can be reached, layer by layer over all edges.
fn naive(layer: &TypedEdgeLayer, start: u32, max_depth: usize) -> BTreeMap<u32, (usize, f32)> {
    let mut reached = BTreeMap::from([(start, (0, 1.0f32))]);
    for depth in 1..=max_depth {
        let mut next: BTreeMap<u32, f32> = BTreeMap::new();
        for edge in layer.edges() {
            if let Some(&(at, weight)) = reached.get(&edge.to.0)
                && at == depth - 1
                && !reached.contains_key(&edge.from.0)
            {
                let best = next.entry(edge.from.0).or_insert(0.0);
                *best = best.max(weight * edge.weight);
            }
        }
        reached.extend(
            next.into_iter()
                .map(|(node, weight)| (node, (depth, weight))),
        );
    }
    reached.remove(&start);
    reached
}

fn any_edges() -> impl Strategy<Value = Vec<(u32, u32, f32)>> {
    let weight = prop::sample::select(vec![0.0, 0.3, 0.5, 1.0]);
    prop::collection::vec((0..NODES, 0..NODES, weight), 0..40)
}

proptest! {
    #[test]
    fn finds_what_a_walk_over_all_edges_finds(
        edges in any_edges(), start in 0..NODES, max_depth in 0usize..6,
    ) {
        let layer = layer_of(&edges);
        let (ancestry, _) = walk(&layer, start, max_depth, usize::MAX);
        prop_assert!(!ancestry.truncated);
        let expected = naive(&layer, start, max_depth);
        let found: BTreeMap<u32, (usize, f32)> =
            ancestry.found.iter().map(|a| (a.node.0, (a.depth, a.weight))).collect();
        prop_assert_eq!(found.len(), ancestry.found.len());
        prop_assert_eq!(&found, &expected);
        let order = |a: &Ancestor<Slot>| (a.depth, -a.weight, a.node);
        prop_assert!(ancestry.found.is_sorted_by(|a, b| order(a) < order(b)));
        for ancestor in &ancestry.found {
            let (depth, weight) = match ancestor.toward.0 {
                toward if toward == start => (0, 1.0),
                toward => expected[&toward],
            };
            prop_assert_eq!(depth + 1, ancestor.depth);
            prop_assert_eq!(weight * ancestor.edge_weight, ancestor.weight);
        }
    }

    #[test]
    fn a_budget_bounds_the_edges_looked_at_and_says_when_it_ended_the_walk(
        edges in any_edges(), start in 0..NODES, max_depth in 1usize..5, budget in 0usize..40,
    ) {
        let layer = layer_of(&edges);
        let (whole, needed) = walk(&layer, start, max_depth, usize::MAX);
        let (ancestry, looked) = walk(&layer, start, max_depth, budget);
        prop_assert!(looked <= budget);
        prop_assert!(ancestry.found.len() <= budget);
        prop_assert_eq!(ancestry.truncated, needed > budget);
        if !ancestry.truncated {
            prop_assert_eq!(&ancestry, &whole);
        }
        let depths: BTreeMap<u32, usize> = whole.found.iter().map(|a| (a.node.0, a.depth)).collect();
        for ancestor in &ancestry.found {
            prop_assert_eq!(depths[&ancestor.node.0], ancestor.depth);
        }
    }
}

#[test]
fn a_budget_holds_inside_one_huge_list_of_edges() {
    let edges: Vec<(u32, u32, f32)> = (1..=10_000).map(|from| (from, 0, 0.5)).collect();
    let (ancestry, looked) = walk(&layer_of(&edges), 0, 4, 100);
    assert_eq!((ancestry.found.len(), looked), (100, 100));
    assert!(ancestry.truncated);
}

#[test]
fn a_cycle_ends_and_never_holds_the_start() {
    let (ancestry, _) = walk(&layer_of(&[(0, 1, 0.5), (1, 0, 0.5)]), 0, 9, 100);
    let nodes: Vec<Slot> = ancestry.found.iter().map(|a| a.node).collect();
    assert_eq!(nodes, [Slot(1)]);
}
