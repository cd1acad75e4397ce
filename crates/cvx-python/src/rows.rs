//! Nodes going in, their columns coming out.

use std::fmt::Arguments;

use cvx_index::{EntityId, NewNode, NodeId};
use numpy::{PyArray1, PyReadonlyArray1, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::argument::{
    self, ENTITY, INPUT, PARAMETER, converted, each, flag, integer, labels, optional, real, text,
    texts, unsigned,
};
use crate::convert::{self, Vectors, check_dimension, node_array};
use crate::error::named;
use crate::index::NativeIndex;
use crate::search::{StepRow, step_row};

/// Numbers copied at a time, which takes about a millisecond.
const PIECE: usize = 1 << 20;

fn borrowed(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
}

/// A column of a batch: one value a row, or one for all rows.
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

    fn len(&self) -> Option<usize> {
        match self {
            Column::One(_) => None,
            Column::Each(values) => Some(values.len()),
        }
    }
}

fn namespaces_of(value: &Bound<'_, PyAny>) -> PyResult<Column<String>> {
    if value.is_instance_of::<PyString>() {
        return Ok(Column::One(text("namespaces", value)?.to_owned()));
    }
    texts("namespaces", value).map(Column::Each)
}

fn recallable_of(value: &Bound<'_, PyAny>) -> PyResult<Column<bool>> {
    if let Ok(one) = value.extract() {
        return Ok(Column::One(one));
    }
    let wanted = "True, False or a list of them";
    each("recallable", value, wanted, PARAMETER, |name, one| {
        flag(name, one)
    })
    .map(Column::Each)
}

/// A column that may be left out.
fn column<'py, T>(
    name: &str,
    value: &Bound<'py, PyAny>,
    wanted: &str,
    convert: impl Fn(Arguments<'_>, &Bound<'py, PyAny>) -> PyResult<T>,
) -> PyResult<Option<Vec<T>>> {
    optional(value, |value| each(name, value, wanted, PARAMETER, convert))
}

fn same_length(py: Python<'_>, name: &str, found: usize, rows: usize) -> PyResult<()> {
    if found == rows {
        return Ok(());
    }
    let message = format!("{name} has {found} rows, entity_ids {rows}: pass one for each row");
    Err(named(py, "InvalidInputError", &message))
}

/// The rows of a batch, copied before any is checked: Python may write to its array while the index
/// reads. Other threads of Python have their turn between the pieces.
fn copied(py: Python<'_>, rows: &[f32]) -> Vec<f32> {
    let mut copy = Vec::with_capacity(rows.len());
    for piece in rows.chunks(PIECE) {
        copy.extend_from_slice(piece);
        py.detach(|| ());
    }
    copy
}

#[pymethods]
impl NativeIndex {
    /// Add a node.
    #[allow(clippy::too_many_arguments)] // The columns of a node.
    fn insert(
        &self,
        py: Python<'_>,
        entity_id: &Bound<'_, PyAny>,
        timestamp: &Bound<'_, PyAny>,
        vector: &Bound<'_, PyAny>,
        reward: &Bound<'_, PyAny>,
        namespace: &Bound<'_, PyAny>,
        tags: &Bound<'_, PyAny>,
        action: &Bound<'_, PyAny>,
        recallable: &Bound<'_, PyAny>,
    ) -> PyResult<u32> {
        let tags = optional(tags, |tags| labels("tags", tags))?.unwrap_or_default();
        let vector = optional(vector, convert::vector)?;
        let node = NewNode {
            entity: argument::entity(entity_id)?,
            timestamp: integer("timestamp", timestamp, PARAMETER)?,
            vector: vector.as_deref(),
            reward: optional(reward, |reward| real("reward", reward))?,
            namespace: text("namespace", namespace)?,
            tags: &borrowed(&tags),
            action: optional(action, |action| text("action", action))?,
            recallable: flag("recallable", recallable)?,
        };
        let ids = self.shared.insert(py, &[node], 1)?;
        Ok(ids[0].0)
    }

