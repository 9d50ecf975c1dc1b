//! `prepare`: a plan in; the run that it gives is started, watched from the calling thread, and gives
//! columns or a file.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

use loadstone_engine::{Health, Histogram, Kept, Plan, Preparation, Progress};
use numpy::{IntoPyArray, PyArray1};
use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::{InvalidPlan, raised};
use crate::table::columns;

/// Make a plan (JSON) ready: look up the host, lay out the requests, start the threads.
///
/// With `path` the samples go to a Parquet file as they come, and memory stays flat; until the file
/// is complete, what was measured lies in the folder `<path>.parts`. With `shown`, `watch` gets two
/// arguments more: the columns of what was measured since its last look, and the numbers of the
/// iterations that have ended since; `shown` without a path keeps no sample. With `connected`, connections are opened, too, and a target
/// that cannot be connected to is refused.
#[pyfunction]
#[pyo3(signature = (plan, path, *, shown, connected))]
pub(crate) fn prepare(
    py: Python<'_>,
    plan: &str,
    path: Option<PathBuf>,
    shown: bool,
    connected: bool,
) -> PyResult<Prepared> {
    let preparation = Preparation { path, is_shown: shown, is_connected: connected };
    let prepared = py.detach(|| {
        Plan::from_json(plan).and_then(|plan| loadstone_engine::Prepared::new(&plan, preparation))
    });
    Ok(Prepared { run: prepared.map_err(|refusal| raised(&refusal))? })
}

/// Make two plans (JSON) ready that take turns, each in the way of `prepare` with `connected`.
///
/// The closed loops have `turn` iterations in each turn, and the load of one waits while the
/// other's is under way. Start them with `start_with`.
#[pyfunction]
#[pyo3(signature = (plan, path, other_plan, other_path))]
pub(crate) fn prepare_pair(
    py: Python<'_>,
    plan: &str,
    path: Option<PathBuf>,
    other_plan: &str,
    other_path: Option<PathBuf>,
) -> PyResult<(Prepared, Prepared)> {
    let preparations =
        [path, other_path].map(|path| Preparation { path, is_shown: false, is_connected: true });
    let prepared = py.detach(|| {
        let (plan, other) = (Plan::from_json(plan)?, Plan::from_json(other_plan)?);
        loadstone_engine::Prepared::pair([&plan, &other], preparations)
    });
    let [run, other] = prepared.map_err(|refusal| raised(&refusal))?;
    Ok((Prepared { run }, Prepared { run: other }))
}

/// Rows, and the numbers of the iterations that have ended.
type FreshColumns<'py> = (Bound<'py, PyDict>, Bound<'py, PyArray1<u32>>);

/// A run whose threads wait for its start. Only `loadstone.engine.local` holds one.
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
        self.run.start(at).map_err(|refusal| raised(&refusal))
    }

    /// Start the load together with that of another run.
    fn start_with(&self, other: &Self) -> PyResult<()> {
        self.run.start_with(&other.run).map_err(|refusal| raised(&refusal))
    }

    /// Counts so far, as `watch` gets them.
    fn counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        counts(py, &self.run.progress())
    }

    /// Latencies of the iterations that have ended well so far, per bucket.
    fn latencies(&self) -> Vec<u64> {
        self.run.latencies()
    }

    /// Take up nothing that is due at or after `due_ns` (nanoseconds since the start).
    ///
    /// An instant that has come is refused. From any thread.
    fn stop_at(&self, due_ns: i64) -> PyResult<()> {
        self.run.stop_at(due_ns).map_err(|refusal| raised(&refusal))
    }

    /// Give up what is under way; before the start, the run itself.
    fn abandon(&self) {
        self.run.abandon();
    }

    /// Rows measured since the last look, and which iterations have ended since; also after the end.
    ///
    /// Only of a run that was prepared with `shown`.
    fn fresh<'py>(&self, py: Python<'py>) -> PyResult<Option<FreshColumns<'py>>> {
        let Some(fresh) = self.run.fresh() else { return Ok(None) };
        Ok(Some((columns(py, fresh.rows)?, fresh.ended.into_pyarray(py))))
    }

    /// Wait for the end: the columns of the sample table (with a file, the number of its rows), and
    /// what the engine says of itself.
    ///
    /// Every `tick_s` the calling thread looks for signals and calls `watch` with the counts so far;
    /// False stops the run. Ctrl-C stops it, too, and is told as `interrupted`; a second one gives
    /// up what is under way. An exception of `watch` ends the run at once and is raised.
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
        let watched = self.watched(py, watch, tick);
        let done = py.detach(|| catch_unwind(AssertUnwindSafe(|| self.run.finish())));
        let mut is_interrupted = watched?;
        // A Ctrl-C at the last moment must not lose what was measured either.
        is_interrupted |= match py.check_signals() {
            Err(error) if error.is_instance_of::<PyKeyboardInterrupt>(py) => true,
            looked => looked.map(|()| false)?,
        };
        let done = done.map_err(|_| PyRuntimeError::new_err("the engine has a bug"))?;
        let (kept, health) = done.map_err(|refusal| raised(&refusal))?;
        let kept = match kept {
            Kept::Columns(samples) => columns(py, *samples)?.into_any(),
            Kept::File(rows) => rows.into_pyobject(py)?.into_any(),
        };
        let health = as_dict(py, &health)?;
        health.set_item("interrupted", is_interrupted)?;
        Ok((kept, health))
    }
}

impl Prepared {
    /// Keeps watch until the run has ended: whether it was interrupted by Ctrl-C.
    fn watched(
        &self,
        py: Python<'_>,
        watch: Option<&Bound<'_, PyAny>>,
        tick: Duration,
    ) -> PyResult<bool> {
        let mut is_interrupted = false;
        while !py.detach(|| self.run.wait(tick)) {
            match look(py, &self.run, watch) {
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

/// One look at signals and counts: whether the run goes on.
fn look(
    py: Python<'_>,
    engine: &loadstone_engine::Prepared,
    watch: Option<&Bound<'_, PyAny>>,
) -> PyResult<bool> {
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
    values.set_item("lag_buckets", buckets(&health.lag))?;
    values.set_item("wait_buckets", buckets(&health.wait))?;
    Ok(values)
}

/// Highest value and count of each bucket.
fn buckets(histogram: &Histogram) -> Vec<(u64, u64)> {
    histogram.buckets().collect()
}
