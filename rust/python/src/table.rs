//! The sample table: to numpy and back, to disk and back.

use std::path::PathBuf;

use loadstone_engine::Samples;
use loadstone_engine::table::{BadFile, Columns, group_rows, join, read, read_group, write};
use numpy::{IntoPyArray, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::EngineUnusable;

#[expect(clippy::needless_pass_by_value, reason = "the shape of map_err")]
fn raised(error: BadFile) -> PyErr {
    EngineUnusable::new_err(error.to_string())
}

/// The columns of a sample table, as Python keeps them.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Lent<'py> {
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

/// Write columns to a Parquet file: all of it, or none.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments come from Python by value")]
pub(crate) fn write_samples(py: Python<'_>, path: PathBuf, lent: Lent<'_>) -> PyResult<()> {
    let columns = Columns {
        due_ns: lent.due_ns.as_slice()?,
        sent_ns: lent.sent_ns.as_slice()?,
        done_ns: lent.done_ns.as_slice()?,
        first_byte_us: lent.first_byte_us.as_slice()?,
        iteration: lent.iteration.as_slice()?,
        connection: lent.connection.as_slice()?,
        status: lent.status.as_slice()?,
        outcome: lent.outcome.as_slice()?,
        action: lent.action.as_slice()?,
        retried: lent.retried.as_slice()?,
        generator: lent.generator.as_slice()?,
    };
    py.detach(|| write(&path, &columns)).map_err(raised)
}

/// Join the sample files in the folder `<path>.parts` to one, and remove them: the number of rows.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments come from Python by value")]
pub(crate) fn join_samples(py: Python<'_>, path: PathBuf) -> PyResult<u64> {
    py.detach(|| join(&path)).map_err(raised)
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
    columns(py, samples.map_err(raised)?)
}

/// Count the rows of each row group of a sample file.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments come from Python by value")]
pub(crate) fn count_samples(py: Python<'_>, path: PathBuf) -> PyResult<Vec<usize>> {
    py.detach(|| group_rows(&path)).map_err(raised)
}

/// Hands the columns to numpy, which takes over their memory.
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
