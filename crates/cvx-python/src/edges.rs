//! Timelines and typed edges.

use cvx_index::{Ancestor, Direction, EdgeKind, NodeId, Reach, TemporalIndex};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::convert::{Entity, Integer, Node};
use crate::error::named;
use crate::index::NativeIndex;
use crate::search::{StepRow, step_row};

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
        namespace: &str,
        entity: Entity,
        since: Option<Integer>,
        until: Option<Integer>,
    ) -> PyResult<Vec<StepRow>> {
        let (since, until) = (since.map(|t| t.0), until.map(|t| t.0));
        self.shared.read(py, |index| {
            let nodes = index.trajectory(namespace, entity.0, since, until)?;
            nodes
                .into_iter()
                .map(|node| step_row(index, node))
                .collect()
        })
    }

    /// Up to `n` steps before a node, in time order.
    fn predecessors(&self, py: Python<'_>, node: Node, n: Integer) -> PyResult<Vec<StepRow>> {
        let n = n.at_least(0, py, "InvalidParameterError", "n")?;
        self.shared.read(py, |index| {
            index
                .predecessors(node.0, n)?
                .into_iter()
                .map(|node| step_row(index, node))
                .collect()
        })
    }

    /// Up to `n` steps after a node, in time order.
    fn successors(&self, py: Python<'_>, node: Node, n: Integer) -> PyResult<Vec<StepRow>> {
        let n = n.at_least(0, py, "InvalidParameterError", "n")?;
        self.shared.read(py, |index| {
            index
                .successors(node.0, n)?
                .into_iter()
                .map(|node| step_row(index, node))
                .collect()
        })
    }

    /// Make a name an edge kind.
    fn declare_edge_kind(&self, py: Python<'_>, name: &str) -> PyResult<()> {
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
    fn add_edge(&self, py: Python<'_>, a: Node, b: Node, kind: &str, weight: f32) -> PyResult<()> {
        self.shared.write(py, |index| {
            let kind = index.edge_kind(kind)?;
            index.add_edge(a.0, b.0, kind, weight).map(drop)
        })
    }

    /// Remove an edge.
    fn remove_edge(&self, py: Python<'_>, a: Node, b: Node, kind: &str) -> PyResult<()> {
        self.shared.write(py, |index| {
            let kind = index.edge_kind(kind)?;
            index.remove_edge(a.0, b.0, kind)
        })
    }

    /// Every typed edge, by start, kind and end.
    fn edges(&self, py: Python<'_>) -> PyResult<Vec<EdgeRow>> {
        self.shared.read(py, |index| {
            let row = |e: cvx_index::Edge| (e.from.0, e.to.0, kind_name(index, e.kind), e.weight);
            Ok(index.edges().map(row).collect())
        })
    }

    /// The edges of a node, temporal ones included.
    fn typed_neighbors(
        &self,
        py: Python<'_>,
        node: Node,
        kind: Option<&str>,
        min_weight: f32,
        direction: &str,
        namespaces: Option<Vec<String>>,
    ) -> PyResult<Vec<EdgeRow>> {
        let direction = direction_named(py, direction)?;
        self.shared.read(py, |index| {
            let kind = kind.map(|name| index.edge_kind(name)).transpose()?;
            let namespaces = namespaces.as_deref().map(borrowed);
            let found = index.typed_neighbors(
                node.0,
                kind,
                min_weight,
                direction,
                namespaces.as_deref(),
            )?;
            let row = |half: cvx_index::HalfEdge| {
                let (from, to) = match direction {
                    Direction::Out => (node.0, half.node),
                    Direction::In => (half.node, node.0),
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
        start: Node,
        kinds: Vec<String>,
        max_hops: Integer,
        max_paths: Integer,
        namespaces: Option<Vec<String>>,
    ) -> PyResult<Vec<PathRow>> {
        let parameter = "InvalidParameterError";
        let max_hops = max_hops.at_least(1, py, parameter, "max_hops")?;
        let max_paths = max_paths.at_least(1, py, parameter, "max_paths")?;
        self.shared.read(py, |index| {
            let kinds = kinds_named(index, &kinds)?;
            let namespaces = namespaces.as_deref().map(borrowed);
            let paths =
                index.traverse(start.0, &kinds, max_hops, max_paths, namespaces.as_deref())?;
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
        node: Node,
        kinds: Vec<String>,
        max_depth: Integer,
        budget: Integer,
        direction: &str,
        namespaces: Option<Vec<String>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let parameter = "InvalidParameterError";
        let max_depth = max_depth.at_least(1, py, parameter, "max_depth")?;
        let budget = budget.at_least(1, py, parameter, "budget")?;
        let direction = direction_named(py, direction)?;
        let ancestry = self.shared.read(py, |index| {
            let namespaces = namespaces.as_deref().map(borrowed);
            let reach = Reach {
                kinds: &kinds_named(index, &kinds)?,
                direction,
                max_depth,
                budget,
                namespaces: namespaces.as_deref(),
            };
            index.ancestors(node.0, &reach)
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

fn direction_named(py: Python<'_>, name: &str) -> PyResult<Direction> {
    match name {
        "out" => Ok(Direction::Out),
        "in" => Ok(Direction::In),
        _ => {
            let message = format!("direction is {name:?}: it is \"out\" or \"in\"");
            Err(named(py, "InvalidParameterError", &message))
        }
    }
}
