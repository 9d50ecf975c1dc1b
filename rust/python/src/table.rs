//! Bindings for sample tables: numpy arrays and Parquet files.

use std::path::PathBuf;

use loadstone_engine::Samples;
use loadstone_engine::table::{BadFile, Columns, group_rows, join, read, read_group, write};
use numpy::{IntoPyArray, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::EngineUnusable;

#[expect(clippy::needless_pass_by_value, reason = "the signature that map_err needs")]
fn to_exception(error: BadFile) -> PyErr {
    EngineUnusable::new_err(error.to_string())
}

/// Columns of a sample table in Python.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct SampleArrays<'py> {
    due_ns: PyReadonlyArray1<'py, i64>,
    sent_ns: PyReadonlyArray1<'py, i64>,
    done_ns: PyReadonlyArray1<'py, i64>,
    first_byte_us: PyReadonlyArray1<'py, u32>,
    iteration: PyReadonlyArray1<'py, u32>,
    connection: PyReadonlyArray1<'py, u32>,
    status: PyReadonlyArray1<'py, u16>,
    outcome: PyReadonlyArray1<'py, u8>,
    action: PyReadonlyArray1<'py, u8>,
    retried: PyReadonlyArray1<'py, u8>,
    generator: PyReadonlyArray1<'py, u16>,
}

/// Write columns to a Parquet file atomically.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments come from Python by value")]
pub(crate) fn write_samples(
    py: Python<'_>,
    path: PathBuf,
    columns: SampleArrays<'_>,
) -> PyResult<()> {
    let columns = Columns {
        due_ns: columns.due_ns.as_slice()?,
        sent_ns: columns.sent_ns.as_slice()?,
        done_ns: columns.done_ns.as_slice()?,
        first_byte_us: columns.first_byte_us.as_slice()?,
        iteration: columns.iteration.as_slice()?,
        connection: columns.connection.as_slice()?,
        status: columns.status.as_slice()?,
        outcome: columns.outcome.as_slice()?,
        action: columns.action.as_slice()?,
        retried: columns.retried.as_slice()?,
        generator: columns.generator.as_slice()?,
    };
    py.detach(|| write(&path, &columns)).map_err(to_exception)
}

/// Join the sample files in the folder `<path>.parts` and remove them. Return the number of rows.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments come from Python by value")]
pub(crate) fn join_samples(py: Python<'_>, path: PathBuf) -> PyResult<u64> {
    py.detach(|| join(&path)).map_err(to_exception)
}

/// Read the columns of a sample file, or those of one of its row groups.
#[pyfunction]
#[pyo3(signature = (path, group=None))]
#[expect(clippy::needless_pass_by_value, reason = "arguments come from Python by value")]
pub(crate) fn read_samples(
    py: Python<'_>,
    path: PathBuf,
    group: Option<usize>,
) -> PyResult<Bound<'_, PyDict>> {
    let samples = py.detach(|| match group {
        None => read(&path),
        Some(index) => read_group(&path, index),
    });
    columns(py, samples.map_err(to_exception)?)
}

/// Count the rows of each row group of a sample file.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments come from Python by value")]
pub(crate) fn count_samples(py: Python<'_>, path: PathBuf) -> PyResult<Vec<usize>> {
    py.detach(|| group_rows(&path)).map_err(to_exception)
}

/// Converts columns to numpy arrays, which own the memory.
pub(crate) fn columns(py: Python<'_>, samples: Samples) -> PyResult<Bound<'_, PyDict>> {
    let columns = PyDict::new(py);
    columns.set_item("due_ns", samples.due_ns.into_pyarray(py))?;
    columns.set_item("sent_ns", samples.sent_ns.into_pyarray(py))?;
    columns.set_item("done_ns", samples.done_ns.into_pyarray(py))?;
    columns.set_item("first_byte_us", samples.first_byte_us.into_pyarray(py))?;
    columns.set_item("iteration", samples.iteration.into_pyarray(py))?;
    columns.set_item("connection", samples.connection.into_pyarray(py))?;
    columns.set_item("status", samples.status.into_pyarray(py))?;
    columns.set_item("outcome", samples.outcome.into_pyarray(py))?;
    columns.set_item("action", samples.action.into_pyarray(py))?;
    columns.set_item("retried", samples.retried.into_pyarray(py))?;
    columns.set_item("generator", samples.generator.into_pyarray(py))?;
    Ok(columns)
}
