//! Python exceptions for the engine's errors.

use loadstone_engine::Error;
use pyo3::create_exception;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;

create_exception!(_engine, InvalidPlan, PyValueError, "The plan asks for what cannot be done.");
create_exception!(_engine, EngineUnusable, PyOSError, "The target or this machine cannot be used.");

/// Converts an error of the engine to an exception.
#[expect(clippy::needless_pass_by_value, reason = "the signature that map_err needs")]
pub(crate) fn to_exception(error: Error) -> PyErr {
    match error {
        Error::Plan { .. } | Error::File { .. } => InvalidPlan::new_err(error.to_string()),
        Error::Environment(_) => EngineUnusable::new_err(error.to_string()),
    }
}
