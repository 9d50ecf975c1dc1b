//! A run: prepared, carried out on its threads, watched and stopped from outside.

use std::rc::Rc;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Barrier, OnceLock};
use std::time::Instant;

use rustix::process::{Resource, getpriority_process, getrlimit, setpriority_process, setrlimit};
use rustix::thread::{CpuSet, sched_setaffinity, set_current_timer_slack};
use tokio::task::LocalSet;

use crate::Refusal;
use crate::clock::{Clock, nanos};
use crate::control::{Command, Control};
use crate::dispatch::{dispatch, grid_ns, keep_deadlines};
use crate::health::{Health, Histogram, ThreadCost};
use crate::pacer::{Pacer, Share};
use crate::plan::{Load, Placement, Plan, Reuse};
use crate::progress::{Counters, Progress};
use crate::samples::Samples;
use crate::script::Script;
use crate::target::Target;
use crate::worker::{Assignment, Record, Timeouts, Worker};

/// What a run measured.
#[derive(Debug)]
pub struct Measured {
    /// A row per request.
    pub samples: Samples,
    /// What the generator says of itself.
    pub health: Health,
}

/// A plan made ready: carried out once, watched and stopped from other threads.
pub struct Run {
    load: Load,
    placement: Placement,
    max_connections: u16,
    reuse: Reuse,
    timeouts: Timeouts,
    script: Arc<Script>,
    target: Arc<Target>,
    control: Control,
    counters: Vec<Arc<Counters>>,
    start: OnceLock<Instant>,
}

/// Nice value of the engine's threads, where it may be set.
const PRIORITY: i32 = -10;
/// Descriptors that the process needs beside the connections.
const SPARE_DESCRIPTORS: u64 = 64;
/// Rows for which memory is set aside at most; pages are only taken as they are written.
const MOST_EXPECTED_ROWS: f64 = 5e6;

impl Run {
    /// Looks up the host, reads the files that the plan names and lays out the requests.
    pub fn prepare(plan: &Plan) -> Result<Self, Refusal> {
        let script = Arc::new(Script::new(plan)?);
        raise_descriptors(u64::from(plan.limits.max_connections) + SPARE_DESCRIPTORS)?;
        let threads = match plan.load {
            Load::Open { .. } => plan.placement.threads,
            // A thread without a worker would have nothing to do, and not learn of the end.
            Load::Closed { workers, .. } => {
                plan.placement.threads.min(u16::try_from(workers).unwrap_or(u16::MAX))
            }
            // A band is one number in flight: no thread could keep its share of it alone.
            Load::Band { .. } => 1,
        };
        Ok(Self {
            load: plan.load.clone(),
            placement: Placement { threads, ..plan.placement.clone() },
            max_connections: plan.limits.max_connections,
            reuse: plan.connection,
            timeouts: Timeouts {
                connect_ns: nanos(plan.limits.connect_timeout_s),
                request_ns: nanos(plan.limits.request_timeout_s),
                iteration_ns: plan.limits.iteration_timeout_s.map_or(i64::MAX, nanos),
                drain_ns: nanos(plan.limits.drain_s),
            },
            script,
            target: Arc::new(Target::new(&plan.origin)?),
            control: Control::new(threads),
            counters: (0..threads).map(|_| Arc::default()).collect(),
            start: OnceLock::new(),
        })
    }

    /// Carries the plan out.
    pub fn execute(&self) -> Result<Measured, Refusal> {
        let threads = self.placement.threads;
        let started = Arc::new(AtomicU32::new(0));
        let barrier = Barrier::new(threads.into());
        let parts: Result<Vec<_>, Refusal> = std::thread::scope(|scope| {
            let handles: Vec<_> = (0..threads)
                .map(|thread| {
                    let (started, barrier) = (started.clone(), &barrier);
                    scope.spawn(move || self.work(thread, started, barrier))
                })
                .collect();
            let join = |handle: std::thread::ScopedJoinHandle<'_, _>| match handle.join() {
                Ok(part) => part,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            handles.into_iter().map(join).collect()
        });
        let start = self.start.get().copied().unwrap_or_else(Instant::now);
        Ok(measured(parts?, start.elapsed().as_secs_f64(), threads))
    }

    /// One thread's whole life.
    fn work(
        &self,
        thread: u16,
        started: Arc<AtomicU32>,
        barrier: &Barrier,
    ) -> Result<(Record, ThreadCost), Refusal> {
        let prepared = self.bind(thread).and_then(|()| runtime());
        // Also after a failure, or the other threads would wait for ever.
        barrier.wait();
        let runtime = prepared?;
        let start = *self.start.get_or_init(Instant::now);
        let share = Share { thread, threads: self.placement.threads };
        let before = ThreadCost::so_far();
        let worker = Rc::new(Worker::new(Assignment {
            clock: Clock::starting_at(start),
            script: self.script.clone(),
            target: self.target.clone(),
            timeouts: self.timeouts,
            counters: self.counters[usize::from(thread)].clone(),
            pacer: Pacer::new(&self.load, share, started),
            share,
            max_connections: self.max_connections,
            reuse: self.reuse,
            expected_rows: self.expected_rows(),
        }));
        let grid_ns = grid_ns(self.rate_rps() / f64::from(share.threads));
        let tasks = LocalSet::new();
        tasks.spawn_local(keep_deadlines(worker.clone()));
        let dispatched = dispatch(&worker, &self.control, thread.into(), grid_ns);
        runtime
            .block_on(tasks.run_until(dispatched))
            .map_err(|error| Refusal::Environment(format!("no timer can be set: {error}")))?;
        drop(tasks);
        Ok((worker.into_record(), ThreadCost::so_far().since(before)))
    }

