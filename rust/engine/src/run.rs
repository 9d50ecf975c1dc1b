//! A run: prepared, carried out on its threads, watched and stopped from outside.

use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use std::thread::{Builder, ScopedJoinHandle};
use std::time::{Duration, Instant, SystemTime};

use tokio::task::LocalSet;

use crate::clock::{Clock, nanos};
use crate::control::{Command, Control};
use crate::dispatch::{dispatch, grid_ns, keep_deadlines};
use crate::fresh::{Fresh, Window};
use crate::gate::{Gate, Shut};
use crate::health::{Health, Histogram, ThreadCost};
use crate::pacer::{Pacer, Share};
use crate::plan::{Http, Limits, Load, Placement, Plan, Retries, Reuse};
use crate::progress::{Counters, LATENCY_BUCKETS, Progress, p99_ns};
use crate::recorder::Recorder;
use crate::samples::{Outcome, Samples};
use crate::script::Script;
use crate::table::{Parts, Spill};
use crate::target::Target;
use crate::turns::{Seat, Turns};
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
    limits: Limits,
    reuse: Reuse,
    retries: Retries,
    timeouts: Timeouts,
    script: Arc<Script>,
    target: Arc<Target>,
    control: Control,
    counters: Vec<Arc<Counters>>,
    gate: Gate,
    /// Connections are opened before the start.
    is_connected: bool,
    start: OnceLock<Instant>,
    /// Its place beside another run, where the two take turns.
    seat: Option<Seat>,
    window: Option<Window>,
}

/// Rows for which memory is set aside at most; pages are only taken as they are written.
const MOST_EXPECTED_ROWS: f64 = 5e6;

impl Run {
    /// Looks up the host, reads the files that the plan names and lays out the requests.
    pub fn prepare(plan: &Plan) -> Result<Self, Refusal> {
        let script = Arc::new(Script::new(plan)?);
        let target = Arc::new(Target::new(plan)?);
        machine::require(plan)?;
        let connect_ns = nanos(plan.limits.connect_timeout_s);
        if plan.placement.http == Http::Two {
            http2::require(&plan.origin, &target, connect_ns)?;
        }
        let threads = match plan.load {
            Load::Open { .. } | Load::Stages { .. } | Load::Replay { .. } => plan.placement.threads,
            // A thread without a worker would have nothing to do, and not learn of the end.
            Load::Closed { workers, .. } => {
                let each = workers / u32::from(plan.placement.parts);
                plan.placement.threads.min(u16::try_from(each).unwrap_or(u16::MAX))
            }
            // A band is one number in flight: no thread could keep its share of it alone.
            Load::Band { .. } => 1,
        };
        Ok(Self {
            load: plan.load.clone(),
            placement: Placement { threads, ..plan.placement.clone() },
            limits: plan.limits.clone(),
            reuse: plan.connection,
            retries: plan.retries,
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
            gate: Gate::new(threads),
            is_connected: false,
            start: OnceLock::new(),
            seat: None,
            window: None,
        })
    }

    /// Two runs that take turns: each sends only while the other waits.
    pub(crate) fn prepare_pair(plans: [&Plan; 2]) -> Result<[Self; 2], Refusal> {
        let [one, other] = plans;
        let length = turn_of(one)?;
        if turn_of(other)? != length {
            return Err(Refusal::plan("load.turn", "must be the same for both sides"));
        }
        let [first, second] = Turns::seats(length, one.seed);
        let seated = |plan, seat| Self::prepare(plan).map(|run| Self { seat: Some(seat), ..run });
        Ok([seated(one, first)?, seated(other, second)?])
    }

    /// Has the threads wait for `start` once they are ready.
    #[must_use]
    pub(crate) fn held(self) -> Self {
        self.gate.hold();
        self
    }

    /// Opens connections before the start; a target that cannot be connected to is refused.
    #[must_use]
    pub(crate) fn connected(self) -> Self {
        Self { is_connected: true, ..self }
    }

    /// Waits until every thread is ready to start; false when one of them cannot be.
    pub(crate) fn wait_until_ready(&self) -> Result<bool, Refusal> {
        Ok(machine::runtime()?.block_on(self.gate.all_ready()))
    }

    /// Starts two held runs at the same instant, so that their times can be compared.
    pub(crate) fn start_both(runs: [&Self; 2]) -> Result<(), Refusal> {
        let now = Instant::now();
        runs.into_iter().try_for_each(|run| run.open(now))
    }

