//! The search methods: arrays for `search`, rows for whatever becomes a `Hit`.

use cvx_index::{NodeId, Scored, TemporalIndex};
use numpy::{Element, PyArray1, PyArray2, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::argument::{self, at_least, optional, real};
use crate::convert::{self, Vectors, check_dimension, node_array};
use crate::error::named;
use crate::index::NativeIndex;
use crate::results::{CausalRows, GraphRows, Score};

/// (node, entity, timestamp, action, reward)
pub type StepRow = (u32, u64, i64, Option<String>, Option<f32>);

/// What every hit tells: (node, distance, score, similarity, entity, timestamp, reward, action)
type HitRow = (u32, f32, f32, f32, u64, i64, Option<f32>, Option<String>);
/// A hit and its best temporal neighbour: (node, similarity)
type HybridRow = (HitRow, Option<(u32, f32)>);

pub fn step_row(index: &TemporalIndex, node: NodeId) -> cvx_index::Result<StepRow> {
    Ok((
        node.0,
        index.entity(node)?.0,
        index.timestamp(node)?,
        index.action(node)?.map(str::to_owned),
        index.reward(node)?,
    ))
}

pub fn step_rows(index: &TemporalIndex, nodes: Vec<NodeId>) -> cvx_index::Result<Vec<StepRow>> {
    nodes
        .into_iter()
        .map(|node| step_row(index, node))
        .collect()
}

fn hit_row(
    index: &TemporalIndex,
    node: NodeId,
    distance: f32,
    score: f32,
    similarity: f32,
) -> cvx_index::Result<HitRow> {
    let (id, entity, timestamp, action, reward) = step_row(index, node)?;
    Ok((
        id, distance, score, similarity, entity, timestamp, reward, action,
    ))
}

fn at_least_one(k: &Bound<'_, PyAny>) -> PyResult<usize> {
    at_least(1, "k", k)
}

fn beam(ef: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
    optional(ef, |ef| at_least(1, "ef", ef))
}

#[pymethods]
impl NativeIndex {
    /// Nearest nodes: (ids, distances), of one query or row by row.
    fn search<'py>(
        &self,
        py: Python<'py>,
        query: &Bound<'py, PyAny>,
        k: &Bound<'_, PyAny>,
        ef: &Bound<'_, PyAny>,
        accept: &Bound<'py, PyAny>,
        threads: &Bound<'_, PyAny>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let (k, ef) = (at_least_one(k)?, beam(ef)?);
        let threads = convert::threads(threads)?;
        let filter = convert::filter(accept)?;
        match convert::vectors(query)? {
            Vectors::One(query) => {
                // Copied: Python may write to its array while the index reads.
                let query = query.as_slice()?.to_vec();
                let found = self
                    .shared
                    .read(py, |index| index.search(&query, k, ef, &*filter.on(index)?))?;
                let ids = node_array(py, found.iter().map(|n| n.node));
                let distances = PyArray1::from_iter(py, found.iter().map(|n| n.distance));
                Ok((ids.into_any(), distances.into_any()))
            }
            Vectors::Many(queries) => {
                let [rows, dim] = *queries.shape() else {
                    unreachable!("a matrix has two sides")
                };
                let flat = queries.as_slice()?.to_vec();
                let filter = self.shared.read(py, |index| {
                    check_dimension(index, dim)?;
                    filter.on(index)
                })?;
                let found = self
                    .shared
                    .search_batch(py, &flat, k, ef, &filter, threads)?;
                let ids = found
                    .iter()
                    .map(|row| row.iter().map(|n| i64::from(n.node.0)));
                let distances = found.iter().map(|row| row.iter().map(|n| n.distance));
                let ids = padded(py, ids, [rows, k], -1)?;
                let distances = padded(py, distances, [rows, k], f32::INFINITY)?;
                Ok((ids.into_any(), distances.into_any()))
            }
        }
    }

    /// Nearest nodes with what came before and after each.
    fn causal_search(
        &self,
        py: Python<'_>,
        query: &Bound<'_, PyAny>,
        k: &Bound<'_, PyAny>,
        context: &Bound<'_, PyAny>,
        ef: &Bound<'_, PyAny>,
        accept: &Bound<'_, PyAny>,
    ) -> PyResult<CausalRows> {
        let (k, ef) = (at_least_one(k)?, beam(ef)?);
        let context = at_least(0, "temporal_context", context)?;
        let (query, filter) = (convert::vector(query)?, convert::filter(accept)?);
        self.shared.read(py, |index| {
            let metric = index.params().metric;
            let found = index.search(&query, k, ef, &*filter.on(index)?)?;
            let nodes: Vec<NodeId> = found.iter().map(|near| near.node).collect();
            let mut rows = CausalRows::with_capacity(nodes.len(), context);
            for (around, near) in index.surrounded(&nodes, context)?.iter().zip(found) {
                let similarity = metric.similarity(near.distance);
                let score = Score {
                    distance: near.distance,
                    score: similarity,
                    similarity,
                };
                rows.push(around, score);
            }
            Ok(rows)
        })
    }

    /// Nodes by their own similarity or, discounted, that of a temporal neighbour.
    fn hybrid_search(
        &self,
        py: Python<'_>,
        query: &Bound<'_, PyAny>,
        k: &Bound<'_, PyAny>,
        beta: &Bound<'_, PyAny>,
        ef: &Bound<'_, PyAny>,
        accept: &Bound<'_, PyAny>,
    ) -> PyResult<Vec<HybridRow>> {
        let (k, ef) = (at_least_one(k)?, beam(ef)?);
        let beta = real("beta", beta)?;
        let (query, filter) = (convert::vector(query)?, convert::filter(accept)?);
        self.shared.read(py, |index| {
            let row = |hit: Scored| {
                let neighbour = hit.neighbor.map(|(node, similarity)| (node.0, similarity));
                let row = hit_row(index, hit.node, hit.distance, hit.score, hit.similarity)?;
                Ok((row, neighbour))
            };
            index
                .hybrid_search(&query, k, beta, ef, &*filter.on(index)?)?
                .into_iter()
                .map(row)
                .collect()
        })
    }

    /// Nodes by similarity and by the boosted edges that lead to them from the nearest.
    #[allow(clippy::too_many_arguments)] // The arguments of the Python method.
    fn graph_search(
        &self,
        py: Python<'_>,
        query: &Bound<'_, PyAny>,
        k: &Bound<'_, PyAny>,
        edge_boost: &Bound<'_, PyAny>,
        max_hops: &Bound<'_, PyAny>,
        ef: &Bound<'_, PyAny>,
        accept: &Bound<'_, PyAny>,
    ) -> PyResult<GraphRows> {
        let (k, ef) = (at_least_one(k)?, beam(ef)?);
        let max_hops = at_least(0, "max_hops", max_hops)?;
        let boosts = argument::boosts("edge_boost", edge_boost)?;
        let (query, filter) = (convert::vector(query)?, convert::filter(accept)?);
        self.shared.read(py, |index| {
            let boosts = boosts
                .iter()
                .map(|(name, boost)| Ok((index.edge_kind(name)?, *boost)))
                .collect::<cvx_index::Result<Vec<_>>>()?;
            let filter = filter.on(index)?;
            let hits = index.graph_search(&query, k, &boosts, max_hops, ef, &filter)?;
            let nodes: Vec<NodeId> = hits.iter().map(|hit| hit.node).collect();
            let mut rows = GraphRows::default();
            for (moment, hit) in index.moments(&nodes)?.into_iter().zip(hits) {
                rows.push(index, moment, hit);
            }
            Ok(rows)
        })
    }
}

/// Rows of results as one matrix, short rows filled up.
fn padded<'py, T: Element + Copy>(
    py: Python<'py>,
    rows: impl Iterator<Item = impl Iterator<Item = T>>,
    shape: [usize; 2],
    fill: T,
) -> PyResult<Bound<'py, PyArray2<T>>> {
    let mut flat = Vec::new();
    let size = shape[0].checked_mul(shape[1]);
    if size.is_none_or(|size| flat.try_reserve_exact(size).is_err()) {
        let message = format!(
            "{} x {} results do not fit into memory: lower k",
            shape[0], shape[1]
        );
        return Err(named(py, "InvalidInputError", &message));
    }
    for row in rows {
        let end = flat.len() + shape[1];
        flat.extend(row);
        flat.resize(end, fill);
    }
    PyArray1::from_vec(py, flat).reshape(shape)
}
