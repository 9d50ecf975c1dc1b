//! Runs iterations in a slot: sends the requests of their steps and records samples.

use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;

use crate::clock::Clock;
use crate::connection::Connection;
use crate::exchange::{Attempt, Request, Response, was_closed_before_read};
use crate::outcome::Outcome;
use crate::plan::{Http, Retries, Reuse};
use crate::pool;
use crate::progress::IterationEnd;
use crate::samples::Sample;
use crate::script::iteration::IterationState;
use crate::script::{Pause, StepKind, Template};
use crate::slot::{Assignment, Slot};
use crate::worker::{Completed, PanicReporter, Worker};

/// Pause of a closed loop after a refused connection, so that it does not retry in a busy loop.
const REFUSED_PAUSE_NS: i64 = 10_000_000;
/// Value of an instant that is not known yet.
const NOT_YET: i64 = -1;

/// Spawns the task that runs the iterations of a slot.
pub(crate) fn spawn(worker: &Rc<Worker>, slot: Rc<Slot>) {
    tokio::task::spawn_local(run_slot(worker.clone(), slot));
}

async fn run_slot(worker: Rc<Worker>, slot: Rc<Slot>) {
    let _reporter = PanicReporter(worker.clone());
    let mut runner = IterationRunner {
        clock: worker.clock(),
        state: IterationState::new(&worker.context.script),
        until_ns: i64::MAX,
        began_ns: Cell::new(NOT_YET),
        connection: None,
        request_bytes: Vec::new(),
        has_shared_head: false,
        worker: &worker,
        slot: &slot,
    };
    let mut assignment = poll_fn(|cx| slot.poll_assigned(cx)).await;
    loop {
        let (completed, end) = runner.run(assignment).await;
        slot.deadline.clear();
        let took_ns = completed.at_ns - assignment.arrival.due_ns;
        worker.counters.ended(end, took_ns - completed.idle_ns);
        assignment = match worker.next(&slot, completed) {
            Some(next) => next,
            None => poll_fn(|cx| slot.poll_assigned(cx)).await,
        };
    }
}

/// State of a slot's task.
struct IterationRunner<'a> {
    worker: &'a Rc<Worker>,
    slot: &'a Slot,
    clock: Clock,
    connection: Option<Connection>,
    state: IterationState,
    /// Time when the iteration sent its first request, or began to connect.
    began_ns: Cell<i64>,
    /// Deadline of the iteration.
    until_ns: i64,
    request_bytes: Vec<u8>,
    /// Whether other iterations send the head of the current request, too.
    has_shared_head: bool,
}

impl<'a> IterationRunner<'a> {
    /// Runs the steps of an iteration.
    async fn run(&mut self, assignment: Assignment) -> (Completed, IterationEnd) {
        let (worker, arrival) = (self.worker, assignment.arrival);
        let mut sample = Sample::not_sent(arrival, self.slot.number);
        let (mut was_sent, mut idle_ns) = (true, 0);
        let has_values = self.begin(arrival.iteration);
        for index in worker.context.script.steps_for(arrival.iteration) {
            let step = &worker.context.script.steps[index];
            if has_values && !self.state.has_next(step) || !has_values && self.state.has_failed() {
                continue;
            }
            // A response can arrive between the time-out and this check.
            let is_late = sample.due_ns >= self.until_ns;
            if is_late && step.always {
                self.until_ns = i64::MAX;
            }
            let mut response = match &step.kind {
                _ if is_late && !step.always => {
                    Response::none(Some(Outcome::TimedOut), sample.due_ns)
                }
                _ if !has_values => Response::none(Some(Outcome::NoneFree), self.now_ns()),
                StepKind::Request(template) => self.send(template, arrival.iteration).await,
                StepKind::Pause(pause) => self.pause(pause, arrival.iteration).await,
            };
            self.mark_timed_out(&mut response);
            sample.set_response(&response);
            sample.outcome = self.state.judge(&worker.context.script, index, &response);
            sample.action = u8::try_from(index).unwrap_or(u8::MAX);
            worker.record(&sample);
            was_sent &= sample.sent_ns >= 0;
            if matches!(step.kind, StepKind::Pause(_)) && sample.sent_ns >= 0 {
                idle_ns += sample.done_ns - sample.sent_ns;
            }
            sample.due_ns = sample.done_ns;
        }
        self.state.end(&worker.context.script);
        if worker.context.reuse == Reuse::Iteration {
            self.connection = None;
        }
        let began_ns = self.began_ns.get();
        let completed = Completed {
            assignment,
            began_ns: if began_ns == NOT_YET { sample.done_ns } else { began_ns },
            at_ns: sample.done_ns,
            idle_ns,
            pause_ns: if was_sent { 0 } else { REFUSED_PAUSE_NS },
        };
        (completed, self.state.iteration_end())
    }

