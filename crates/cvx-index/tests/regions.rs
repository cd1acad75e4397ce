//! Regions: seeded, frozen within an epoch, each node with its nearest hub.

mod common;

use common::{Numbers, metric, params, steps};
use cvx_index::{
    Center, EntityId, Error, IndexParams, Metric, NewNode, NodeId, RegionId, TemporalIndex,
};
use proptest::prelude::*;

const DIM: usize = 12;

fn index_of(rows: &[Vec<f32>], seed: u64, exact_below: usize) -> TemporalIndex {
    let params = IndexParams::new(DIM)
        .m(4)
        .ef_construction(60)
        .seed(seed)
        .exact_below(exact_below);
    let mut index = TemporalIndex::new(params).unwrap();
    insert(&mut index, rows);
    index
}

fn insert(index: &mut TemporalIndex, rows: &[Vec<f32>]) {
    let node = |(n, row)| NewNode::new(EntityId(n as u64 % 20), n as i64, Some(row));
    let nodes: Vec<NewNode<'_>> = rows
        .iter()
        .map(Vec::as_slice)
        .enumerate()
        .map(node)
        .collect();
    index.bulk_insert(&nodes, 2).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    /// Requirement: V2
    #[test]
    fn every_node_is_in_the_region_of_the_nearest_hub(steps in steps(30), metric in metric()) {
        let (mut index, twin) = common::lived(&steps, params(metric, 0));
        for fresh in [false, true] {
            if fresh {
                index.refresh_regions().unwrap();
            }
            for level in index.region_levels() {
                let hubs = index.regions(level).unwrap();
                prop_assert!(!hubs.is_empty() && hubs.is_sorted());
                let pairs = index.region_assignments(level).unwrap();
                let nodes: Vec<u32> = pairs.iter().map(|pair| pair.0.0).collect();
                let embedded: Vec<u32> =
                    twin.live().filter(|&n| twin.rows[n as usize].vector.is_some()).collect();
                prop_assert_eq!(&nodes, &embedded);
                if fresh && level == 0 {
                    prop_assert!(hubs.iter().map(|hub| hub.0.0).eq(embedded.iter().copied()));
                }
                for &(node, region) in &pairs {
                    let vector = twin.rows[node.index()].vector.clone().unwrap();
                    let to = |hub: RegionId| twin.distance(&vector, hub.0.0).unwrap();
                    let nearest = hubs.iter().map(|&hub| to(hub)).fold(f64::INFINITY, f64::min);
                    prop_assert!(to(region) <= nearest + 1e-5 || metric == Metric::InnerProduct);
                    if hubs.contains(&RegionId(node)) {
                        prop_assert_eq!(region, RegionId(node));
                    }
                    let assigned = index.assign_region(&vector, level).unwrap();
                    prop_assert!(to(assigned) <= nearest + 1e-5 * (1.0 + nearest.abs()));
                }
                for &hub in &hubs {
                    let members = index.region_members(hub, level).unwrap();
                    let own = pairs.iter().filter(|pair| pair.1 == hub).map(|pair| pair.0);
                    prop_assert!(own.eq(members));
                }
            }
        }
    }
}

/// Requirement: V2
#[test]
fn the_seed_decides_and_nothing_else() {
    let rows = Numbers(1).clustered(1200, DIM, 30);
    let whole = index_of(&rows, 5, 10_000);
    let walked = index_of(&rows, 5, 0);
    let mut slowly = index_of(&[], 5, 10_000);
    rows.chunks(77).for_each(|rows| insert(&mut slowly, rows));
    assert_eq!(slowly.region_epoch(), whole.region_epoch());
    for level in whole.region_levels() {
        let hubs = whole.regions(level).unwrap();
        assert_eq!(walked.regions(level).unwrap(), hubs);
        assert_eq!(slowly.regions(level).unwrap(), hubs);
        let assigned = whole.region_assignments(level).unwrap();
        assert_eq!(walked.region_assignments(level).unwrap(), assigned);
        assert_eq!(slowly.region_assignments(level).unwrap(), assigned);
    }
    assert_ne!(
        index_of(&rows, 6, 0).regions(1).unwrap(),
        whole.regions(1).unwrap()
    );
}

/// Requirement: V2
#[test]
fn a_walk_among_many_hubs_agrees_with_a_scan_for_99_of_100() {
    let mut rows = Numbers(2).clustered(7400, DIM, 100);
    let queries = rows.split_off(7000);
    let mut index = index_of(&rows, 0, 10_000);
    index.refresh_regions().unwrap();
    let hubs = index.regions(0).unwrap();
    assert_eq!(hubs.len(), 7000);
    let agree = queries.iter().filter(|query| {
        let nearest = index
            .search(query, 1, None, &cvx_index::Filter::default())
            .unwrap();
        index.assign_region(query, 0).unwrap() == RegionId(nearest[0].node)
    });
    assert!(agree.count() >= 396);
}

