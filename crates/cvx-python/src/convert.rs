//! Python values to the values of the index, and back.

use cvx_index::{EntityId, Filter, NodeId, TemporalIndex};
use numpy::{
    Element, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2,
    PyUntypedArrayMethods,
};
use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::PyOverflowError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyString, PyTuple, PyType};

use crate::error::named;

/// One vector or several, C-contiguous float32.
pub enum Vectors<'py> {
    One(PyReadonlyArray1<'py, f32>),
    Many(PyReadonlyArray2<'py, f32>),
}

/// Takes a float32 array as it is, and anything else by way of `cvx.index.arrays.float_rows`.
pub fn vectors<'py>(value: &Bound<'py, PyAny>) -> PyResult<Vectors<'py>> {
    if let Some(found) = as_float_rows(value) {
        return Ok(found);
    }
    static FLOAT_ROWS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = value.py();
    let made = FLOAT_ROWS
        .import(py, "cvx.index.arrays", "float_rows")?
        .call1((value,))?;
    as_float_rows(&made).ok_or_else(|| {
        named(
            py,
            "InternalError",
            "float_rows returned no contiguous float32 array",
        )
    })
}

fn as_float_rows<'py>(value: &Bound<'py, PyAny>) -> Option<Vectors<'py>> {
    if let Ok(array) = value.cast::<PyArray1<f32>>() {
        let array = array.try_readonly().ok()?;
        return array.as_slice().is_ok().then_some(Vectors::One(array));
    }
    let array = value.cast::<PyArray2<f32>>().ok()?.try_readonly().ok()?;
    (array.is_c_contiguous() && array.as_slice().is_ok()).then_some(Vectors::Many(array))
}

/// A single vector, copied: Python may write to its array while the index reads.
pub fn vector(value: &Bound<'_, PyAny>) -> PyResult<Vec<f32>> {
    match vectors(value)? {
        Vectors::One(array) => Ok(array.as_slice()?.to_vec()),
        Vectors::Many(array) => Err(named(
            value.py(),
            "InvalidVectorError",
            &format!(
                "a matrix of {} x {} where one vector is wanted: pass one row",
                array.shape()[0],
                array.shape()[1]
            ),
        )),
    }
}

/// An argument that counts or points: a Python integer of 64 bits, signed.
#[derive(Clone, Copy)]
pub struct Integer(pub i64);

impl<'py> FromPyObject<'_, 'py> for Integer {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        value.extract::<i64>().map(Integer).map_err(|error| {
            if error.is_instance_of::<PyOverflowError>(value.py()) {
                let message = format!("{} does not fit into 64 bits, signed", *value);
                named(value.py(), "InvalidParameterError", &message)
            } else {
                error
            }
        })
    }
}

impl Integer {
    /// As a count; a negative one is `class`, which names it `what`.
    pub fn at_least(self, least: i64, py: Python<'_>, class: &str, what: &str) -> PyResult<usize> {
        if self.0 < least {
            let message = format!(
                "{what} is {}, which is below {least}: pass {least} or more",
                self.0
            );
            return Err(named(py, class, &message));
        }
        usize::try_from(self.0).map_err(|_| named(py, class, &format!("{what} is too large")))
    }
}

/// A node id; one that cannot be an id is unknown.
#[derive(Clone, Copy)]
pub struct Node(pub NodeId);

impl<'py> FromPyObject<'_, 'py> for Node {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let Integer(id) = value.extract()?;
        match u32::try_from(id) {
            Ok(id) => Ok(Node(NodeId(id))),
            Err(_) => Err(named(
                value.py(),
                "UnknownNodeError",
                &format!("there is no node {id}: ids are those that insert returned"),
            )),
        }
    }
}

/// An entity id, from 0 up to 64 bits.
#[derive(Clone, Copy)]
pub struct Entity(pub EntityId);

impl<'py> FromPyObject<'_, 'py> for Entity {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        unsigned(&value, "InvalidEntityError", "entity").map(|id| Entity(EntityId(id)))
    }
}

/// An integer from 0 up to 64 bits; one outside is `class`, which names it `what`.
pub fn unsigned(value: &Bound<'_, PyAny>, class: &str, what: &str) -> PyResult<u64> {
    value.extract::<u64>().map_err(|error| {
        if error.is_instance_of::<PyOverflowError>(value.py()) {
            let message = format!("{what} {value} is outside 0..2**64: count from 0");
            named(value.py(), class, &message)
        } else {
            error
        }
    })
}

