//! The class `NativeIndex`: its parameters, its snapshots.

use std::path::{Path, PathBuf};

use cvx_index::{Center, IndexParams, LoadOptions, Metric, TemporalIndex};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict, PyString};

use crate::argument::{at_least, converted, flag, text, unsigned, wrong};
use crate::convert;
use crate::index_lock::{Shared, without_gil};

/// A temporal index. `cvx.index.RawIndex` is its public face.
#[pyclass(frozen, module = "cvx._cvx")]
pub struct NativeIndex {
    pub shared: Shared,
}

#[pymethods]
impl NativeIndex {
    #[new]
    fn new(
        py: Python<'_>,
        dim: &Bound<'_, PyAny>,
        metric: &Bound<'_, PyAny>,
        m: &Bound<'_, PyAny>,
        ef_construction: &Bound<'_, PyAny>,
        seed: &Bound<'_, PyAny>,
        exact_below: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let params = IndexParams::new(at_least(1, "dim", dim)?)
            .metric(metric_named(metric)?)
            .m(at_least(2, "m", m)?)
            .ef_construction(at_least(1, "ef_construction", ef_construction)?)
            .seed(unsigned("seed", seed)?)
            .exact_below(at_least(0, "exact_below", exact_below)?);
        let index = without_gil(py, || TemporalIndex::new(params))?;
        Ok(NativeIndex {
            shared: Shared::new(index),
        })
    }

    /// Open a snapshot: its rows checked too, and the file mapped, if that is asked for.
    #[staticmethod]
    fn load(
        py: Python<'_>,
        path: &Bound<'_, PyAny>,
        verify: &Bound<'_, PyAny>,
        mmap: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let path = file(path)?;
        let options = LoadOptions::new()
            .verify(flag("verify", verify)?)
            .mmap(flag("mmap", mmap)?);
        let index = without_gil(py, || TemporalIndex::load_with(&path, options))?;
        Ok(NativeIndex {
            shared: Shared::new(index),
        })
    }

    /// An index from the bytes of a snapshot, all of which are checked.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, snapshot: &Bound<'_, PyAny>) -> PyResult<Self> {
        let bytes: PyBackedBytes = converted("snapshot", snapshot, "bytes")?;
        let index = without_gil(py, || {
            TemporalIndex::from_bytes(&bytes, Path::new("what was given"))
        })?;
        Ok(NativeIndex {
            shared: Shared::new(index),
        })
    }

    /// The bytes of a snapshot, with the metadata of the one that was loaded.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self
            .shared
            .read_settled(py, |index| Ok(index.to_bytes_with(index.metadata())))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// The metadata of a snapshot.
    #[staticmethod]
    fn read_metadata<'py>(
        py: Python<'py>,
        path: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let path = file(path)?;
        let metadata = without_gil(py, || TemporalIndex::read_metadata(&path))?;
        Ok(PyBytes::new(py, &metadata))
    }

    /// Write a snapshot, all of it or nothing.
    fn save(
        &self,
        py: Python<'_>,
        path: &Bound<'_, PyAny>,
        metadata: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let path = file(path)?;
        let metadata: PyBackedBytes = converted("metadata", metadata, "bytes")?;
        self.shared
            .read_settled(py, |index| index.save(&path, &metadata))
    }

    /// The metadata of the snapshot that was loaded.
    fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let metadata = self
            .shared
            .read(py, |index| Ok(index.metadata().to_vec()))?;
        Ok(PyBytes::new(py, &metadata))
    }

    /// A sentence on the first invariant that does not hold.
    fn validate(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.shared
            .read_settled(py, |index| Ok(index.validate().err()))
    }

    /// Whether rows of a snapshot were read that are not what was written.
    fn damaged(&self, py: Python<'_>) -> PyResult<bool> {
        self.shared.tell(py, |index| Ok(index.undamaged().is_err()))
    }

    /// A number that is another after every change of the nodes.
    fn changes(&self, py: Python<'_>) -> PyResult<u64> {
        self.shared.tell(py, |index| Ok(index.changes()))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.shared.tell(py, |index| Ok(index.len()))
    }

    /// What the index was made with.
    fn params<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let params = self.shared.tell(py, |index| Ok(index.params().clone()))?;
        let dict = PyDict::new(py);
        dict.set_item("dim", params.dim)?;
        dict.set_item("metric", metric_name(params.metric))?;
        dict.set_item("m", params.m)?;
        dict.set_item("ef_construction", params.ef_construction)?;
        dict.set_item("seed", params.seed)?;
        dict.set_item("exact_below", params.exact_below)?;
        Ok(dict)
    }

    /// Count what the index holds.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = self.shared.tell(py, |index| Ok(index.stats()))?;
        let dict = PyDict::new(py);
        dict.set_item("nodes", stats.nodes)?;
        dict.set_item("ids_given", stats.ids_given)?;
        dict.set_item("vectors", stats.vectors)?;
        dict.set_item("deleted_rows", stats.deleted_rows)?;
        dict.set_item("edges", stats.edges)?;
        dict.set_item("timelines", stats.timelines)?;
        dict.set_item("namespaces", stats.namespaces)?;
        dict.set_item("top_level", stats.top_level)?;
        dict.set_item("region_epoch", stats.region_epoch)?;
        dict.set_item("kernels", stats.kernels)?;
        dict.set_item("bytes", stats.bytes)?;
        Ok(dict)
    }

    /// The centre of the distances.
    fn center<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyArray1<f32>>>> {
        let center = self
            .shared
            .tell(py, |index| Ok(index.center().map(<[f32]>::to_vec)))?;
        Ok(center.map(|center| PyArray1::from_vec(py, center)))
    }

    /// Take distances from a vector, from the mean (`"mean"`) or as they are (`None`).
    fn set_center(&self, py: Python<'_>, center: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let center = match center {
            None => Center::None,
            Some(center) => match center.cast::<PyString>() {
                Ok(word) if word.to_cow().is_ok_and(|word| word == "mean") => Center::Mean,
                Ok(word) => {
                    let wanted = "a vector, \"mean\" or None";
                    return Err(wrong("center", word, wanted));
                }
                Err(_) => Center::Vector(convert::vector(center)?),
            },
        };
        self.shared.write(py, |index| index.set_center(center))
    }
}

#[cfg(feature = "test-hooks")]
#[pymethods]
impl NativeIndex {
    /// Fail on purpose, inside the lock, so that tests can see what callers then get.
    fn _panic(&self, py: Python<'_>, changing: bool) -> PyResult<()> {
        if changing {
            self.shared.write(py, |_| panic!("on purpose"))
        } else {
            self.shared.read(py, |_| panic!("on purpose"))
        }
    }
}

fn file(path: &Bound<'_, PyAny>) -> PyResult<PathBuf> {
    converted("path", path, "a str or an os.PathLike of one")
}

fn metric_named(value: &Bound<'_, PyAny>) -> PyResult<Metric> {
    match text("metric", value)? {
        "cosine" => Ok(Metric::Cosine),
        "l2" => Ok(Metric::L2),
        "ip" => Ok(Metric::InnerProduct),
        _ => Err(wrong("metric", value, "one of cosine, l2, ip")),
    }
}

fn metric_name(metric: Metric) -> &'static str {
    match metric {
        Metric::Cosine => "cosine",
        Metric::L2 => "l2",
        Metric::InnerProduct => "ip",
        _ => "unknown",
    }
}
