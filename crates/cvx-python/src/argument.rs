//! Checks arguments from Python; each error names the argument.
//!
//! Whatever cannot be converted ends as the error that
//! `cvx.arguments.wrong` makes: the name, the value and what to give instead.

use std::fmt::{Arguments, Display};

use cvx_index::{EntityId, NodeId};
use numpy::PyUntypedArray;
use pyo3::exceptions::{PyException, PyOverflowError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyByteArray, PyBytes, PyDict, PyMapping, PyString};

use crate::error::named;

/// The error for an argument that is something else than `wanted`.
pub fn wrong(name: impl Display, value: &Bound<'_, PyAny>, wanted: impl Display) -> PyErr {
    let py = value.py();
    let made = py.import("cvx.arguments").and_then(|arguments| {
        arguments.call_method1("wrong", (name.to_string(), value, wanted.to_string()))
    });
    made.map_or_else(|error| error, PyErr::from_value)
}

/// Converts an argument.
pub fn converted<'a, 'py, T: FromPyObject<'a, 'py>>(
    name: impl Display,
    value: &'a Bound<'py, PyAny>,
    wanted: &str,
) -> PyResult<T> {
    value
        .extract()
        .map_err(|error: T::Error| refused(error.into(), name, value, wanted))
}

/// What a conversion raised, as the error of the argument.
pub fn refused(
    error: PyErr,
    name: impl Display,
    value: &Bound<'_, PyAny>,
    wanted: impl Display,
) -> PyErr {
    // KeyboardInterrupt and its like are no word on the argument.
    if error.is_instance_of::<PyException>(value.py()) {
        wrong(name, value, wanted)
    } else {
        error
    }
}

/// A whole number of 64 bits, signed; True and False are none.
pub fn integer(name: impl Display, value: &Bound<'_, PyAny>) -> PyResult<i64> {
    whole(name, value, "an int")
}

/// A whole number that is not below `least`.
pub fn at_least(least: usize, name: impl Display, value: &Bound<'_, PyAny>) -> PyResult<usize> {
    let wanted = format_args!("an int of at least {least}");
    match usize::try_from(whole(&name, value, wanted)?) {
        Ok(number) if number >= least => Ok(number),
        _ => Err(wrong(name, value, wanted)),
    }
}

fn whole(name: impl Display, value: &Bound<'_, PyAny>, wanted: impl Display) -> PyResult<i64> {
    if value.is_instance_of::<PyBool>() {
        return Err(wrong(name, value, wanted));
    }
    value.extract().map_err(|error: PyErr| {
        if error.is_instance_of::<PyOverflowError>(value.py()) {
            wrong(name, value, "an int of 64 bits, signed")
        } else {
            refused(error, name, value, wanted)
        }
    })
}

/// A whole number from 0 up to 64 bits, unsigned.
pub fn unsigned(name: impl Display, value: &Bound<'_, PyAny>) -> PyResult<u64> {
    let wanted = "an int from 0 to 2**64 - 1";
    if value.is_instance_of::<PyBool>() {
        return Err(wrong(name, value, wanted));
    }
    converted(name, value, wanted)
}

/// An entity id.
pub fn entity(value: &Bound<'_, PyAny>) -> PyResult<EntityId> {
    if value.len().is_ok() && !value.is_instance_of::<PyString>() {
        let wanted = "an int from 0 to 2**64 - 1; a vector is given as vector=";
        return Err(wrong("entity_id", value, wanted));
    }
    unsigned("entity_id", value).map(EntityId)
}

/// A node id; a number that cannot be one is unknown.
pub fn node(name: impl Display, value: &Bound<'_, PyAny>) -> PyResult<NodeId> {
    if value.is_instance_of::<PyBool>() {
        return Err(wrong(name, value, "the id of a node"));
    }
    value.extract().map(NodeId).map_err(|error: PyErr| {
        if error.is_instance_of::<PyOverflowError>(value.py()) {
            let message = format!("there is no node {value}: ids are those that insert returned");
            named(value.py(), "UnknownError", &message)
        } else {
            refused(error, name, value, "the id of a node")
        }
    })
}

