//! Checks all invariants of an index; tests call it after every change.

use crate::columns::EMBEDDED;
use crate::filter::postings::Postings;
use crate::filter::timelines::Timelines;
use crate::graph::insert::level_of;
use crate::id::Slot;
use crate::index::TemporalIndex;

impl TemporalIndex {
    /// Checks everything that parts of the index rely on in each other.
    ///
    /// # Errors
    /// A sentence on the first thing that does not hold.
    #[doc(hidden)]
    pub fn validate(&self) -> Result<(), String> {
        self.validate_between_steps()?;
        for node in self.links.nodes() {
            self.validate_company(node)?;
        }
        Ok(())
    }

    /// Checks what holds between two steps of a change, too: a node that was alone on its level
    /// gives a link back to the first that joins it there one step later.
    ///
    /// # Errors
    /// A sentence on the first thing that does not hold.
    #[doc(hidden)]
    pub fn validate_between_steps(&self) -> Result<(), String> {
        let holds = |condition: bool, what: &str| match condition {
            true => Ok(()),
            false => Err(what.to_owned()),
        };
        let live: Vec<Slot> = self.columns.live().collect();
        holds(self.live == live.len(), "the count of live nodes")?;
        let embedded: Vec<Slot> = live
            .iter()
            .copied()
            .filter(|&node| self.columns.has(node, EMBEDDED))
            .collect();
        holds(
            self.links.nodes().eq(embedded.iter().copied()),
            "the graph holds the embedded nodes",
        )?;
        holds(self.links.len() == embedded.len(), "the count of the graph")?;

        let mut postings = Postings::default();
        live.iter()
            .for_each(|&node| postings.add(&self.columns, node));
        holds(
            postings.same(&self.postings, &self.columns),
            "the postings list the embedded nodes",
        )?;
        let mut timelines = Timelines::default();
        timelines.add(&self.columns, live.iter().copied());
        holds(
            timelines.lines() == self.timelines.lines(),
            "the timelines hold the live nodes in order",
        )?;
        holds(
            timelines.len() == self.timelines.len(),
            "the count of timelines",
        )?;
        holds(
            timelines.lines().nodes.len() == live.len(),
            "each live node is in one timeline",
        )?;

        for edge in self.edges() {
            let lives = |node| self.contains(node);
            holds(lives(edge.from) && lives(edge.to), "edges join live nodes")?;
        }
        holds(
            self.edges.agrees(),
            "both directions tell of the same edges",
        )?;
        let highest = embedded
            .iter()
            .filter_map(|&node| self.links.level(node))
            .max();
        holds(
            self.links.top() == highest,
            "the entry is of the highest level",
        )?;
        for &node in &embedded {
            self.validate_links(node)?;
        }
        self.validate_rows()?;
        let other_row = |&node: &Slot| !self.vectors.is_coded(node);
        match embedded.into_iter().find(other_row) {
            Some(node) => Err(format!(
                "the code of node {} is of another row",
                self.id(node)
            )),
            None => Ok(()),
        }
    }

    /// Checks that the row of every node with a vector can be compared, as those that are inserted.
    pub(crate) fn validate_rows(&self) -> Result<(), String> {
        for node in self.links.nodes() {
            let told = |error| format!("the row of node {}: {error}", self.id(node));
            self.vectors.check(self.vectors.raw(node)).map_err(told)?;
        }
        Ok(())
    }

    fn validate_links(&self, node: Slot) -> Result<(), String> {
        let level = self.links.level(node).unwrap_or(0);
        if level != level_of(self.params.seed, self.id(node), self.params.m) {
            return Err(format!("node {node} is at level {level}"));
        }
        for level in 0..=level {
            let neighbors = self.links.neighbors(node, level);
            let mut sorted = neighbors.to_vec();
            sorted.sort_unstable();
            sorted.dedup();
            let gone = |n| self.links.level(n).is_none() && self.vectors.codes.is_erased(n);
            let of_level = |&n: &Slot| self.links.reaches(n, level) || gone(n);
            let sound = sorted.len() == neighbors.len()
                && neighbors.len() <= self.links.most(level)
                && !neighbors.contains(&node)
                && neighbors.iter().all(of_level);
            if !sound {
                return Err(format!(
                    "links of node {node} at level {level}: {neighbors:?}"
                ));
            }
        }
        Ok(())
    }

    /// Whether a node has neighbours on every level that it shares with others.
    fn validate_company(&self, node: Slot) -> Result<(), String> {
        for level in 0..=self.links.level(node).unwrap_or(0) {
            let reaches = |other: &Slot| self.links.reaches(*other, level);
            if !self.links.neighbors(node, level).iter().any(reaches)
                && self.links.nodes().filter(reaches).nth(1).is_some()
            {
                return Err(format!("node {node} has no neighbour at level {level}"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::NewNode;
    use crate::distance::Metric;
    use crate::error::Error;
    use crate::id::EntityId;
    use crate::index::params::IndexParams;
    use crate::snapshot::LoadOptions;

    const ROWS: [[f32; 4]; 3] = [
        [1.0, 0.0, 2.0, 0.0],
        [0.0, 3.0, 0.0, 1.0],
        [2.0, 2.0, 0.0, 0.5],
    ];

    fn index(metric: Metric) -> TemporalIndex {
        let params = IndexParams {
            metric,
            ..IndexParams::new(4)
        };
        let mut index = TemporalIndex::new(params).unwrap();
        for (row, time) in ROWS.iter().zip(0..) {
            let node = NewNode::new(EntityId(1), time, Some(row));
            index.insert(node).unwrap();
        }
        index.validate().unwrap();
        index
    }

    #[test]
    fn a_row_that_has_no_distances_is_told_by_validate_and_by_a_verified_load() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.cvx");
        for (metric, row) in [
            (Metric::Cosine, [0.0, f32::NAN, 0.0, 0.0]),
            (Metric::L2, [f32::INFINITY, 0.0, 0.0, 0.0]),
            (Metric::InnerProduct, [3e38; 4]),
            (Metric::Cosine, [0.0; 4]),
        ] {
            let mut index = index(metric);
            index.vectors.put(Slot(1), &row);
            let told = index.validate().unwrap_err();
            assert!(told.contains("node 1"), "{told}");
            index.save(&path, b"").unwrap();
            // The checksums fit: only who looks at the rows can know.
            let verified = LoadOptions {
                verify: true,
                ..LoadOptions::default()
            };
            let opened = TemporalIndex::load_with(&path, verified).err();
            assert!(
                matches!(
                    opened,
                    Some(Error::Corrupted {
                        section: "ROWS",
                        ..
                    })
                ),
                "{row:?}: {opened:?}"
            );
            assert!(TemporalIndex::load(&path).is_ok());
        }
    }

    #[test]
    fn a_row_that_is_not_the_one_that_was_coded_is_told() {
        let mut index = index(Metric::Cosine);
        index.vectors.put(Slot(2), &[0.5, 2.0, 0.0, 2.0]);
        let told = index.validate().unwrap_err();
        assert!(told.contains("node 2"), "{told}");
        index.vectors.encode(&[Slot(2)]);
        assert_eq!(index.validate(), Ok(()));
    }
}
