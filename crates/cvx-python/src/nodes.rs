//! The methods that insert, delete, change and read nodes.

use std::collections::HashMap;
use std::fmt::{Arguments, Display};

use cvx_index::{EntityId, NewNode, NodeId};
use numpy::{PyArray1, PyReadonlyArray1, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::argument::{
    self, converted, each, flag, integer, labels, optional, real, text, texts, unsigned,
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
    each("recallable", value, wanted, |name, one| flag(name, one)).map(Column::Each)
}

/// A column that may be left out.
fn column<'py, T>(
    name: &str,
    value: &Bound<'py, PyAny>,
    wanted: &str,
    convert: impl Fn(Arguments<'_>, &Bound<'py, PyAny>) -> PyResult<T>,
) -> PyResult<Option<Vec<T>>> {
    optional(value, |value| each(name, value, wanted, convert))
}

/// The length of all columns that there are, which is that of the first.
fn same_lengths(py: Python<'_>, columns: &[(&str, Option<usize>)]) -> PyResult<usize> {
    let mut given = columns
        .iter()
        .filter_map(|&(name, length)| Some((name, length?)));
    let (first, rows) = given.next().unwrap_or(("entity_ids", 0));
    match given.find(|&(_, length)| length != rows) {
        None => Ok(rows),
        Some((name, found)) => {
            let message = format!("{name} has {found} rows, {first} {rows}: pass one for each row");
            Err(named(py, "InvalidInputError", &message))
        }
    }
}

/// What the tag of a family of goals begins with: that of `cvx.types.task_tag`.
const TASK: &str = "task:";

/// Adds the tag of a family of goals, which is to be the only one among the tags.
fn add_task(
    py: Python<'_>,
    name: impl Display,
    tags: &mut Vec<String>,
    task: &str,
) -> PyResult<()> {
    let tag = format!("{TASK}{task}");
    if tags
        .iter()
        .any(|other| other.starts_with(TASK) && *other != tag)
    {
        let message = format!(
            "{name} is {task:?}, but the tags {tags:?} name another family: give one of them"
        );
        return Err(named(py, "InvalidInputError", &message));
    }
    if let Err(place) = tags.binary_search(&tag) {
        tags.insert(place, tag);
    }
    Ok(())
}

/// Whose the nodes are that were given no entity.
const NOBODY: EntityId = EntityId(0);

/// When a node happened that was given no time: one after the latest of its timeline.
fn after(latest: Option<i64>) -> i64 {
    latest.map_or(0, |latest| latest.saturating_add(1))
}

