//! Deadlines that one watchdog per thread checks, so that a request needs no timer of its own.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use crate::outcome::Outcome;

/// Error of a wait that ended before what it waited for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Elapsed {
    /// Its deadline has passed.
    TimedOut,
    /// The run ended.
    Abandoned,
}

impl Elapsed {
    /// Returns the outcome of the request: `timeout`, unless the run ended before its time-out.
    pub(crate) fn outcome(self, timeout: Outcome) -> Outcome {
        match self {
            Self::TimedOut => timeout,
            Self::Abandoned => Outcome::NotSent,
        }
    }
}

/// Deadline of a slot's task.
#[derive(Debug)]
pub(crate) struct Deadline {
    at_ns: Cell<i64>,
    elapsed: Cell<Option<Elapsed>>,
    /// All later waits end at once, too.
    abandoned: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

const NEVER: i64 = i64::MAX;

impl Deadline {
    pub(crate) fn new() -> Self {
        Self {
            at_ns: Cell::new(NEVER),
            elapsed: Cell::new(None),
            abandoned: Cell::new(false),
            waker: RefCell::new(None),
        }
    }

    pub(crate) fn set(&self, at_ns: i64) {
        self.at_ns.set(at_ns);
        self.elapsed.set(self.abandoned.get().then_some(Elapsed::Abandoned));
    }

    pub(crate) fn clear(&self) {
        self.at_ns.set(NEVER);
    }

    /// Whether all waits end at once.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.abandoned.get()
    }

    /// Ends the wait if its deadline has passed. Returns when to check again.
    pub(crate) fn check(&self, now_ns: i64) -> i64 {
        if self.at_ns.get() <= now_ns {
            self.clear();
            self.end(Elapsed::TimedOut);
        }
        self.at_ns.get()
    }

    /// Ends this wait and all later ones. A wait whose deadline has passed has timed out.
    pub(crate) fn abandon(&self, now_ns: i64) {
        self.check(now_ns);
        self.abandoned.set(true);
        self.end(Elapsed::Abandoned);
    }

    fn end(&self, elapsed: Elapsed) {
        self.elapsed.set(self.elapsed.get().or(Some(elapsed)));
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// Polls `io` until the deadline passes.
    pub(crate) fn poll<T>(
        &self,
        cx: &mut Context<'_>,
        io: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<Result<T, Elapsed>> {
        if let Some(elapsed) = self.elapsed.get() {
            return Poll::Ready(Err(elapsed));
        }
        if let Poll::Ready(value) = io(cx) {
            return Poll::Ready(Ok(value));
        }
        let mut waker = self.waker.borrow_mut();
        if !waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            *waker = Some(cx.waker().clone());
        }
        Poll::Pending
    }

    /// Awaits `future` until the deadline passes.
    pub(crate) async fn within<F: Future>(&self, future: F) -> Result<F::Output, Elapsed> {
        let mut future = pin!(future);
        poll_fn(|cx| self.poll(cx, |cx| future.as_mut().poll(cx))).await
    }
}
