//! Bindings for runs: prepare, start, watch from the calling thread, and return the samples.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

use loadstone_engine::{Health, Histogram, Plan, PrepareOptions, Progress, SampleStore};
use numpy::{IntoPyArray, PyArray1};
use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::{InvalidPlan, to_exception};
use crate::table::columns;

/// Prepare a plan (JSON): resolve the host, compile the requests, start the threads.
///
/// With `path`, samples go to a Parquet file and memory does not grow; until the file is complete,
/// they are in the folder `<path>.parts`. With `live`, `watch` gets two more arguments: the columns
/// of the samples since its last call, and the numbers of the iterations that have ended since.
/// `live` without a path keeps no samples. With `connect`, connections are opened, too, and a
/// target that does not accept any is refused.
#[pyfunction]
#[pyo3(signature = (plan, path, *, live, connect))]
pub(crate) fn prepare(
    py: Python<'_>,
    plan: &str,
    path: Option<PathBuf>,
    live: bool,
    connect: bool,
) -> PyResult<Prepared> {
    let options = PrepareOptions { path, live, connect };
    let prepared = py.detach(|| {
        Plan::from_json(plan).and_then(|plan| loadstone_engine::Prepared::new(&plan, options))
    });
    Ok(Prepared { run: prepared.map_err(to_exception)? })
}

/// Prepare two plans (JSON) that alternate, each like `prepare` with `connect`.
///
/// The closed loops have `turn` iterations per turn; one waits while the other sends. Start them
/// with `start_with`.
#[pyfunction]
#[pyo3(signature = (plan, path, other_plan, other_path))]
pub(crate) fn prepare_pair(
    py: Python<'_>,
    plan: &str,
    path: Option<PathBuf>,
    other_plan: &str,
    other_path: Option<PathBuf>,
) -> PyResult<(Prepared, Prepared)> {
    let options =
        [path, other_path].map(|path| PrepareOptions { path, live: false, connect: true });
    let prepared = py.detach(|| {
        let (plan, other) = (Plan::from_json(plan)?, Plan::from_json(other_plan)?);
        loadstone_engine::Prepared::pair([&plan, &other], options)
    });
    let [run, other] = prepared.map_err(to_exception)?;
    Ok((Prepared { run }, Prepared { run: other }))
}

/// Columns of samples, and the numbers of the iterations that have ended.
type LiveColumns<'py> = (Bound<'py, PyDict>, Bound<'py, PyArray1<u32>>);

/// Run whose threads wait for the start. Only `loadstone.engine.local` uses it.
#[pyclass(frozen, module = "loadstone._engine")]
pub(crate) struct Prepared {
    run: loadstone_engine::Prepared,
}

#[pymethods]
impl Prepared {
    /// Start the load at an instant (nanoseconds since 1970, UTC), or at once.
    ///
    /// An instant in the past is refused.
    #[pyo3(signature = (at_ns))]
    fn start(&self, at_ns: Option<u64>) -> PyResult<()> {
        let at = at_ns.map(|at_ns| UNIX_EPOCH + Duration::from_nanos(at_ns));
        self.run.start(at).map_err(to_exception)
    }

    /// Start two runs at the same instant.
    fn start_with(&self, other: &Self) -> PyResult<()> {
        self.run.start_with(&other.run).map_err(to_exception)
    }

