//! A lane: one connection at a time, and the iterations that it carries one after another.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use crate::capture::Captured;
use crate::clock::Clock;
use crate::connection::{Answer, Connection, Question};
use crate::deadline::Deadline;
use crate::pacer::Arrival;
use crate::plan::Reuse;
use crate::samples::{Outcome, Sample};
use crate::script::Request;
use crate::worker::Worker;

/// A kept-alive connection that rested this long may have been closed by the server meanwhile.
const RESTED_NS: i64 = 1_000_000;
/// A server that closes after an answer without saying so: its close crosses our next request.
const CROSSING_NS: i64 = 5_000_000;
/// A closed loop does not knock at a shut door as fast as the machine goes.
const REFUSED_PAUSE_NS: i64 = 10_000_000;

/// What the worker knows of a lane.
pub(crate) struct Lane {
    /// Its place among its worker's lanes.
    pub index: usize,
    /// Its number among those of all threads.
    pub number: u16,
    pub deadline: Deadline,
    assigned: Cell<Option<Arrival>>,
    waker: RefCell<Option<Waker>>,
}

impl Lane {
    pub(crate) fn new(index: usize, number: u16, first: Arrival) -> Self {
        Self {
            index,
            number,
            deadline: Deadline::new(),
            assigned: Cell::new(Some(first)),
            waker: RefCell::new(None),
        }
    }

    /// Hands it the next iteration and wakes it.
    pub(crate) fn assign(&self, arrival: Arrival) {
        self.assigned.set(Some(arrival));
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    pub(crate) fn poll_assigned(&self, cx: &mut Context<'_>) -> Poll<Arrival> {
        if let Some(arrival) = self.assigned.take() {
            return Poll::Ready(arrival);
        }
        *self.waker.borrow_mut() = Some(cx.waker().clone());
        Poll::Pending
    }
}

/// Carries iterations until the worker is dropped.
pub(crate) async fn carry(worker: Rc<Worker>, lane: Rc<Lane>) {
    let _alarm = PanicAlarm(worker.clone());
    let mut carrier = Carrier {
        clock: worker.clock,
        captured: Captured::new(worker.script.captures()),
        connection: None,
        address: 0,
        request_bytes: Vec::new(),
        worker: &worker,
        lane: &lane,
    };
    let mut arrival = std::future::poll_fn(|cx| lane.poll_assigned(cx)).await;
    loop {
        let last = carrier.iterate(arrival).await;
        lane.deadline.clear();
        let pause_ns = if last.sent_ns < 0 { REFUSED_PAUSE_NS } else { 0 };
        let is_ok = last.outcome == Outcome::Ok;
        worker.counters.ended(is_ok, last.done_ns - arrival.due_ns);
        arrival = match worker.next(&lane, last.done_ns, pause_ns) {
            Some(next) => next,
            None => std::future::poll_fn(|cx| lane.poll_assigned(cx)).await,
        };
    }
}

/// Tells the dispatcher of a lane that panicked: tokio would go on without it, and the run would
/// wait for ever for what the lane had taken up.
struct PanicAlarm(Rc<Worker>);

impl Drop for PanicAlarm {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.report_panic();
        }
    }
}

struct Carrier<'a> {
    worker: &'a Worker,
    lane: &'a Lane,
    clock: Clock,
    connection: Option<Connection>,
    /// Index of the address that answered last.
    address: usize,
    captured: Captured,
    request_bytes: Vec<u8>,
}

