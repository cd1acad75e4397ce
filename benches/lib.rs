//! What the benches share; they stand in `kernels.rs` and `index.rs`.

pub mod clustered;
