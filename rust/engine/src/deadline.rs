//! Deadlines that one watchdog per thread checks, so that a request needs no timer of its own.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// Error of a wait whose deadline has passed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Elapsed;

/// Deadline of a slot's task.
#[derive(Debug)]
pub(crate) struct Deadline {
    at_ns: Cell<i64>,
    passed: Cell<bool>,
    /// All later waits end at once, too.
    abandoned: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

const NEVER: i64 = i64::MAX;

impl Deadline {
    pub(crate) fn new() -> Self {
        Self {
            at_ns: Cell::new(NEVER),
            passed: Cell::new(false),
            abandoned: Cell::new(false),
            waker: RefCell::new(None),
        }
    }

    pub(crate) fn set(&self, at_ns: i64) {
        self.at_ns.set(at_ns);
        self.passed.set(self.abandoned.get());
    }

    pub(crate) fn clear(&self) {
        self.at_ns.set(NEVER);
    }

    /// Ends the wait if its deadline has passed. Returns when to check again.
    pub(crate) fn check(&self, now_ns: i64) -> i64 {
        if self.at_ns.get() <= now_ns {
            self.clear();
            self.pass();
        }
        self.at_ns.get()
    }

    /// Ends this wait and all later ones.
    pub(crate) fn abandon(&self) {
        self.abandoned.set(true);
        self.pass();
    }

    fn pass(&self) {
        self.passed.set(true);
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
        if self.passed.get() {
            return Poll::Ready(Err(Elapsed));
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
