//! Prepared runs: everything is done before the first request, then the load starts at an instant.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, SystemTime};

use crate::Error;
use crate::health::Health;
use crate::live::LiveSamples;
use crate::plan::Plan;
use crate::progress::Progress;
use crate::run::{Run, SampleStore};

/// Options of a prepared run.
#[derive(Debug, Default)]
pub struct PrepareOptions {
    /// Parquet file for the samples; without one they stay in memory.
    pub path: Option<PathBuf>,
    /// Whether to publish samples (`Prepared::live_samples`), which without a file are not kept.
    pub live: bool,
    /// Whether to open connections before the start, and to refuse a target that does not accept
    /// any.
    pub connect: bool,
}

/// Run whose threads wait for the start: the host is resolved, requests are compiled, memory is
/// reserved and connections are open. Dropping it aborts the run.
pub struct Prepared {
    run: Arc<Run>,
    execution: Mutex<Option<Execution>>,
    ended: Mutex<Receiver<()>>,
}

type Execution = JoinHandle<Result<(SampleStore, Health), Error>>;

impl Prepared {
    /// Prepares two runs that alternate: one waits while the other sends.
    pub fn pair(plans: [&Plan; 2], options: [PrepareOptions; 2]) -> Result<[Self; 2], Error> {
        let ([run, other], [own, others]) = (Run::prepare_pair(plans)?, options);
        Ok([Self::spawn(run, own)?, Self::spawn(other, others)?])
    }

    /// Prepares a run. Returns when all its threads are ready.
    pub fn new(plan: &Plan, options: PrepareOptions) -> Result<Self, Error> {
        Self::spawn(Run::prepare(plan)?, options)
    }

    fn spawn(run: Run, options: PrepareOptions) -> Result<Self, Error> {
        let run = Arc::new(run.with_options(options.live, options.connect));
        let (sender, ended) = channel();
        let execute = {
            let (run, path) = (run.clone(), options.path);
            let guard = EndGuard { run: run.clone(), _ended: sender };
            move || {
                let _guard = guard;
                run.execute(path.as_deref())
            }
        };
        let execution = Builder::new()
            .spawn(execute)
            .map_err(|error| Error::Environment(format!("no thread can be started: {error}")))?;
        let execution = Mutex::new(Some(execution));
        let prepared = Self { run, execution, ended: Mutex::new(ended) };
        if prepared.run.wait_until_ready()? {
            return Ok(prepared);
        }
        match prepared.finish() {
            Err(error) => Err(error),
            Ok(_) => Err(Error::Environment("the run ended before its start".to_owned())),
        }
    }

    /// Starts the load at an instant, or at once. An instant in the past is refused.
    pub fn start(&self, at: Option<SystemTime>) -> Result<(), Error> {
        self.run.start(at)
    }

    /// Starts the load together with that of another run.
    pub fn start_with(&self, other: &Self) -> Result<(), Error> {
        Run::start_both([&self.run, &other.run])
    }

    /// Stops before the first iteration that is due at or after `due_ns` (nanoseconds since the
    /// start). A time that has passed is refused: later iterations may have started.
    pub fn stop_at(&self, due_ns: i64) -> Result<(), Error> {
        self.run.stop_at(due_ns)
    }

    /// Starts no further iteration; running ones have the drain time to end.
    pub fn stop(&self) {
        self.run.stop();
    }

    /// Aborts running iterations, too; before the start, cancels the run.
    pub fn abandon(&self) {
        self.run.abandon();
    }

    /// Whether `start` was called.
    pub fn is_started(&self) -> bool {
        self.run.is_started()
    }

    /// Returns the progress so far.
    pub fn progress(&self) -> Progress {
        self.run.progress()
    }

    /// Returns the histogram of latencies of successful iterations so far.
    pub fn latencies(&self) -> Vec<u64> {
        self.run.latencies()
    }

    /// Takes the samples since the last call, if they are published; also after the end.
    pub fn live_samples(&self) -> Option<LiveSamples> {
        self.run.live_samples()
    }

    /// Waits for the end of the run, for a limited time. Returns whether it has ended.
    pub fn wait(&self, limit: Duration) -> bool {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        ended.recv_timeout(limit) != Err(RecvTimeoutError::Timeout)
    }

    /// Waits for the end and returns samples and health. A second call is an error.
    pub fn finish(&self) -> Result<(SampleStore, Health), Error> {
        let Some(execution) = self.execution() else {
            return Err(Error::Environment("the run has ended before".to_owned()));
        };
        execution.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    fn execution(&self) -> Option<Execution> {
        self.execution.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Guard that is dropped when the run ends, also by a panic, and ends all waits for it.
struct EndGuard {
    run: Arc<Run>,
    _ended: Sender<()>,
}

impl Drop for EndGuard {
    fn drop(&mut self) {
        self.run.abandon();
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        if let Some(execution) = self.execution() {
            self.run.abandon();
            // Samples and errors of an aborted run are discarded.
            let _ = execution.join();
        }
    }
}
