//! Whether the machine keeps up with the capacity that was asked for.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use serde::Serialize;

/// An answer is late when it is given so long after it was due.
const LATE: Duration = Duration::from_millis(1);
/// A thread that was busy for such a share of a second could not take up more.
const SATURATED: f64 = 0.95;

/// Answers given later than due.
#[derive(Debug, Default)]
pub(crate) struct Lateness {
    late: AtomicU64,
    worst_ns: AtomicU64,
}

/// What became of the capacity that was asked for.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Kept {
    /// Answers given more than 1 ms after they were due.
    pub late: u64,
    /// The latest of all, after it was due.
    pub worst_late_s: f64,
    /// Seconds looked at.
    pub seconds: u64,
    /// Of these, seconds in which a thread had no time left while workers had nothing to do.
    pub short_seconds: u64,
}

impl Lateness {
    pub(crate) fn saw(&self, late: Duration) {
        if late >= LATE {
            self.late.fetch_add(1, Relaxed);
        }
        self.worst_ns.fetch_max(u64::try_from(late.as_nanos()).unwrap_or(u64::MAX), Relaxed);
    }

    pub(crate) fn tell(&self, kept: &mut Kept) {
        kept.late = self.late.load(Relaxed);
        kept.worst_late_s = Duration::from_nanos(self.worst_ns.load(Relaxed)).as_secs_f64();
    }
}

/// How long a thread was busy, told by its runtime when it goes to sleep and wakes.
#[derive(Debug)]
pub(crate) struct Busyness {
    began: Instant,
    busy_ns: AtomicU64,
    /// When it woke; `ASLEEP` while it sleeps.
    woke_ns: AtomicU64,
}

const ASLEEP: u64 = u64::MAX;

impl Busyness {
    pub(crate) fn new() -> Self {
        Self { began: Instant::now(), busy_ns: AtomicU64::new(0), woke_ns: AtomicU64::new(ASLEEP) }
    }

    pub(crate) fn wakes(&self) {
        self.woke_ns.store(self.now_ns(), Relaxed);
    }

    pub(crate) fn sleeps(&self) {
        let woke_ns = self.woke_ns.swap(ASLEEP, Relaxed);
        if woke_ns != ASLEEP {
            self.busy_ns.fetch_add(self.now_ns().saturating_sub(woke_ns), Relaxed);
        }
    }

    /// Until this moment.
    pub(crate) fn busy_s(&self) -> f64 {
        let woke_ns = self.woke_ns.load(Relaxed);
        let open_ns = if woke_ns == ASLEEP { 0 } else { self.now_ns().saturating_sub(woke_ns) };
        Duration::from_nanos(self.busy_ns.load(Relaxed) + open_ns).as_secs_f64()
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

/// Whether a thread was the limit in a stretch of time: it had no time left, and yet the workers
/// were idle for more than a hundredth of theirs.
pub(crate) fn is_short(wall_s: f64, busiest_s: f64, idle_s: f64, workers: f64) -> bool {
    busiest_s >= SATURATED * wall_s && idle_s > 0.01 * workers * wall_s
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_late_from_a_millisecond_on_and_the_worst_is_kept() {
        let lateness = Lateness::default();
        for late_us in [0, 999, 1000, 7000, 20] {
            lateness.saw(Duration::from_micros(late_us));
        }
        let mut kept = Kept::default();
        lateness.tell(&mut kept);
        assert_eq!(kept.late, 2);
        assert!((kept.worst_late_s - 0.007).abs() < 1e-12);
    }

    #[test]
    fn only_a_saturated_thread_with_idle_workers_falls_short() {
        assert!(is_short(1.0, 0.99, 1.0, 2.0));
        assert!(!is_short(1.0, 0.99, 0.01, 2.0), "the workers were the limit");
        assert!(!is_short(1.0, 0.5, 2.0, 2.0), "nobody asked for more");
    }

    #[test]
    fn a_thread_is_busy_between_waking_and_sleeping() {
        let thread = Busyness::new();
        thread.sleeps();
        assert!(thread.busy_s() <= 0.0);
        thread.wakes();
        let before_s = thread.busy_s();
        while thread.busy_s() <= before_s {}
        thread.sleeps();
        let busy_s = thread.busy_s();
        assert!(busy_s > 0.0);
        assert!((thread.busy_s() - busy_s).abs() <= 0.0);
    }
}
