//! What a recall computes over columns of the corpus, and how far nodes are from its cue.

use cvx_index::NodeId;
use cvx_index::recall::{self, DENSE, Neighbourhood, Ranked, SESSION, Timeline, WORDS};
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use numpy::{PyUntypedArrayMethods, ToPyArray};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::argument;
use crate::convert;
use crate::error::named;
use crate::index::NativeIndex;

/// Neighbours on either side that a window may have.
const FURTHEST: usize = 1_000;

type Ints<'py> = PyReadonlyArray1<'py, i64>;
type Floats<'py> = PyReadonlyArray1<'py, f64>;
type Flags<'py> = PyReadonlyArray1<'py, bool>;
type Scores<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<f64>>);
type Windows<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray2<i64>>);

#[pymethods]
impl NativeIndex {
    /// How far nodes are from a vector, NaN for what has none.
    fn distances<'py>(
        &self,
        py: Python<'py>,
        query: &Bound<'py, PyAny>,
        nodes: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray1<f32>>> {
        let query = convert::vector(query)?;
        let nodes = node_ids(nodes)?;
        let found = self
            .shared
            .read(py, |index| index.distances(&query, &nodes))?;
        Ok(PyArray1::from_vec(py, found))
    }

    /// The vectors of nodes, row by row; 0 for what has none.
    fn vectors<'py>(
        &self,
        py: Python<'py>,
        nodes: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let nodes = node_ids(nodes)?;
        let (rows, dim) = self.shared.read(py, |index| {
            let dim = index.params().dim;
            let mut rows = vec![0.0; nodes.len() * dim];
            for (row, &node) in rows.chunks_exact_mut(dim).zip(&nodes) {
                if let Ok(Some(vector)) = index.vector(node) {
                    row.copy_from_slice(vector);
                }
            }
            Ok((rows, dim))
        })?;
        PyArray1::from_vec(py, rows).reshape([nodes.len(), dim])
    }
}

/// In an array what is no id of a node names none; in anything else it is refused.
fn node_ids(nodes: &Bound<'_, PyAny>) -> PyResult<Vec<NodeId>> {
    let Ok(array) = nodes.extract::<Ints<'_>>() else {
        return argument::nodes("nodes", nodes);
    };
    Ok(array
        .as_array()
        .iter()
        .map(|&node| NodeId(u32::try_from(node).unwrap_or(u32::MAX)))
        .collect())
}

/// Refuses rows that there are not; what is below `least` is one too.
fn check(py: Python<'_>, rows: &[i64], least: i64, count: usize) -> PyResult<()> {
    match rows.iter().find(|&&row| row < least || row >= count as i64) {
        None => Ok(()),
        Some(&row) => Err(no_row(py, row, count)),
    }
}

fn no_row(py: Python<'_>, row: i64, count: usize) -> PyErr {
    let message = format!("there is no row {row}: there are {count}");
    named(py, "InvalidInputError", &message)
}

/// Refuses windows that no memory could hold.
fn check_reach(py: Python<'_>, reach: usize) -> PyResult<()> {
    if reach <= FURTHEST {
        return Ok(());
    }
    let message = format!("reach is {reach}: give one from 0 to {FURTHEST}");
    Err(named(py, "InvalidInputError", &message))
}

/// Refuses columns of several lengths.
fn same(py: Python<'_>, lengths: &[usize]) -> PyResult<()> {
    if lengths.iter().all(|&length| length == lengths[0]) {
        return Ok(());
    }
    let message = format!("columns have {lengths:?} rows: give as many in each");
    Err(named(py, "InvalidInputError", &message))
}

fn timeline<'a>(
    py: Python<'_>,
    before: &'a Ints<'_>,
    after: &'a Ints<'_>,
    readable: &'a Flags<'_>,
) -> PyResult<Timeline<'a>> {
    same(py, &[before.len(), after.len(), readable.len()])?;
    Ok(Timeline {
        before: before.as_slice()?,
        after: after.as_slice()?,
        readable: readable.as_slice()?,
    })
}

