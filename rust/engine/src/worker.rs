//! Worker: state of an engine thread. It takes iterations when they are due, assigns them to idle
//! slots, adds slots up to the limit, and queues the rest.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use crate::clock::Clock;
use crate::connection::Connection;
use crate::health::Histogram;
use crate::http2::{HeadCache, SharedConnection};
use crate::notify::LocalNotify;
use crate::outcome::Outcome;
use crate::pacer::{Arrival, Pacer, Partition, Throttled};
use crate::plan::{Http, Retries, Reuse};
use crate::progress::{Counters, IterationEnd};
use crate::recorder::Recorder;
use crate::samples::Sample;
use crate::script::Script;
use crate::slot::{Assignment, Slot};
use crate::target::Target;

/// Time-outs of a plan.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_field_names, reason = "the unit is in the name")]
pub(crate) struct Timeouts {
    pub connect_ns: i64,
    pub request_ns: i64,
    pub iteration_ns: i64, // i64::MAX: none
    pub drain_ns: i64,
    pub stopped_drain_ns: i64,
}

/// Part of a run that all threads share.
pub(crate) struct RunContext {
    pub script: Script,
    pub target: Target,
    pub timeouts: Timeouts,
    pub reuse: Reuse,
    pub retries: Retries,
    pub http: Http,
}

/// Configuration of a worker.
pub(crate) struct WorkerConfig {
    pub context: Arc<RunContext>,
    pub counters: Arc<Counters>,
    pub pacer: Pacer,
    /// This thread's part of the process.
    pub in_process: Partition,
    /// This thread's part of the load.
    pub in_load: Partition,
    /// Limit over all threads of the process.
    pub max_connections: u16,
    pub recorder: Recorder,
    /// Spawns the task of a new slot.
    pub spawn: fn(&Rc<Worker>, Rc<Slot>),
}

/// Measurements of a worker.
pub(crate) struct WorkerResult {
    pub recorder: Recorder,
    /// Time from due to sent, without the wait for a slot.
    pub lag: Histogram,
    /// Waiting times for a slot, of iterations that had to wait.
    pub waits: Histogram,
    pub retries: u64,
    pub connections: u64,
    pub throttled: Throttled,
    pub is_cut_short: bool,
    /// Requests that failed for lack of a local port.
    pub without_port: u64,
    /// Requests that failed for lack of a file descriptor.
    pub without_file: u64,
}

impl WorkerResult {
    fn new(recorder: Recorder) -> Self {
        Self {
            recorder,
            lag: Histogram::default(),
            waits: Histogram::default(),
            retries: 0,
            connections: 0,
            without_port: 0,
            without_file: 0,
            throttled: Throttled::default(),
            is_cut_short: false,
        }
    }

    fn record_start(&mut self, assignment: Assignment, began_ns: i64, counters: &Counters) {
        let Assignment { arrival, waited_ns } = assignment;
        if waited_ns > 0 {
            self.waits.record(waited_ns);
        }
        let lag_ns = began_ns - arrival.due_ns - waited_ns;
        self.lag.record(lag_ns);
        counters.began(lag_ns);
    }
}

/// Iteration that waits for a slot.
#[derive(Debug, Clone, Copy)]
struct Queued {
    arrival: Arrival,
    taken_ns: i64,
}

impl Queued {
    fn assignment(self, now_ns: i64) -> Assignment {
        Assignment { arrival: self.arrival, waited_ns: (now_ns - self.taken_ns).max(0) }
    }
}

/// Iteration that a slot has completed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Completed {
    pub assignment: Assignment,
    /// Time of its first request, pause or connection.
    pub began_ns: i64,
    pub at_ns: i64,
    /// Time that its pauses took, which is not latency.
    pub idle_ns: i64,
    /// Least time before a closed loop starts the next one.
    pub pause_ns: i64,
}

