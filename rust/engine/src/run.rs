//! A run: prepared, carried out on its threads, watched and stopped from outside.

use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Barrier, OnceLock};
use std::thread::ScopedJoinHandle;
use std::time::Instant;

use tokio::task::LocalSet;

use crate::clock::{Clock, nanos};
use crate::control::{Command, Control};
use crate::dispatch::{dispatch, grid_ns, keep_deadlines};
use crate::fresh::{Fresh, Window};
use crate::health::{Health, Histogram, ThreadCost};
use crate::pacer::{Pacer, Share};
use crate::plan::{Http, Load, Placement, Plan, Reuse};
use crate::progress::{Counters, Progress};
use crate::recorder::Recorder;
use crate::samples::Samples;
use crate::script::Script;
use crate::table::{Parts, Spill};
use crate::target::Target;
use crate::worker::{Assignment, Record, Timeouts, Worker};
use crate::{Refusal, http2, machine};

/// What a run measured.
#[derive(Debug)]
pub struct Measured {
    /// A row per request.
    pub samples: Samples,
    /// What the generator says of itself.
    pub health: Health,
}

/// What a run measured whose samples went to a file.
#[derive(Debug)]
pub struct Spilled {
    /// How many.
    pub rows: u64,
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
    window: Option<Window>,
}

/// Rows for which memory is set aside at most; pages are only taken as they are written.
const MOST_EXPECTED_ROWS: f64 = 5e6;

impl Run {
    /// Looks up the host, reads the files that the plan names and lays out the requests.
    pub fn prepare(plan: &Plan) -> Result<Self, Refusal> {
        let script = Arc::new(Script::new(plan)?);
        let target = Arc::new(Target::new(&plan.origin, plan.placement.http)?);
        machine::require(plan, target.is_local())?;
        let connect_ns = nanos(plan.limits.connect_timeout_s);
        if plan.placement.http == Http::Two {
            http2::require(&plan.origin, &target, connect_ns)?;
        }
        let threads = match plan.load {
            Load::Open { .. } | Load::Stages { .. } | Load::Replay { .. } => plan.placement.threads,
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
                connect_ns,
                request_ns: nanos(plan.limits.request_timeout_s),
                iteration_ns: plan.limits.iteration_timeout_s.map_or(i64::MAX, nanos),
                drain_ns: nanos(plan.limits.drain_s),
            },
            script,
            target,
            control: Control::new(threads),
            counters: (0..threads).map(|_| Arc::default()).collect(),
            start: OnceLock::new(),
            window: None,
        })
    }

    /// Has what is measured shown while the run goes on: `fresh` gives it.
    #[must_use]
    pub fn shown(self) -> Self {
        Self { window: Some(Window::default()), ..self }
    }

    /// What was measured since the last look, where it is shown and goes to a file.
    pub fn fresh(&self) -> Option<Fresh> {
        self.window.as_ref().map(Window::take)
    }

    /// Carries the plan out and keeps every sample in memory.
    pub fn execute(&self) -> Result<Measured, Refusal> {
        let (tables, health) = self.carry_out(None)?;
        Ok(Measured { samples: Samples::merge(tables), health })
    }

    /// Carries the plan out; the samples go to a file as they come, and memory stays flat.
    ///
    /// Until the file is complete, what was measured lies beside it, in the folder `<path>.parts`.
    pub fn execute_into(&self, path: &Path) -> Result<Spilled, Refusal> {
        let mut parts = Parts::create(path)?;
        let (spill, chunks) = Parts::channel();
        let (carried, written) = std::thread::scope(|scope| {
            let parts = &mut parts;
            let writer = scope.spawn(move || {
                self.control.unless_fine(|| {
                    machine::leave(&self.placement.cores);
                    parts.take(chunks)
                })
            });
            let carried = self.carry_out(Some(&spill));
            drop(spill);
            (carried, joined(writer))
        });
        written?;
        let (_, health) = carried?;
        Ok(Spilled { rows: parts.join()?, health })
    }

    /// Runs the threads to their end: what each of them kept, and what they cost.
    fn carry_out(&self, spill: Option<&Spill>) -> Result<(Vec<Samples>, Health), Refusal> {
        let threads = self.placement.threads;
        let started = Arc::new(AtomicU32::new(0));
        let barrier = Barrier::new(threads.into());
        let parts: Result<Vec<_>, Refusal> = std::thread::scope(|scope| {
            let handles: Vec<_> = (0..threads)
                .map(|thread| {
                    let (started, barrier, spill) = (started.clone(), &barrier, spill.cloned());
                    scope.spawn(move || {
                        self.control.unless_fine(|| self.work(thread, started, barrier, spill))
                    })
                })
                .collect();
            handles.into_iter().map(joined).collect()
        });
        let start = self.start.get().copied().unwrap_or_else(Instant::now);
        Ok(summed_up(parts?, start.elapsed().as_secs_f64(), threads))
    }

    /// One thread's whole life.
    fn work(
        &self,
        thread: u16,
        started: Arc<AtomicU32>,
        barrier: &Barrier,
        spill: Option<Spill>,
    ) -> Result<(Record, ThreadCost), Refusal> {
        let prepared =
            machine::bind(&self.placement.cores, thread).and_then(|()| machine::runtime());
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
            http: self.placement.http,
            recorder: match spill {
                Some(spill) => Recorder::spilling(spill, self.window.clone()),
                None => Recorder::keeping(self.expected_rows()),
            },
        }));
        let grid_ns = grid_ns(self.load.highest_rps() / f64::from(share.threads));
        let tasks = LocalSet::new();
        tasks.spawn_local(keep_deadlines(worker.clone()));
        let dispatched = dispatch(&worker, &self.control, thread.into(), grid_ns);
        runtime
            .block_on(tasks.run_until(dispatched))
            .map_err(|error| Refusal::Environment(format!("no timer can be set: {error}")))?;
        drop(tasks);
        Ok((worker.into_record(), ThreadCost::so_far().since(before)))
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "between 0 and 5 million"
    )]
    fn expected_rows(&self) -> usize {
        let iterations = self.load.expected().unwrap_or(1e6);
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

fn joined<T>(handle: ScopedJoinHandle<'_, T>) -> T {
    match handle.join() {
        Ok(value) => value,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a histogram's nanoseconds")]
fn summed_up(
    parts: Vec<(Record, ThreadCost)>,
    wall_s: f64,
    threads: u16,
) -> (Vec<Samples>, Health) {
    let mut health = Health { wall_s, threads, ..Health::default() };
    let mut lag = Histogram::new();
    let mut tables = Vec::new();
    for (record, cost) in parts {
        lag.merge(&record.lag);
        tables.push(record.recorder.finish());
        health.cpu_s += cost.cpu_s;
        health.runqueue_wait_s += cost.runqueue_wait_s;
        health.retries += record.retries;
        health.connections += record.connections;
    }
    health.lag_p50_ms = lag.quantile(0.5) as f64 / 1e6;
    health.lag_p99_ms = lag.quantile(0.99) as f64 / 1e6;
    health.lag_max_ms = lag.max() as f64 / 1e6;
    (tables, health)
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