    fn bind(&self, thread: u16) -> Result<(), Refusal> {
        // The default of 50 us is added to every wake-up; without it they are only less precise.
        let _ = set_current_timer_slack(std::num::NonZeroU64::new(1));
        // On a machine that the service fills, a late generator would measure itself: it needs
        // little CPU, but at once. On Linux this is the thread's priority; it takes root. Whoever
        // started the program with another one (nice) meant it.
        if getpriority_process(None) == Ok(0) {
            let _ = setpriority_process(None, PRIORITY);
        }
        let cores = &self.placement.cores;
        if cores.is_empty() {
            return Ok(());
        }
        let core = usize::from(cores[usize::from(thread) % cores.len()]);
        let refuse = |reason: String| {
            Err(Refusal::plan("placement.cores", format!("core {core} cannot be used: {reason}")))
        };
        if core >= CpuSet::MAX_CPU {
            return refuse("there is none of that number".to_owned());
        }
        let mut set = CpuSet::new();
        set.set(core);
        sched_setaffinity(None, &set).or_else(|error| refuse(error.to_string()))
    }

    fn rate_rps(&self) -> f64 {
        match self.load {
            Load::Open { rate_rps, .. } => rate_rps,
            Load::Closed { .. } => 0.0,
            Load::Band { fill_rps, ebb_rps, .. } => fill_rps.max(ebb_rps),
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "between 0 and 5 million"
    )]
    fn expected_rows(&self) -> usize {
        let iterations = match self.load {
            Load::Open { duration_s, .. } | Load::Band { duration_s, .. } => {
                self.rate_rps() * duration_s
            }
            Load::Closed { iterations, .. } => iterations.map_or(1e6, f64::from),
        };
        let rows = iterations * self.script.steps.len() as f64;
        (rows.min(MOST_EXPECTED_ROWS) / f64::from(self.placement.threads)).ceil() as usize
    }

    /// Counts so far; from any thread, at any time.
    pub fn progress(&self) -> Progress {
        let mut progress = Progress::default();
        for counters in &self.counters {
            counters.add_to(&mut progress);
        }
        let elapsed = self.start.get().map_or(0, |start| start.elapsed().as_nanos());
        progress.elapsed_ns = u64::try_from(elapsed).unwrap_or(u64::MAX);
        progress
    }

    /// Takes up nothing more; what is under way goes on to its end or the drain's.
    pub fn stop(&self) {
        self.control.give(Command::Stop);
    }

    /// Gives up what is under way, too.
    pub fn abandon(&self) {
        self.control.give(Command::Abandon);
    }
}

fn runtime() -> Result<tokio::runtime::Runtime, Refusal> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Refusal::Environment(format!("no event loop can be made: {error}")))
}

/// Raises the soft limit of open files as far as is needed and allowed.
fn raise_descriptors(needed: u64) -> Result<(), Refusal> {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    if limit.maximum.is_none_or(|maximum| maximum >= needed) {
        limit.current = Some(needed);
        if setrlimit(Resource::Nofile, limit).is_ok() {
            return Ok(());
        }
    }
    let allowed = limit.maximum.unwrap_or(u64::MAX);
    Err(Refusal::Environment(format!(
        "{needed} open files are needed, {allowed} are allowed: ulimit -Hn {needed} (as root) \
         raises the limit, fewer connections do without"
    )))
}

#[expect(clippy::cast_precision_loss, reason = "a histogram's nanoseconds")]
fn measured(parts: Vec<(Record, ThreadCost)>, wall_s: f64, threads: u16) -> Measured {
    let mut health = Health { wall_s, threads, ..Health::default() };
    let mut lag = Histogram::new();
    let mut tables = Vec::new();
    for (record, cost) in parts {
        lag.merge(&record.lag);
        tables.push(record.samples);
        health.cpu_s += cost.cpu_s;
        health.runqueue_wait_s += cost.runqueue_wait_s;
        health.retries += record.retries;
        health.connections += record.connections;
    }
    health.lag_p50_ms = lag.quantile(0.5) as f64 / 1e6;
    health.lag_p99_ms = lag.quantile(0.99) as f64 / 1e6;
    health.lag_max_ms = lag.max() as f64 / 1e6;
    Measured { samples: Samples::merge(tables), health }
}
