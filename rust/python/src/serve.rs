//! Bindings for the reference service.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use loadstone_serve::{Error, Service, Settings};
use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::errors::EngineUnusable;

/// Serve until `goes_on` returns False, or Ctrl-C; `ready` is first called with the port.
///
/// Return the counts as JSON.
#[pyfunction]
#[pyo3(signature = (settings, ready, goes_on, tick_s))]
pub(crate) fn serve(
    py: Python<'_>,
    settings: &str,
    ready: &Bound<'_, PyAny>,
    goes_on: &Bound<'_, PyAny>,
    tick_s: f64,
) -> PyResult<String> {
    let tick = Duration::try_from_secs_f64(tick_s)
        .map_err(|error| PyValueError::new_err(format!("tick_s: {error}")))?;
    let bound = py.detach(|| Settings::from_json(settings).and_then(|it| Service::bind(&it)));
    let service = bound.map_err(|error| to_exception(&error))?;
    std::thread::scope(|scope| {
        let service = &service;
        let (sender, mut ended) = channel();
        let serving = scope.spawn(move || {
            let result = service.run();
            // Fails if a callable has raised: the receiver is dropped.
            let _ = sender.send(());
            result
        });
        let mut watched = ready.call1((service.port(),)).map(|_| true);
        while let Ok(true) = watched {
            let ended = &mut ended;
            if py.detach(move || ended.recv_timeout(tick)) != Err(RecvTimeoutError::Timeout) {
                break;
            }
            watched = py.check_signals().and_then(|()| goes_on.call0()?.is_truthy());
        }
        service.stop();
        let ended = py.detach(|| serving.join());
        match watched {
            Err(error) if !error.is_instance_of::<PyKeyboardInterrupt>(py) => return Err(error),
            _ => {}
        }
        let ended = ended.map_err(|_| PyRuntimeError::new_err("the service has a bug"))?;
        ended.map_err(|error| to_exception(&error))?;
        serde_json::to_string(&service.counts())
            .map_err(|error| PyRuntimeError::new_err(error.to_string()))
    })
}

fn to_exception(error: &Error) -> PyErr {
    match error {
        Error::Settings(_) => PyValueError::new_err(error.to_string()),
        Error::Environment(_) => EngineUnusable::new_err(error.to_string()),
    }
}