/// One node id or several.
pub fn nodes(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Vec<NodeId>> {
    if value.len().is_err() {
        return Ok(vec![node(name, value)?]);
    }
    each(name, value, "ids of nodes", |name, one| node(name, one))
}

/// A number, as the index keeps it; whether it may be NaN is for the index to say.
pub fn real(name: impl Display, value: &Bound<'_, PyAny>) -> PyResult<f32> {
    converted(name, value, "a number")
}

/// A yes or no, numpy's too.
pub fn flag(name: impl Display, value: &Bound<'_, PyAny>) -> PyResult<bool> {
    converted(name, value, "True or False")
}

/// A string that Rust can hold, which one with half a surrogate pair is not.
pub fn text<'a>(name: impl Display, value: &'a Bound<'_, PyAny>) -> PyResult<&'a str> {
    converted(name, value, "a str")
}

/// Several strings.
pub fn texts(name: impl Display, value: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    each(name, value, "a list of str", |name, value| {
        Ok(text(name, value)?.to_owned())
    })
}

/// Several strings, or one.
pub fn one_or_more_texts(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    if value.is_instance_of::<PyString>() {
        Ok(vec![text(name, value)?.to_owned()])
    } else {
        texts(name, value)
    }
}

/// Labels in order, each once.
pub fn labels(name: impl Display, value: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    let mut labels = texts(name, value)?;
    labels.sort_unstable();
    labels.dedup();
    Ok(labels)
}

/// Edge kinds and what a step along each counts.
pub fn boosts(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Vec<(String, f32)>> {
    let Ok(mapping) = value.cast::<PyMapping>() else {
        let wanted = "a mapping from edge kinds to numbers in [0, 1]";
        return Err(wrong(name, value, wanted));
    };
    let boost = |pair: Bound<'_, PyAny>| {
        let (kind, boost): (Bound<'_, PyAny>, Bound<'_, PyAny>) = pair.extract()?;
        let kind = text(format_args!("a kind of {name}"), &kind)?;
        let boost = real(format_args!("{name}[{kind:?}]"), &boost)?;
        Ok((kind.to_owned(), boost))
    };
    mapping.items()?.iter().map(boost).collect()
}

/// What a collection holds, each element converted under its place.
pub fn each<'py, T>(
    name: impl Display,
    value: &Bound<'py, PyAny>,
    wanted: &str,
    convert: impl Fn(Arguments<'_>, &Bound<'py, PyAny>) -> PyResult<T>,
) -> PyResult<Vec<T>> {
    // Python would walk the letters of the one and the keys of the other.
    let walkable = !value.is_instance_of::<PyString>()
        && !value.is_instance_of::<PyBytes>()
        && !value.is_instance_of::<PyByteArray>()
        && !value.is_instance_of::<PyDict>();
    let items = if !walkable {
        None
    } else if value.is_instance_of::<PyUntypedArray>() {
        // All elements at once as Python's own, instead of one after the other as numpy's.
        value.call_method0("tolist")?.try_iter().ok()
    } else {
        value.try_iter().ok()
    };
    let Some(items) = items else {
        return Err(wrong(name, value, wanted));
    };
    items
        .enumerate()
        .map(|(place, item)| convert(format_args!("{name}[{place}]"), &item?))
        .collect()
}

/// Converts an argument unless it is `None`.
pub fn optional<'a, 'py, T>(
    value: &'a Bound<'py, PyAny>,
    convert: impl FnOnce(&'a Bound<'py, PyAny>) -> PyResult<T>,
) -> PyResult<Option<T>> {
    if value.is_none() {
        return Ok(None);
    }
    convert(value).map(Some)
}