    /// Resets the state. Returns false if a chain has no free value for the iteration.
    fn begin(&mut self, iteration: u32) -> bool {
        self.began_ns.set(NOT_YET);
        let has_values = self.state.begin(&self.worker.context.script, iteration);
        let iteration_ns = self.worker.context.timeouts.iteration_ns;
        if iteration_ns < i64::MAX {
            self.until_ns = self.clock.now_ns() + iteration_ns;
        }
        has_values
    }

    /// Replaces a step's time-out by the iteration's, if that has passed. Steps that always run
    /// have only their own time-out after that.
    fn mark_timed_out(&mut self, response: &mut Response) {
        if response.done_ns >= self.until_ns && response.failure.is_some_and(Outcome::is_timeout) {
            response.failure = Some(Outcome::TimedOut);
            self.until_ns = i64::MAX;
        }
    }

    async fn pause(&self, pause: &Pause, iteration: u32) -> Response {
        let sent_ns = self.now_ns();
        let until_ns = sent_ns + self.worker.context.script.pause_ns(pause, iteration);
        self.slot.deadline.set(self.until_ns);
        let sleep = tokio::time::sleep_until(self.clock.instant(until_ns));
        let slept = self.slot.deadline.within(sleep).await;
        let failure = slept.err().map(|_| Outcome::NotSent);
        Response { sent_ns, ..Response::none(failure, self.clock.now_ns()) }
    }

    /// Returns the time. The first call of an iteration marks its beginning.
    fn now_ns(&self) -> i64 {
        let now_ns = self.clock.now_ns();
        if self.began_ns.get() == NOT_YET {
            self.began_ns.set(now_ns);
        }
        now_ns
    }

    /// Sends a request, a second time if the kept-alive connection turned out to be closed.
    async fn send(&mut self, template: &Template, iteration: u32) -> Response {
        if self.slot.deadline.is_abandoned() {
            return Response::none(Some(Outcome::NotSent), self.now_ns());
        }
        self.worker.counters.sent();
        self.has_shared_head = self.worker.context.http == Http::Two
            && self.worker.context.script.has_shared_head(template, iteration);
        let mut buffer = std::mem::take(&mut self.request_bytes);
        let (values, jar) = (self.state.values(), self.state.jar());
        let bytes =
            self.worker.context.script.render(template, iteration, values, jar, &mut buffer);
        let response = match self.attempt(template, bytes, self.until_ns).await {
            Attempt::ClosedBeforeRead(first) if self.worker.context.retries == Retries::Unread => {
                self.retry(template, bytes, &first).await
            }
            Attempt::Done(response) | Attempt::ClosedBeforeRead(response) => response,
        };
        self.request_bytes = buffer;
        response
    }

    /// Sends a request a second time. The time-out counts from the first attempt.
    async fn retry(&mut self, template: &Template, bytes: &[u8], first: &Response) -> Response {
        let was_sent = first.sent_ns >= 0;
        let from_ns = if was_sent { first.sent_ns } else { first.done_ns };
        let until_ns = self.until_ns.min(from_ns + self.worker.context.timeouts.request_ns);
        let again = self.attempt(template, bytes, until_ns).await;
        let (Attempt::Done(second) | Attempt::ClosedBeforeRead(second)) = again;
        // Without a new connection it is not sent again.
        let is_retried = second.sent_ns >= 0;
        if is_retried {
            self.worker.count_retry();
        }
        let sent_ns = if was_sent { first.sent_ns } else { second.sent_ns };
        Response { sent_ns, is_retried, ..second }
    }

