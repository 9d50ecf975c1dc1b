//! A lane: one connection at a time, and the iterations that it carries one after another.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use crate::clock::Clock;
use crate::connection::{Answer, Connection, Question};
use crate::crossing::{Attempt, is_crossed};
use crate::deadline::Deadline;
use crate::http2;
use crate::plan::{Http, Retries, Reuse};
use crate::samples::{Outcome, Sample};
use crate::script::course::Course;
use crate::script::{Act, Pause, Request};
use crate::worker::{Ended, Turn, Worker};

/// A closed loop does not knock at a shut door as fast as the machine goes.
const REFUSED_PAUSE_NS: i64 = 10_000_000;

/// What the worker knows of a lane.
pub(crate) struct Lane {
    /// Its place among its worker's lanes.
    pub index: usize,
    /// Its number among those of all threads.
    pub number: u32,
    pub deadline: Deadline,
    assigned: Cell<Option<Turn>>,
    waker: RefCell<Option<Waker>>,
}

impl Lane {
    pub(crate) fn new(index: usize, number: u32, first: Turn) -> Self {
        Self {
            index,
            number,
            deadline: Deadline::new(),
            assigned: Cell::new(Some(first)),
            waker: RefCell::new(None),
        }
    }

    /// Hands it the next iteration and wakes it.
    pub(crate) fn assign(&self, turn: Turn) {
        self.assigned.set(Some(turn));
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    pub(crate) fn poll_assigned(&self, cx: &mut Context<'_>) -> Poll<Turn> {
        if let Some(turn) = self.assigned.take() {
            return Poll::Ready(turn);
        }
        *self.waker.borrow_mut() = Some(cx.waker().clone());
        Poll::Pending
    }
}

/// Carries iterations until the worker is dropped.
pub(crate) async fn carry(worker: Rc<Worker>, lane: Rc<Lane>) {
    let _alarm = PanicAlarm(worker.clone());
    let mut carrier = Carrier {
        clock: worker.clock(),
        course: Course::new(&worker.script),
        until_ns: i64::MAX,
        began_ns: Cell::new(NOT_YET),
        connection: None,
        request_bytes: Vec::new(),
        worker: &worker,
        lane: &lane,
    };
    let mut turn = std::future::poll_fn(|cx| lane.poll_assigned(cx)).await;
    loop {
        let end = carrier.iterate(turn).await;
        lane.deadline.clear();
        worker.counters.ended(end.is_ok, end.ended.at_ns - turn.arrival.due_ns);
        turn = match worker.next(&lane, end.ended) {
            Some(next) => next,
            None => std::future::poll_fn(|cx| lane.poll_assigned(cx)).await,
        };
    }
}

/// How an iteration ended.
struct End {
    ended: Ended,
    is_ok: bool,
}

/// Of an instant that is not known yet.
const NOT_YET: i64 = -1;

/// Tells the dispatcher of a task that panicked: tokio would go on without it, and the run would
/// wait for ever for what it had taken up.
pub(crate) struct PanicAlarm(pub Rc<Worker>);

impl Drop for PanicAlarm {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.report_panic();
        }
    }
}

struct Carrier<'a> {
    worker: &'a Rc<Worker>,
    lane: &'a Lane,
    clock: Clock,
    connection: Option<Connection>,
    course: Course,
    /// When the iteration's first request was sent, or its connection begun.
    began_ns: Cell<i64>,
    /// When the iteration has taken longer than it may.
    until_ns: i64,
    request_bytes: Vec<u8>,
}