fn slices<'a, T: numpy::Element>(arrays: &'a [PyReadonlyArray1<'_, T>]) -> PyResult<Vec<&'a [T]>> {
    Ok(arrays
        .iter()
        .map(|one| one.as_slice())
        .collect::<Result<_, _>>()?)
}

fn scores<'py>(py: Python<'py>, found: Ranked) -> Scores<'py> {
    (
        PyArray1::from_vec(py, found.rows),
        PyArray1::from_vec(py, found.scores),
    )
}

fn named_columns<'py>(
    py: Python<'py>,
    names: &[&str],
    values: &[f64],
) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    let n = values.len() / names.len();
    for (at, name) in names.iter().enumerate() {
        out.set_item(name, values[at * n..][..n].to_pyarray(py))?;
    }
    Ok(out)
}

/// Rows with their neighbours in time, -1 for none.
#[pyfunction]
pub fn window<'py>(
    py: Python<'py>,
    rows: Ints<'py>,
    before: Ints<'py>,
    after: Ints<'py>,
    readable: Flags<'py>,
    reach: usize,
) -> PyResult<Bound<'py, PyArray2<i64>>> {
    let timeline = timeline(py, &before, &after, &readable)?;
    check_reach(py, reach)?;
    check(py, rows.as_slice()?, 0, before.len())?;
    let found =
        (timeline.window(rows.as_slice()?, reach)).map_err(|row| no_row(py, row, before.len()))?;
    PyArray1::from_vec(py, found).reshape([rows.len(), 2 * reach + 1])
}

/// The visible rows that hold most of the idf of some words, and their shares.
#[pyfunction]
pub fn best_by_idf<'py>(
    py: Python<'py>,
    holders: Vec<Ints<'py>>,
    idf: Vec<f64>,
    visible: Flags<'py>,
    lengths: Ints<'py>,
    most: usize,
) -> PyResult<Scores<'py>> {
    same(py, &[holders.len(), idf.len()])?;
    same(py, &[visible.len(), lengths.len()])?;
    let holders = slices(&holders)?;
    for rows in &holders {
        check(py, rows, 0, visible.len())?;
    }
    let found = recall::best_by_idf(
        &holders,
        &idf,
        visible.as_slice()?,
        lengths.as_slice()?,
        most,
    );
    Ok(scores(py, found))
}

/// Rankings joined by reciprocal rank: rows, best first, and their votes.
#[pyfunction]
pub fn votes<'py>(
    py: Python<'py>,
    rankings: Vec<Ints<'py>>,
    constant: f64,
) -> PyResult<Scores<'py>> {
    Ok(scores(py, recall::votes(&slices(&rankings)?, constant)))
}

/// Visible rows, and the neighbours of the first of them.
#[pyfunction]
#[allow(clippy::too_many_arguments)] // Columns of the corpus.
pub fn with_neighbours<'py>(
    py: Python<'py>,
    best: Ints<'py>,
    most: usize,
    reach: usize,
    others: Ints<'py>,
    before: Ints<'py>,
    after: Ints<'py>,
    readable: Flags<'py>,
    visible: Flags<'py>,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let timeline = timeline(py, &before, &after, &readable)?;
    same(py, &[before.len(), visible.len()])?;
    check_reach(py, reach)?;
    let (best, others) = (best.as_slice()?, others.as_slice()?);
    check(py, best, 0, before.len())?;
    check(py, others, -1, before.len())?;
    let rows = recall::with_neighbours(best, most, reach, others, timeline, visible.as_slice()?)
        .map_err(|row| no_row(py, row, before.len()))?;
    Ok(PyArray1::from_vec(py, rows))
}

/// Of each ranking the places and scores of ascending rows, then their votes.
#[pyfunction]
pub fn joined<'py>(
    py: Python<'py>,
    rows: Ints<'py>,
    rankings: Vec<(Ints<'py>, Floats<'py>)>,
    votes: (Ints<'py>, Floats<'py>),
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    for (rows, scores) in rankings.iter().chain([&votes]) {
        same(py, &[rows.len(), scores.len()])?;
    }
    let pairs: Vec<(&[i64], &[f64])> = rankings
        .iter()
        .map(|(rows, scores)| Ok((rows.as_slice()?, scores.as_slice()?)))
        .collect::<PyResult<_>>()?;
    let votes = Ranked {
        rows: votes.0.as_slice()?.to_vec(),
        scores: votes.1.as_slice()?.to_vec(),
    };
    let found = recall::joined(rows.as_slice()?, &pairs, &votes);
    PyArray1::from_vec(py, found).reshape([2 * rankings.len() + 1, rows.len()])
}

