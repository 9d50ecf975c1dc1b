//! Checks whether the machine keeps up with the capacity of the settings.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use serde::Serialize;

/// Delay from which a response is late.
const LATE: Duration = Duration::from_millis(1);
/// Share of busy time from which a thread is saturated.
const SATURATED: f64 = 0.95;

/// Lateness of responses.
#[derive(Debug, Default)]
pub(crate) struct Lateness {
    late: AtomicU64,
    worst_ns: AtomicU64,
}

/// Report on whether the service kept its capacity.
#[derive(Debug, Clone, Default, Serialize)]
pub struct CapacityKept {
    /// Responses more than 1 ms late.
    pub late: u64,
    /// Maximum lateness.
    pub worst_late_s: f64,
    /// Seconds that were checked.
    pub seconds: u64,
    /// Seconds in which a thread was saturated while workers were idle.
    pub short_seconds: u64,
}

impl Lateness {
    pub(crate) fn record(&self, late: Duration) {
        if late >= LATE {
            self.late.fetch_add(1, Relaxed);
        }
        self.worst_ns.fetch_max(u64::try_from(late.as_nanos()).unwrap_or(u64::MAX), Relaxed);
    }

    pub(crate) fn report(&self, kept: &mut CapacityKept) {
        kept.late = self.late.load(Relaxed);
        kept.worst_late_s = Duration::from_nanos(self.worst_ns.load(Relaxed)).as_secs_f64();
    }
}

/// Busy time of a thread. Its runtime reports when the thread sleeps and wakes.
#[derive(Debug)]
pub(crate) struct BusyTime {
    began: Instant,
    busy_ns: AtomicU64,
    /// Time when it woke; `ASLEEP` while it sleeps.
    woke_ns: AtomicU64,
}

const ASLEEP: u64 = u64::MAX;

impl BusyTime {
    pub(crate) fn new() -> Self {
        Self { began: Instant::now(), busy_ns: AtomicU64::new(0), woke_ns: AtomicU64::new(ASLEEP) }
    }

    pub(crate) fn on_wake(&self) {
        self.woke_ns.store(self.now_ns(), Relaxed);
    }

    pub(crate) fn on_sleep(&self) {
        let woke_ns = self.woke_ns.swap(ASLEEP, Relaxed);
        if woke_ns != ASLEEP {
            self.busy_ns.fetch_add(self.now_ns().saturating_sub(woke_ns), Relaxed);
        }
    }

    /// Returns the busy time so far.
    pub(crate) fn busy_s(&self) -> f64 {
        let woke_ns = self.woke_ns.load(Relaxed);
        let open_ns = if woke_ns == ASLEEP { 0 } else { self.now_ns().saturating_sub(woke_ns) };
        Duration::from_nanos(self.busy_ns.load(Relaxed) + open_ns).as_secs_f64()
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

/// Whether a thread limited the capacity: it was saturated, and yet the workers were idle for more
/// than 1 % of the time.
pub(crate) fn is_thread_limit(wall_s: f64, busiest_s: f64, idle_s: f64, workers: f64) -> bool {
    busiest_s >= SATURATED * wall_s && idle_s > 0.01 * workers * wall_s
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_is_late_from_a_millisecond_on() {
        let lateness = Lateness::default();
        for late_us in [0, 999, 1000, 7000, 20] {
            lateness.record(Duration::from_micros(late_us));
        }
        let mut kept = CapacityKept::default();
        lateness.report(&mut kept);
        assert_eq!(kept.late, 2);
        assert!((kept.worst_late_s - 0.007).abs() < 1e-12);
    }

    #[test]
    fn only_a_saturated_thread_with_idle_workers_is_the_limit() {
        assert!(is_thread_limit(1.0, 0.99, 1.0, 2.0));
        assert!(!is_thread_limit(1.0, 0.99, 0.01, 2.0), "the workers were the limit");
        assert!(!is_thread_limit(1.0, 0.5, 2.0, 2.0), "nobody asked for more");
    }

    #[test]
    fn a_thread_is_busy_between_waking_and_sleeping() {
        let thread = BusyTime::new();
        thread.on_sleep();
        assert!(thread.busy_s() <= 0.0);
        thread.on_wake();
        let before_s = thread.busy_s();
        while thread.busy_s() <= before_s {}
        thread.on_sleep();
        let busy_s = thread.busy_s();
        assert!(busy_s > 0.0);
        assert!((thread.busy_s() - busy_s).abs() <= 0.0);
    }
}