impl<'a> Carrier<'a> {
    /// Goes through the steps; after a failed one only through those that are always done.
    async fn iterate(&mut self, turn: Turn) -> End {
        let (worker, arrival) = (self.worker, turn.arrival);
        let mut sample = Sample::of(arrival, self.lane.number);
        let mut was_sent = true;
        let has_values = self.begin(arrival.iteration);
        for index in worker.script.steps_of(arrival.iteration) {
            let step = &worker.script.steps[index];
            if has_values && !self.course.has_next(step) || !has_values && self.course.has_failed()
            {
                continue;
            }
            let mut answer = match &step.act {
                // An answer can come in between the time-out and the look at the clock.
                _ if sample.due_ns >= self.until_ns => {
                    Answer::none(Some(Outcome::TimedOut), sample.due_ns)
                }
                _ if !has_values => Answer::none(Some(Outcome::NoneFree), self.now_ns()),
                Act::Request(request) => self.perform(request, arrival.iteration).await,
                Act::Pause(pause) => self.rest(pause, arrival.iteration).await,
            };
            self.look_at_time_out(&mut answer);
            sample.take(&answer);
            sample.outcome = self.course.judge(&worker.script, index, &answer);
            sample.action = u8::try_from(index).unwrap_or(u8::MAX);
            worker.record(&sample);
            was_sent &= sample.sent_ns >= 0;
            sample.due_ns = sample.done_ns;
        }
        self.course.end(&worker.script);
        if worker.reuse == Reuse::Iteration {
            self.connection = None;
        }
        let began_ns = self.began_ns.get();
        let ended = Ended {
            turn,
            began_ns: if began_ns == NOT_YET { sample.done_ns } else { began_ns },
            at_ns: sample.done_ns,
            pause_ns: if was_sent { 0 } else { REFUSED_PAUSE_NS },
        };
        End { ended, is_ok: !self.course.has_failed() }
    }

    /// False if the iteration lacks a value that it was to take.
    fn begin(&mut self, iteration: u32) -> bool {
        self.began_ns.set(NOT_YET);
        let has_values = self.course.begin(&self.worker.script, iteration);
        let iteration_ns = self.worker.timeouts.iteration_ns;
        if iteration_ns < i64::MAX {
            self.until_ns = self.clock.now_ns() + iteration_ns;
        }
        has_values
    }

    /// Tells a step's time-out from the iteration's; what is always done has time after that one.
    fn look_at_time_out(&mut self, answer: &mut Answer) {
        if answer.done_ns >= self.until_ns && answer.fault.is_some_and(Outcome::is_late) {
            answer.fault = Some(Outcome::TimedOut);
            self.until_ns = i64::MAX;
        }
    }

    /// Waits: the answer of nobody.
    async fn rest(&self, pause: &Pause, iteration: u32) -> Answer {
        let sent_ns = self.now_ns();
        let until_ns = sent_ns + self.worker.script.length_ns(pause, iteration);
        self.lane.deadline.set(self.until_ns);
        let sleep = tokio::time::sleep_until(self.clock.instant(until_ns));
        let rested = self.lane.deadline.within(sleep).await;
        let fault = rested.err().map(|_| Outcome::NotSent);
        Answer { sent_ns, ..Answer::none(fault, self.clock.now_ns()) }
    }

    /// The time; the first look at it is when the iteration begins to do something.
    fn now_ns(&self) -> i64 {
        let now_ns = self.clock.now_ns();
        if self.began_ns.get() == NOT_YET {
            self.began_ns.set(now_ns);
        }
        now_ns
    }

    /// Sends one request; again where the kept connection turned out to be closed.
    async fn perform(&mut self, request: &Request, iteration: u32) -> Answer {
        self.worker.counters.sent();
        let mut buffer = std::mem::take(&mut self.request_bytes);
        let values = self.course.values();
        let jar = self.course.jar();
        let bytes = self.worker.script.fill(request, iteration, values, jar, &mut buffer);
        let answer = match self.attempt(request, bytes, self.until_ns).await {
            Attempt::Crossed(first) if self.worker.retries == Retries::Unread => {
                self.send_again(request, bytes, &first).await
            }
            Attempt::Ended(answer) | Attempt::Crossed(answer) => answer,
        };
        self.request_bytes = buffer;
        answer
    }

    /// Sends it a second time; its time goes on from the first.
    async fn send_again(&mut self, request: &Request, bytes: &[u8], first: &Answer) -> Answer {
        self.worker.retried();
        let was_sent = first.sent_ns >= 0;
        let from_ns = if was_sent { first.sent_ns } else { first.done_ns };
        let until_ns = self.until_ns.min(from_ns + self.worker.timeouts.request_ns);
        let again = self.attempt(request, bytes, until_ns).await;
        let (Attempt::Ended(second) | Attempt::Crossed(second)) = again;
        let sent_ns = if was_sent { first.sent_ns } else { second.sent_ns };
        Answer { sent_ns, is_retried: true, ..second }
    }

