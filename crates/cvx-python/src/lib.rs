//! The native module `cvx._cvx`: numpy in, numpy out, nothing decided here.
//!
//! `cvx.index` gives these functions their public shape; the errors are the classes of `cvx.errors`.

mod argument;
mod convert;
mod edges;
mod error;
mod found;
mod index;
mod lock;
mod regions;
mod rows;
mod search;

use pyo3::prelude::*;

/// The native index behind `cvx.index`.
#[pymodule]
mod _cvx {
    #[pymodule_export]
    use crate::found::{CausalRows, GraphRows};
    #[pymodule_export]
    use crate::index::NativeIndex;
}
