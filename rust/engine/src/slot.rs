//! Connection slots: each runs one iteration at a time, with HTTP/1.1 on a connection of its own.

use std::cell::{Cell, RefCell};
use std::task::{Context, Poll, Waker};

use crate::deadline::Deadline;
use crate::pacer::Arrival;

/// Iteration that is assigned to a slot.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Assignment {
    pub arrival: Arrival,
    /// Time for which no slot was free. The connection limit caused it, not a slow generator.
    pub waited_ns: i64,
}

/// Handle through which a worker assigns iterations to a slot.
pub(crate) struct Slot {
    /// Index within its worker.
    pub index: usize,
    /// Number over all threads.
    pub number: u32,
    pub deadline: Deadline,
    assigned: Cell<Option<Assignment>>,
    waker: RefCell<Option<Waker>>,
}

impl Slot {
    pub(crate) fn new(index: usize, number: u32, first: Assignment) -> Self {
        Self {
            index,
            number,
            deadline: Deadline::new(),
            assigned: Cell::new(Some(first)),
            waker: RefCell::new(None),
        }
    }

    /// Assigns the next iteration and wakes the slot's task.
    pub(crate) fn assign(&self, assignment: Assignment) {
        self.assigned.set(Some(assignment));
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    pub(crate) fn poll_assigned(&self, cx: &mut Context<'_>) -> Poll<Assignment> {
        if let Some(assignment) = self.assigned.take() {
            return Poll::Ready(assignment);
        }
        *self.waker.borrow_mut() = Some(cx.waker().clone());
        Poll::Pending
    }
}
