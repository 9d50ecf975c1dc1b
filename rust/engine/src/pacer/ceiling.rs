//! Rate ceiling: the highest rate at which iterations start, whatever the schedule.

use super::arrival::Partition;

/// Lateness that the generator may catch up on at once.
///
/// Without it, a thread that woke up late would stay late while the schedule is at the ceiling.
const CATCH_UP_NS: f64 = 10e6;
/// Rounding error of times that are computed in two ways.
const ROUNDING_NS: f64 = 1000.0;

/// Rate per thread above which waking up for each iteration would cost more than its requests
/// (docs/performance.md): several start at once instead.
pub(crate) const PRECISE_RPS: f64 = 2500.0;
/// Time between two batches of iterations that the ceiling permits.
const BATCH_NS: f64 = 1e6;

/// A thread's part of the ceiling: iterations are permitted `gap_ns` apart.
///
/// At a high rate, they are permitted in batches, and early by at most the time between two
/// batches. This is the generic cell rate algorithm (ITU-T I.371) with that time as its tolerance.
///
/// In any interval of T seconds at most `rate * (T + 0.01) + 1` iterations of the thread start; if
/// the generator is never late, `rate * T + 1`, or with batches `rate * (T + 0.001) + 1`.
#[derive(Debug, Clone)]
pub(crate) struct Ceiling {
    gap_ns: f64,
    /// Time between two batches; 0 if iterations are permitted one by one.
    batch_ns: f64,
    /// Earliest next due time. A late generator does not move due times.
    next_due_ns: f64,
    /// Earliest next start.
    next_begin_ns: f64,
    throttled: Throttled,
}

/// Delay by the ceiling.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Throttled {
    /// Delayed iterations.
    pub iterations: u64,
    /// Sum of their delays.
    pub delay_s: f64,
}

impl Ceiling {
    /// Creates one thread's `share` of a ceiling for all threads, which begin one after the other.
    pub(crate) fn new(max_rate_rps: f64, share: f64, partition: Partition) -> Self {
        let gap_ns = 1e9 / (share * max_rate_rps);
        let first_ns = 1e9 * f64::from(partition.index) / max_rate_rps;
        let batch_ns = if gap_ns * PRECISE_RPS < 1e9 { BATCH_NS } else { 0.0 };
        let throttled = Throttled::default();
        Self { gap_ns, batch_ns, next_due_ns: first_ns, next_begin_ns: first_ns, throttled }
    }

    /// Returns when an iteration of the schedule at `due_ns` is due.
    pub(crate) fn permits_ns(&self, due_ns: i64) -> i64 {
        self.not_before(self.next_due_ns, due_ns)
    }

    /// Returns when it may start: later than it is due if a late generator has to catch up.
    pub(crate) fn begins_ns(&self, due_ns: i64) -> i64 {
        self.not_before(self.next_begin_ns, self.permits_ns(due_ns))
    }

    /// Returns `at_ns`, or the later time that a next time at `next_ns` demands.
    #[expect(clippy::cast_possible_truncation, reason = "bounded by the run's length")]
    fn not_before(&self, next_ns: f64, at_ns: i64) -> i64 {
        let earliest_ns = next_ns - self.batch_ns;
        if earliest_ns - float(at_ns) <= ROUNDING_NS {
            return at_ns;
        }
        if self.batch_ns == 0.0 {
            return earliest_ns.ceil() as i64;
        }
        ((earliest_ns / self.batch_ns).ceil() * self.batch_ns) as i64
    }

    /// Counts an iteration of the schedule at `due_ns` that starts at `now_ns`.
    pub(crate) fn begin(&mut self, due_ns: i64, now_ns: i64) {
        let permitted_ns = self.permits_ns(due_ns);
        let delay_ns = permitted_ns - due_ns;
        if delay_ns > 0 {
            self.throttled.iterations += 1;
            self.throttled.delay_s += float(delay_ns) / 1e9;
        }
        self.next_due_ns = self.next_due_ns.max(float(due_ns)) + self.gap_ns;
        let oldest_ns = float(now_ns) - (CATCH_UP_NS - self.batch_ns);
        let slot_ns = self.next_begin_ns.max(float(due_ns)).max(oldest_ns);
        self.next_begin_ns = slot_ns + self.gap_ns;
    }

    pub(crate) fn throttled(&self) -> Throttled {
        self.throttled
    }
}

#[expect(clippy::cast_precision_loss, reason = "a year in nanoseconds fits to 4 ns")]
fn float(at_ns: i64) -> f64 {
    at_ns as f64
}