impl Carrier<'_> {
    /// Goes through the steps until one fails: the last one's sample.
    async fn iterate(&mut self, arrival: Arrival) -> Sample {
        let mut sample = Sample::of(arrival, self.lane.number);
        let requests = &self.worker.script.requests;
        for (action, request) in (0..).zip(requests) {
            sample.action = action;
            let answer = self.perform(request, arrival.iteration).await;
            sample.sent_ns = answer.sent_ns;
            sample.first_byte_ns = answer.first_byte_ns;
            sample.done_ns = answer.done_ns;
            sample.status = answer.status;
            sample.outcome = self.judge(request, &answer);
            self.worker.record(&sample);
            if sample.outcome != Outcome::Ok {
                break;
            }
            sample.due_ns = sample.done_ns;
        }
        if self.worker.reuse == Reuse::Iteration {
            self.connection = None;
        }
        sample
    }

    fn judge(&self, request: &Request, answer: &Answer) -> Outcome {
        if let Some(fault) = answer.fault {
            return fault;
        }
        if !request.expect_status.contains(&answer.status) {
            return Outcome::HttpStatus;
        }
        if !self.worker.script.has_captured(request, &self.captured.values) {
            return Outcome::BadHttp;
        }
        Outcome::Ok
    }

    /// Sends one request; again where the kept connection turned out to be closed.
    async fn perform(&mut self, request: &Request, iteration: u32) -> Answer {
        self.worker.counters.sent();
        let mut buffer = std::mem::take(&mut self.request_bytes);
        let values = &self.captured.values;
        let bytes = self.worker.script.fill(request, iteration, values, &mut buffer);
        let answer = match self.attempt(request, bytes).await {
            Attempt::Ended(answer) => answer,
            Attempt::Crossed(answer) => {
                self.worker.retried();
                match self.attempt(request, bytes).await {
                    Attempt::Ended(again) => again,
                    Attempt::Crossed(_) => answer,
                }
            }
        };
        self.request_bytes = buffer;
        answer
    }

    async fn attempt(&mut self, request: &Request, bytes: &[u8]) -> Attempt {
        let mut connection = match self.connect().await {
            Ok(connection) => connection,
            Err(fault) => return Attempt::Ended(Answer::none(fault, self.clock.now_ns())),
        };
        let worker = self.worker;
        let sent_ns = self.clock.now_ns();
        self.lane.deadline.set(sent_ns + worker.timeouts.request_ns);
        let question = Question {
            bytes,
            is_head: request.is_head,
            sent_ns,
            deadline: &self.lane.deadline,
            clock: self.clock,
        };
        let mut listener = self.captured.listen(&request.captures);
        let last_used_ns = connection.last_used_ns;
        let answer = connection.exchange(&question, &mut listener).await;
        if answer.fault.is_none() {
            listener.finish();
        }
        if is_crossed(request, &answer, last_used_ns) {
            return Attempt::Crossed(answer);
        }
        if answer.fault.is_none() && worker.reuse != Reuse::Request {
            self.connection = Some(connection);
        }
        Attempt::Ended(answer)
    }

    /// The kept connection, if it still stands, else a fresh one.
    async fn connect(&mut self) -> Result<Connection, Outcome> {
        if let Some(mut connection) = self.connection.take()
            && connection.is_usable()
        {
            return Ok(connection);
        }
        self.lane.deadline.set(self.clock.now_ns() + self.worker.timeouts.connect_ns);
        let open = Connection::open(&self.worker.target, &mut self.address);
        let opened = self.lane.deadline.within(open).await;
        let connection = opened.unwrap_or(Err(Outcome::ConnectTimeout))?;
        self.worker.connected();
        Ok(connection)
    }
}

enum Attempt {
    Ended(Answer),
    /// The server had closed the connection before it saw the request.
    Crossed(Answer),
}

/// A kept connection was closed without a byte of an answer, at a moment at which the server need
/// not have read the request: what browsers, too, send again on a fresh connection. A request that
/// changes something (POST) only where the close is older than the request, as far as can be told.
fn is_crossed(request: &Request, answer: &Answer, last_used_ns: Option<i64>) -> bool {
    let Some(last_used_ns) = last_used_ns else { return false };
    let is_closed = matches!(answer.fault, Some(Outcome::Reset | Outcome::ClosedEarly));
    let was_resting = answer.sent_ns - last_used_ns >= RESTED_NS;
    let is_crossing = answer.done_ns - answer.sent_ns <= CROSSING_NS;
    let is_unread = request.is_idempotent || was_resting || is_crossing;
    is_closed && answer.first_byte_ns < 0 && is_unread
}
