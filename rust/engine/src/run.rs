//! Runs: threads that execute a plan, and their control from other threads.

use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use std::thread::{Builder, ScopedJoinHandle};
use std::time::{Duration, Instant, SystemTime};

use tokio::task::LocalSet;

use crate::alternation::{Alternation, Side};
use crate::barrier::{BarrierError, StartBarrier};
use crate::clock::{Clock, nanos};
use crate::control::{Command, Control};
use crate::dispatch::{dispatch, grid_ns, keep_deadlines};
use crate::health::{Health, Histogram, ThreadCost};
use crate::live::{LiveBuffer, LiveSamples};
use crate::outcome::Outcome;
use crate::pacer::{Pacer, Partition};
use crate::plan::{Http, Limits, Load, Placement, Plan};
use crate::progress::{Counters, LATENCY_BUCKETS, Progress, p99_ns};
use crate::recorder::Recorder;
use crate::samples::Samples;
use crate::script::Script;
use crate::table::{ChunkSender, PartFiles};
use crate::target::Target;
use crate::worker::{RunContext, Timeouts, Worker, WorkerConfig, WorkerResult};
use crate::{Error, http2, pool, runner, system};

/// Samples of a run.
#[derive(Debug)]
pub enum SampleStore {
    /// Samples in memory.
    Memory(Box<Samples>),
    /// Number of samples in the file.
    File(u64),
}

/// Run of a plan. Other threads watch and stop it.
pub(crate) struct Run {
    load: Load,
    placement: Placement,
    limits: Limits,
    context: Arc<RunContext>,
    control: Control,
    counters: Vec<Arc<Counters>>,
    barrier: StartBarrier,
    /// Connections are opened before the start.
    connect: bool,
    start: OnceLock<Instant>,
    /// Alternation with another run.
    side: Option<Side>,
    live: Option<LiveBuffer>,
}

/// Limit on rows that memory is reserved for; pages are allocated when they are written.
const MAX_EXPECTED_ROWS: f64 = 5e6;

impl Run {
    /// Resolves the host, reads the files that the plan names and compiles the requests.
    pub(crate) fn prepare(plan: &Plan) -> Result<Self, Error> {
        let (script, target) = (Script::new(plan)?, Target::new(plan)?);
        system::require_resources(&[plan])?;
        let connect_ns = nanos(plan.limits.connect_timeout_s);
        if plan.placement.http == Http::Two {
            http2::require_http2(&plan.origin, &target, connect_ns)?;
        }
        let threads = match plan.load {
            Load::Open { .. } | Load::Stages { .. } | Load::Replay { .. } => plan.placement.threads,
            // At most one thread per worker: one without would not learn of the end.
            Load::Closed { workers, .. } => {
                let each = workers / u32::from(plan.placement.parts);
                plan.placement.threads.min(u16::try_from(each).unwrap_or(u16::MAX))
            }
            // A band is one number of running iterations, which threads cannot divide.
            Load::Band { .. } => 1,
        };
        Ok(Self {
            load: plan.load.clone(),
            placement: Placement { threads, ..plan.placement.clone() },
            limits: plan.limits.clone(),
            context: Arc::new(RunContext {
                script,
                target,
                timeouts: Timeouts {
                    connect_ns,
                    request_ns: nanos(plan.limits.request_timeout_s),
                    iteration_ns: plan.limits.iteration_timeout_s.map_or(i64::MAX, nanos),
                    drain_ns: nanos(plan.limits.drain_s),
                    stopped_drain_ns: nanos(
                        plan.limits.stopped_drain_s.unwrap_or(plan.limits.drain_s),
                    ),
                },
                reuse: plan.connection,
                retries: plan.retries,
                http: plan.placement.http,
            }),
            control: Control::new(threads),
            counters: (0..threads).map(|_| Arc::default()).collect(),
            barrier: StartBarrier::new(threads),
            connect: false,
            start: OnceLock::new(),
            side: None,
            live: None,
        })
    }

    /// Prepares two runs that alternate: one waits while the other sends.
    pub(crate) fn prepare_pair(plans: [&Plan; 2]) -> Result<[Self; 2], Error> {
        let [one, other] = plans;
        let length = turn_length(one)?;
        if turn_length(other)? != length {
            return Err(Error::plan("load.turn", "must be the same for both sides"));
        }
        system::require_resources(&plans)?;
        let [first, second] = Alternation::sides(length, one.seed);
        let prepare = |plan, side| Self::prepare(plan).map(|run| Self { side: Some(side), ..run });
        Ok([prepare(one, first)?, prepare(other, second)?])
    }