    async fn attempt(&mut self, template: &Template, bytes: &[u8], until_ns: i64) -> Attempt {
        match self.worker.context.http {
            Http::One => self.attempt_http1(template, bytes, until_ns).await,
            Http::Two => self.attempt_http2(template, bytes, until_ns).await,
        }
    }

    /// Sends a request on the slot's own connection.
    async fn attempt_http1(&mut self, template: &Template, bytes: &[u8], until_ns: i64) -> Attempt {
        let mut connection = match self.connect(until_ns).await {
            Ok(connection) => connection,
            Err(failure) => {
                return Attempt::Done(Response::none(Some(failure), self.clock.now_ns()));
            }
        };
        let worker = self.worker;
        let request = self.request(template, bytes, until_ns);
        let mut sink = self.state.capture_sink(template);
        let last_used_ns = connection.last_used_ns;
        let response = connection.exchange(&request, &mut sink).await;
        if response.failure.is_none() {
            sink.finish();
        }
        if was_closed_before_read(&response, last_used_ns) {
            return Attempt::ClosedBeforeRead(response);
        }
        if connection.is_kept && worker.context.reuse != Reuse::Request {
            self.connection = Some(connection);
        }
        Attempt::Done(response)
    }

    /// Sends a request as a stream of the connection that all slots of the thread share.
    async fn attempt_http2(&mut self, template: &Template, bytes: &[u8], until_ns: i64) -> Attempt {
        self.set_connect_deadline(until_ns);
        let connected = self.slot.deadline.within(pool::shared_connection(self.worker)).await;
        let connected =
            connected.unwrap_or_else(|elapsed| Err(elapsed.outcome(Outcome::ConnectTimeout)));
        let mut connection = match connected {
            Ok(connection) => connection,
            Err(failure) => {
                return Attempt::Done(Response::none(Some(failure), self.clock.now_ns()));
            }
        };
        let heads = self.has_shared_head.then_some(&self.worker.heads);
        let request = self.request(template, bytes, until_ns);
        let mut sink = self.state.capture_sink(template);
        let (response, is_unread) = connection.exchange(&request, heads, &mut sink).await;
        if response.failure.is_none() {
            sink.finish();
        }
        if is_unread {
            return Attempt::ClosedBeforeRead(response);
        }
        Attempt::Done(response)
    }

    /// Starts the clock of a request and sets its deadline.
    fn request<'b>(&self, template: &Template, bytes: &'b [u8], until_ns: i64) -> Request<'b>
    where
        'a: 'b,
    {
        let sent_ns = self.now_ns();
        let (deadline, clock) = (&self.slot.deadline, self.clock);
        deadline.set(until_ns.min(sent_ns + self.worker.context.timeouts.request_ns));
        Request { bytes, is_head: template.is_head, sent_ns, deadline, clock }
    }

    fn set_connect_deadline(&self, until_ns: i64) {
        let late_ns = self.now_ns() + self.worker.context.timeouts.connect_ns;
        self.slot.deadline.set(until_ns.min(late_ns));
    }

    /// Returns the kept-alive connection, else one opened before the load, else a new one.
    async fn connect(&mut self, until_ns: i64) -> Result<Connection, Outcome> {
        while let Some(mut connection) = self.connection.take().or_else(|| self.worker.take_spare())
        {
            if connection.is_usable() {
                return Ok(connection);
            }
        }
        self.set_connect_deadline(until_ns);
        let worker = self.worker;
        let connect_ns = worker.context.timeouts.connect_ns;
        let open = Connection::open(&worker.context.target, &worker.address, connect_ns);
        let opened = self.slot.deadline.within(open).await;
        let connection =
            opened.unwrap_or_else(|elapsed| Err(elapsed.outcome(Outcome::ConnectTimeout)))?;
        worker.count_connection();
        Ok(connection)
    }
}
