//! One engine thread's share of the run: takes iterations as they fall due, hands them to free
//! lanes, opens further ones up to the limit, and queues what finds none.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::clock::Clock;
use crate::connection::Connection;
use crate::health::Histogram;
use crate::http2::{self, Heads, Shared};
use crate::lane::{Lane, carry};
use crate::nudge::Nudge;
use crate::pacer::{Arrival, Pacer, Share, Throttled};
use crate::plan::{Http, Retries, Reuse};
use crate::progress::Counters;
use crate::recorder::Recorder;
use crate::samples::{Outcome, Sample};
use crate::script::Script;
use crate::target::Target;

/// How long to wait for what.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_field_names, reason = "the unit is in the name")]
pub(crate) struct Timeouts {
    pub connect_ns: i64,
    pub request_ns: i64,
    pub iteration_ns: i64, // i64::MAX: none
    pub drain_ns: i64,
}

/// What one thread is given.
pub(crate) struct Assignment {
    pub script: Arc<Script>,
    pub target: Arc<Target>,
    pub timeouts: Timeouts,
    pub counters: Arc<Counters>,
    pub pacer: Pacer,
    /// Of what this process has.
    pub share: Share,
    /// Of the whole load.
    pub whole: Share,
    /// Over all threads of this process.
    pub max_connections: u16,
    pub reuse: Reuse,
    pub retries: Retries,
    pub http: Http,
    pub recorder: Recorder,
}

/// What one thread recorded.
pub(crate) struct Record {
    pub recorder: Recorder,
    /// From due to sent, without the waiting for a free connection.
    pub lag: Histogram,
    /// Of the iterations that waited for a free connection: how long.
    pub waits: Histogram,
    pub retries: u64,
    pub connections: u64,
    pub throttled: Throttled,
    pub is_cut_short: bool,
    /// Requests for which this machine had no local port.
    pub without_port: u64,
}

impl Record {
    fn new(recorder: Recorder) -> Self {
        Self {
            recorder,
            lag: Histogram::default(),
            waits: Histogram::default(),
            retries: 0,
            connections: 0,
            without_port: 0,
            throttled: Throttled::default(),
            is_cut_short: false,
        }
    }

    fn began(&mut self, turn: Turn, began_ns: i64, counters: &Counters) {
        if turn.waited_ns > 0 {
            self.waits.record(turn.waited_ns);
        }
        let lag_ns = began_ns - turn.arrival.due_ns - turn.waited_ns;
        self.lag.record(lag_ns);
        counters.began(lag_ns);
    }
}

/// An iteration that was taken up and waits for a lane.
#[derive(Debug, Clone, Copy)]
struct Queued {
    arrival: Arrival,
    taken_ns: i64,
}

impl Queued {
    fn turn(self, now_ns: i64) -> Turn {
        Turn { arrival: self.arrival, waited_ns: (now_ns - self.taken_ns).max(0) }
    }
}

/// An iteration that has a lane.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Turn {
    pub arrival: Arrival,
    /// How long no lane was free: the connection limit's doing, not the generator's.
    pub waited_ns: i64,
}

/// An iteration that a lane has carried out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ended {
    pub turn: Turn,
    /// When it began to do something.
    pub began_ns: i64,
    pub at_ns: i64,
    /// Keeps a closed loop from starting the next at once.
    pub pause_ns: i64,
}

/// One thread's state; its tasks run one at a time, so cells do.
pub(crate) struct Worker {
    clock: Cell<Clock>,
    pub script: Arc<Script>,
    pub target: Arc<Target>,
    pub timeouts: Timeouts,
    pub counters: Arc<Counters>,
    pub reuse: Reuse,
    pub retries: Retries,
    pub http: Http,
    /// What its lanes share with HTTP/2.
    pub shared: Shared,
    /// Index of the target's address that answered last.
    pub address: Cell<usize>,
    pub heads: Heads,
    spare: RefCell<Vec<Connection>>,
    whole: Share,
    most_lanes: usize,
    lanes: RefCell<Vec<Rc<Lane>>>,
    state: RefCell<State>,
    /// The arrival that the dispatcher waits for; an earlier one needs a nudge.
    armed_ns: Cell<i64>,
    nudge: Nudge,
    has_panicked: Cell<bool>,
}

struct State {
    pacer: Pacer,
    /// Due, and waiting for a lane: the backlog.
    queue: VecDeque<Queued>,
    /// Lanes at rest; the one used last is used first, since its connection is the warmest.
    idle: Vec<usize>,
    busy: usize,
    is_stopped: bool,
    record: Record,
}