/// Node ids for numpy.
pub fn node_array<'py>(
    py: Python<'py>,
    nodes: impl ExactSizeIterator<Item = NodeId>,
) -> Bound<'py, PyArray1<i64>> {
    PyArray1::from_iter(py, nodes.map(|node| i64::from(node.0)))
}

/// A filter by its attributes; `None` is the default one.
pub fn filter(value: Option<&Bound<'_, PyAny>>) -> PyResult<Filter> {
    let Some(value) = value else {
        return Ok(Filter::default());
    };
    let items = filter_items(value)?;
    // Interned: the names are made once, not at every call.
    macro_rules! get {
        ($place:literal, $name:literal) => {
            match items {
                Some(items) => items.get_item($place)?,
                None => attribute(value, $name, intern!(value.py(), $name))?,
            }
        };
    }
    Ok(Filter {
        since: extracted("since", &get!(0, "since"))?,
        until: extracted("until", &get!(1, "until"))?,
        entities: ids("entities", &get!(2, "entities"))?
            .map(|ids: Vec<u64>| ids.into_iter().map(EntityId).collect()),
        namespaces: extracted("namespaces", &get!(3, "namespaces"))?,
        min_reward: extracted("min_reward", &get!(4, "min_reward"))?,
        max_reward: extracted("max_reward", &get!(5, "max_reward"))?,
        tags: extracted("tags", &get!(6, "tags"))?,
        // What cannot be a node id accepts no node, as an id that was never given.
        ids: ids("ids", &get!(7, "ids"))?.map(|ids: Vec<i64>| {
            ids.into_iter()
                .filter_map(|id| u32::try_from(id).ok().map(NodeId))
                .collect()
        }),
        recallable: extracted("recallable", &get!(8, "recallable"))?,
    })
}

/// A `cvx.Filter` as the tuple that it is: its attributes would be looked up one by one.
fn filter_items<'a, 'py>(
    value: &'a Bound<'py, PyAny>,
) -> PyResult<Option<&'a Bound<'py, PyTuple>>> {
    static FILTER: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let class = FILTER.import(value.py(), "cvx.types", "Filter")?;
    match value.get_type().is(class) {
        true => Ok(Some(value.cast()?)),
        false => Ok(None),
    }
}

/// Ids of a filter, without a detour over Python integers where they are an array.
fn ids<'py, T>(name: &str, value: &Bound<'py, PyAny>) -> PyResult<Option<Vec<T>>>
where
    T: Element + Copy + FromPyObjectOwned<'py>,
{
    if value.is_none() {
        return Ok(None);
    }
    if let Ok(array) = value.cast::<PyArray1<T>>() {
        return Ok(Some(array.try_readonly()?.as_array().to_vec()));
    }
    if value.hasattr("tolist")? {
        // Another type of integer: by value, so that a negative one is noticed.
        return extracted(name, &value.call_method0("tolist")?);
    }
    extracted(name, value)
}

fn extracted<'py, T>(name: &str, value: &Bound<'py, PyAny>) -> PyResult<Option<T>>
where
    T: FromPyObjectOwned<'py>,
{
    if value.is_none() {
        return Ok(None);
    }
    value.extract::<T>().map(Some).map_err(|error| {
        let error: PyErr = error.into();
        let message = format!(
            "the filter's {name} is {value}, which it cannot be ({}): see cvx.Filter for what it may be",
            error.value(value.py()),
        );
        named(value.py(), "InvalidFilterError", &message)
    })
}

fn attribute<'py>(
    filter: &Bound<'py, PyAny>,
    name: &str,
    interned: &Bound<'py, PyString>,
) -> PyResult<Bound<'py, PyAny>> {
    filter.getattr(interned).map_err(|_| {
        let message = format!("{filter} is no filter, it has no {name}: pass a cvx.Filter");
        named(filter.py(), "InvalidFilterError", &message)
    })
}

/// Refuses a matrix of another width, which an empty batch would not notice by itself.
pub fn check_dimension(index: &TemporalIndex, found: usize) -> cvx_index::Result<()> {
    let expected = index.params().dim;
    if found == expected {
        Ok(())
    } else {
        Err(cvx_index::Error::Dimension { found, expected })
    }
}

/// How many threads: as asked, or as many as the machine offers.
pub fn threads(py: Python<'_>, threads: Option<Integer>) -> PyResult<usize> {
    match threads {
        Some(threads) => threads.at_least(1, py, "InvalidParameterError", "threads"),
        None => Ok(std::thread::available_parallelism().map_or(1, usize::from)),
    }
}
