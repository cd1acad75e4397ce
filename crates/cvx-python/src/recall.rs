//! What a recall computes over columns of the corpus, and how far nodes are from its cue.

use cvx_index::NodeId;
use cvx_index::recall::{self, DENSE, Neighbourhood, Ranked, SESSION, Ties, Timeline, WORDS};
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
type Table<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray2<f64>>);
type Sums<'py> = (
    Bound<'py, PyArray2<f64>>,
    Bound<'py, PyArray2<f64>>,
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<f64>>,
);

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
    if lengths.windows(2).all(|two| two[0] == two[1]) {
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

/// What rankings found, with neighbours and others: ascending rows, and their columns.
#[pyfunction]
#[allow(clippy::too_many_arguments)] // Columns of the corpus.
pub fn candidates<'py>(
    py: Python<'py>,
    rankings: Vec<(Ints<'py>, Floats<'py>)>,
    constant: f64,
    net: usize,
    most: usize,
    reach: usize,
    others: Ints<'py>,
    before: Ints<'py>,
    after: Ints<'py>,
    readable: Flags<'py>,
    visible: Flags<'py>,
) -> PyResult<Table<'py>> {
    let timeline = timeline(py, &before, &after, &readable)?;
    same(py, &[before.len(), visible.len()])?;
    check_reach(py, reach)?;
    for (rows, scores) in &rankings {
        same(py, &[rows.len(), scores.len()])?;
        check(py, rows.as_slice()?, 0, before.len())?;
    }
    let (others, visible) = (others.as_slice()?, visible.as_slice()?);
    check(py, others, -1, before.len())?;
    let pairs: Vec<(&[i64], &[f64])> = rankings
        .iter()
        .map(|(rows, scores)| Ok((rows.as_slice()?, scores.as_slice()?)))
        .collect::<PyResult<_>>()?;
    let votes = recall::votes(&pairs.iter().map(|one| one.0).collect::<Vec<_>>(), constant);
    let best = &votes.rows[..net.min(votes.rows.len())];
    let rows = recall::with_neighbours(best, most, reach, others, timeline, visible)
        .map_err(|row| no_row(py, row, before.len()))?;
    let columns = recall::joined(&rows, &pairs, &votes);
    let columns = PyArray1::from_vec(py, columns).reshape([2 * pairs.len() + 1, rows.len()])?;
    Ok((PyArray1::from_vec(py, rows), columns))
}

/// Rows and their neighbours in time, each once, and where each window has them.
#[pyfunction]
pub fn neighbourhood<'py>(
    py: Python<'py>,
    rows: Ints<'py>,
    before: Ints<'py>,
    after: Ints<'py>,
    readable: Flags<'py>,
    reach: usize,
) -> PyResult<Windows<'py>> {
    let windows = window(py, rows, before, after, readable, reach)?.readonly();
    let [n, width] = [windows.shape()[0], windows.shape()[1]];
    let found = Neighbourhood::of(windows.as_slice()?, width);
    let places = PyArray1::from_vec(py, found.places).reshape([n, width])?;
    Ok((PyArray1::from_vec(py, found.near), places))
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

/// Columns that compare vectors, words and sessions, and how good each candidate is by itself.
#[pyfunction]
#[allow(clippy::too_many_arguments)] // Columns of the corpus.
pub fn signal_columns<'py>(
    py: Python<'py>,
    near: Ints<'py>,
    places: PyReadonlyArray2<'py, i64>,
    similarity: Floats<'py>,
    holders: Vec<Ints<'py>>,
    idf: Vec<f64>,
    asks: Flags<'py>,
    lengths: Ints<'py>,
    sessions: Ints<'py>,
) -> PyResult<(Bound<'py, PyDict>, Bound<'py, PyArray1<f64>>)> {
    let width = places.shape()[1];
    check(py, near.as_slice()?, 0, asks.len())?;
    check(py, places.as_slice()?, 0, near.len() + 1)?;
    if width < 3 || width % 2 == 0 {
        let message = format!("a window has {width} rows: give an odd number of at least 3");
        return Err(named(py, "InvalidInputError", &message));
    }
    same(py, &[near.len(), similarity.len()])?;
    same(py, &[asks.len(), lengths.len(), sessions.len()])?;
    same(py, &[holders.len(), idf.len()])?;
    let scene = Neighbourhood::from_parts(
        near.as_slice()?.to_vec(),
        places.as_slice()?.to_vec(),
        width,
    );
    let found = scene.signals(
        similarity.as_slice()?,
        &slices(&holders)?,
        &idf,
        asks.as_slice()?,
        lengths.as_slice()?,
        sessions.as_slice()?,
    );
    let out = PyDict::new(py);
    let n = places.shape()[0];
    let names = DENSE.iter().chain(&WORDS).chain(&SESSION);
    for (at, name) in names.enumerate() {
        out.set_item(name, found.columns[at * n..][..n].to_pyarray(py))?;
    }
    Ok((out, PyArray1::from_vec(py, found.content)))
}

/// Columns scaled to [0, 1], each for itself.
#[pyfunction]
pub fn stretched<'py>(
    py: Python<'py>,
    columns: Vec<Floats<'py>>,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let columns = slices(&columns)?;
    let n = length(py, &columns)?;
    PyArray1::from_vec(py, recall::stretched(&columns)).reshape([columns.len(), n])
}

/// Weighted columns, their shares, what multiplies these, and their sums.
#[pyfunction]
#[pyo3(signature = (columns, weights, trust=None))]
pub fn weighed<'py>(
    py: Python<'py>,
    columns: Vec<Floats<'py>>,
    weights: Vec<f64>,
    trust: Option<Floats<'py>>,
) -> PyResult<Sums<'py>> {
    let columns = slices(&columns)?;
    same(py, &[columns.len(), weights.len()])?;
    let n = length(py, &columns)?;
    let trust = trust.as_ref().map(|trust| trust.as_slice()).transpose()?;
    same(py, &[n, trust.map_or(n, <[f64]>::len)])?;
    let shape = [columns.len(), n];
    let found = recall::weighed(&columns, &weights, trust);
    Ok((
        PyArray1::from_vec(py, columns.concat()).reshape(shape)?,
        PyArray1::from_vec(py, found.shares).reshape(shape)?,
        PyArray1::from_vec(py, found.by),
        PyArray1::from_vec(py, found.total),
    ))
}

/// Places of a table, best first.
#[pyfunction]
#[allow(clippy::too_many_arguments)] // Columns of the table.
pub fn best<'py>(
    py: Python<'py>,
    scores: Floats<'py>,
    places: Ints<'py>,
    salience: Floats<'py>,
    time: Floats<'py>,
    votes: Floats<'py>,
    events: Ints<'py>,
    decimals: i32,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let n = scores.len();
    same(
        py,
        &[n, salience.len(), time.len(), votes.len(), events.len()],
    )?;
    check(py, places.as_slice()?, 0, n)?;
    let ties = Ties {
        salience: salience.as_slice()?,
        time: time.as_slice()?,
        votes: votes.as_slice()?,
        events: events.as_slice()?,
    };
    let order = recall::best(scores.as_slice()?, places.as_slice()?, ties, decimals);
    Ok(PyArray1::from_vec(py, order))
}

/// The length of each of several columns, which is the same.
fn length(py: Python<'_>, columns: &[&[f64]]) -> PyResult<usize> {
    let lengths: Vec<usize> = columns.iter().map(|column| column.len()).collect();
    same(py, &lengths)?;
    Ok(lengths.first().copied().unwrap_or(0))
}
