//! How far some nodes are from a query, one by one.

use crate::error::Result;
use crate::id::NodeId;
use crate::index::TemporalIndex;

/// Rows asked for ahead of the one that is measured.
const AHEAD: usize = 8;

impl TemporalIndex {
    /// The distance of each of these nodes from a query, in full precision and in their order; NaN
    /// for what is no node, or has no vector.
    ///
    /// # Errors
    /// Those of a vector.
    pub fn distances(&self, query: &[f32], nodes: &[NodeId]) -> Result<Vec<f32>> {
        let query = self.vectors.prepared(query)?;
        let slot = |&node| {
            let slot = self.slot(node).ok()?;
            self.links.level(slot).map(|_| slot)
        };
        let slots: Vec<_> = nodes.iter().map(slot).collect();
        let (mut one, mut out) = (Vec::with_capacity(1), Vec::with_capacity(nodes.len()));
        slots
            .iter()
            .take(AHEAD)
            .flatten()
            .for_each(|&slot| self.vectors.prefetch(slot));
        for (at, slot) in slots.iter().enumerate() {
            if let Some(&Some(later)) = slots.get(at + AHEAD) {
                self.vectors.prefetch(later);
            }
            one.clear();
            if let &Some(slot) = slot {
                self.vectors.distances(&query.exact, &[slot], &mut one);
            }
            out.push(one.first().copied().unwrap_or(f32::NAN));
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use crate::{EntityId, Filter, IndexParams, Metric, NewNode, NodeId, TemporalIndex};

    #[test]
    fn distances_are_those_of_a_search_and_nan_where_there_is_nothing_to_measure() {
        for metric in [Metric::Cosine, Metric::L2, Metric::InnerProduct] {
            let mut index = TemporalIndex::new(IndexParams::new(2).metric(metric)).unwrap();
            for vector in [Some([1.0, 0.5]), None, Some([-1.0, 2.0]), Some([0.5, 3.0])] {
                let vector = vector.as_ref().map(|vector: &[f32; 2]| &vector[..]);
                index.insert(NewNode::new(EntityId(0), 0, vector)).unwrap();
            }
            index.delete(&[NodeId(3)]).unwrap();
            let asked = [2, 1, 0, 3, 9].map(NodeId);
            let found = index.distances(&[0.3, 0.4], &asked).unwrap();
            for near in index
                .search(&[0.3, 0.4], 5, None, &Filter::default())
                .unwrap()
            {
                let at = asked.iter().position(|&node| node == near.node).unwrap();
                assert_eq!(found[at], near.distance);
            }
            assert!([1, 3, 4].iter().all(|&at| found[at].is_nan()));
            assert!(index.distances(&[0.3], &asked).is_err());
        }
    }
}
