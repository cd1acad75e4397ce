//! Codes as the tables of a snapshot, and back.

use std::sync::Arc;

use super::{Codes, Worst};
use crate::columns::column::Column;
use crate::columns::pieces::Pieces;
use crate::distance::Metric;
use crate::distance::code_products::Chunk;
use crate::id::Slot;

/// The tables of the codes.
#[derive(Debug)]
pub(crate) struct CodeTables {
    pub(crate) rows: Column<Chunk>,
    /// Of rows that are still to be held against them.
    pub(crate) pieces: Option<Arc<Pieces>>,
    pub(crate) scales: Column<f32>,
    pub(crate) bases: Column<f32>,
}

impl Codes {
    /// Takes over tables and extremes, if they can be those of at least `nodes` rows.
    pub(crate) fn restore(&mut self, tables: CodeTables, worst: [f32; 3], nodes: usize) -> bool {
        let CodeTables {
            rows,
            pieces,
            scales,
            bases,
        } = tables;
        let [scale, length, residual] = worst;
        let bases_fit = match self.metric {
            Metric::L2 => bases.len() == scales.len(),
            _ => bases.is_empty(),
        };
        let fits = bases_fit
            && scales.len() >= nodes
            && scales.len().checked_mul(self.chunks) == Some(rows.len())
            && worst.iter().all(|x| x.is_finite() && *x >= 0.0);
        if fits {
            (self.rows, self.scales, self.bases) = (rows, scales, bases);
            self.pieces = pieces;
            self.worst = Worst {
                scale,
                length,
                residual,
            };
        }
        fits
    }

    /// The rows at these slots.
    pub(crate) fn gathered(&self, kept: &[Slot]) -> Self {
        let table = self.slices();
        kept.iter().for_each(|&node| table.check_read(node));
        Codes {
            pieces: self.pieces.clone().filter(|pieces| pieces.damaged()),
            rows: self.rows.gathered(Slot::numbers(kept), self.chunks),
            scales: self.scales.gathered(Slot::numbers(kept), 1),
            bases: self.bases.gathered(Slot::numbers(kept), 1),
            ..*self
        }
    }

    /// These codes in memory with room for more rows.
    pub(crate) fn roomy(&self, more: usize) -> Self {
        let bases = if self.bases.is_empty() { 0 } else { more };
        Codes {
            rows: self.rows.roomy(more * self.chunks),
            pieces: self.pieces.clone(),
            scales: self.scales.roomy(more),
            bases: self.bases.roomy(bases),
            ..*self
        }
    }

    /// The rows of bytes.
    pub(crate) fn chunks(&self) -> &[Chunk] {
        &self.rows
    }

    /// Per row its scale, and its base where the metric has one.
    pub(crate) fn scales_and_bases(&self) -> [&[f32]; 2] {
        [&self.scales, &self.bases]
    }

    /// The extremes of all rows.
    pub(crate) fn worst(&self) -> [f32; 3] {
        [self.worst.scale, self.worst.length, self.worst.residual]
    }
}
