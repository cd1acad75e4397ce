//! Raises errors of the index as the classes of `cvx.errors`.

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
        Error::Dimension { .. }
        | Error::NonFinite { .. }
        | Error::ZeroVector { .. }
        | Error::TooLong { .. } => "InvalidVectorError",
        Error::Parameter { .. }
        | Error::ZeroK
        | Error::RewardRange { .. }
        | Error::Filter { .. }
        | Error::InvertedRange { .. }
        | Error::Capacity { .. }
        | Error::TooManyEdgeKinds
        | Error::InvalidEdgeKindName { .. }
        | Error::EdgeWeight { .. }
        | Error::Boost { .. }
        | Error::ImpliedEdgeKind
        | Error::SelfEdge { .. } => "InvalidInputError",
        Error::UnknownNode { .. }
        | Error::UnknownEntity { .. }
        | Error::UnknownLevel { .. }
        | Error::UnknownRegion { .. }
        | Error::UnknownEdgeKind { .. }
        | Error::UnknownEdge { .. }
        | Error::NoVector { .. } => "UnknownError",
        Error::NotASnapshot { .. }
        | Error::UnsupportedVersion { .. }
        | Error::Truncated { .. }
        | Error::Corrupted { .. }
        | Error::InvalidEdgeTable { .. }
        | Error::Io { .. } => "SnapshotError",
        // Poisoned, and what a later version of the index may say.
        _ => "InternalError",
    }
}
