//! What Python catches.

use loadstone_engine::Refusal;
use pyo3::create_exception;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;

create_exception!(_engine, InvalidPlan, PyValueError, "The plan asks for what cannot be done.");
create_exception!(_engine, EngineUnusable, PyOSError, "The target or this machine cannot be used.");

/// The exception for a refusal.
pub(crate) fn raised(refusal: &Refusal) -> PyErr {
    match refusal {
        Refusal::Plan { .. } | Refusal::File { .. } => InvalidPlan::new_err(refusal.to_string()),
        Refusal::Environment(_) => EngineUnusable::new_err(refusal.to_string()),
    }
}