    /// With `live`, publishes samples during the run (without a file they are then not kept). With
    /// `connect`, opens connections before the start and refuses a target that does not accept any.
    pub(crate) fn with_options(self, live: bool, connect: bool) -> Self {
        Self { live: live.then(LiveBuffer::default), connect, ..self }
    }

    /// Waits until every thread is ready to start. Returns false if one has failed.
    pub(crate) fn wait_until_ready(&self) -> Result<bool, Error> {
        Ok(system::runtime()?.block_on(self.barrier.all_ready()))
    }

    /// Starts two runs at the same instant, so that their times are comparable.
    pub(crate) fn start_both(runs: [&Self; 2]) -> Result<(), Error> {
        let now = Instant::now();
        runs.into_iter().try_for_each(|run| run.open(now))
    }

    /// Starts the run at an instant, or at once. An instant in the past is refused.
    pub(crate) fn start(&self, at: Option<SystemTime>) -> Result<(), Error> {
        let refuse = |reason: String| Err(Error::Environment(reason));
        let now = Instant::now();
        let ahead = at.map_or(Ok(Duration::ZERO), |at| at.duration_since(SystemTime::now()));
        let start = match ahead {
            Ok(ahead) => now.checked_add(ahead),
            Err(error) => {
                let late_s = error.duration().as_secs_f64();
                return refuse(format!(
                    "the start is {late_s:.3} s in the past: give one that is further ahead, and \
                     see that the machines' clocks agree (chronyc tracking)"
                ));
            }
        };
        start.map_or_else(|| refuse("the start is too far ahead".to_owned()), |at| self.open(at))
    }

    fn open(&self, start: Instant) -> Result<(), Error> {
        let refuse = |reason: String| Err(Error::Environment(reason));
        match self.barrier.open(start) {
            Ok(()) => {
                self.start.get_or_init(|| start);
                Ok(())
            }
            Err(BarrierError::AlreadyOpened) => refuse("the run was started before".to_owned()),
            Err(BarrierError::Cancelled) => refuse(CANCELLED.to_owned()),
        }
    }

    /// Whether a start was set.
    pub(crate) fn is_started(&self) -> bool {
        self.start.get().is_some()
    }

    /// Stops before the first iteration that is due at or after `due_ns` (nanoseconds since the
    /// start). A time that has passed is refused.
    pub(crate) fn stop_at(&self, due_ns: i64) -> Result<(), Error> {
        let Some(&start) = self.start.get() else {
            return Err(Error::Environment("the run was not started yet".to_owned()));
        };
        let clock = Clock::starting_at(start);
        let late = |now_ns: i64, what: &str| {
            Err(Error::Environment(format!(
                "the run cannot stop at {} s: it has lasted {} s{what}",
                seconds(due_ns),
                seconds(now_ns)
            )))
        };
        let now_ns = clock.now_ns();
        if now_ns >= due_ns {
            return late(now_ns, "");
        }
        self.control.stop_at(due_ns);
        let now_ns = clock.now_ns();
        if now_ns >= due_ns {
            return late(now_ns, " by now; it ends, maybe some iterations later");
        }
        Ok(())
    }

    /// Takes the samples since the last call, if they are published; also after the end.
    pub(crate) fn live_samples(&self) -> Option<LiveSamples> {
        self.live.as_ref().map(LiveBuffer::take)
    }

    /// Executes the plan once the run is started. Samples stay in memory, or go to the file at
    /// `path`.
    ///
    /// Until the file is complete, its parts are in the folder `<path>.parts`.
    pub(crate) fn execute(&self, path: Option<&Path>) -> Result<(SampleStore, Health), Error> {
        let Some(path) = path else {
            let (tables, health) = self.run_threads(None)?;
            return Ok((SampleStore::Memory(Box::new(Samples::merge(tables))), health));
        };
        let mut parts = PartFiles::create(path)?;
        let (sender, chunks) = PartFiles::channel();
        let ended = std::thread::scope(|scope| {
            let parts = &mut parts;
            let write = move || {
                self.control.abandon_on_error(|| {
                    system::avoid_cores(&self.placement.cores);
                    parts.write_all(chunks)
                })
            };
            let writer = Builder::new().spawn_scoped(scope, write);
            let writer = writer.map_err(|error| {
                Error::Environment(format!("the thread that writes cannot be started: {error}"))
            })?;
            let measured = self.run_threads(Some(&sender));
            drop(sender);
            join(writer)?;
            measured
        });
        match ended {
            Ok((_, health)) => Ok((SampleStore::File(parts.join()?), health)),
            Err(error) => {
                parts.remove_if_empty();
                Err(error)
            }
        }
    }

