//! Benches live in `index.rs`.