impl NativeIndex {
    /// The times of nodes that were given none.
    fn following(
        &self,
        py: Python<'_>,
        entities: &[EntityId],
        namespaces: &Column<String>,
    ) -> PyResult<Vec<i64>> {
        self.shared.read(py, |index| {
            let mut next = HashMap::new();
            let times = entities.iter().enumerate().map(|(row, &entity)| {
                let namespace = namespaces.get(row).as_str();
                let next = next
                    .entry((namespace, entity))
                    .or_insert_with(|| after(index.latest(namespace, entity)));
                let time = *next;
                *next = time.saturating_add(1);
                time
            });
            Ok(times.collect())
        })
    }
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
        task_type: &Bound<'_, PyAny>,
        action: &Bound<'_, PyAny>,
        recallable: &Bound<'_, PyAny>,
    ) -> PyResult<u32> {
        let mut tags = optional(tags, |tags| labels("tags", tags))?.unwrap_or_default();
        if let Some(task) = optional(task_type, |task| text("task_type", task))? {
            add_task(py, "task_type", &mut tags, task)?;
        }
        let vector = optional(vector, convert::vector)?;
        let entity = optional(entity_id, argument::entity)?.unwrap_or(NOBODY);
        let namespace = text("namespace", namespace)?;
        let timestamp = match optional(timestamp, |time| integer("timestamp", time))? {
            Some(timestamp) => timestamp,
            None => self
                .shared
                .read(py, |index| Ok(after(index.latest(namespace, entity))))?,
        };
        let node = NewNode {
            entity,
            timestamp,
            vector: vector.as_deref(),
            reward: optional(reward, |reward| real("reward", reward))?,
            namespace,
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
        task_types: &Bound<'py, PyAny>,
        actions: &Bound<'py, PyAny>,
        recallable: &Bound<'py, PyAny>,
        threads: &Bound<'py, PyAny>,
        link: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let link = flag("link", link)?;
        let entities = optional(entity_ids, |column| {
            convert::column("entity_ids", column, |name, one| unsigned(name, one))
        })?;
        let timestamps = optional(timestamps, |column| {
            convert::column("timestamps", column, |name, one| integer(name, one))
        })?;
        let present: Option<PyReadonlyArray1<'_, bool>> = optional(present, |present| {
            converted("present", present, "a row of bool")
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
        let tasks = column(
            "task_types",
            task_types,
            "a list of str and None",
            |name, one| optional(one, |task| Ok(text(name, task)?.to_owned())),
        )?;
        let mut tags = column("tags", tags, "a list of lists of str", |name, one| {
            labels(name, one)
        })?;
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
        // The first of these that was given says how many rows there are.
        let lengths = [
            ("entity_ids", entities.as_ref().map(Vec::len)),
            ("timestamps", timestamps.as_ref().map(Vec::len)),
            ("vectors", present.map(<[bool]>::len)),
            ("vectors", matrix.as_ref().map(|matrix| matrix.shape()[0])),
            ("namespaces", namespaces.len()),
            ("recallable", recallable.len()),
            ("rewards", rewards.as_ref().map(Vec::len)),
            ("tags", tags.as_ref().map(Vec::len)),
            ("task_types", tasks.as_ref().map(Vec::len)),
            ("actions", actions.as_ref().map(Vec::len)),
        ];
        let rows = same_lengths(py, &lengths)?;
        if let Some(tasks) = tasks {
            let tags = tags.get_or_insert_with(|| vec![Vec::new(); rows]);
            for (row, (tags, task)) in tags.iter_mut().zip(tasks).enumerate() {
                if let Some(task) = task {
                    add_task(py, format_args!("task_types[{row}]"), tags, &task)?;
                }
            }
        }
        let vectors = match &matrix {
            Some(matrix) => {
                let dim = matrix.shape()[1];
                self.shared.read(py, |index| check_dimension(index, dim))?;
                Some((copied(py, matrix.as_slice()?), dim))
            }
            None => None,
        };

        let tags: Option<Vec<Vec<&str>>> = tags
            .as_ref()
            .map(|tags| tags.iter().map(|tags| borrowed(tags)).collect());
        let entities: Vec<EntityId> = match entities {
            Some(entities) => entities.into_iter().map(EntityId).collect(),
            None => vec![NOBODY; rows],
        };
        let timestamps = match timestamps {
            Some(timestamps) => timestamps,
            None => self.following(py, &entities, &namespaces)?,
        };
        let node = |row: usize| NewNode {
            entity: entities[row],
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
        let ids = match link {
            true => self.shared.insert(py, &nodes, threads)?,
            false => self.shared.insert_unlinked(py, &nodes)?,
        };
        Ok(node_array(py, ids.into_iter()))
    }

    /// Make room for so many more nodes.
    fn reserve(&self, py: Python<'_>, nodes: &Bound<'_, PyAny>) -> PyResult<()> {
        let nodes = argument::at_least(0, "nodes", nodes)?;
        self.shared.reserve(py, nodes)
    }

    /// Link all nodes anew, at once.
    fn relink(&self, py: Python<'_>, threads: &Bound<'_, PyAny>) -> PyResult<()> {
        self.shared.relink(py, convert::threads(threads)?)
    }

    /// Remove nodes, all or none.
    fn delete(&self, py: Python<'_>, nodes: &Bound<'_, PyAny>) -> PyResult<()> {
        let nodes = argument::nodes("nodes", nodes)?;
        self.shared.delete(py, &nodes)
    }

    /// Pass over ids, which are then never given.
    fn skip_ids(&self, py: Python<'_>, count: &Bound<'_, PyAny>) -> PyResult<()> {
        let count = argument::at_least(0, "count", count)?;
        self.shared.write(py, |index| index.skip_ids(count))
    }

    /// Give back what deleted nodes take.
    fn compact(&self, py: Python<'_>) -> PyResult<()> {
        self.shared.compact(py)
    }

    /// Every node, those without a vector among them.
    fn node_ids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let nodes: Vec<NodeId> = self
            .shared
            .read_long(py, |index| Ok(index.node_ids().collect()))?;
        Ok(node_array(py, nodes.into_iter()))
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

    /// Give a node other labels.
    fn set_tags(
        &self,
        py: Python<'_>,
        node: &Bound<'_, PyAny>,
        tags: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let node = argument::node("node", node)?;
        let tags = labels("tags", tags)?;
        let tags = borrowed(&tags);
        self.shared.write(py, |index| index.set_tags(node, &tags))
    }

    /// Give a node another vector, or take it away.
    fn set_vector(
        &self,
        py: Python<'_>,
        node: &Bound<'_, PyAny>,
        vector: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let node = argument::node("node", node)?;
        let vector = optional(vector, convert::vector)?;
        self.shared.set_vector(py, node, vector.as_deref())
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
