//! Filters: which nodes a search may return.

pub(crate) mod accepted;
pub(crate) mod plan;
pub(crate) mod postings;
mod reward_buckets;
pub(crate) mod timelines;

use crate::error::{Error, Result};
use crate::id::{EntityId, NodeId};

/// What a search may return: every field that is given must hold.
///
/// An empty list matches nothing. The default is what recall uses: recallable nodes of the
/// default namespace.
///
/// ```
/// use cvx_index::Filter;
///
/// let spring = Filter { since: Some(60), until: Some(150), ..Filter::default() };
/// assert!(spring.check().is_ok());
/// let inverted = Filter { since: Some(150), until: Some(60), ..Filter::default() };
/// assert!(inverted.check().is_err());
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Filter {
    /// The earliest timestamp accepted.
    pub since: Option<i64>,
    /// The first timestamp no longer accepted.
    pub until: Option<i64>,
    /// One of these entities.
    pub entities: Option<Vec<EntityId>>,
    /// One of these namespaces; `None` is the default one, `""`.
    pub namespaces: Option<Vec<String>>,
    /// The lowest reward accepted; nodes without reward are not.
    pub min_reward: Option<f32>,
    /// The highest reward accepted; nodes without reward are not.
    pub max_reward: Option<f32>,
    /// All of these tags.
    pub tags: Option<Vec<String>>,
    /// One of these nodes.
    pub ids: Option<Vec<NodeId>>,
    /// Whether the node may advise; `None` accepts both.
    pub recallable: Option<bool>,
}

impl Default for Filter {
    fn default() -> Self {
        Filter {
            since: None,
            until: None,
            entities: None,
            namespaces: None,
            min_reward: None,
            max_reward: None,
            tags: None,
            ids: None,
            recallable: Some(true),
        }
    }
}

impl Filter {
    /// Refuses ranges that end before they begin, and rewards that are not finite.
    ///
    /// # Errors
    /// [`Error::InvertedRange`], [`Error::Filter`].
    pub fn check(&self) -> Result<()> {
        check_times(self.since, self.until)?;
        for (field, reward) in [
            ("min_reward", self.min_reward),
            ("max_reward", self.max_reward),
        ] {
            if let Some(reward) = reward.filter(|reward| !reward.is_finite()) {
                return Err(Error::Filter {
                    field,
                    value: reward.to_string(),
                    bound: "finite",
                });
            }
        }
        if let (Some(min), Some(max)) = (self.min_reward, self.max_reward)
            && min > max
        {
            return Err(Error::InvertedRange {
                range: "reward",
                from: min.to_string(),
                to: max.to_string(),
            });
        }
        Ok(())
    }

    /// The namespaces that the caller named, or the default one.
    pub(crate) fn namespaces(&self) -> impl Iterator<Item = &str> {
        let named = self.namespaces.iter().flatten().map(String::as_str);
        named.chain(self.namespaces.is_none().then_some(""))
    }
}

/// Refuses a range of times that holds none.
pub(crate) fn check_times(since: Option<i64>, until: Option<i64>) -> Result<()> {
    match (since, until) {
        (Some(since), Some(until)) if since >= until => Err(Error::InvertedRange {
            range: "time",
            from: since.to_string(),
            to: until.to_string(),
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_sided_ranges_hold_and_inverted_ones_are_refused() {
        let ok = |filter: Filter| filter.check().is_ok();
        assert!(ok(Filter {
            since: Some(5),
            ..Filter::default()
        }));
        assert!(ok(Filter {
            until: Some(5),
            ..Filter::default()
        }));
        assert!(ok(Filter {
            since: Some(4),
            until: Some(5),
            ..Filter::default()
        }));
        let inverted = Filter {
            since: Some(5),
            until: Some(5),
            ..Filter::default()
        };
        assert!(matches!(
            inverted.check(),
            Err(Error::InvertedRange { range: "time", .. })
        ));
        let inverted = Filter {
            min_reward: Some(0.75),
            max_reward: Some(0.5),
            ..Filter::default()
        };
        assert!(matches!(
            inverted.check(),
            Err(Error::InvertedRange {
                range: "reward",
                ..
            })
        ));
        let nan = Filter {
            min_reward: Some(f32::NAN),
            ..Filter::default()
        };
        assert!(matches!(
            nan.check(),
            Err(Error::Filter {
                field: "min_reward",
                ..
            })
        ));
    }
}
