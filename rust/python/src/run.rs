//! `run` and `spill`: a plan in, columns or a file out, watched from the calling thread.

use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use loadstone_engine::{Health, Plan, Progress, Refusal, Run};
use numpy::IntoPyArray;
use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::{InvalidPlan, raised};
use crate::table::columns;

/// Run a plan (JSON): the sample table's columns, and what the engine says of itself.
///
/// Every `tick_s` the calling thread looks for signals and calls `watch` with the counts so far;
/// False stops the run. Ctrl-C stops it, too, and is told as `interrupted`; a second one gives up
/// what is under way. An exception of `watch` ends the run at once and is raised.
#[pyfunction]
#[pyo3(signature = (plan, watch, tick_s))]
pub(crate) fn run<'py>(
    py: Python<'py>,
    plan: &str,
    watch: Option<&Bound<'py, PyAny>>,
    tick_s: f64,
) -> PyResult<(Bound<'py, PyDict>, Bound<'py, PyDict>)> {
    let engine = prepared(py, plan)?;
    let (measured, health) = watched(py, &engine, watch, tick_s, |engine| {
        engine.execute().map(|measured| (measured.samples, measured.health))
    })?;
    Ok((columns(py, measured)?, health))
}

/// Run a plan as `run` does; its samples go to a Parquet file as they come, and memory stays flat.
///
/// Gives their number instead of the columns. Until the file is complete, what was measured lies in
/// the folder `<path>.parts`. With `shown`, `watch` gets two arguments more: the columns of what was
/// measured since its last look, and the numbers of the iterations that have ended since.
#[pyfunction]
#[pyo3(signature = (plan, path, watch, tick_s, shown))]
#[expect(clippy::needless_pass_by_value, reason = "arguments come from Python by value")]
pub(crate) fn spill<'py>(
    py: Python<'py>,
    plan: &str,
    path: PathBuf,
    watch: Option<&Bound<'py, PyAny>>,
    tick_s: f64,
    shown: bool,
) -> PyResult<(u64, Bound<'py, PyDict>)> {
    let engine = prepared(py, plan)?;
    let engine = if shown { engine.shown() } else { engine };
    watched(py, &engine, watch, tick_s, |engine| {
        engine.execute_into(&path).map(|spilled| (spilled.rows, spilled.health))
    })
}

fn prepared(py: Python<'_>, plan: &str) -> PyResult<Run> {
    let prepared = py.detach(|| Plan::from_json(plan).and_then(|plan| Run::prepare(&plan)));
    prepared.map_err(|refusal| raised(&refusal))
}

/// Carries the plan out on other threads and keeps watch on this one.
fn watched<'py, T: Send>(
    py: Python<'py>,
    engine: &Run,
    watch: Option<&Bound<'py, PyAny>>,
    tick_s: f64,
    execute: impl FnOnce(&Run) -> Result<(T, Health), Refusal> + Send,
) -> PyResult<(T, Bound<'py, PyDict>)> {
    let tick = Duration::try_from_secs_f64(tick_s)
        .map_err(|error| InvalidPlan::new_err(format!("tick_s: {error}")))?;
    std::thread::scope(|scope| {
        let (ended, mut wait) = channel();
        let worker = scope.spawn(move || {
            let measured = execute(engine);
            // Nobody waits any more when the watch raised.
            let _ = ended.send(());
            measured
        });
        let mut is_interrupted = false;
        let mut failure = None;
        loop {
            let wait = &mut wait;
            let waited = py.detach(move || wait.recv_timeout(tick));
            if waited != Err(RecvTimeoutError::Timeout) {
                break;
            }
            match look(py, engine, watch) {
                Ok(true) => {}
                Ok(false) => engine.stop(),
                Err(error) if error.is_instance_of::<PyKeyboardInterrupt>(py) => {
                    if is_interrupted {
                        engine.abandon();
                    }
                    engine.stop();
                    is_interrupted = true;
                }
                Err(error) => {
                    engine.abandon();
                    failure = Some(error);
                    break;
                }
            }
        }
        let measured = py.detach(|| worker.join());
        if let Some(error) = failure {
            return Err(error);
        }
        // A Ctrl-C at the last moment must not lose what was measured either.
        is_interrupted |= match py.check_signals() {
            Err(error) if error.is_instance_of::<PyKeyboardInterrupt>(py) => true,
            looked => looked.map(|()| false)?,
        };
        let measured = measured.map_err(|_| PyRuntimeError::new_err("the engine has a bug"))?;
        let (measured, told) = measured.map_err(|refusal| raised(&refusal))?;
        let health = health(py, &told)?;
        health.set_item("interrupted", is_interrupted)?;
        Ok((measured, health))
    })
}

/// One look at signals and counts: whether the run goes on.
fn look(py: Python<'_>, engine: &Run, watch: Option<&Bound<'_, PyAny>>) -> PyResult<bool> {
    py.check_signals()?;
    let Some(watch) = watch else { return Ok(true) };
    let counts = counts(py, &engine.progress())?;
    let goes_on = match engine.fresh() {
        None => watch.call1((counts,)),
        Some(fresh) => {
            watch.call1((counts, columns(py, fresh.rows)?, fresh.ended.into_pyarray(py)))
        }
    };
    goes_on?.is_truthy()
}

fn counts<'py>(py: Python<'py>, progress: &Progress) -> PyResult<Bound<'py, PyDict>> {
    let counts = PyDict::new(py);
    counts.set_item("elapsed_ns", progress.elapsed_ns)?;
    counts.set_item("due", progress.due)?;
    counts.set_item("sent", progress.sent)?;
    counts.set_item("ok", progress.ok)?;
    counts.set_item("failed", progress.failed)?;
    counts.set_item("latency_sum_ns", progress.latency_sum_ns)?;
    Ok(counts)
}

fn health<'py>(py: Python<'py>, health: &Health) -> PyResult<Bound<'py, PyDict>> {
    let values = PyDict::new(py);
    values.set_item("lag_p50_ms", health.lag_p50_ms)?;
    values.set_item("lag_p99_ms", health.lag_p99_ms)?;
    values.set_item("lag_max_ms", health.lag_max_ms)?;
    values.set_item("cpu_s", health.cpu_s)?;
    values.set_item("wall_s", health.wall_s)?;
    values.set_item("runqueue_wait_s", health.runqueue_wait_s)?;
    values.set_item("threads", health.threads)?;
    values.set_item("retries", health.retries)?;
    values.set_item("connections", health.connections)?;
    Ok(values)
}