    /// Runs the threads until they end. Returns the samples that each has in memory, and the
    /// health.
    fn run_threads(&self, chunks: Option<&ChunkSender>) -> Result<(Vec<Samples>, Health), Error> {
        let threads = self.placement.threads;
        let started = Arc::new(AtomicU64::new(0));
        let parts: Result<Vec<_>, Error> = std::thread::scope(|scope| {
            let mut handles = Vec::new();
            let mut spawn_error = None;
            for thread in 0..threads {
                let (started, chunks) = (started.clone(), chunks.cloned());
                let run = move || {
                    self.control.abandon_on_error(|| self.run_thread(thread, started, chunks))
                };
                match Builder::new().spawn_scoped(scope, run) {
                    Ok(handle) => handles.push(handle),
                    Err(error) => {
                        self.barrier.cancel();
                        spawn_error = Some(too_many_threads(thread, threads, &error));
                        break;
                    }
                }
            }
            let results: Vec<_> = handles.into_iter().map(join).collect();
            spawn_error.map_or_else(|| results.into_iter().collect(), Err)
        });
        let parts: Vec<_> = parts?.into_iter().flatten().collect();
        let Some(start) = self.start.get().filter(|_| !parts.is_empty()) else {
            return Err(Error::Environment(CANCELLED.to_owned()));
        };
        Ok(merge_results(parts, start.elapsed().as_secs_f64(), threads))
    }

    /// Runs a thread from preparation to end. Returns none if the run was cancelled before its
    /// start.
    fn run_thread(
        &self,
        thread: u16,
        started: Arc<AtomicU64>,
        chunks: Option<ChunkSender>,
    ) -> Result<Option<(WorkerResult, ThreadCost)>, Error> {
        let participant = self.barrier.participant();
        system::pin_thread(&self.placement.cores, thread)?;
        let runtime = system::runtime()?;
        let in_load = Partition::of_thread(thread, &self.placement);
        let worker = self.worker(thread, started, chunks);
        let grid_ns = grid_ns(self.load.highest_rps() / f64::from(in_load.count));
        let tasks = LocalSet::new();
        let result: Result<_, Error> = tasks.block_on(&runtime, async {
            if self.connect {
                let connected = pool::connect_ahead(&worker).await;
                connected.map_err(|failure| self.connect_error(failure))?;
            }
            let Some(start) = participant.wait().await else { return Ok(None) };
            let before = ThreadCost::so_far();
            worker.start_at(*self.start.get_or_init(|| start));
            tokio::task::spawn_local(keep_deadlines(worker.clone()));
            dispatch(&worker, &self.control, self.side.as_ref(), thread.into(), grid_ns)
                .await
                .map_err(|error| Error::Environment(format!("no timer can be set: {error}")))?;
            Ok(Some(before))
        });
        drop(tasks);
        let Some(before) = result? else { return Ok(None) };
        Ok(Some((worker.into_result(), ThreadCost::so_far().since(before))))
    }

    fn worker(
        &self,
        thread: u16,
        started: Arc<AtomicU64>,
        chunks: Option<ChunkSender>,
    ) -> Rc<Worker> {
        let in_process = Partition { index: thread, count: self.placement.threads };
        let in_load = Partition::of_thread(thread, &self.placement);
        let part = Partition { index: self.placement.part, count: self.placement.parts };
        let pacer = Pacer::new(&self.load, &self.limits, in_load, part, started);
        Rc::new(Worker::new(WorkerConfig {
            context: self.context.clone(),
            counters: self.counters[usize::from(thread)].clone(),
            pacer: pacer.stopping_at(self.control.stop_at.clone()).alternating(self.side.clone()),
            in_process,
            in_load,
            max_connections: self.limits.max_connections,
            recorder: Recorder::new(self.expected_rows(), part.index, chunks, self.live.clone()),
            spawn: runner::spawn,
        }))
    }

