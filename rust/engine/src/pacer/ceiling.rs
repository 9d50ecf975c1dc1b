//! The highest rate at which iterations begin, whatever the schedule asks for.

/// How much of its own lateness the generator may make up for at once.
///
/// Without it a thread that woke up late would stay late for as long as the schedule asks for the
/// ceiling itself.
const CATCH_UP_NS: f64 = 10e6;
/// What instants that are computed in two ways may differ by.
const ROUNDING_NS: f64 = 1000.0;

/// One thread's part of the ceiling: iterations are permitted `gap_ns` apart.
///
/// In any stretch of T seconds at most `rate * (T + 0.01) + 1` iterations begin; without lateness
/// of the generator itself, `rate * T + 1`.
#[derive(Debug, Clone)]
pub(crate) struct Ceiling {
    gap_ns: f64,
    /// Nothing is due before it. Follows from the schedule alone: a late generator does not move
    /// what is due, and its lateness counts as its own.
    next_due_ns: f64,
    /// Nothing begins before it.
    next_begin_ns: f64,
    throttled: Throttled,
}

/// What the ceiling held back.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Throttled {
    /// Iterations that began later than the schedule asked for.
    pub iterations: u64,
    /// By how much, summed over them.
    pub delay_s: f64,
}

impl Ceiling {
    /// A ceiling for all threads, of which this is the part of one of them.
    pub(crate) fn new(max_rate_rps: f64, threads: u16) -> Self {
        let gap_ns = 1e9 * f64::from(threads) / max_rate_rps;
        Self { gap_ns, next_due_ns: 0.0, next_begin_ns: 0.0, throttled: Throttled::default() }
    }

    /// When an iteration is due that the schedule asks for at `due_ns`.
    #[expect(clippy::cast_possible_truncation, reason = "bounded by the run's length")]
    pub(crate) fn permits_ns(&self, due_ns: i64) -> i64 {
        if self.next_due_ns - float(due_ns) <= ROUNDING_NS {
            return due_ns;
        }
        self.next_due_ns.ceil() as i64
    }

    /// When it may begin: later than it is due where a late generator has to catch up.
    #[expect(clippy::cast_possible_truncation, reason = "bounded by the run's length")]
    pub(crate) fn begins_ns(&self, due_ns: i64) -> i64 {
        let permitted_ns = self.permits_ns(due_ns);
        if self.next_begin_ns - float(permitted_ns) <= ROUNDING_NS {
            return permitted_ns;
        }
        self.next_begin_ns.ceil() as i64
    }

    /// Counts an iteration that was due at `due_ns` and begins at `now_ns`.
    pub(crate) fn begin(&mut self, due_ns: i64, now_ns: i64) {
        let permitted_ns = self.permits_ns(due_ns);
        let delay_ns = permitted_ns - due_ns;
        if delay_ns > 0 {
            self.throttled.iterations += 1;
            self.throttled.delay_s += float(delay_ns) / 1e9;
        }
        self.next_due_ns = self.next_due_ns.max(float(due_ns)) + self.gap_ns;
        let slot_ns = self.next_begin_ns.max(float(due_ns)).max(float(now_ns) - CATCH_UP_NS);
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
