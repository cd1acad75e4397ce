//! The native module `cvx._cvx`: numpy in, numpy out, nothing decided here.
//!
//! `cvx.index` gives these functions their public shape; the errors are the classes of `cvx.errors`.

mod argument;
mod convert;
mod edges;
mod error;
mod index;
mod index_lock;
mod json;
mod nodes;
mod orders;
mod recall;
mod regions;
mod results;
mod search;

use pyo3::prelude::*;

/// The native index behind `cvx.index`.
#[pymodule]
mod _cvx {
    #[pymodule_export]
    use crate::index::NativeIndex;
    #[pymodule_export]
    use crate::json::{compact_json, row_checksums};
    #[pymodule_export]
    use crate::orders::may_hide_orders;
    #[pymodule_export]
    use crate::recall::{
        best, best_by_idf, candidates, holds, neighbourhood, signal_columns, stretched, votes,
        weighed, window,
    };
    #[pymodule_export]
    use crate::results::{CausalRows, GraphRows};
}