/// State of an engine thread. Its tasks run one at a time, so `Cell` and `RefCell` suffice.
pub(crate) struct Worker {
    clock: Cell<Clock>,
    pub context: Arc<RunContext>,
    pub counters: Arc<Counters>,
    /// HTTP/2 connection of all slots.
    pub shared: SharedConnection,
    /// Index of the target's address that accepted the last connection.
    pub address: Cell<usize>,
    pub heads: HeadCache,
    spare: RefCell<Vec<Connection>>,
    in_load: Partition,
    spawn: fn(&Rc<Worker>, Rc<Slot>),
    max_slots: usize,
    slots: RefCell<Vec<Rc<Slot>>>,
    state: RefCell<State>,
    /// Due time that the dispatcher sleeps until; an earlier arrival must wake it.
    armed_ns: Cell<i64>,
    wake_up: LocalNotify,
    has_panicked: Cell<bool>,
}

struct State {
    pacer: Pacer,
    /// Iterations that are due and wait for a slot.
    queue: VecDeque<Queued>,
    /// Indices of idle slots. The last used is taken first, since its connection is the warmest.
    idle: Vec<usize>,
    busy: usize,
    is_stopped: bool,
    result: WorkerResult,
}

impl Worker {
    pub(crate) fn new(config: WorkerConfig) -> Self {
        let state = State {
            pacer: config.pacer,
            queue: VecDeque::new(),
            idle: Vec::new(),
            busy: 0,
            is_stopped: false,
            result: WorkerResult::new(config.recorder),
        };
        Self {
            clock: Cell::new(Clock::starting_at(Instant::now())),
            context: config.context,
            counters: config.counters,
            shared: SharedConnection::default(),
            address: Cell::default(),
            heads: HeadCache::default(),
            spare: RefCell::default(),
            in_load: config.in_load,
            spawn: config.spawn,
            max_slots: config.in_process.share_of(config.max_connections.into()) as usize,
            slots: RefCell::default(),
            state: RefCell::new(state),
            armed_ns: Cell::new(0),
            wake_up: LocalNotify::default(),
            has_panicked: Cell::new(false),
        }
    }

    /// Number of slots that start at the beginning.
    pub(crate) fn initial_slots(&self) -> usize {
        self.state.borrow().pacer.initial_iterations().clamp(1, self.max_slots.max(1))
    }

    /// Keeps a connection that was opened before the load.
    pub(crate) fn add_spare(&self, mut connection: Connection) {
        self.count_connection();
        // The server may close it before the load starts.
        connection.last_used_ns = Some(0);
        self.spare.borrow_mut().push(connection);
    }

    /// Takes a connection that was opened before the load.
    pub(crate) fn take_spare(&self) -> Option<Connection> {
        self.spare.borrow_mut().pop()
    }

    /// Sets the instant that its times are relative to.
    pub(crate) fn start_at(&self, start: Instant) {
        self.clock.set(Clock::starting_at(start));
    }

    pub(crate) fn clock(&self) -> Clock {
        self.clock.get()
    }

    /// Takes the iterations that are due and assigns them to slots.
    pub(crate) fn dispatch_due(self: &Rc<Self>, now_ns: i64) {
        let mut state = self.state.borrow_mut();
        self.take_due(&mut state, now_ns);
        self.assign_queued(&mut state, now_ns);
    }

    /// Sends and publishes rows that are old enough. Returns when to do so again.
    pub(crate) fn flush(&self, now_ns: i64) -> i64 {
        let recorder = &mut self.state.borrow_mut().result.recorder;
        recorder.flush_if_due(now_ns);
        recorder.due_ns()
    }

