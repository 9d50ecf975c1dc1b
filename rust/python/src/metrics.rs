//! Bindings for files of monitor readings.

use std::path::PathBuf;

use loadstone_engine::table::{self, Metrics, Name};
use numpy::{IntoPyArray, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::EngineUnusable;

/// Columns of readings in Python.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct MetricsArrays<'py> {
    time_us: PyReadonlyArray1<'py, i64>,
    series: PyReadonlyArray1<'py, u32>,
    value: PyReadonlyArray1<'py, f64>,
    names: Vec<Name>,
}

/// Write readings to a Parquet file atomically.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments come from Python by value")]
pub(crate) fn write_metrics(
    py: Python<'_>,
    path: PathBuf,
    metrics: MetricsArrays<'_>,
) -> PyResult<()> {
    let metrics = Metrics {
        time_us: metrics.time_us.as_slice()?.to_vec(),
        series: metrics.series.as_slice()?.to_vec(),
        value: metrics.value.as_slice()?.to_vec(),
        names: metrics.names,
    };
    py.detach(|| table::write_metrics(&path, &metrics))
        .map_err(|error| EngineUnusable::new_err(error.to_string()))
}

/// Read the columns of a file of readings.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments come from Python by value")]
pub(crate) fn read_metrics(py: Python<'_>, path: PathBuf) -> PyResult<Bound<'_, PyDict>> {
    let metrics = py
        .detach(|| table::read_metrics(&path))
        .map_err(|error| EngineUnusable::new_err(error.to_string()))?;
    let columns = PyDict::new(py);
    columns.set_item("time_us", metrics.time_us.into_pyarray(py))?;
    columns.set_item("series", metrics.series.into_pyarray(py))?;
    columns.set_item("value", metrics.value.into_pyarray(py))?;
    columns.set_item("names", metrics.names)?;
    Ok(columns)
}
