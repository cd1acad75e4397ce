//! The methods for trajectories and typed edges.

use cvx_index::{Ancestor, Direction, EdgeKind, NodeId, Reach, TemporalIndex};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::argument::{
    self, at_least, integer, one_or_more_texts, optional, real, text, texts, wrong,
};
use crate::index::NativeIndex;
use crate::search::{StepRow, step_rows};

/// (from, to, kind, weight)
type EdgeRow = (u32, u32, String, f32);
/// (nodes, kinds, weights, strength)
type PathRow = (Vec<u32>, Vec<String>, Vec<f32>, f32);

pub fn kind_name(index: &TemporalIndex, kind: EdgeKind) -> String {
    // Kinds come out of the index only after they were declared in it.
    index
        .edge_kind_name(kind)
        .unwrap_or("undeclared")
        .to_owned()
}

fn kinds_named(index: &TemporalIndex, names: &[String]) -> cvx_index::Result<Vec<EdgeKind>> {
    names.iter().map(|name| index.edge_kind(name)).collect()
}

fn borrowed(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
}

#[pymethods]
impl NativeIndex {
    /// The steps of one entity in time order.
    fn trajectory(
        &self,
        py: Python<'_>,
        namespace: &Bound<'_, PyAny>,
        entity_id: &Bound<'_, PyAny>,
        since: &Bound<'_, PyAny>,
        until: &Bound<'_, PyAny>,
    ) -> PyResult<Vec<StepRow>> {
        let (namespace, entity) = (text("namespace", namespace)?, argument::entity(entity_id)?);
        let time = |name| move |value: &Bound<'_, PyAny>| integer(name, value);
        let since = optional(since, time("since"))?;
        let until = optional(until, time("until"))?;
        self.shared.read(py, |index| {
            step_rows(index, index.trajectory(namespace, entity, since, until)?)
        })
    }

    /// Up to `n` steps before a node, in time order.
    fn predecessors(
        &self,
        py: Python<'_>,
        node: &Bound<'_, PyAny>,
        n: &Bound<'_, PyAny>,
    ) -> PyResult<Vec<StepRow>> {
        let node = argument::node("node", node)?;
        let n = at_least(0, "n", n)?;
        self.shared
            .read(py, |index| step_rows(index, index.predecessors(node, n)?))
    }

    /// Up to `n` steps after a node, in time order.
    fn successors(
        &self,
        py: Python<'_>,
        node: &Bound<'_, PyAny>,
        n: &Bound<'_, PyAny>,
    ) -> PyResult<Vec<StepRow>> {
        let node = argument::node("node", node)?;
        let n = at_least(0, "n", n)?;
        self.shared
            .read(py, |index| step_rows(index, index.successors(node, n)?))
    }

    /// Make a name an edge kind.
    fn declare_edge_kind(&self, py: Python<'_>, name: &Bound<'_, PyAny>) -> PyResult<()> {
        let name = text("name", name)?;
        self.shared
            .write(py, |index| index.declare_edge_kind(name).map(drop))
    }

    /// Every name that is an edge kind.
    fn edge_kinds(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.shared.read(py, |index| {
            Ok(index.edge_kinds().map(str::to_owned).collect())
        })
    }

    /// Add an edge, or give it a new weight.
    fn add_edge(
        &self,
        py: Python<'_>,
        a: &Bound<'_, PyAny>,
        b: &Bound<'_, PyAny>,
        edge_type: &Bound<'_, PyAny>,
        weight: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let (a, b, kind) = (
            argument::node("a", a)?,
            argument::node("b", b)?,
            text("edge_type", edge_type)?,
        );
        let weight = real("weight", weight)?;
        self.shared.write(py, |index| {
            let kind = index.edge_kind(kind)?;
            index.add_edge(a, b, kind, weight).map(drop)
        })
    }

    /// Remove an edge.
    fn remove_edge(
        &self,
        py: Python<'_>,
        a: &Bound<'_, PyAny>,
        b: &Bound<'_, PyAny>,
        edge_type: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let (a, b, kind) = (
            argument::node("a", a)?,
            argument::node("b", b)?,
            text("edge_type", edge_type)?,
        );
        self.shared.write(py, |index| {
            let kind = index.edge_kind(kind)?;
            index.remove_edge(a, b, kind)
        })
    }

    /// Every typed edge, by start, kind and end.
    fn edges(&self, py: Python<'_>) -> PyResult<Vec<EdgeRow>> {
        self.shared.read_long(py, |index| {
            let row = |e: cvx_index::Edge| (e.from.0, e.to.0, kind_name(index, e.kind), e.weight);
            Ok(index.edges().map(row).collect())
        })
    }

