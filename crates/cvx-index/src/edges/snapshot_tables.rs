//! Edges as the flat tables of a snapshot, and back.

use std::hash::{BuildHasher, RandomState};

use super::layer::TypedEdgeLayer;
use super::row::Half;
use super::rows::{EdgeRows, EdgeTables, FlatEdges};
use crate::error::{Error, Result};
use crate::hash::splitmix;
use crate::id::Slot;

impl TypedEdgeLayer {
    /// Names of the custom kinds, in order of declaration.
    pub(crate) fn custom_kinds(&self) -> &[String] {
        &self.kinds
    }

    /// The rows of the edges that start at a node, then those that end at it.
    pub(crate) fn tables(&self) -> [EdgeTables<'_>; 2] {
        [self.out.tables(), self.into.tables()]
    }

    /// A layer over nodes `0..nodes`, of which some live, from tables that may come from anywhere.
    ///
    /// # Errors
    /// Those of [`declare_kind`](Self::declare_kind); [`Error::InvalidEdgeTable`].
    pub(crate) fn restored(
        kinds: &[String],
        [out, into]: [FlatEdges; 2],
        nodes: usize,
        lives: impl Fn(Slot) -> bool,
    ) -> Result<Self> {
        let mut layer = Self::new();
        layer.declare_all(kinds)?;
        let kinds = layer.kind_names().count();
        let refused = |reason: &str| Error::InvalidEdgeTable {
            reason: reason.to_owned(),
        };
        if ![&out, &into]
            .iter()
            .all(|flat| flat.sound(nodes, kinds, &lives))
        {
            return Err(refused("a row that no edges make"));
        }
        layer.len = out.halves.len();
        (layer.out, layer.into) = (EdgeRows::of(out), EdgeRows::of(into));
        match layer.agrees() {
            true => Ok(layer),
            false => Err(refused("other edges start at nodes than end at them")),
        }
    }

    /// Whether both directions tell of the same edges.
    ///
    /// The edges are not looked up, which would take a cache miss each: the sums of their hashes
    /// under a key that nobody knows are compared. Tables that differ pass once in 2^64.
    pub(crate) fn agrees(&self) -> bool {
        let key = RandomState::new().hash_one(());
        let hash = |from: Slot, to: Slot, half: &Half| {
            let ends = u64::from(from.0) << 32 | u64::from(to.0);
            let what = u64::from(half.kind) << 32 | u64::from(half.weight.to_bits());
            splitmix(splitmix(key ^ ends) ^ what)
        };
        let out = tally(&self.out, |from, half| hash(from, half.node, half));
        let into = tally(&self.into, |to, half| hash(half.node, to, half));
        out == into && out.0 == self.len
    }
}

/// How many edges rows hold, and the sum of their hashes.
fn tally(rows: &EdgeRows, hash: impl Fn(Slot, &Half) -> u64) -> (usize, u64) {
    let rows = Slot::range(0, rows.nodes()).map(|node| (node, rows.row(node).0));
    rows.fold((0, 0), |(count, sum), (node, row)| {
        let hashes = row.iter().map(|half| hash(node, half));
        (count + row.len(), hashes.fold(sum, u64::wrapping_add))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edges::{Direction, EdgeKind};

    const NODES: usize = 9;

    fn layer() -> TypedEdgeLayer {
        let mut layer = TypedEdgeLayer::new();
        let own = layer.declare_kind("tried_first").expect("a good name");
        for (from, to, kind) in [
            (3, 1, own),
            (3, 7, EdgeKind::Caused),
            (0, 7, own),
            (7, 2, EdgeKind::Irrelevant),
        ] {
            let (from, to) = (Slot(from), Slot(to));
            layer.add(from, to, kind, 0.5).expect("a sound edge");
        }
        layer
    }

    fn flat(tables: EdgeTables<'_>) -> FlatEdges {
        FlatEdges {
            ends: tables.ends.into_owned().into(),
            halves: tables.halves.into_owned().into(),
        }
    }

    fn restored(
        layer: &TypedEdgeLayer,
        spoil: impl Fn(&mut [FlatEdges; 2]),
    ) -> Result<TypedEdgeLayer> {
        let mut tables = layer.tables().map(flat);
        spoil(&mut tables);
        TypedEdgeLayer::restored(layer.custom_kinds(), tables, NODES, |node| {
            node.index() < NODES && node != Slot(8)
        })
    }

    #[test]
    fn a_layer_comes_back_from_its_tables_and_changes_as_one_that_never_left() {
        let mut before = layer();
        let mut after = restored(&before, |_| ()).expect("its own tables");
        assert!(after.agrees());
        assert_eq!(after, before);
        for layer in [&mut before, &mut after] {
            let (a, b) = (Slot(3), Slot(7));
            assert!(layer.remove(a, b, EdgeKind::Caused));
            layer
                .add(b, a, EdgeKind::Caused, 1.0)
                .expect("a sound edge");
            layer.remove_node(Slot(2));
        }
        assert_eq!(after, before);
        assert_eq!(after.len(), 3);
        assert!(after.agrees());
        let again = restored(&after, |_| ()).expect("its own tables");
        assert_eq!(again.tables(), before.tables());
        assert_eq!(again.neighbors(Slot(2), Direction::In).len(), 0);
    }

    #[test]
    fn tables_that_no_edges_make_are_refused() {
        let spoils: [fn(&mut [FlatEdges; 2]); 12] = [
            |[out, _]| out.ends.to_mut()[0] = 9,
            |[out, _]| out.ends.to_mut()[0] = 2,
            |[out, _]| out.ends.push(4),
            |[out, _]| out.ends = vec![0, 0, 0, 0, 0, 0, 0, 0, 0, 4].into(),
            |[_, into]| into.halves.push(into.halves[0]),
            |[out, _]| out.halves.to_mut()[0].node = Slot(8),
            |[out, _]| out.halves.to_mut()[0].node = Slot(u32::MAX),
            |[out, _]| out.halves.to_mut()[0].kind = 0,
            |[out, _]| out.halves.to_mut()[0].kind = 9,
            |[out, _]| out.halves.to_mut()[0].weight = -0.0,
            // Each direction by itself is one that a layer can have.
            |[out, _]| out.halves.to_mut()[0].weight = 0.25,
            |[out, _]| out.halves.to_mut()[0].node = Slot(6),
        ];
        for (at, spoil) in spoils.into_iter().enumerate() {
            let refused = restored(&layer(), spoil);
            let refused = matches!(refused, Err(Error::InvalidEdgeTable { .. }));
            assert!(refused, "number {at}");
        }
    }
}
