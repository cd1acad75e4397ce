//! Errors of the index as the classes of `cvx.errors`.

use pyo3::prelude::*;

/// The error `class` of `cvx.errors`.
pub fn named(py: Python<'_>, class: &str, message: &str) -> PyErr {
    // A missing class is a fault of the package; that error says which.
    let made = py
        .import("cvx.errors")
        .and_then(|errors| errors.getattr(class))
        .and_then(|class| class.call1((message,)));
    match made {
        Ok(error) => PyErr::from_value(error),
        Err(error) => error,
    }
}

/// An error of the index, under its own class.
pub fn of_index(py: Python<'_>, error: &cvx_index::Error) -> PyErr {
    named(py, class_of(error), &error.to_string())
}

fn class_of(error: &cvx_index::Error) -> &'static str {
    use cvx_index::Error;
    match error {
        Error::Parameter { .. } => "InvalidParameterError",
        Error::ZeroK => "InvalidKError",
        Error::Dimension { .. } => "DimensionError",
        Error::NonFinite { .. } => "NonFiniteVectorError",
        Error::ZeroVector { .. } => "ZeroVectorError",
        Error::TooLong { .. } => "InvalidVectorError",
        Error::RewardRange { .. } => "RewardRangeError",
        Error::Filter { .. } => "InvalidFilterError",
        Error::InvertedRange { .. } => "InvertedRangeError",
        Error::UnknownNode { .. } => "UnknownNodeError",
        Error::UnknownEntity { .. } => "UnknownEntityError",
        Error::UnknownLevel { .. } => "UnknownLevelError",
        Error::UnknownRegion { .. } => "UnknownRegionError",
        Error::UnknownEdgeKind { .. } => "UnknownEdgeKindError",
        Error::UnknownEdge { .. } => "UnknownEdgeError",
        Error::NoVector { .. } => "NoVectorError",
        Error::Capacity { .. } | Error::TooManyEdgeKinds => "CapacityError",
        Error::InvalidEdgeKindName { .. } => "InvalidEdgeKindNameError",
        Error::EdgeWeight { .. } | Error::Boost { .. } => "EdgeWeightError",
        Error::ImpliedEdgeKind | Error::SelfEdge { .. } => "InvalidEdgeError",
        Error::NotASnapshot { .. } => "NotASnapshotError",
        Error::UnsupportedVersion { .. } => "UnsupportedVersionError",
        Error::Truncated { .. } => "TruncatedSnapshotError",
        Error::Corrupted { .. } | Error::InvalidEdgeTable { .. } => "CorruptedSnapshotError",
        Error::Poisoned => "PoisonedIndexError",
        Error::Io { .. } => "SnapshotIOError",
    }
}