#[test]
fn an_epoch_ends_when_vectors_double_a_hub_goes_or_the_center_moves() {
    let rows = Numbers(3).clustered(512, DIM, 30);
    let mut index = index_of(&rows[..256], 0, 10_000);
    let (epoch, hubs) = (index.region_epoch(), index.regions(1).unwrap());
    insert(&mut index, &rows[256..511]);
    assert_eq!(
        (index.region_epoch(), index.regions(1).unwrap()),
        (epoch, hubs.clone())
    );
    assert_eq!(index.region_assignments(1).unwrap().len(), 511);
    insert(&mut index, &rows[511..512]);
    assert_eq!(index.region_epoch(), epoch + 1);
    assert!(index.regions(1).unwrap().len() > hubs.len());

    let no_hub = (0..512)
        .map(NodeId)
        .find(|&n| !index.regions(1).unwrap().contains(&RegionId(n)))
        .unwrap();
    let mut expected = index.region_assignments(1).unwrap();
    let ground = index.region_assignments(0).unwrap().len();
    index.delete(&[no_hub]).unwrap();
    assert_eq!(index.region_epoch(), epoch + 1);
    expected.retain(|pair| pair.0 != no_hub);
    assert_eq!(index.region_assignments(1).unwrap(), expected);
    assert_eq!(index.region_assignments(0).unwrap().len(), ground - 1);
    index.delete(&[hubs[0].0]).unwrap();
    assert_eq!(index.region_epoch(), epoch + 2);
    index.set_center(Center::Mean).unwrap();
    assert_eq!(index.region_epoch(), epoch + 3);
    index.refresh_regions().unwrap();
    assert_eq!(index.region_epoch(), epoch + 4);
}

/// Requirement: V19, V5
#[test]
fn a_trajectory_smooths_the_shares_of_each_window() {
    let params = IndexParams::new(1).m(2).metric(Metric::L2);
    let mut index = TemporalIndex::new(params).unwrap();
    // Times out of order; windows of 10 from 100 on: nodes 1, 2 and 3, nobody, node 0.
    let events = [(129, &[5.0]), (100, &[0.0]), (105, &[0.0]), (109, &[5.0])];
    let node = |(time, x): (i64, &'static [f32; 1])| NewNode::new(EntityId(9), time, Some(x));
    index.bulk_insert(&events.map(node), 1).unwrap();
    index.insert(NewNode::new(EntityId(9), 150, None)).unwrap();
    index.refresh_regions().unwrap();
    let found = index
        .region_trajectory("", EntityId(9), 0, 10, 0.25)
        .unwrap();
    assert_eq!(found.centres, [105.0, 115.0, 125.0]);
    // At level 0 each node is its own region: columns are nodes 0 (129), 1, 2, 3.
    let third = 1.0 / 3.0;
    let first = [0.0, third, third, third];
    let last = [0.25, 0.75 * third, 0.75 * third, 0.75 * third];
    let expected = [first, first, last].concat();
    assert_eq!(found.shares.len(), expected.len());
    for (share, expected) in found.shares.iter().zip(expected) {
        assert!((share - expected).abs() < 1e-12);
    }
}

#[test]
fn what_is_no_level_region_window_or_entity_is_refused() {
    let index = index_of(&Numbers(4).clustered(100, DIM, 5), 0, 0);
    let levels = index.region_levels();
    let beyond = levels.len();
    let known =
        |error: Error| matches!(error, Error::UnknownLevel { known, .. } if known == levels);
    assert!(known(index.regions(beyond).unwrap_err()));
    assert!(known(index.region_assignments(beyond).unwrap_err()));
    assert!(known(
        index
            .region_members(RegionId(NodeId(0)), beyond)
            .unwrap_err()
    ));
    assert!(known(index.assign_region(&[1.0; DIM], beyond).unwrap_err()));
    assert!(known(
        index
            .region_trajectory("", EntityId(1), beyond, 5, 0.5)
            .unwrap_err()
    ));
    let hubs = index.regions(1).unwrap();
    let other = (0..100)
        .map(|n| RegionId(NodeId(n)))
        .find(|node| !hubs.contains(node))
        .unwrap();
    assert!(matches!(
        index.region_members(other, 1),
        Err(Error::UnknownRegion { .. })
    ));
    assert!(matches!(
        index.assign_region(&[1.0], 1),
        Err(Error::Dimension { .. })
    ));
    let unknown = index.region_trajectory("", EntityId(77), 1, 5, 0.5);
    assert!(matches!(unknown, Err(Error::UnknownEntity { .. })));
    for (window, alpha) in [(0, 0.5), (5, 0.0), (5, 1.5), (5, f64::NAN)] {
        let refused = index.region_trajectory("", EntityId(1), 1, window, alpha);
        assert!(matches!(refused, Err(Error::Parameter { .. })));
    }
    let mut sleeper = index_of(&[], 0, 0);
    for time in [i64::MIN, i64::MAX] {
        sleeper
            .insert(NewNode::new(EntityId(1), time, Some(&[1.0; DIM])))
            .unwrap();
    }
    let refused = sleeper.region_trajectory("", EntityId(1), 0, 1, 0.5);
    assert!(matches!(
        refused,
        Err(Error::Parameter { name: "window", .. })
    ));
    let two = sleeper
        .region_trajectory("", EntityId(1), 0, i64::MAX, 0.5)
        .unwrap();
    assert_eq!(two.centres.len(), 3);
}