    /// Records a completed iteration. Returns the slot's next one; without one the slot is idle.
    pub(crate) fn next(self: &Rc<Self>, slot: &Slot, completed: Completed) -> Option<Assignment> {
        let Completed { assignment, began_ns, at_ns: now_ns, pause_ns, .. } = completed;
        let mut state = self.state.borrow_mut();
        state.result.record_start(assignment, began_ns, &self.counters);
        state.result.recorder.iteration_ended(assignment.arrival.iteration);
        state.pacer.iteration_ended(now_ns, pause_ns);
        self.take_due(&mut state, now_ns);
        let next = state.queue.pop_front().map(|queued| queued.assignment(now_ns));
        if next.is_some() {
            self.assign_queued(&mut state, now_ns);
        } else {
            state.busy -= 1;
            state.idle.push(slot.index);
        }
        let is_earlier = state.pacer.next_due_ns().is_some_and(|due| due < self.armed_ns.get());
        if is_earlier || state.is_over(now_ns) {
            self.wake_up.notify();
        }
        next
    }

    fn take_due(&self, state: &mut State, now_ns: i64) {
        if state.is_stopped {
            return;
        }
        while let Some(arrival) = state.pacer.take(now_ns) {
            self.counters.due();
            state.queue.push_back(Queued { arrival, taken_ns: now_ns });
        }
    }

    fn assign_queued(self: &Rc<Self>, state: &mut State, now_ns: i64) {
        let mut slots = self.slots.borrow_mut();
        while !state.queue.is_empty() {
            let idle = state.idle.pop();
            if idle.is_none() && slots.len() >= self.max_slots {
                return;
            }
            let Some(queued) = state.queue.pop_front() else { return };
            let assignment = queued.assignment(now_ns);
            state.busy += 1;
            if let Some(index) = idle {
                slots[index].assign(assignment);
            } else {
                let number = self.slot_number(slots.len());
                let slot = Rc::new(Slot::new(slots.len(), number, assignment));
                slots.push(slot.clone());
                (self.spawn)(self, slot);
            }
        }
    }

    /// Number of a slot over all threads and parts; with HTTP/2 the number of the thread.
    #[expect(clippy::cast_possible_truncation, reason = "slots of a thread number below 2^16")]
    fn slot_number(&self, index: usize) -> u32 {
        let thread = u32::from(self.in_load.index);
        match self.context.http {
            Http::One => index as u32 * u32::from(self.in_load.count) + thread,
            Http::Two => thread,
        }
    }

    pub(crate) fn record(&self, sample: &Sample) {
        let result = &mut self.state.borrow_mut().result;
        result.without_port += u64::from(sample.outcome == Outcome::NoPort);
        result.without_file += u64::from(sample.outcome == Outcome::NoFile);
        result.recorder.push(sample);
    }

    pub(crate) fn count_retry(&self) {
        self.state.borrow_mut().result.retries += 1;
    }

    pub(crate) fn count_connection(&self) {
        self.state.borrow_mut().result.connections += 1;
    }

    /// Starts no further iteration and drops those that wait for a slot; running ones go on.
    pub(crate) fn stop(&self, now_ns: i64) {
        let mut state = self.state.borrow_mut();
        state.is_stopped = true;
        while let Some(queued) = state.queue.pop_front() {
            let arrival = queued.arrival;
            state.result.record_start(queued.assignment(now_ns), now_ns, &self.counters);
            let first = self.context.script.steps_for(arrival.iteration).start;
            let action = u8::try_from(first).unwrap_or(u8::MAX);
            let sample = Sample { done_ns: now_ns, action, ..Sample::not_sent(arrival, 0) };
            debug_assert_eq!(sample.outcome, Outcome::NotSent);
            state.result.recorder.push(&sample);
            state.result.recorder.iteration_ended(arrival.iteration);
            self.counters.ended(IterationEnd::CutOff, now_ns - arrival.due_ns);
        }
    }

    /// Stops once the load has reached its maximum duration.
    pub(crate) fn end_load_if_over(&self, now_ns: i64) {
        let mut state = self.state.borrow_mut();
        if now_ns < state.pacer.load_end_ns() || state.is_stopped {
            return;
        }
        state.result.is_cut_short = state.pacer.is_cut_short(now_ns) || !state.queue.is_empty();
        drop(state);
        self.stop(now_ns);
    }

