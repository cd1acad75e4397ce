//! Nodes going in, their columns coming out.

use cvx_index::{EntityId, NewNode, NodeId};
use numpy::{PyArray1, PyReadonlyArray1, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::convert::{self, Entity, Integer, Node, Vectors, check_dimension, node_array};
use crate::error::named;
use crate::index::NativeIndex;
use crate::search::{StepRow, step_row};

fn borrowed(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
}

/// A column of a batch: one value a row, or one for all rows.
#[derive(FromPyObject)]
enum Column<T> {
    One(T),
    Each(Vec<T>),
}

impl<T> Column<T> {
    fn get(&self, row: usize) -> &T {
        match self {
            Column::One(value) => value,
            Column::Each(values) => &values[row],
        }
    }

    fn check(&self, py: Python<'_>, name: &str, rows: usize) -> PyResult<()> {
        match self {
            Column::Each(values) => same_length(py, name, values.len(), rows),
            Column::One(_) => Ok(()),
        }
    }
}

fn same_length(py: Python<'_>, name: &str, found: usize, rows: usize) -> PyResult<()> {
    if found == rows {
        return Ok(());
    }
    let message = format!("{name} has {found} rows, entity_ids {rows}: pass one for each row");
    Err(named(py, "LengthMismatchError", &message))
}

#[pymethods]
impl NativeIndex {
    /// Add a node.
    #[allow(clippy::too_many_arguments)] // The columns of a node.
    fn insert(
        &self,
        py: Python<'_>,
        entity: Entity,
        timestamp: Integer,
        vector: Option<&Bound<'_, PyAny>>,
        reward: Option<f32>,
        namespace: &str,
        tags: Vec<String>,
        action: Option<&str>,
        recallable: bool,
    ) -> PyResult<u32> {
        let vector = vector.map(convert::vector).transpose()?;
        let node = NewNode {
            entity: entity.0,
            timestamp: timestamp.0,
            vector: vector.as_deref(),
            reward,
            namespace,
            tags: &borrowed(&tags),
            action,
            recallable,
        };
        let ids = self.shared.insert(py, &[node], 1)?;
        Ok(ids[0].0)
    }

    /// Add nodes, all or none. `present` tells the rows of `vectors` that are vectors.
    #[allow(clippy::too_many_arguments)] // The columns of a batch.
    fn bulk_insert<'py>(
        &self,
        py: Python<'py>,
        entities: PyReadonlyArray1<'py, u64>,
        timestamps: PyReadonlyArray1<'py, i64>,
        vectors: Option<&Bound<'py, PyAny>>,
        present: Option<PyReadonlyArray1<'py, bool>>,
        rewards: Option<Vec<Option<f32>>>,
        namespaces: Column<String>,
        tags: Option<Vec<Vec<String>>>,
        actions: Option<Vec<Option<String>>>,
        recallable: Column<bool>,
        threads: Option<Integer>,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let threads = convert::threads(py, threads)?;
        let (entities, timestamps) = (entities.as_slice()?, timestamps.as_slice()?);
        let rows = entities.len();
        same_length(py, "timestamps", timestamps.len(), rows)?;
        namespaces.check(py, "namespaces", rows)?;
        recallable.check(py, "recallable", rows)?;
        let lengths = [
            ("rewards", rewards.as_ref().map(Vec::len)),
            ("tags", tags.as_ref().map(Vec::len)),
            ("actions", actions.as_ref().map(Vec::len)),
        ];
        for (name, length) in lengths {
            same_length(py, name, length.unwrap_or(rows), rows)?;
        }
        let matrix = match vectors.map(convert::vectors).transpose()? {
            Some(Vectors::Many(matrix)) => Some(matrix),
            Some(Vectors::One(_)) => {
                let message = "vectors is one vector: pass a matrix of shape (n, dim)";
                return Err(named(py, "InvalidVectorError", message));
            }
            None => None,
        };
        let dim = matrix.as_ref().map(|matrix| matrix.shape()[1]);
        let flat = matrix
            .as_ref()
            .map(|matrix| matrix.as_slice())
            .transpose()?;
        if let Some(matrix) = &matrix {
            same_length(py, "vectors", matrix.shape()[0], rows)?;
        }
        let present = present
            .as_ref()
            .map(|present| present.as_slice())
            .transpose()?;
        same_length(py, "vectors", present.map_or(rows, <[bool]>::len), rows)?;

        let tags: Option<Vec<Vec<&str>>> = tags
            .as_ref()
            .map(|tags| tags.iter().map(|tags| borrowed(tags)).collect());
        let node = |row: usize| NewNode {
            entity: EntityId(entities[row]),
            timestamp: timestamps[row],
            vector: flat.zip(dim).and_then(|(flat, dim)| {
                present
                    .is_none_or(|present| present[row])
                    .then(|| &flat[row * dim..][..dim])
            }),
            reward: rewards.as_ref().and_then(|rewards| rewards[row]),
            namespace: namespaces.get(row),
            tags: tags.as_ref().map_or(&[], |tags| &tags[row]),
            action: actions.as_ref().and_then(|actions| actions[row].as_deref()),
            recallable: *recallable.get(row),
        };
        if let Some(dim) = dim {
            self.shared.read(py, |index| check_dimension(index, dim))?;
        }
        let nodes: Vec<NewNode<'_>> = (0..rows).map(node).collect();
        let ids = self.shared.insert(py, &nodes, threads)?;
        Ok(node_array(py, ids.into_iter()))
    }

    /// Remove nodes, all or none.
    fn delete(&self, py: Python<'_>, nodes: Vec<Node>) -> PyResult<()> {
        let nodes: Vec<NodeId> = nodes.into_iter().map(|node| node.0).collect();
        self.shared.delete(py, &nodes)
    }

    /// Give back what deleted nodes take.
    fn compact(&self, py: Python<'_>) -> PyResult<()> {
        self.shared.compact(py)
    }

    /// Whether a node exists and was not deleted.
    fn contains(&self, py: Python<'_>, node: Integer) -> PyResult<bool> {
        self.shared.read(py, |index| {
            Ok(u32::try_from(node.0).is_ok_and(|id| index.contains(NodeId(id))))
        })
    }

    /// The columns of a node.
    fn step(&self, py: Python<'_>, node: Node) -> PyResult<StepRow> {
        self.shared.read(py, |index| step_row(index, node.0))
    }

    fn namespace(&self, py: Python<'_>, node: Node) -> PyResult<String> {
        self.shared
            .read(py, |index| Ok(index.namespace(node.0)?.to_owned()))
    }

    fn tags(&self, py: Python<'_>, node: Node) -> PyResult<Vec<String>> {
        self.shared.read(py, |index| {
            Ok(index
                .tags(node.0)?
                .into_iter()
                .map(|tag| tag.to_owned())
                .collect())
        })
    }

    /// The vector as it was inserted.
    fn vector<'py>(
        &self,
        py: Python<'py>,
        node: Node,
    ) -> PyResult<Option<Bound<'py, PyArray1<f32>>>> {
        let row = self
            .shared
            .read(py, |index| Ok(index.vector(node.0)?.map(<[f32]>::to_vec)))?;
        Ok(row.map(|row| PyArray1::from_vec(py, row)))
    }

    fn reward(&self, py: Python<'_>, node: Node) -> PyResult<Option<f32>> {
        self.shared.read(py, |index| index.reward(node.0))
    }

    fn set_reward(&self, py: Python<'_>, node: Node, reward: Option<f32>) -> PyResult<()> {
        self.shared
            .write(py, |index| index.set_reward(node.0, reward).map(drop))
    }

    fn recallable(&self, py: Python<'_>, node: Node) -> PyResult<bool> {
        self.shared.read(py, |index| index.recallable(node.0))
    }

    fn set_recallable(&self, py: Python<'_>, node: Node, recallable: bool) -> PyResult<()> {
        self.shared.write(py, |index| {
            index.set_recallable(node.0, recallable).map(drop)
        })
    }
}