/// Windows of rows as the rows in them and their places.
#[pyfunction]
pub fn neighbourhood<'py>(
    py: Python<'py>,
    windows: PyReadonlyArray2<'py, i64>,
) -> PyResult<Windows<'py>> {
    let [n, width] = [windows.shape()[0], windows.shape()[1]];
    let found = Neighbourhood::of(windows.as_slice()?, width);
    let places = PyArray1::from_vec(py, found.places).reshape([n, width])?;
    Ok((PyArray1::from_vec(py, found.near), places))
}

fn of_parts(
    py: Python<'_>,
    near: &Ints<'_>,
    places: &PyReadonlyArray2<'_, i64>,
    rows: usize,
) -> PyResult<Neighbourhood> {
    let (near, width) = (near.as_slice()?, places.shape()[1]);
    check(py, near, 0, rows)?;
    check(py, places.as_slice()?, 0, near.len() + 1)?;
    if width < 3 || width % 2 == 0 {
        let message = format!("a window has {width} rows: give an odd number of at least 3");
        return Err(named(py, "InvalidInputError", &message));
    }
    Ok(Neighbourhood::from_parts(
        near.to_vec(),
        places.as_slice()?.to_vec(),
        width,
    ))
}

/// Which near rows are in sorted lists.
#[pyfunction]
pub fn holds<'py>(
    py: Python<'py>,
    near: Ints<'py>,
    holders: Vec<Ints<'py>>,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let scene = Neighbourhood::from_parts(near.as_slice()?.to_vec(), Vec::new(), 1);
    let found = scene.holds(&slices(&holders)?);
    PyArray1::from_vec(py, found).reshape([holders.len(), near.len()])
}

/// Columns that compare vectors.
#[pyfunction]
pub fn dense_columns<'py>(
    py: Python<'py>,
    near: Ints<'py>,
    places: PyReadonlyArray2<'py, i64>,
    similarity: Floats<'py>,
    asks: Flags<'py>,
) -> PyResult<Bound<'py, PyDict>> {
    let scene = of_parts(py, &near, &places, asks.len())?;
    same(py, &[near.len(), similarity.len()])?;
    named_columns(
        py,
        &DENSE,
        &scene.dense(similarity.as_slice()?, asks.as_slice()?),
    )
}

/// Columns that compare words.
#[pyfunction]
#[allow(clippy::too_many_arguments)] // Columns of the corpus.
pub fn word_columns<'py>(
    py: Python<'py>,
    near: Ints<'py>,
    places: PyReadonlyArray2<'py, i64>,
    holds: PyReadonlyArray2<'py, f64>,
    idf: Floats<'py>,
    known: Flags<'py>,
    asks: Flags<'py>,
    lengths: Ints<'py>,
) -> PyResult<Bound<'py, PyDict>> {
    let scene = of_parts(py, &near, &places, asks.len())?;
    same(py, &[asks.len(), lengths.len()])?;
    same(py, &[holds.shape()[0], idf.len(), known.len()])?;
    same(py, &[holds.shape()[1], near.len()])?;
    let columns = scene.words(
        holds.as_slice()?,
        idf.as_slice()?,
        known.as_slice()?,
        asks.as_slice()?,
        lengths.as_slice()?,
    );
    named_columns(py, &WORDS, &columns)
}

/// Columns that say how good the session of each candidate is.
#[pyfunction]
pub fn session_columns<'py>(
    py: Python<'py>,
    sessions: Ints<'py>,
    score: Floats<'py>,
    holds: PyReadonlyArray2<'py, f64>,
    idf: Floats<'py>,
) -> PyResult<Bound<'py, PyDict>> {
    same(py, &[sessions.len(), score.len(), holds.shape()[1]])?;
    same(py, &[holds.shape()[0], idf.len()])?;
    let (sessions, score) = (sessions.as_slice()?, score.as_slice()?);
    let columns = recall::sessions(sessions, score, holds.as_slice()?, idf.as_slice()?);
    named_columns(py, &SESSION, &columns)
}
