//! The methods for regions: hubs, members, assignment, trajectories.

use cvx_index::{NodeId, RegionId};
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::argument::{self, converted, integer, text};
use crate::convert::{self, Vectors, check_dimension, node_array};
use crate::error::named;
use crate::index::NativeIndex;

impl NativeIndex {
    fn level(&self, py: Python<'_>, level: &Bound<'_, PyAny>) -> PyResult<usize> {
        let level = integer("level", level)?;
        if let Ok(level) = usize::try_from(level) {
            return Ok(level);
        }
        let known = self.shared.read(py, |index| Ok(index.region_levels()))?;
        let message = format!("level {level} has no regions: those that have are {known:?}");
        Err(named(py, "UnknownError", &message))
    }
}

/// The node that names a region.
fn hub(region: RegionId) -> NodeId {
    region.0
}

#[pymethods]
impl NativeIndex {
    /// The levels that have regions.
    fn region_levels(&self, py: Python<'_>) -> PyResult<Vec<usize>> {
        self.shared.read(py, |index| Ok(index.region_levels()))
    }

    /// Which snapshot of the hubs is in force.
    fn region_epoch(&self, py: Python<'_>) -> PyResult<u64> {
        self.shared.tell(py, |index| Ok(index.region_epoch()))
    }

    /// Take a new snapshot of the hubs.
    fn refresh_regions(&self, py: Python<'_>) -> PyResult<()> {
        self.shared.write(py, |index| index.refresh_regions())
    }

    /// The regions of a level.
    fn regions<'py>(
        &self,
        py: Python<'py>,
        level: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let level = self.level(py, level)?;
        let hubs = self.shared.read(py, |index| index.regions(level))?;
        Ok(node_array(py, hubs.into_iter().map(hub)))
    }

    /// The nodes of a region.
    fn region_members<'py>(
        &self,
        py: Python<'py>,
        region: &Bound<'py, PyAny>,
        level: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let (region, level) = (argument::node("region", region)?, self.level(py, level)?);
        let members = self
            .shared
            .read_long(py, |index| index.region_members(RegionId(region), level))?;
        Ok(node_array(py, members.into_iter()))
    }

    /// The region of a vector, or of each row.
    fn assign_region<'py>(
        &self,
        py: Python<'py>,
        vectors: &Bound<'py, PyAny>,
        level: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let level = self.level(py, level)?;
        match convert::vectors(vectors)? {
            Vectors::One(vector) => {
                let vector = vector.as_slice()?.to_vec();
                let region = self
                    .shared
                    .read(py, |index| index.assign_region(&vector, level))?;
                Ok(hub(region).0.into_pyobject(py)?.into_any())
            }
            Vectors::Many(rows) => {
                let dim = rows.shape()[1];
                let flat = rows.as_slice()?.to_vec();
                let regions = self.shared.read_long(py, |index| {
                    check_dimension(index, dim)?;
                    let assign = |row: &[f32]| index.assign_region(row, level);
                    flat.chunks_exact(dim)
                        .map(assign)
                        .collect::<cvx_index::Result<Vec<RegionId>>>()
                })?;
                Ok(node_array(py, regions.into_iter().map(hub)).into_any())
            }
        }
    }

    /// Every node with a vector and its region.
    #[allow(clippy::type_complexity)] // Two numpy arrays.
    fn region_assignments<'py>(
        &self,
        py: Python<'py>,
        level: &Bound<'py, PyAny>,
    ) -> PyResult<(Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i64>>)> {
        let level = self.level(py, level)?;
        let pairs = self
            .shared
            .read_long(py, |index| index.region_assignments(level))?;
        Ok((
            node_array(py, pairs.iter().map(|pair| pair.0)),
            node_array(py, pairs.iter().map(|pair| hub(pair.1))),
        ))
    }

    /// Smoothed shares of the regions in an entity's windows of time: (centres, shares).
    #[allow(clippy::type_complexity)] // Two numpy arrays.
    fn region_trajectory<'py>(
        &self,
        py: Python<'py>,
        namespace: &Bound<'py, PyAny>,
        entity_id: &Bound<'py, PyAny>,
        level: &Bound<'py, PyAny>,
        window: &Bound<'py, PyAny>,
        alpha: &Bound<'py, PyAny>,
    ) -> PyResult<(Bound<'py, PyArray1<f64>>, Bound<'py, PyArray2<f64>>)> {
        let (namespace, entity) = (text("namespace", namespace)?, argument::entity(entity_id)?);
        let level = self.level(py, level)?;
        let window = integer("window", window)?;
        let alpha = converted("alpha", alpha, "a number")?;
        let found = self.shared.read_long(py, |index| {
            index.region_trajectory(namespace, entity, level, window, alpha)
        })?;
        let shape = [found.centres.len(), found.regions.len()];
        let shares = PyArray1::from_vec(py, found.shares).reshape(shape)?;
        Ok((PyArray1::from_vec(py, found.centres), shares))
    }
}