impl Worker {
    pub(crate) fn new(given: Assignment) -> Self {
        let state = State {
            pacer: given.pacer,
            queue: VecDeque::new(),
            idle: Vec::new(),
            busy: 0,
            is_stopped: false,
            record: Record::new(given.recorder),
        };
        Self {
            clock: Cell::new(Clock::starting_at(Instant::now())),
            script: given.script,
            target: given.target,
            timeouts: given.timeouts,
            counters: given.counters,
            reuse: given.reuse,
            retries: given.retries,
            http: given.http,
            shared: Shared::default(),
            address: Cell::default(),
            heads: Heads::default(),
            spare: RefCell::default(),
            whole: given.whole,
            most_lanes: given.share.of(given.max_connections.into()) as usize,
            lanes: RefCell::default(),
            state: RefCell::new(state),
            armed_ns: Cell::new(0),
            nudge: Nudge::default(),
            has_panicked: Cell::new(false),
        }
    }

    /// Opens connections ahead of the load: one for each worker of a closed loop, else one. Where a
    /// connection stands for a new client it opens one to see that it can, and closes it.
    pub(crate) async fn connect(self: &Rc<Self>) -> Result<(), Outcome> {
        if self.http == Http::Two {
            return http2::connection(self).await.map(|_| ());
        }
        let at_once = self.state.borrow().pacer.at_once().clamp(1, self.most_lanes.max(1));
        for _ in 0..if self.reuse == Reuse::Kept { at_once } else { 1 } {
            let open = Connection::open(&self.target, &self.address, self.timeouts.connect_ns);
            let most = Duration::from_nanos(self.timeouts.connect_ns.unsigned_abs());
            let opened = tokio::time::timeout(most, open).await;
            let mut connection = opened.unwrap_or(Err(Outcome::ConnectTimeout))?;
            if self.reuse == Reuse::Kept {
                self.connected();
                // It rests until the start, and the server may close it.
                connection.last_used_ns = Some(0);
                self.spare.borrow_mut().push(connection);
            }
        }
        Ok(())
    }

    /// A connection that was opened ahead of the load.
    pub(crate) fn spare(&self) -> Option<Connection> {
        self.spare.borrow_mut().pop()
    }

    /// Sets the instant from which its times count.
    pub(crate) fn start_at(&self, start: Instant) {
        self.clock.set(Clock::starting_at(start));
    }

    pub(crate) fn clock(&self) -> Clock {
        self.clock.get()
    }

    /// Takes what is due and hands it over.
    pub(crate) fn pump(self: &Rc<Self>, now_ns: i64) {
        let mut state = self.state.borrow_mut();
        self.take_due(&mut state, now_ns);
        self.hand_over(&mut state, now_ns);
        state.record.recorder.look(now_ns);
    }