    /// Add nodes, all or none. `present` tells the rows of `vectors` that are vectors.
    #[allow(clippy::too_many_arguments)] // The columns of a batch.
    fn bulk_insert<'py>(
        &self,
        py: Python<'py>,
        entity_ids: &Bound<'py, PyAny>,
        timestamps: &Bound<'py, PyAny>,
        vectors: &Bound<'py, PyAny>,
        present: &Bound<'py, PyAny>,
        rewards: &Bound<'py, PyAny>,
        namespaces: &Bound<'py, PyAny>,
        tags: &Bound<'py, PyAny>,
        actions: &Bound<'py, PyAny>,
        recallable: &Bound<'py, PyAny>,
        threads: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let entities = convert::column("entity_ids", entity_ids, ENTITY, |name, one| {
            unsigned(name, one, ENTITY)
        })?;
        let timestamps = convert::column("timestamps", timestamps, INPUT, |name, one| {
            integer(name, one, INPUT)
        })?;
        let present: Option<PyReadonlyArray1<'_, bool>> = optional(present, |present| {
            converted("present", present, "a row of bool", PARAMETER)
        })?;
        let threads = convert::threads(threads)?;
        let namespaces = namespaces_of(namespaces)?;
        let recallable = recallable_of(recallable)?;
        let rewards = column(
            "rewards",
            rewards,
            "a list of numbers and None",
            |name, one| optional(one, |reward| real(name, reward)),
        )?;
        let actions = column("actions", actions, "a list of str and None", |name, one| {
            optional(one, |action| Ok(text(name, action)?.to_owned()))
        })?;
        let tags = column("tags", tags, "a list of lists of str", |name, one| {
            labels(name, one)
        })?;
        let rows = entities.len();
        same_length(py, "timestamps", timestamps.len(), rows)?;
        let lengths = [
            ("namespaces", namespaces.len()),
            ("recallable", recallable.len()),
            ("rewards", rewards.as_ref().map(Vec::len)),
            ("tags", tags.as_ref().map(Vec::len)),
            ("actions", actions.as_ref().map(Vec::len)),
        ];
        for (name, length) in lengths {
            same_length(py, name, length.unwrap_or(rows), rows)?;
        }
        let matrix = match optional(vectors, convert::vectors)? {
            Some(Vectors::Many(matrix)) => Some(matrix),
            Some(Vectors::One(_)) => {
                let message = "vectors is one vector: pass a matrix of shape (n, dim)";
                return Err(named(py, "InvalidVectorError", message));
            }
            None => None,
        };
        let present = present
            .as_ref()
            .map(|present| present.as_slice())
            .transpose()?;
        same_length(py, "vectors", present.map_or(rows, <[bool]>::len), rows)?;
        let vectors = match &matrix {
            Some(matrix) => {
                let &[found, dim] = matrix.shape() else {
                    unreachable!("a matrix has two sides")
                };
                same_length(py, "vectors", found, rows)?;
                self.shared.read(py, |index| check_dimension(index, dim))?;
                Some((copied(py, matrix.as_slice()?), dim))
            }
            None => None,
        };

        let tags: Option<Vec<Vec<&str>>> = tags
            .as_ref()
            .map(|tags| tags.iter().map(|tags| borrowed(tags)).collect());
        let node = |row: usize| NewNode {
            entity: EntityId(entities[row]),
            timestamp: timestamps[row],
            vector: vectors.as_ref().and_then(|(flat, dim)| {
                present
                    .is_none_or(|present| present[row])
                    .then(|| &flat[row * dim..][..*dim])
            }),
            reward: rewards.as_ref().and_then(|rewards| rewards[row]),
            namespace: namespaces.get(row),
            tags: tags.as_ref().map_or(&[], |tags| &tags[row]),
            action: actions.as_ref().and_then(|actions| actions[row].as_deref()),
            recallable: *recallable.get(row),
        };
        let nodes: Vec<NewNode<'_>> = (0..rows).map(node).collect();
        let ids = self.shared.insert(py, &nodes, threads)?;
        Ok(node_array(py, ids.into_iter()))
    }

    /// Remove nodes, all or none.
    fn delete(&self, py: Python<'_>, nodes: &Bound<'_, PyAny>) -> PyResult<()> {
        let nodes = argument::nodes("nodes", nodes)?;
        self.shared.delete(py, &nodes)
    }

    /// Pass over ids, which are then never given.
    fn skip_ids(&self, py: Python<'_>, count: &Bound<'_, PyAny>) -> PyResult<()> {
        let count = argument::at_least(0, "count", count, argument::PARAMETER)?;
        self.shared.write(py, |index| index.skip_ids(count))
    }

    /// Give back what deleted nodes take.
    fn compact(&self, py: Python<'_>) -> PyResult<()> {
        self.shared.compact(py)
    }

    /// Whether a node exists and was not deleted.
    fn contains(&self, py: Python<'_>, node: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Ok(id) = node.extract() else {
            return Ok(false);
        };
        self.shared.read(py, |index| Ok(index.contains(NodeId(id))))
    }

    /// The columns of a node.
    fn step(&self, py: Python<'_>, node: &Bound<'_, PyAny>) -> PyResult<StepRow> {
        let node = argument::node("node", node)?;
        self.shared.read(py, |index| step_row(index, node))
    }

    fn namespace(&self, py: Python<'_>, node: &Bound<'_, PyAny>) -> PyResult<String> {
        let node = argument::node("node", node)?;
        self.shared
            .read(py, |index| Ok(index.namespace(node)?.to_owned()))
    }

    fn tags(&self, py: Python<'_>, node: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
        let node = argument::node("node", node)?;
        self.shared.read(py, |index| {
            Ok(index
                .tags(node)?
                .into_iter()
                .map(|tag| tag.to_owned())
                .collect())
        })
    }

    /// The vector as it was inserted.
    fn vector<'py>(
        &self,
        py: Python<'py>,
        node: &Bound<'_, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyArray1<f32>>>> {
        let node = argument::node("node", node)?;
        let row = self
            .shared
            .read(py, |index| Ok(index.vector(node)?.map(<[f32]>::to_vec)))?;
        Ok(row.map(|row| PyArray1::from_vec(py, row)))
    }

    fn reward(&self, py: Python<'_>, node: &Bound<'_, PyAny>) -> PyResult<Option<f32>> {
        let node = argument::node("node", node)?;
        self.shared.read(py, |index| index.reward(node))
    }

    fn set_reward(
        &self,
        py: Python<'_>,
        node: &Bound<'_, PyAny>,
        reward: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let node = argument::node("node", node)?;
        let reward = optional(reward, |reward| real("reward", reward))?;
        self.shared
            .write(py, |index| index.set_reward(node, reward).map(drop))
    }

    fn recallable(&self, py: Python<'_>, node: &Bound<'_, PyAny>) -> PyResult<bool> {
        let node = argument::node("node", node)?;
        self.shared.read(py, |index| index.recallable(node))
    }

    fn set_recallable(
        &self,
        py: Python<'_>,
        node: &Bound<'_, PyAny>,
        recallable: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let node = argument::node("node", node)?;
        let recallable = flag("recallable", recallable)?;
        self.shared
            .write(py, |index| index.set_recallable(node, recallable).map(drop))
    }
}