    /// Starts a held run at an instant, or at once; one in the past is refused.
    pub(crate) fn start(&self, at: Option<SystemTime>) -> Result<(), Refusal> {
        let refuse = |reason: String| Err(Refusal::Environment(reason));
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

    fn open(&self, start: Instant) -> Result<(), Refusal> {
        let refuse = |reason: String| Err(Refusal::Environment(reason));
        match self.gate.open(start) {
            Ok(()) => {
                self.start.get_or_init(|| start);
                Ok(())
            }
            Err(Shut::Started) => refuse("the run was started before".to_owned()),
            Err(Shut::GivenUp) => refuse(GIVEN_UP.to_owned()),
        }
    }

    /// An instant was set at which it starts.
    pub(crate) fn is_started(&self) -> bool {
        self.start.get().is_some()
    }

    /// Takes up nothing that is due at or after `due_ns` (nanoseconds since the start), and all
    /// that is due before. An instant that has come is refused.
    pub(crate) fn stop_at(&self, due_ns: i64) -> Result<(), Refusal> {
        let Some(&start) = self.start.get() else {
            return Err(Refusal::Environment("the run was not started yet".to_owned()));
        };
        let clock = Clock::starting_at(start);
        let late = |now_ns: i64, what: &str| {
            Err(Refusal::Environment(format!(
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

    /// Has what is measured shown while the run goes on: `fresh` gives it.
    #[must_use]
    pub fn shown(self) -> Self {
        Self { window: Some(Window::default()), ..self }
    }

    /// Rows measured since the last look, if they are shown; also after the end.
    pub fn fresh(&self) -> Option<Fresh> {
        self.window.as_ref().map(Window::take)
    }

    /// Carries the plan out and keeps every sample in memory; one that is shown keeps none.
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
            let writing = move || {
                self.control.unless_fine(|| {
                    machine::leave(&self.placement.cores);
                    parts.take(chunks)
                })
            };
            let writer = Builder::new().spawn_scoped(scope, writing);
            let writer = writer.map_err(|error| {
                Refusal::Environment(format!("the thread that writes cannot be started: {error}"))
            })?;
            let carried = self.carry_out(Some(&spill));
            drop(spill);
            Ok::<_, Refusal>((carried, joined(writer)))
        })?;
        written?;
        let (_, health) = carried?;
        Ok(Spilled { rows: parts.join()?, health })
    }

    /// Runs the threads to their end: what each of them kept, and what they cost.
    fn carry_out(&self, spill: Option<&Spill>) -> Result<(Vec<Samples>, Health), Refusal> {
        let threads = self.placement.threads;
        let started = Arc::new(AtomicU64::new(0));
        let parts: Result<Vec<_>, Refusal> = std::thread::scope(|scope| {
            let mut handles = Vec::new();
            let mut refusal = None;
            for thread in 0..threads {
                let (started, spill) = (started.clone(), spill.cloned());
                let work = move || self.control.unless_fine(|| self.work(thread, started, spill));
                match Builder::new().spawn_scoped(scope, work) {
                    Ok(handle) => handles.push(handle),
                    Err(error) => {
                        self.gate.give_up();
                        refusal = Some(too_many_threads(thread, threads, &error));
                        break;
                    }
                }
            }
            let worked: Vec<_> = handles.into_iter().map(joined).collect();
            refusal.map_or_else(|| worked.into_iter().collect(), Err)
        });
        let parts: Vec<_> = parts?.into_iter().flatten().collect();
        let Some(start) = self.start.get().filter(|_| !parts.is_empty()) else {
            return Err(Refusal::Environment(GIVEN_UP.to_owned()));
        };
        Ok(summed_up(parts, start.elapsed().as_secs_f64(), threads))
    }

    /// One thread's whole life; none when the run was given up before its start.
    fn work(
        &self,
        thread: u16,
        started: Arc<AtomicU64>,
        spill: Option<Spill>,
    ) -> Result<Option<(Record, ThreadCost)>, Refusal> {
        let arriving = self.gate.arriving();
        machine::bind(&self.placement.cores, thread)?;
        let runtime = machine::runtime()?;
        let whole = Share::of_part(thread, &self.placement);
        let worker = self.worker(thread, started, spill);
        let grid_ns = grid_ns(self.load.highest_rps() / f64::from(whole.threads));
        let tasks = LocalSet::new();
        let dispatched: Result<_, Refusal> = tasks.block_on(&runtime, async {
            if self.is_connected {
                worker.connect().await.map_err(|fault| self.unconnected(fault))?;
            }
            let Some(start) = arriving.pass().await else { return Ok(None) };
            let before = ThreadCost::so_far();
            worker.start_at(*self.start.get_or_init(|| start));
            tokio::task::spawn_local(keep_deadlines(worker.clone()));
            dispatch(&worker, &self.control, self.seat.as_ref(), thread.into(), grid_ns)
                .await
                .map_err(|error| Refusal::Environment(format!("no timer can be set: {error}")))?;
            Ok(Some(before))
        });
        drop(tasks);
        let Some(before) = dispatched? else { return Ok(None) };
        Ok(Some((worker.into_record(), ThreadCost::so_far().since(before))))
    }

    fn worker(&self, thread: u16, started: Arc<AtomicU64>, spill: Option<Spill>) -> Rc<Worker> {
        let share = Share { thread, threads: self.placement.threads };
        let whole = Share::of_part(thread, &self.placement);
        let part = Share { thread: self.placement.part, threads: self.placement.parts };
        let pacer = Pacer::new(&self.load, &self.limits, whole, part, started);
        Rc::new(Worker::new(Assignment {
            script: self.script.clone(),
            target: self.target.clone(),
            timeouts: self.timeouts,
            counters: self.counters[usize::from(thread)].clone(),
            pacer: pacer.stopping_at(self.control.stop_at.clone()).taking_turns(self.seat.clone()),
            share,
            whole,
            max_connections: self.limits.max_connections,
            reuse: self.reuse,
            retries: self.retries,
            http: self.placement.http,
            recorder: match (spill, self.window.clone()) {
                (Some(spill), window) => Recorder::spilling(spill, window, part.thread),
                (None, Some(window)) => Recorder::showing(window, part.thread),
                (None, None) => Recorder::keeping(self.expected_rows(), part.thread),
            },
        }))
    }

    fn unconnected(&self, fault: Outcome) -> Refusal {
        let addresses: Vec<_> = self.target.addresses.iter().map(ToString::to_string).collect();
        let why = match fault {
            Outcome::Refused => "connection refused",
            Outcome::ConnectTimeout => "no answer in time",
            Outcome::TlsFailed => "the TLS handshake failed",
            Outcome::CertificateExpired => "its TLS certificate has expired",
            Outcome::NoPort => "no local port is free",
            _ => "it failed",
        };
        Refusal::Environment(format!("cannot connect to {}: {why}", addresses.join(", ")))
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

    /// Latencies of the iterations that have ended well, per bucket; from any thread, at any time.
    pub fn latencies(&self) -> Vec<u64> {
        let mut counts = vec![0; LATENCY_BUCKETS];
        for counters in &self.counters {
            counters.add_latencies_to(&mut counts);
        }
        counts
    }

    /// Takes up nothing more; what is under way goes on to its end or the drain's.
    pub fn stop(&self) {
        self.control.give(Command::Stop);
    }

    /// Gives up what is under way, too; before the start, the run itself.
    pub fn abandon(&self) {
        self.control.give(Command::Abandon);
        self.gate.give_up();
        if let Some(seat) = &self.seat {
            seat.close();
        }
    }
}

const GIVEN_UP: &str = "the run was given up before its start";

/// The iterations of a turn.
fn turn_of(plan: &Plan) -> Result<u32, Refusal> {
    let Load::Closed { turn: Some(length), .. } = plan.load else {
        return Err(Refusal::plan("load.turn", "is needed by runs that take turns"));
    };
    if plan.placement.threads > 1 || plan.placement.parts > 1 {
        let reason = "must be 1 for runs that take turns: their iterations are counted together";
        return Err(Refusal::plan("placement.threads", reason));
    }
    Ok(length)
}

#[expect(clippy::cast_precision_loss, reason = "to be read")]
fn seconds(at_ns: i64) -> String {
    format!("{:.3}", at_ns as f64 / 1e9)
}

fn too_many_threads(thread: u16, threads: u16, error: &std::io::Error) -> Refusal {
    Refusal::Environment(format!(
        "thread {} of {threads} cannot be started: {error}; use fewer threads (placement.threads), \
         or raise the limit on processes (ulimit -u) or memory (ulimit -v)",
        thread + 1
    ))
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
    let (mut lag, mut waits) = (Histogram::default(), Histogram::default());
    let mut tables = Vec::new();
    for (record, cost) in parts {
        lag.merge(&record.lag);
        waits.merge(&record.waits);
        tables.push(record.recorder.finish());
        health.cpu_s += cost.cpu_s;
        health.runqueue_wait_s += cost.runqueue_wait_s;
        health.retries += record.retries;
        health.connections += record.connections;
        health.throttled += record.throttled.iterations;
        health.throttled_s += record.throttled.delay_s;
        health.is_cut_short |= record.is_cut_short;
        health.without_port += record.without_port;
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