    /// An iteration ended: the next one for this lane, or none, and then the lane rests.
    pub(crate) fn next(self: &Rc<Self>, lane: &Lane, ended: Ended) -> Option<Turn> {
        let now_ns = ended.at_ns;
        let mut state = self.state.borrow_mut();
        state.record.began(ended.turn, ended.began_ns, &self.counters);
        state.record.recorder.ended(ended.turn.arrival.iteration);
        state.pacer.ended(now_ns, ended.pause_ns);
        self.take_due(&mut state, now_ns);
        let next = state.queue.pop_front().map(|queued| queued.turn(now_ns));
        if next.is_some() {
            self.hand_over(&mut state, now_ns);
        } else {
            state.busy -= 1;
            state.idle.push(lane.index);
        }
        let is_earlier = state.pacer.next_due_ns().is_some_and(|due| due < self.armed_ns.get());
        if is_earlier || state.is_over(now_ns) {
            self.nudge.ring();
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

    fn hand_over(self: &Rc<Self>, state: &mut State, now_ns: i64) {
        let mut lanes = self.lanes.borrow_mut();
        while !state.queue.is_empty() {
            let idle = state.idle.pop();
            if idle.is_none() && lanes.len() >= self.most_lanes {
                return;
            }
            let Some(queued) = state.queue.pop_front() else { return };
            let turn = queued.turn(now_ns);
            state.busy += 1;
            if let Some(index) = idle {
                lanes[index].assign(turn);
            } else {
                let lane = Rc::new(Lane::new(lanes.len(), self.number(lanes.len()), turn));
                lanes.push(lane.clone());
                tokio::task::spawn_local(carry(self.clone(), lane));
            }
        }
    }

    /// The lane's number among those of all threads of all parts; with HTTP/2 that of the thread,
    /// whose lanes have one connection.
    #[expect(clippy::cast_possible_truncation, reason = "lanes of a thread number below 2^16")]
    fn number(&self, index: usize) -> u32 {
        let thread = u32::from(self.whole.thread);
        match self.http {
            Http::One => index as u32 * u32::from(self.whole.threads) + thread,
            Http::Two => thread,
        }
    }

    pub(crate) fn record(&self, sample: &Sample) {
        let record = &mut self.state.borrow_mut().record;
        record.without_port += u64::from(sample.outcome == Outcome::NoPort);
        record.recorder.push(sample);
    }

    pub(crate) fn retried(&self) {
        self.state.borrow_mut().record.retries += 1;
    }

    pub(crate) fn connected(&self) {
        self.state.borrow_mut().record.connections += 1;
    }

    /// Takes up nothing more, and gives up what waits; what is under way goes on.
    pub(crate) fn stop(&self, now_ns: i64) {
        let mut state = self.state.borrow_mut();
        state.is_stopped = true;
        while let Some(queued) = state.queue.pop_front() {
            let arrival = queued.arrival;
            state.record.began(queued.turn(now_ns), now_ns, &self.counters);
            let sample = Sample { done_ns: now_ns, ..Sample::of(arrival, 0) };
            debug_assert_eq!(sample.outcome, Outcome::NotSent);
            state.record.recorder.push(&sample);
            state.record.recorder.ended(arrival.iteration);
            self.counters.ended(false, now_ns - arrival.due_ns);
        }
    }

    /// Ends the load once it has lasted as long as it may: what waits is given up.
    pub(crate) fn look_at_load_end(&self, now_ns: i64) {
        let mut state = self.state.borrow_mut();
        if now_ns < state.pacer.load_end_ns() || state.is_stopped {
            return;
        }
        state.record.is_cut_short = state.pacer.is_cut_short(now_ns) || !state.queue.is_empty();
        drop(state);
        self.stop(now_ns);
    }

    /// When the load may last no longer, while that can still end anything.
    pub(crate) fn load_end_ns(&self) -> i64 {
        let state = self.state.borrow();
        if state.is_stopped { i64::MAX } else { state.pacer.load_end_ns() }
    }

    /// Gives up what is under way, too.
    pub(crate) fn abandon(&self, now_ns: i64) {
        self.stop(now_ns);
        self.lanes.borrow().iter().for_each(|lane| lane.deadline.abandon());
    }

    /// Ends what has waited too long; when to look again.
    pub(crate) fn look_at_deadlines(&self, now_ns: i64) -> i64 {
        // A deadline set after this look is at least the shortest time-out away.
        let Timeouts { connect_ns, request_ns, iteration_ns, .. } = self.timeouts;
        let soonest = now_ns + connect_ns.min(request_ns).min(iteration_ns);
        let lanes = self.lanes.borrow();
        lanes.iter().map(|lane| lane.deadline.look(now_ns)).fold(soonest, i64::min)
    }

    /// A lane panicked: the run cannot end well.
    pub(crate) fn report_panic(&self) {
        self.has_panicked.set(true);
        self.nudge.ring();
    }

    pub(crate) fn has_panicked(&self) -> bool {
        self.has_panicked.get()
    }

    /// Nothing further will be taken up.
    pub(crate) fn is_over(&self, now_ns: i64) -> bool {
        self.state.borrow().is_over(now_ns)
    }

    /// Nothing waits and nothing is under way.
    pub(crate) fn is_at_rest(&self) -> bool {
        let state = self.state.borrow();
        state.busy == 0 && state.queue.is_empty()
    }

    /// The schedule's end, where it is known.
    pub(crate) fn end_ns(&self) -> Option<i64> {
        self.state.borrow().pacer.end_ns()
    }

    /// When the next iteration is due, as far as is known.
    pub(crate) fn next_due_ns(&self) -> Option<i64> {
        let state = self.state.borrow();
        if state.is_stopped { None } else { state.pacer.next_due_ns() }
    }

    /// Waits for a reason to look before `armed_ns`: an earlier arrival, or the end.
    pub(crate) async fn nudged(&self, armed_ns: i64) {
        self.armed_ns.set(armed_ns);
        std::future::poll_fn(|cx| self.nudge.poll(cx)).await;
    }

    /// What was recorded; the worker records no more.
    pub(crate) fn into_record(self: Rc<Self>) -> Record {
        let mut state = self.state.borrow_mut();
        state.record.throttled = state.pacer.throttled();
        std::mem::replace(&mut state.record, Record::new(Recorder::keeping(0, 0)))
    }
}

impl State {
    fn is_over(&self, now_ns: i64) -> bool {
        self.is_stopped || self.pacer.is_over(now_ns)
    }
}
