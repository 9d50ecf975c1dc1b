//! The only place where Rust meets Python: converts, releases the GIL, maps errors.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use numpy::IntoPyArray;
use loadstone_engine::{Plan, Samples};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// How late Ctrl-C is noticed.
const SIGNAL_CHECK: Duration = Duration::from_millis(20);

/// Runs `work` on a thread, without the GIL; Ctrl-C sets its stop flag.
fn interruptible<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&AtomicBool) -> T + Send,
) -> PyResult<T> {
    let stop = &AtomicBool::new(false);
    std::thread::scope(|scope| {
        let worker = scope.spawn(move || work(stop));
        let mut interrupt = Ok(());
        while interrupt.is_ok() && !worker.is_finished() {
            py.detach(|| std::thread::sleep(SIGNAL_CHECK));
            interrupt = py.check_signals();
        }
        stop.store(true, Ordering::Relaxed);
        let result = py.detach(|| worker.join());
        interrupt?;
        Ok(result.expect("the engine does not panic"))
    })
}

/// Hands the columns to numpy, which takes over their memory.
fn into_columns(py: Python<'_>, samples: Samples) -> PyResult<Bound<'_, PyDict>> {
    let columns = PyDict::new(py);
    columns.set_item("due_ns", samples.due_ns.into_pyarray(py))?;
    columns.set_item("done_ns", samples.done_ns.into_pyarray(py))?;
    columns.set_item("status", samples.status.into_pyarray(py))?;
    Ok(columns)
}

#[pymodule(gil_used = false)]
mod _engine {
    #[allow(clippy::wildcard_imports)]
    use super::*;

    /// Run a plan (JSON) and return one numpy array per column of the sample table.
    #[pyfunction]
    fn run<'py>(py: Python<'py>, plan: &str) -> PyResult<Bound<'py, PyDict>> {
        let plan = Plan::from_json(plan).map_err(|e| PyValueError::new_err(e.to_string()))?;
        let samples = interruptible(py, |stop| loadstone_engine::run(&plan, stop))?;
        into_columns(py, samples)
    }

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
