//! What a run shows of itself while it goes on.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts since the start of the run, over all threads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Since the schedule's start.
    pub elapsed_ns: u64,
    /// Iterations whose intended start has passed.
    pub due: u64,
    /// Requests.
    pub sent: u64,
    /// Iterations that ended well.
    pub ok: u64,
    /// Iterations that did not.
    pub failed: u64,
    /// Sum over the iterations that ended, from their intended start.
    pub latency_sum_ns: u64,
}

/// One thread's counts. Only that thread writes, so an addition is a load and a store; the
/// alignment keeps another thread's counts out of its cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Counters {
    due: AtomicU64,
    sent: AtomicU64,
    ok: AtomicU64,
    failed: AtomicU64,
    latency_sum_ns: AtomicU64,
}

fn add(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Ordering::Relaxed) + more, Ordering::Relaxed);
}

impl Counters {
    pub(crate) fn due(&self) {
        add(&self.due, 1);
    }

    pub(crate) fn sent(&self) {
        add(&self.sent, 1);
    }

    pub(crate) fn ended(&self, is_ok: bool, latency_ns: i64) {
        add(if is_ok { &self.ok } else { &self.failed }, 1);
        add(&self.latency_sum_ns, latency_ns.max(0).unsigned_abs());
    }

    pub(crate) fn add_to(&self, progress: &mut Progress) {
        progress.due += self.due.load(Ordering::Relaxed);
        progress.sent += self.sent.load(Ordering::Relaxed);
        progress.ok += self.ok.load(Ordering::Relaxed);
        progress.failed += self.failed.load(Ordering::Relaxed);
        progress.latency_sum_ns += self.latency_sum_ns.load(Ordering::Relaxed);
    }
}
