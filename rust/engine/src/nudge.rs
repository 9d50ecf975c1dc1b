//! How a lane makes the dispatcher of its thread look at once.

use std::cell::{Cell, RefCell};
use std::task::{Context, Poll, Waker};

/// Wakes the dispatcher from a lane of the same thread.
#[derive(Debug, Default)]
pub(crate) struct Nudge {
    is_rung: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl Nudge {
    pub(crate) fn ring(&self) {
        self.is_rung.set(true);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_rung.take() {
            return Poll::Ready(());
        }
        *self.waker.borrow_mut() = Some(cx.waker().clone());
        Poll::Pending
    }
}
