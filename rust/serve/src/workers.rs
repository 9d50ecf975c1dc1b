//! Workers behind one queue, kept in virtual time.
//!
//! A request that arrives at `a` is done at max(a, when a worker is free) + its service time, where
//! the worker's free time is what was reckoned, not what the clock says at the answer. So late
//! wake-ups delay answers but cost no capacity: it is workers / service time whatever the machine
//! does.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use crate::draws::Draws;
use crate::settings::Capacity;

/// The queue; times are nanoseconds since the service's start.
#[derive(Debug)]
pub(crate) struct Workers {
    free_ns: BinaryHeap<Reverse<u64>>,
    /// When those that wait leave the queue, soonest first.
    leaves_ns: VecDeque<u64>,
    draws: Draws,
    capacity: Capacity,
    /// Service times given so far.
    pub(crate) busy_s: f64,
    /// Time in which workers had nothing to do, as far as it has ended.
    pub(crate) idle_s: f64,
    /// Requests taken so far.
    pub(crate) taken: u64,
}

/// Why a request is not served.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Turned {
    /// The queue is full.
    Full,
    /// It leaves the queue at this instant, as it has waited too long.
    TimedOut(u64),
}

impl Workers {
    pub(crate) fn new(capacity: &Capacity) -> Self {
        Self {
            free_ns: std::iter::repeat_n(Reverse(0), capacity.workers).collect(),
            leaves_ns: VecDeque::new(),
            draws: Draws::new(capacity),
            capacity: capacity.clone(),
            busy_s: 0.0,
            idle_s: 0.0,
            taken: 0,
        }
    }

    pub(crate) fn number(&self) -> usize {
        self.free_ns.len()
    }

    /// When what arrives at `at_ns` is done; `slowness` is by which factor work that begins at an
    /// instant takes longer. Arrivals come in the order of their times.
    pub(crate) fn done_ns(
        &mut self,
        at_ns: u64,
        slowness: impl Fn(u64) -> f64,
    ) -> Result<u64, Turned> {
        let Reverse(free_ns) = *self.free_ns.peek().ok_or(Turned::Full)?;
        let begins_ns = self.awake_ns(at_ns.max(free_ns));
        self.wait(at_ns, begins_ns)?;
        let service_s = self.service_s(at_ns, begins_ns) * slowness(begins_ns);
        let done_ns = begins_ns.saturating_add(nanos(service_s));
        self.idle_s += Duration::from_nanos(at_ns.saturating_sub(free_ns)).as_secs_f64();
        self.free_ns.pop();
        self.free_ns.push(Reverse(done_ns));
        self.busy_s += service_s;
        self.taken += 1;
        Ok(done_ns)
    }

    /// Takes a place in the queue. Who leaves it after the time-out costs the workers nothing, so
    /// nobody behind waits longer for it.
    fn wait(&mut self, at_ns: u64, begins_ns: u64) -> Result<(), Turned> {
        while self.leaves_ns.front().is_some_and(|leaves| *leaves <= at_ns) {
            self.leaves_ns.pop_front();
        }
        if begins_ns <= at_ns {
            return Ok(());
        }
        if self.capacity.max_queue.is_some_and(|most| self.leaves_ns.len() >= most) {
            return Err(Turned::Full);
        }
        let patience_ns = self.capacity.queue_timeout_s.map_or(u64::MAX, nanos);
        let gives_up_ns = at_ns.saturating_add(patience_ns);
        self.leaves_ns.push_back(begins_ns.min(gives_up_ns));
        if begins_ns > gives_up_ns { Err(Turned::TimedOut(gives_up_ns)) } else { Ok(()) }
    }

    fn service_s(&mut self, at_ns: u64, begins_ns: u64) -> f64 {
        let drawn_s = self.draws.next_s() * self.decline() * self.collapse(at_ns);
        match self.capacity.halve_at_s {
            Some(halve_s) if begins_ns >= nanos(halve_s) => 2.0 * drawn_s,
            _ => drawn_s,
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "exact up to 2^53 requests")]
    fn decline(&self) -> f64 {
        (1.0 + self.capacity.decline).powf(self.taken as f64 / 1000.0)
    }

    /// The factor for a request that arrives: it has a place in the queue if it waits.
    fn collapse(&self, at_ns: u64) -> f64 {
        let Some(above) = self.capacity.collapse_above else { return 1.0 };
        let busy = self.free_ns.iter().filter(|Reverse(free_ns)| *free_ns > at_ns).count();
        let inside = busy.max(1) + self.leaves_ns.len();
        if inside > above { self.capacity.collapse_by } else { 1.0 }
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
