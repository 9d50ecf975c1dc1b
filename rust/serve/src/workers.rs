//! Workers behind one queue, kept in virtual time.
//!
//! A request that arrives at `a` is done at max(a, when a worker is free) + its service time, where
//! the worker's free time is what was reckoned, not what the clock says at the answer. So late
//! wake-ups delay answers but cost no capacity: it is workers / service time whatever the machine
//! does.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::draws::Draws;
use crate::settings::Capacity;

/// The queue; times are nanoseconds since the service's start.
#[derive(Debug)]
pub(crate) struct Workers {
    free_ns: BinaryHeap<Reverse<u64>>,
    /// When those that wait begin, soonest first.
    begins_ns: VecDeque<u64>,
    draws: Draws,
    capacity: Capacity,
    /// Service times given so far.
    pub(crate) busy_s: f64,
    /// Requests taken so far.
    pub(crate) taken: u64,
}

/// The queue is full.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Full;

impl Workers {
    pub(crate) fn new(capacity: &Capacity) -> Self {
        Self {
            free_ns: std::iter::repeat_n(Reverse(0), capacity.workers).collect(),
            begins_ns: VecDeque::new(),
            draws: Draws::new(capacity),
            capacity: capacity.clone(),
            busy_s: 0.0,
            taken: 0,
        }
    }

    /// When what arrives at `at_ns` is done. Arrivals come in the order of their times.
    pub(crate) fn done_ns(&mut self, at_ns: u64) -> Result<u64, Full> {
        while self.begins_ns.front().is_some_and(|begins| *begins <= at_ns) {
            self.begins_ns.pop_front();
        }
        let Reverse(free_ns) = *self.free_ns.peek().ok_or(Full)?;
        let begins_ns = self.awake_ns(at_ns.max(free_ns));
        if begins_ns > at_ns {
            if self.capacity.queue.is_some_and(|most| self.begins_ns.len() >= most) {
                return Err(Full);
            }
            self.begins_ns.push_back(begins_ns);
        }
        let service_s = self.service_s(begins_ns);
        let done_ns = begins_ns + nanos(service_s);
        self.free_ns.pop();
        self.free_ns.push(Reverse(done_ns));
        self.busy_s += service_s;
        self.taken += 1;
        Ok(done_ns)
    }

    fn service_s(&mut self, at_ns: u64) -> f64 {
        let drawn_s = self.draws.next_s();
        match self.capacity.halve_at_s {
            Some(halve_s) if at_ns >= nanos(halve_s) => 2.0 * drawn_s,
            _ => drawn_s,
        }
    }

    /// Nothing begins during a stall; the first comes after one period.
    fn awake_ns(&self, at_ns: u64) -> u64 {
        let (every_ns, lasts_ns) =
            (nanos(self.capacity.stall_every_s), nanos(self.capacity.stall_s));
        if every_ns == 0 || at_ns < every_ns {
            return at_ns;
        }
        let into_ns = at_ns % every_ns;
        if into_ns < lasts_ns { at_ns - into_ns + lasts_ns } else { at_ns }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "settings are checked to be from 0 to a year"
)]
fn nanos(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}
