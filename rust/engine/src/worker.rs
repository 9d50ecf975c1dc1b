//! One engine thread's share of the run: takes iterations as they fall due, hands them to free
//! lanes, opens further ones up to the limit, and queues what finds none.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use crate::clock::Clock;
use crate::health::Histogram;
use crate::http2::Shared;
use crate::lane::{Lane, carry};
use crate::nudge::Nudge;
use crate::pacer::{Arrival, Pacer, Share};
use crate::plan::{Http, Reuse};
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
    pub clock: Clock,
    pub script: Arc<Script>,
    pub target: Arc<Target>,
    pub timeouts: Timeouts,
    pub counters: Arc<Counters>,
    pub pacer: Pacer,
    pub share: Share,
    /// Over all threads.
    pub max_connections: u16,
    pub reuse: Reuse,
    pub http: Http,
    pub recorder: Recorder,
}

/// What one thread recorded.
pub(crate) struct Record {
    pub recorder: Recorder,
    pub lag: Histogram,
    pub retries: u64,
    pub connections: u64,
}

/// One thread's state; its tasks run one at a time, so cells do.
pub(crate) struct Worker {
    pub clock: Clock,
    pub script: Arc<Script>,
    pub target: Arc<Target>,
    pub timeouts: Timeouts,
    pub counters: Arc<Counters>,
    pub reuse: Reuse,
    pub http: Http,
    /// What its lanes share with HTTP/2.
    pub shared: Shared,
    share: Share,
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
    queue: VecDeque<Arrival>,
    /// Lanes at rest; the one used last is used first, since its connection is the warmest.
    idle: Vec<usize>,
    busy: usize,
    is_stopped: bool,
    record: Record,
}

impl Worker {
    pub(crate) fn new(given: Assignment) -> Self {
        let record =
            Record { recorder: given.recorder, lag: Histogram::new(), retries: 0, connections: 0 };
        let state = State {
            pacer: given.pacer,
            queue: VecDeque::new(),
            idle: Vec::new(),
            busy: 0,
            is_stopped: false,
            record,
        };
        Self {
            clock: given.clock,
            script: given.script,
            target: given.target,
            timeouts: given.timeouts,
            counters: given.counters,
            reuse: given.reuse,
            http: given.http,
            shared: Shared::default(),
            share: given.share,
            most_lanes: given.share.of(given.max_connections.into()) as usize,
            lanes: RefCell::default(),
            state: RefCell::new(state),
            armed_ns: Cell::new(0),
            nudge: Nudge::default(),
            has_panicked: Cell::new(false),
        }
    }

    /// Takes what is due and hands it over.
    pub(crate) fn pump(self: &Rc<Self>, now_ns: i64) {
        let mut state = self.state.borrow_mut();
        self.take_due(&mut state, now_ns);
        self.hand_over(&mut state);
        state.record.recorder.look(now_ns);
    }

    /// An iteration ended: the next one for this lane, or none, and then the lane rests.
    pub(crate) fn next(
        self: &Rc<Self>,
        lane: &Lane,
        ended: Arrival,
        now_ns: i64,
        pause_ns: i64,
    ) -> Option<Arrival> {
        let mut state = self.state.borrow_mut();
        state.record.recorder.ended(ended.iteration);
        state.pacer.ended(now_ns, pause_ns);
        self.take_due(&mut state, now_ns);
        let next = state.queue.pop_front();
        if next.is_some() {
            self.hand_over(&mut state);
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
            state.record.lag.record(now_ns - arrival.due_ns);
            self.counters.due();
            state.queue.push_back(arrival);
        }
    }

    fn hand_over(self: &Rc<Self>, state: &mut State) {
        let mut lanes = self.lanes.borrow_mut();
        while !state.queue.is_empty() {
            let idle = state.idle.pop();
            if idle.is_none() && lanes.len() >= self.most_lanes {
                return;
            }
            let Some(arrival) = state.queue.pop_front() else { return };
            state.busy += 1;
            if let Some(index) = idle {
                lanes[index].assign(arrival);
            } else {
                let lane = Rc::new(Lane::new(lanes.len(), self.number(lanes.len()), arrival));
                lanes.push(lane.clone());
                tokio::task::spawn_local(carry(self.clone(), lane));
            }
        }
    }

    /// The lane's number among those of all threads; with HTTP/2 that of the thread, whose lanes
    /// have one connection.
    #[expect(clippy::cast_possible_truncation, reason = "all lanes together number at most 2^16")]
    fn number(&self, index: usize) -> u16 {
        match self.http {
            Http::One => index as u16 * self.share.threads + self.share.thread,
            Http::Two => self.share.thread,
        }
    }

    pub(crate) fn record(&self, sample: &Sample) {
        self.state.borrow_mut().record.recorder.push(sample);
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
        while let Some(arrival) = state.queue.pop_front() {
            let sample = Sample { done_ns: now_ns, ..Sample::of(arrival, 0) };
            debug_assert_eq!(sample.outcome, Outcome::NotSent);
            state.record.recorder.push(&sample);
            state.record.recorder.ended(arrival.iteration);
            self.counters.ended(false, now_ns - arrival.due_ns);
        }
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
        let nothing = Record {
            recorder: Recorder::keeping(0),
            lag: Histogram::new(),
            retries: 0,
            connections: 0,
        };
        std::mem::replace(&mut self.state.borrow_mut().record, nothing)
    }
}

impl State {
    fn is_over(&self, now_ns: i64) -> bool {
        self.is_stopped || self.pacer.is_over(now_ns)
    }
}