    async fn attempt(&mut self, request: &Request, bytes: &[u8], until_ns: i64) -> Attempt {
        match self.worker.http {
            Http::One => self.attempt_alone(request, bytes, until_ns).await,
            Http::Two => self.attempt_shared(request, bytes, until_ns).await,
        }
    }

    /// On a connection of the lane's own.
    async fn attempt_alone(&mut self, request: &Request, bytes: &[u8], until_ns: i64) -> Attempt {
        let mut connection = match self.connect(until_ns).await {
            Ok(connection) => connection,
            Err(fault) => return Attempt::Ended(Answer::none(Some(fault), self.clock.now_ns())),
        };
        let worker = self.worker;
        let question = self.question(request, bytes, until_ns);
        let mut listener = self.course.listen(request);
        let last_used_ns = connection.last_used_ns;
        let answer = connection.exchange(&question, &mut listener).await;
        if answer.fault.is_none() {
            listener.finish();
        }
        if is_crossed(&answer, last_used_ns) {
            return Attempt::Crossed(answer);
        }
        if answer.fault.is_none() && worker.reuse != Reuse::Request {
            self.connection = Some(connection);
        }
        Attempt::Ended(answer)
    }

    /// In a stream of its own on the connection that the thread's lanes share.
    async fn attempt_shared(&mut self, request: &Request, bytes: &[u8], until_ns: i64) -> Attempt {
        self.set_connect_deadline(until_ns);
        let connected = self.lane.deadline.within(http2::connection(self.worker)).await;
        let mut connection = match connected.unwrap_or(Err(Outcome::ConnectTimeout)) {
            Ok(connection) => connection,
            Err(fault) => return Attempt::Ended(Answer::none(Some(fault), self.clock.now_ns())),
        };
        let question = self.question(request, bytes, until_ns);
        let mut listener = self.course.listen(request);
        let last_used_ns = connection.last_used_ns();
        let (answer, is_untouched) = connection.exchange(&question, &mut listener).await;
        if answer.fault.is_none() {
            listener.finish();
        }
        if is_untouched || is_crossed(&answer, last_used_ns) {
            return Attempt::Crossed(answer);
        }
        Attempt::Ended(answer)
    }

    /// What is asked of a connection from this moment on, and until when.
    fn question<'b>(&self, request: &Request, bytes: &'b [u8], until_ns: i64) -> Question<'b>
    where
        'a: 'b,
    {
        let sent_ns = self.now_ns();
        self.lane.deadline.set(until_ns.min(sent_ns + self.worker.timeouts.request_ns));
        Question {
            bytes,
            is_head: request.is_head,
            sent_ns,
            deadline: &self.lane.deadline,
            clock: self.clock,
            heads: request.has_fixed_head.then_some(&self.worker.heads),
        }
    }

    fn set_connect_deadline(&self, until_ns: i64) {
        let late_ns = self.now_ns() + self.worker.timeouts.connect_ns;
        self.lane.deadline.set(until_ns.min(late_ns));
    }

    /// The kept connection, if it still stands, or one opened ahead of the load; else a fresh one.
    async fn connect(&mut self, until_ns: i64) -> Result<Connection, Outcome> {
        while let Some(mut connection) = self.connection.take().or_else(|| self.worker.spare()) {
            if connection.is_usable() {
                return Ok(connection);
            }
        }
        self.set_connect_deadline(until_ns);
        let worker = self.worker;
        let connect_ns = worker.timeouts.connect_ns;
        let open = Connection::open(&worker.target, &worker.address, connect_ns);
        let opened = self.lane.deadline.within(open).await;
        let connection = opened.unwrap_or(Err(Outcome::ConnectTimeout))?;
        worker.connected();
        Ok(connection)
    }
}
