//! Notification of one task by another on the same thread.

use std::cell::{Cell, RefCell};
use std::task::{Context, Poll, Waker};

/// `tokio::sync::Notify` for a single thread and a single waiting task.
#[derive(Debug, Default)]
pub(crate) struct LocalNotify {
    is_notified: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl LocalNotify {
    pub(crate) fn notify(&self) {
        self.is_notified.set(true);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    pub(crate) fn poll_notified(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_notified.take() {
            return Poll::Ready(());
        }
        *self.waker.borrow_mut() = Some(cx.waker().clone());
        Poll::Pending
    }
}
