//! Converts Python values to the index's and back: vectors, filters, ids.

use std::borrow::Cow;
use std::fmt::Arguments;

use cvx_index::{EntityId, Filter, MOST_THREADS, NodeId, TemporalIndex};
use numpy::{
    Element, PyArray1, PyArray2, PyArrayDescrMethods, PyArrayMethods, PyReadonlyArray1,
    PyReadonlyArray2, PyUntypedArray, PyUntypedArrayMethods,
};
use pyo3::conversion::FromPyObjectOwned;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyList, PyType};

use crate::argument::{at_least, converted, each, optional, refused, wrong};
use crate::error::named;

/// One vector or several, C-contiguous float32.
pub enum Vectors<'py> {
    One(PyReadonlyArray1<'py, f32>),
    Many(PyReadonlyArray2<'py, f32>),
}

/// Takes a float32 array as it is, and anything else by way of `cvx.index.conversion.float_rows`.
pub fn vectors<'py>(value: &Bound<'py, PyAny>) -> PyResult<Vectors<'py>> {
    if let Some(found) = as_float_rows(value) {
        return Ok(found);
    }
    static FLOAT_ROWS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = value.py();
    let made = FLOAT_ROWS
        .import(py, "cvx.index.conversion", "float_rows")?
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

/// Node ids for numpy.
pub fn node_array<'py>(
    py: Python<'py>,
    nodes: impl ExactSizeIterator<Item = NodeId>,
) -> Bound<'py, PyArray1<i64>> {
    PyArray1::from_iter(py, nodes.map(|node| i64::from(node.0)))
}

/// What a search may return: one filter, or any of several.
pub enum Where {
    One(Filter),
    Any(Vec<Filter>),
}

impl Where {
    /// The one filter that it is on an index as it stands.
    pub fn on(&self, index: &TemporalIndex) -> cvx_index::Result<Cow<'_, Filter>> {
        Ok(match self {
            Where::One(filter) => Cow::Borrowed(filter),
            Where::Any(filters) => Cow::Owned(index.any_of(filters)?),
        })
    }
}

/// A `cvx.Filter` or a list of them; `None` is the default one.
pub fn filter(value: &Bound<'_, PyAny>) -> PyResult<Where> {
    if value.is_none() {
        return Ok(Where::One(Filter::default()));
    }
    match value.cast::<PyList>() {
        Ok(several) => Ok(Where::Any(
            several
                .iter()
                .map(|one| one_filter(&one))
                .collect::<PyResult<_>>()?,
        )),
        Err(_) => one_filter(value).map(Where::One),
    }
}

fn one_filter(value: &Bound<'_, PyAny>) -> PyResult<Filter> {
    static FILTER: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let py = value.py();
    if !value.is_instance(FILTER.import(py, "cvx.types", "Filter")?)? {
        return Err(wrong("where", value, "a cvx.Filter"));
    }
    Ok(Filter {
        since: given(
            "since",
            &value.getattr(intern!(py, "since"))?,
            "an int of 64 bits",
        )?,
        until: given(
            "until",
            &value.getattr(intern!(py, "until"))?,
            "an int of 64 bits",
        )?,
        entities: ids("entities", &value.getattr(intern!(py, "entities"))?)?
            .map(|ids: Vec<u64>| ids.into_iter().map(EntityId).collect()),
        namespaces: given(
            "namespaces",
            &value.getattr(intern!(py, "namespaces"))?,
            "a list of str",
        )?,
        min_reward: given(
            "min_reward",
            &value.getattr(intern!(py, "min_reward"))?,
            "a number",
        )?,
        max_reward: given(
            "max_reward",
            &value.getattr(intern!(py, "max_reward"))?,
            "a number",
        )?,
        tags: given(
            "tags",
            &value.getattr(intern!(py, "tags"))?,
            "a list of str",
        )?,
        // What cannot be a node id accepts no node, as an id that was never given.
        ids: ids("ids", &value.getattr(intern!(py, "ids"))?)?.map(|ids: Vec<i64>| {
            ids.into_iter()
                .filter_map(|id| u32::try_from(id).ok().map(NodeId))
                .collect()
        }),
        recallable: given(
            "recallable",
            &value.getattr(intern!(py, "recallable"))?,
            "True, False or None",
        )?,
    })
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
        return given(name, &value.call_method0("tolist")?, "a list of int");
    }
    given(name, value, "a list of int")
}

fn given<'py, T>(name: &str, value: &Bound<'py, PyAny>, wanted: &str) -> PyResult<Option<T>>
where
    T: FromPyObjectOwned<'py>,
{
    if value.is_none() {
        return Ok(None);
    }
    let name = format_args!("where.{name}");
    converted(name, value, wanted).map(Some)
}

/// Whole numbers of a batch, one a row: an array of `T` as it is, what else numpy makes a row of
/// integers of by value.
pub fn column<'py, T: Element + Copy>(
    name: &str,
    value: &Bound<'py, PyAny>,
    number: impl Fn(Arguments<'_>, &Bound<'py, PyAny>) -> PyResult<T>,
) -> PyResult<Vec<T>> {
    static AS_ARRAY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = value.py();
    let wanted = "a row of 64-bit integers";
    let made = AS_ARRAY.import(py, "numpy", "asarray")?.call1((value,));
    let array = made.map_err(|error| refused(error, name, value, wanted))?;
    if array.len().is_ok_and(|len| len == 0) {
        return Ok(Vec::new());
    }
    if let Ok(array) = array.cast::<PyArray1<T>>() {
        return Ok(array.try_readonly()?.as_array().to_vec());
    }
    let untyped = array.cast::<PyUntypedArray>()?;
    if untyped.ndim() == 2 {
        let wanted = format_args!("{wanted}; vectors are given as vectors=");
        return Err(wrong(name, value, wanted));
    }
    if untyped.ndim() != 1 || !b"iuO".contains(&untyped.dtype().kind()) {
        return Err(wrong(name, value, wanted));
    }
    each(name, &array, wanted, number)
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

/// How many threads: as asked, or as many as the machine offers and one call may have.
pub fn threads(threads: &Bound<'_, PyAny>) -> PyResult<usize> {
    match optional(threads, |threads| at_least(1, "threads", threads))? {
        Some(threads) => Ok(threads),
        None => Ok(std::thread::available_parallelism()
            .map_or(1, usize::from)
            .min(MOST_THREADS)),
    }
}