    /// The edges of a node, temporal ones included.
    fn typed_neighbors(
        &self,
        py: Python<'_>,
        node: &Bound<'_, PyAny>,
        edge_type: &Bound<'_, PyAny>,
        min_weight: &Bound<'_, PyAny>,
        direction: &Bound<'_, PyAny>,
        namespaces: &Bound<'_, PyAny>,
    ) -> PyResult<Vec<EdgeRow>> {
        let node = argument::node("node", node)?;
        let kind = optional(edge_type, |kind| text("edge_type", kind))?;
        let least = real("min_weight", min_weight)?;
        if least.is_nan() {
            return Err(wrong("min_weight", min_weight, "a number"));
        }
        let direction = direction_named(direction)?;
        let namespaces = optional(namespaces, |names| texts("namespaces", names))?;
        self.shared.read(py, |index| {
            let kind = kind.map(|name| index.edge_kind(name)).transpose()?;
            let namespaces = namespaces.as_deref().map(borrowed);
            let found =
                index.typed_neighbors(node, kind, least, direction, namespaces.as_deref())?;
            let row = |half: cvx_index::HalfEdge| {
                let (from, to) = match direction {
                    Direction::Out => (node, half.node),
                    Direction::In => (half.node, node),
                };
                (from.0, to.0, kind_name(index, half.kind), half.weight)
            };
            Ok(found.into_iter().map(row).collect())
        })
    }

    /// Simple paths, strongest first.
    fn traverse(
        &self,
        py: Python<'_>,
        start: &Bound<'_, PyAny>,
        edge_types: &Bound<'_, PyAny>,
        max_hops: &Bound<'_, PyAny>,
        max_paths: &Bound<'_, PyAny>,
        namespaces: &Bound<'_, PyAny>,
    ) -> PyResult<Vec<PathRow>> {
        let start = argument::node("start", start)?;
        let kinds = one_or_more_texts("edge_types", edge_types)?;
        let max_hops = at_least(1, "max_hops", max_hops)?;
        let max_paths = at_least(1, "max_paths", max_paths)?;
        let namespaces = optional(namespaces, |names| texts("namespaces", names))?;
        self.shared.read(py, |index| {
            let kinds = kinds_named(index, &kinds)?;
            let namespaces = namespaces.as_deref().map(borrowed);
            let paths =
                index.traverse(start, &kinds, max_hops, max_paths, namespaces.as_deref())?;
            let row = |path: cvx_index::Path| {
                let nodes = path.nodes.iter().map(|NodeId(id)| *id).collect();
                let kinds = path
                    .kinds
                    .iter()
                    .map(|kind| kind_name(index, *kind))
                    .collect();
                (nodes, kinds, path.weights, path.strength)
            };
            Ok(paths.into_iter().map(row).collect())
        })
    }

    /// What leads to a node, or what it leads to, as columns.
    #[allow(clippy::too_many_arguments)] // The arguments of the Python method.
    fn ancestors<'py>(
        &self,
        py: Python<'py>,
        node: &Bound<'_, PyAny>,
        edge_types: &Bound<'_, PyAny>,
        max_depth: &Bound<'_, PyAny>,
        budget: &Bound<'_, PyAny>,
        direction: &Bound<'_, PyAny>,
        namespaces: &Bound<'_, PyAny>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let node = argument::node("node", node)?;
        let kinds = one_or_more_texts("edge_types", edge_types)?;
        let max_depth = at_least(1, "max_depth", max_depth)?;
        let budget = at_least(1, "budget", budget)?;
        let direction = direction_named(direction)?;
        let namespaces = optional(namespaces, |names| texts("namespaces", names))?;
        let ancestry = self.shared.read(py, |index| {
            let namespaces = namespaces.as_deref().map(borrowed);
            let reach = Reach {
                kinds: &kinds_named(index, &kinds)?,
                direction,
                max_depth,
                budget,
                namespaces: namespaces.as_deref(),
            };
            index.ancestors(node, &reach)
        })?;
        let found = &ancestry.found;
        let integers = |of: fn(&Ancestor) -> i64| PyArray1::from_iter(py, found.iter().map(of));
        let floats = |of: fn(&Ancestor) -> f32| PyArray1::from_iter(py, found.iter().map(of));
        let columns = PyDict::new(py);
        columns.set_item("nodes", integers(|a| i64::from(a.node.0)))?;
        columns.set_item("depths", integers(|a| a.depth as i64))?;
        columns.set_item("weights", floats(|a| a.weight))?;
        columns.set_item("toward", integers(|a| i64::from(a.toward.0)))?;
        columns.set_item("kinds", integers(|a| a.kind.place() as i64))?;
        columns.set_item("edge_weights", floats(|a| a.edge_weight))?;
        columns.set_item("truncated", ancestry.truncated)?;
        Ok(columns)
    }
}

fn direction_named(value: &Bound<'_, PyAny>) -> PyResult<Direction> {
    match text("direction", value)? {
        "out" => Ok(Direction::Out),
        "in" => Ok(Direction::In),
        _ => {
            let wanted = "\"out\" or \"in\"";
            Err(wrong("direction", value, wanted))
        }
    }
}