    /// Time for running iterations to end.
    pub(crate) fn drain_ns(&self) -> i64 {
        let Timeouts { drain_ns, stopped_drain_ns, .. } = self.context.timeouts;
        if self.state.borrow().is_stopped { drain_ns.min(stopped_drain_ns) } else { drain_ns }
    }

    /// Maximum duration of the load; `i64::MAX` without one, or once stopped.
    pub(crate) fn load_end_ns(&self) -> i64 {
        let state = self.state.borrow();
        if state.is_stopped { i64::MAX } else { state.pacer.load_end_ns() }
    }

    /// Stops, and aborts running iterations, too.
    pub(crate) fn abandon(&self, now_ns: i64) {
        self.stop(now_ns);
        self.slots.borrow().iter().for_each(|slot| slot.deadline.abandon(now_ns));
    }

    /// Aborts iterations that still run at the end of the drain.
    pub(crate) fn end_drain(&self, now_ns: i64) {
        let mut state = self.state.borrow_mut();
        let Timeouts { drain_ns, stopped_drain_ns, .. } = self.context.timeouts;
        // But for the end of the load's time they would have had longer.
        let is_cut_short = now_ns >= state.pacer.load_end_ns() && stopped_drain_ns < drain_ns;
        state.result.is_cut_short |= is_cut_short && state.busy > 0;
        drop(state);
        self.abandon(now_ns);
    }

    /// Ends waits whose deadline has passed. Returns when to check again.
    pub(crate) fn expire_deadlines(&self, now_ns: i64) -> i64 {
        // A deadline that is set later is at least the shortest time-out away.
        let Timeouts { connect_ns, request_ns, iteration_ns, .. } = self.context.timeouts;
        let soonest = now_ns + connect_ns.min(request_ns).min(iteration_ns);
        let slots = self.slots.borrow();
        slots.iter().map(|slot| slot.deadline.check(now_ns)).fold(soonest, i64::min)
    }

    /// Reports that a task of the thread panicked.
    pub(crate) fn report_panic(&self) {
        self.has_panicked.set(true);
        self.wake_up.notify();
    }

    pub(crate) fn has_panicked(&self) -> bool {
        self.has_panicked.get()
    }

    /// Whether no further iteration will start.
    pub(crate) fn is_over(&self, now_ns: i64) -> bool {
        self.state.borrow().is_over(now_ns)
    }

    /// Whether no iteration waits or runs.
    pub(crate) fn is_idle(&self) -> bool {
        let state = self.state.borrow();
        state.busy == 0 && state.queue.is_empty()
    }

    /// End of the schedule, if it is known.
    pub(crate) fn end_ns(&self) -> Option<i64> {
        self.state.borrow().pacer.end_ns()
    }

    /// Due time of the next iteration, if it is known.
    pub(crate) fn next_due_ns(&self) -> Option<i64> {
        let state = self.state.borrow();
        if state.is_stopped { None } else { state.pacer.next_due_ns() }
    }

    /// Waits until an iteration is due before `armed_ns`, or the load ends.
    pub(crate) async fn woken_before(&self, armed_ns: i64) {
        self.armed_ns.set(armed_ns);
        std::future::poll_fn(|cx| self.wake_up.poll_notified(cx)).await;
    }

    /// Takes the result; nothing is recorded after this.
    pub(crate) fn into_result(self: Rc<Self>) -> WorkerResult {
        let mut state = self.state.borrow_mut();
        state.result.throttled = state.pacer.throttled();
        std::mem::replace(&mut state.result, WorkerResult::new(Recorder::new(0, 0, None, None)))
    }
}

impl State {
    fn is_over(&self, now_ns: i64) -> bool {
        self.is_stopped || self.pacer.is_over(now_ns)
    }
}

/// Guard that reports a panic of its task to the dispatcher. Tokio would go on without the task,
/// and the run would wait for its iteration forever.
pub(crate) struct PanicReporter(pub Rc<Worker>);

impl Drop for PanicReporter {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.report_panic();
        }
    }
}
