//! Kinds of edges: those built in, and those the user declares.

use serde::{Deserialize, Serialize};

/// The meaning of an edge: eight that the learning loop knows, and kinds that a user declares.
///
/// A custom kind is the place of its name in the order of declaration, so that an edge stays
/// twelve bytes; the index keeps the names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum EdgeKind {
    /// The next node of the same entity. Implied by timelines, never added.
    Temporal,
    /// The first led to the second.
    Caused,
    /// The first was followed and the episode of the second was won.
    CausedSuccess,
    /// The first was followed and the episode of the second was lost.
    CausedFailure,
    /// The same action in different episodes.
    SameActionType,
    /// A transition between regions; the weight is its probability.
    RegionTransition,
    /// The series of the first helps to predict that of the second.
    GrangerCausal,
    /// The first was retrieved for the second and ignored.
    Irrelevant,
    /// A kind of the user's own, by order of declaration.
    Custom(u16),
}

impl EdgeKind {
    /// Every kind that needs no declaration, in the order of their codes.
    pub const BUILT_IN: [EdgeKind; 8] = [
        EdgeKind::Temporal,
        EdgeKind::Caused,
        EdgeKind::CausedSuccess,
        EdgeKind::CausedFailure,
        EdgeKind::SameActionType,
        EdgeKind::RegionTransition,
        EdgeKind::GrangerCausal,
        EdgeKind::Irrelevant,
    ];

    /// Its place among all kinds: the built-in ones, then the declared ones.
    #[must_use]
    pub fn place(self) -> usize {
        match self {
            EdgeKind::Custom(place) => Self::BUILT_IN.len() + usize::from(place),
            built_in => Self::BUILT_IN
                .iter()
                .position(|&kind| kind == built_in)
                .unwrap_or_default(),
        }
    }

    /// The kind at a place.
    #[inline]
    pub(super) fn at_place(place: u32) -> Self {
        match Self::BUILT_IN.get(place as usize) {
            Some(&built_in) => built_in,
            None => EdgeKind::Custom((place - Self::BUILT_IN.len() as u32) as u16),
        }
    }

    /// The name of a built-in kind; a custom kind's name is known to the layer alone.
    #[must_use]
    pub const fn built_in_name(self) -> Option<&'static str> {
        match self {
            EdgeKind::Temporal => Some("temporal"),
            EdgeKind::Caused => Some("caused"),
            EdgeKind::CausedSuccess => Some("caused_success"),
            EdgeKind::CausedFailure => Some("caused_failure"),
            EdgeKind::SameActionType => Some("same_action_type"),
            EdgeKind::RegionTransition => Some("region_transition"),
            EdgeKind::GrangerCausal => Some("granger_causal"),
            EdgeKind::Irrelevant => Some("irrelevant"),
            EdgeKind::Custom(_) => None,
        }
    }

    /// The built-in kind of that name.
    #[must_use]
    pub fn built_in(name: &str) -> Option<EdgeKind> {
        Self::BUILT_IN
            .into_iter()
            .find(|kind| kind.built_in_name() == Some(name))
    }
}

/// Whether `name` may name a kind: lower snake case, starting with a letter, at most 64 bytes.
pub(super) fn is_lower_snake(name: &str) -> bool {
    name.len() <= 64
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}
