//! Queue with several workers in virtual time.
//!
//! A request that arrives at `a` is done at max(a, when a worker is free) + its service time. The
//! time when a worker is free is computed, not measured: late wake-ups delay responses but do not
//! reduce the capacity, which is workers / service time on any machine.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use crate::service_times::ServiceTimes;
use crate::settings::Capacity;

/// Queue and workers. Times are nanoseconds since the start of the service.
#[derive(Debug)]
pub(crate) struct Workers {
    free_ns: BinaryHeap<Reverse<u64>>,
    /// Times when waiting requests leave the queue, in order.
    leaves_ns: VecDeque<u64>,
    service_times: ServiceTimes,
    capacity: Capacity,
    /// Sum of service times.
    pub(crate) busy_s: f64,
    /// Sum of idle times that have ended.
    pub(crate) idle_s: f64,
    /// Number of requests that were accepted.
    pub(crate) taken: u64,
}

/// Reason why a request is rejected.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Rejected {
    /// The queue is full.
    QueueFull,
    /// It leaves the queue at this time, because it has waited too long.
    TimedOut(u64),
}

impl Workers {
    pub(crate) fn new(capacity: &Capacity) -> Self {
        Self {
            free_ns: std::iter::repeat_n(Reverse(0), capacity.workers).collect(),
            leaves_ns: VecDeque::new(),
            service_times: ServiceTimes::new(capacity),
            capacity: capacity.clone(),
            busy_s: 0.0,
            idle_s: 0.0,
            taken: 0,
        }
    }

    pub(crate) fn number(&self) -> usize {
        self.free_ns.len()
    }

    /// Accepts a request that arrives at `at_ns` and returns when it is done. `slowness` is the
    /// factor by which work that begins at a time takes longer. Calls are in the order of arrival.
    pub(crate) fn done_ns(
        &mut self,
        at_ns: u64,
        slowness: impl Fn(u64) -> f64,
    ) -> Result<u64, Rejected> {
        let Reverse(free_ns) = *self.free_ns.peek().ok_or(Rejected::QueueFull)?;
        let begins_ns = self.after_stall_ns(at_ns.max(free_ns));
        self.enqueue(at_ns, begins_ns)?;
        let service_s = self.service_s(at_ns, begins_ns) * slowness(begins_ns);
        let done_ns = begins_ns.saturating_add(nanos(service_s));
        self.idle_s += Duration::from_nanos(at_ns.saturating_sub(free_ns)).as_secs_f64();
        self.free_ns.pop();
        self.free_ns.push(Reverse(done_ns));
        self.busy_s += service_s;
        self.taken += 1;
        Ok(done_ns)
    }

    /// Enters the queue. A request that times out takes no worker's time, so it does not delay
    /// others.
    fn enqueue(&mut self, at_ns: u64, begins_ns: u64) -> Result<(), Rejected> {
        while self.leaves_ns.front().is_some_and(|leaves| *leaves <= at_ns) {
            self.leaves_ns.pop_front();
        }
        if begins_ns <= at_ns {
            return Ok(());
        }
        if self.capacity.max_queue.is_some_and(|most| self.leaves_ns.len() >= most) {
            return Err(Rejected::QueueFull);
        }
        let timeout_ns = self.capacity.queue_timeout_s.map_or(u64::MAX, nanos);
        let expires_ns = at_ns.saturating_add(timeout_ns);
        self.leaves_ns.push_back(begins_ns.min(expires_ns));
        if begins_ns > expires_ns { Err(Rejected::TimedOut(expires_ns)) } else { Ok(()) }
    }

    fn service_s(&mut self, at_ns: u64, begins_ns: u64) -> f64 {
        let service_s =
            self.service_times.next_s() * self.decline() * self.collapse(at_ns, begins_ns);
        match self.capacity.halve_at_s {
            Some(halve_s) if begins_ns >= nanos(halve_s) => 2.0 * service_s,
            _ => service_s,
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "exact up to 2^53 requests")]
    fn decline(&self) -> f64 {
        (1.0 + self.capacity.decline).powf(self.taken as f64 / 1000.0)
    }

    /// Returns the factor of an arriving request, which is in the queue already if it waits.
    fn collapse(&self, at_ns: u64, begins_ns: u64) -> f64 {
        let Some(above) = self.capacity.collapse_above else { return 1.0 };
        let busy = self.free_ns.iter().filter(|Reverse(free_ns)| *free_ns > at_ns).count();
        let inside = busy + self.leaves_ns.len() + usize::from(begins_ns <= at_ns);
        if inside > above { self.capacity.collapse_by } else { 1.0 }
    }

    /// Returns the end of the stall at this time. The first stall is after one period.
    fn after_stall_ns(&self, at_ns: u64) -> u64 {
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
