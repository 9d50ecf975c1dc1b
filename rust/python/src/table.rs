//! The sample table: to numpy and back, to disk and back.

use std::path::PathBuf;

use loadstone_engine::Samples;
use loadstone_engine::table::{BadFile, Columns, read, write};
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
    first_byte_ns: PyReadonlyArray1<'py, i64>,
    done_ns: PyReadonlyArray1<'py, i64>,
    iteration: PyReadonlyArray1<'py, u32>,
    connection: PyReadonlyArray1<'py, u16>,
    status: PyReadonlyArray1<'py, u16>,
    outcome: PyReadonlyArray1<'py, u8>,
    action: PyReadonlyArray1<'py, u8>,
}

/// Write columns to a Parquet file: all of it, or none.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments come from Python by value")]
pub(crate) fn write_samples(py: Python<'_>, path: PathBuf, lent: Lent<'_>) -> PyResult<()> {
    let columns = Columns {
        due_ns: lent.due_ns.as_slice()?,
        sent_ns: lent.sent_ns.as_slice()?,
        first_byte_ns: lent.first_byte_ns.as_slice()?,
        done_ns: lent.done_ns.as_slice()?,
        iteration: lent.iteration.as_slice()?,
        connection: lent.connection.as_slice()?,
        status: lent.status.as_slice()?,
        outcome: lent.outcome.as_slice()?,
        action: lent.action.as_slice()?,
    };
    py.detach(|| write(&path, &columns)).map_err(raised)
}

/// Read the columns of a Parquet file that `write_samples` wrote.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments come from Python by value")]
pub(crate) fn read_samples(py: Python<'_>, path: PathBuf) -> PyResult<Bound<'_, PyDict>> {
    columns(py, py.detach(|| read(&path)).map_err(raised)?)
}

/// Hands the columns to numpy, which takes over their memory.
pub(crate) fn columns(py: Python<'_>, samples: Samples) -> PyResult<Bound<'_, PyDict>> {
    let columns = PyDict::new(py);
    columns.set_item("due_ns", samples.due_ns.into_pyarray(py))?;
    columns.set_item("sent_ns", samples.sent_ns.into_pyarray(py))?;
    columns.set_item("first_byte_ns", samples.first_byte_ns.into_pyarray(py))?;
    columns.set_item("done_ns", samples.done_ns.into_pyarray(py))?;
    columns.set_item("iteration", samples.iteration.into_pyarray(py))?;
    columns.set_item("connection", samples.connection.into_pyarray(py))?;
    columns.set_item("status", samples.status.into_pyarray(py))?;
    columns.set_item("outcome", samples.outcome.into_pyarray(py))?;
    columns.set_item("action", samples.action.into_pyarray(py))?;
    Ok(columns)
}