    /// Return the counts so far, as `watch` gets them.
    fn counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        counts(py, &self.run.progress())
    }

    /// Return the histogram of latencies of successful iterations so far.
    fn latencies(&self) -> Vec<u64> {
        self.run.latencies()
    }

    /// Stop before the first iteration that is due at or after `due_ns` (nanoseconds since the
    /// start).
    ///
    /// A time that has passed is refused. Any thread may call it.
    fn stop_at(&self, due_ns: i64) -> PyResult<()> {
        self.run.stop_at(due_ns).map_err(to_exception)
    }

    /// Abort running iterations; before the start, cancel the run.
    fn abandon(&self) {
        self.run.abandon();
    }

    /// Take samples and ended iterations since the last call; also after the end.
    ///
    /// None without `live`.
    fn live_samples<'py>(&self, py: Python<'py>) -> PyResult<Option<LiveColumns<'py>>> {
        let Some(live) = self.run.live_samples() else { return Ok(None) };
        Ok(Some((columns(py, live.rows)?, live.ended.into_pyarray(py))))
    }

    /// Wait for the end. Return the columns of samples (with a file, its number of rows) and the
    /// health.
    ///
    /// Every `tick_s` the calling thread checks for signals and calls `watch` with the counts so
    /// far; False stops the run. Ctrl-C stops it, too, and sets `interrupted`; a second one aborts
    /// running iterations. An exception of `watch` aborts the run and is raised.
    #[pyo3(signature = (watch, tick_s))]
    fn finish<'py>(
        &self,
        py: Python<'py>,
        watch: Option<&Bound<'py, PyAny>>,
        tick_s: f64,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyDict>)> {
        let tick = Duration::try_from_secs_f64(tick_s)
            .map_err(|error| InvalidPlan::new_err(format!("tick_s: {error}")))?;
        if !self.run.is_started() {
            return Err(PyRuntimeError::new_err("start() must be called before finish()"));
        }
        let watched = self.watch_until_end(py, watch, tick);
        let done = py.detach(|| catch_unwind(AssertUnwindSafe(|| self.run.finish())));
        let mut is_interrupted = watched?;
        // A Ctrl-C at the last moment must not lose the samples either.
        is_interrupted |= match py.check_signals() {
            Err(error) if error.is_instance_of::<PyKeyboardInterrupt>(py) => true,
            checked => checked.map(|()| false)?,
        };
        let done = done.map_err(|_| PyRuntimeError::new_err("the engine has a bug"))?;
        let (store, health) = done.map_err(to_exception)?;
        let samples = match store {
            SampleStore::Memory(samples) => columns(py, *samples)?.into_any(),
            SampleStore::File(rows) => rows.into_pyobject(py)?.into_any(),
        };
        let health = as_dict(py, &health)?;
        health.set_item("interrupted", is_interrupted)?;
        Ok((samples, health))
    }
}

impl Prepared {
    /// Watches the run until it has ended. Returns whether Ctrl-C interrupted it.
    fn watch_until_end(
        &self,
        py: Python<'_>,
        watch: Option<&Bound<'_, PyAny>>,
        tick: Duration,
    ) -> PyResult<bool> {
        let mut is_interrupted = false;
        while !py.detach(|| self.run.wait(tick)) {
            match check(py, &self.run, watch) {
                Ok(true) => {}
                Ok(false) => self.run.stop(),
                Err(error) if error.is_instance_of::<PyKeyboardInterrupt>(py) => {
                    if is_interrupted {
                        self.run.abandon();
                    }
                    self.run.stop();
                    is_interrupted = true;
                }
                Err(error) => {
                    self.run.abandon();
                    return Err(error);
                }
            }
        }
        Ok(is_interrupted)
    }
}

/// Checks for signals and calls `watch`. Returns whether the run goes on.
fn check(
    py: Python<'_>,
    run: &loadstone_engine::Prepared,
    watch: Option<&Bound<'_, PyAny>>,
) -> PyResult<bool> {
    py.check_signals()?;
    let Some(watch) = watch else { return Ok(true) };
    let counts = counts(py, &run.progress())?;
    let goes_on = match run.live_samples() {
        None => watch.call1((counts,)),
        Some(live) => watch.call1((counts, columns(py, live.rows)?, live.ended.into_pyarray(py))),
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
    counts.set_item("cut_off", progress.cut_off)?;
    counts.set_item("latency_sum_ns", progress.latency_sum_ns)?;
    counts.set_item("lag_p99_ns", progress.lag_p99_ns)?;
    Ok(counts)
}

fn as_dict<'py>(py: Python<'py>, health: &Health) -> PyResult<Bound<'py, PyDict>> {
    let values = PyDict::new(py);
    values.set_item("lag_p50_ms", health.lag_p50_ms)?;
    values.set_item("lag_p99_ms", health.lag_p99_ms)?;
    values.set_item("lag_max_ms", health.lag_max_ms)?;
    values.set_item("waited", health.waited)?;
    values.set_item("wait_p99_ms", health.wait_p99_ms)?;
    values.set_item("wait_max_ms", health.wait_max_ms)?;
    values.set_item("cpu_s", health.cpu_s)?;
    values.set_item("wall_s", health.wall_s)?;
    values.set_item("runqueue_wait_s", health.runqueue_wait_s)?;
    values.set_item("threads", health.threads)?;
    values.set_item("retries", health.retries)?;
    values.set_item("connections", health.connections)?;
    values.set_item("throttled", health.throttled)?;
    values.set_item("throttled_s", health.throttled_s)?;
    values.set_item("is_cut_short", health.is_cut_short)?;
    values.set_item("without_port", health.without_port)?;
    values.set_item("without_file", health.without_file)?;
    values.set_item("lag_buckets", buckets(&health.lag))?;
    values.set_item("wait_buckets", buckets(&health.wait))?;
    Ok(values)
}

/// Returns highest value and count of each bucket.
fn buckets(histogram: &Histogram) -> Vec<(u64, u64)> {
    histogram.buckets().collect()
}