    fn connect_error(&self, failure: Outcome) -> Error {
        let addresses: Vec<_> =
            self.context.target.addresses.iter().map(ToString::to_string).collect();
        let reason = match failure {
            Outcome::Refused => "connection refused",
            Outcome::ConnectTimeout => "no answer in time",
            Outcome::TlsFailed => "the TLS handshake failed",
            Outcome::CertificateExpired => "its TLS certificate has expired",
            Outcome::NoPort => "no local port is free",
            Outcome::NoFile => "no further file may be opened (ulimit -n)",
            _ => "it failed",
        };
        Error::Environment(format!("cannot connect to {}: {reason}", addresses.join(", ")))
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "between 0 and 5 million"
    )]
    fn expected_rows(&self) -> usize {
        let iterations = self.load.expected().unwrap_or(1e6);
        let rows = iterations * self.context.script.steps.len() as f64;
        (rows.min(MAX_EXPECTED_ROWS) / f64::from(self.placement.threads)).ceil() as usize
    }

    /// Returns the progress so far.
    pub(crate) fn progress(&self) -> Progress {
        let mut progress = Progress::default();
        let mut lags = vec![0; LATENCY_BUCKETS];
        for counters in &self.counters {
            counters.add_to(&mut progress);
            counters.add_lags_to(&mut lags);
        }
        progress.lag_p99_ns = p99_ns(&lags);
        let elapsed = self.start.get().map_or(0, |start| start.elapsed().as_nanos());
        progress.elapsed_ns = u64::try_from(elapsed).unwrap_or(u64::MAX);
        progress
    }

    /// Returns the histogram of latencies of successful iterations so far.
    pub(crate) fn latencies(&self) -> Vec<u64> {
        let mut counts = vec![0; LATENCY_BUCKETS];
        for counters in &self.counters {
            counters.add_latencies_to(&mut counts);
        }
        counts
    }

    /// Starts no further iteration; running ones have the drain time to end.
    pub(crate) fn stop(&self) {
        self.control.send(Command::Stop);
    }

    /// Aborts running iterations, too; before the start, cancels the run.
    pub(crate) fn abandon(&self) {
        self.control.send(Command::Abandon);
        self.barrier.cancel();
        if let Some(side) = &self.side {
            side.close();
        }
    }
}

const CANCELLED: &str = "the run was given up before its start";

/// Returns the iterations per turn of an alternating run.
fn turn_length(plan: &Plan) -> Result<u32, Error> {
    let Load::Closed { turn: Some(length), .. } = plan.load else {
        return Err(Error::plan("load.turn", "is needed by runs that take turns"));
    };
    if plan.placement.threads > 1 || plan.placement.parts > 1 {
        let reason = "must be 1 for runs that take turns: their iterations are counted together";
        return Err(Error::plan("placement.threads", reason));
    }
    Ok(length)
}

#[expect(clippy::cast_precision_loss, reason = "to be read")]
fn seconds(at_ns: i64) -> String {
    format!("{:.3}", at_ns as f64 / 1e9)
}

fn too_many_threads(thread: u16, threads: u16, error: &std::io::Error) -> Error {
    Error::Environment(format!(
        "thread {} of {threads} cannot be started: {error}; use fewer threads (placement.threads), \
         or raise the limit on processes (ulimit -u) or memory (ulimit -v)",
        thread + 1
    ))
}

fn join<T>(handle: ScopedJoinHandle<'_, T>) -> T {
    match handle.join() {
        Ok(value) => value,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a histogram's nanoseconds")]
fn merge_results(
    results: Vec<(WorkerResult, ThreadCost)>,
    wall_s: f64,
    threads: u16,
) -> (Vec<Samples>, Health) {
    let mut health = Health { wall_s, threads, ..Health::default() };
    let (mut lag, mut waits) = (Histogram::default(), Histogram::default());
    let mut tables = Vec::new();
    for (result, cost) in results {
        lag.merge(&result.lag);
        waits.merge(&result.waits);
        tables.push(result.recorder.finish());
        health.cpu_s += cost.cpu_s;
        health.runqueue_wait_s += cost.runqueue_wait_s;
        health.retries += result.retries;
        health.connections += result.connections;
        health.throttled += result.throttled.iterations;
        health.throttled_s += result.throttled.delay_s;
        health.is_cut_short |= result.is_cut_short;
        health.without_port += result.without_port;
        health.without_file += result.without_file;
    }
    health.waited = waits.total();
    waits.record_zeros(lag.total() - waits.total());
    health.lag_p50_ms = lag.quantile(0.5) as f64 / 1e6;
    health.lag_p99_ms = lag.quantile(0.99) as f64 / 1e6;
    health.lag_max_ms = lag.max() as f64 / 1e6;
    health.wait_p99_ms = waits.quantile(0.99) as f64 / 1e6;
    health.wait_max_ms = waits.max() as f64 / 1e6;
    (health.lag, health.wait) = (lag, waits);
    (tables, health)
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
