//! The edge layer: adds, removes and looks up typed edges, in both directions.

use super::edge::{Direction, Edge};
use super::kind::{EdgeKind, is_lower_snake};
use super::row::{EdgeRow, Half};
use super::rows::EdgeRows;
use crate::error::{Error, Result};
use crate::id::Slot;

/// Kinds are for people to choose from, and looked up one after the other.
const MOST_KINDS: usize = 1_024;

/// Typed, weighted, directed edges; at most one for each (from, to, kind).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TypedEdgeLayer {
    pub(super) kinds: Vec<String>,
    // Rows are sorted by (kind, node): results never depend on the order of insertion.
    pub(super) out: EdgeRows,
    pub(super) into: EdgeRows,
    pub(super) len: usize,
}

impl TypedEdgeLayer {
    /// A layer without edges and without custom kinds.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How many edges there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Makes `name` a kind; a name that is one already stays what it is.
    ///
    /// # Errors
    /// [`Error::InvalidEdgeKindName`] unless the name is lower snake case of at most 64 bytes;
    /// [`Error::TooManyEdgeKinds`] beyond 1,024 kinds.
    pub fn declare_kind(&mut self, name: &str) -> Result<EdgeKind> {
        if let Some(kind) = self.find(name) {
            return Ok(kind);
        }
        if !is_lower_snake(name) {
            return Err(Error::InvalidEdgeKindName {
                name: name.to_owned(),
            });
        }
        if self.kinds.len() >= MOST_KINDS {
            return Err(Error::TooManyEdgeKinds);
        }
        self.kinds.push(name.to_owned());
        Ok(EdgeKind::Custom((self.kinds.len() - 1) as u16))
    }

    /// The kind of that name.
    ///
    /// # Errors
    /// [`Error::UnknownEdgeKind`], which lists the known names.
    pub fn kind(&self, name: &str) -> Result<EdgeKind> {
        self.find(name).ok_or_else(|| Error::UnknownEdgeKind {
            name: name.to_owned(),
            known: self.kind_names().map(str::to_owned).collect(),
        })
    }

    /// Declares kinds that are not declared yet, each once.
    pub(super) fn declare_all(&mut self, names: &[String]) -> Result<()> {
        for (place, name) in names.iter().enumerate() {
            if self.declare_kind(name)? != EdgeKind::Custom(place as u16) {
                return Err(Error::InvalidEdgeTable {
                    reason: format!("kind {name:?} twice"),
                });
            }
        }
        Ok(())
    }

    fn find(&self, name: &str) -> Option<EdgeKind> {
        EdgeKind::built_in(name).or_else(|| {
            let place = self.kinds.iter().position(|known| known == name)?;
            // There are at most MOST_KINDS.
            Some(EdgeKind::Custom(place as u16))
        })
    }

    /// The name of `kind`; a custom kind that was not declared here has none.
    #[must_use]
    pub fn kind_name(&self, kind: EdgeKind) -> Option<&str> {
        match kind {
            EdgeKind::Custom(place) => self.kinds.get(usize::from(place)).map(String::as_str),
            built_in => built_in.built_in_name(),
        }
    }

    /// Every known name: the built-in kinds, then the declared ones.
    pub fn kind_names(&self) -> impl Iterator<Item = &str> + '_ {
        EdgeKind::BUILT_IN
            .into_iter()
            .filter_map(|kind| self.kind_name(kind))
            .chain(self.kinds.iter().map(String::as_str))
    }

    /// Refuses a kind and a weight that no edge has.
    ///
    /// # Errors
    /// [`Error::ImpliedEdgeKind`] for temporal edges, [`Error::UnknownEdgeKind`] for a custom kind
    /// that was not declared, [`Error::EdgeWeight`] for a weight outside [0, 1].
    pub fn check(&self, kind: EdgeKind, weight: f32) -> Result<()> {
        if kind == EdgeKind::Temporal {
            return Err(Error::ImpliedEdgeKind);
        }
        if self.kind_name(kind).is_none() {
            return Err(Error::UnknownEdgeKind {
                name: format!("{kind:?}"),
                known: self.kind_names().map(str::to_owned).collect(),
            });
        }
        // NaN fails the comparison too.
        if !(0.0..=1.0).contains(&weight) {
            return Err(Error::EdgeWeight { weight });
        }
        Ok(())
    }

    /// Adds an edge; one of the same ends and kind takes the new weight instead.
    /// Returns whether the edge is new. That there are two nodes is for the caller to know.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn add(&mut self, from: Slot, to: Slot, kind: EdgeKind, weight: f32) -> Result<bool> {
        self.check(kind, weight)?;
        // -0.0 is in the range, and must not make a second spelling of 0.
        let weight = weight + 0.0;
        let new = self.out.put(from, Half::new(to, kind, weight));
        self.into.put(to, Half::new(from, kind, weight));
        self.len += usize::from(new);
        Ok(new)
    }

    /// Removes the edge of these ends and this kind; whether there was one.
    pub fn remove(&mut self, from: Slot, to: Slot, kind: EdgeKind) -> bool {
        let place = kind.place() as u32;
        let taken = self.out.take(from, place, to);
        if taken {
            self.into.take(to, place, from);
            self.len -= 1;
        }
        taken
    }

    /// Removes every edge that starts or ends at `node`.
    pub fn remove_node(&mut self, node: Slot) {
        let leaving = self.out.take_row(node);
        self.len -= leaving.len();
        for half in leaving {
            self.into.take(half.node, half.kind, node);
        }
        for half in self.into.take_row(node) {
            let taken = self.out.take(half.node, half.kind, node);
            self.len -= usize::from(taken);
        }
    }

    /// The edges of a node in one direction, by kind, then by the node at the other end.
    #[must_use]
    #[inline]
    pub fn neighbors(&self, node: Slot, direction: Direction) -> EdgeRow<'_> {
        self.rows(direction).row(node)
    }

    #[inline]
    fn rows(&self, direction: Direction) -> &EdgeRows {
        match direction {
            Direction::Out => &self.out,
            Direction::In => &self.into,
        }
    }

    /// Asks for the edges of these nodes, before they are read one by one.
    pub(crate) fn prefetch(&self, nodes: impl Iterator<Item = Slot> + Clone, from: Direction) {
        self.rows(from).prefetch(nodes);
    }

    /// The edges of one kind of a node, by the node at the other end.
    #[must_use]
    #[inline]
    pub fn neighbors_of(&self, node: Slot, kind: EdgeKind, direction: Direction) -> EdgeRow<'_> {
        self.neighbors(node, direction).of_kind(kind.place() as u32)
    }

    /// All edges, by start, kind and end.
    pub fn edges(&self) -> impl Iterator<Item = Edge<Slot>> + '_ {
        Slot::range(0, self.out.nodes()).flat_map(|from| {
            self.out.row(from).iter().map(move |half| Edge {
                from,
                to: half.node,
                kind: half.kind,
                weight: half.weight,
            })
        })
    }
}

#[cfg(test)]
#[path = "layer_tests.rs"]
mod tests;
