//! Progress counters of a run.

use std::sync::atomic::{AtomicU64, Ordering};

/// Progress of a run, over all threads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Time since the start.
    pub elapsed_ns: u64,
    /// Iterations that were due.
    pub due: u64,
    /// Requests sent.
    pub sent: u64,
    /// Successful iterations.
    pub ok: u64,
    /// Failed iterations.
    pub failed: u64,
    /// Iterations that the end of the run cut off.
    pub cut_off: u64,
    /// Sum of latencies of iterations, from their due times, without pauses.
    pub latency_sum_ns: u64,
    /// 99th percentile of the send lag of iterations that ended, rounded up to the end of its
    /// bucket.
    pub lag_p99_ns: u64,
}

/// Result of an iteration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IterationEnd {
    Ok,
    Failed,
    /// The end of the run cut it off.
    CutOff,
}

/// Number of buckets of the histograms in `Counters`: up to 2^30 microseconds, 18 minutes.
pub const LATENCY_BUCKETS: usize = (30 - SUB_BITS as usize + 2) << SUB_BITS;
const SUB_BITS: u32 = 3;

/// Returns the bucket of a time: one for each microsecond below 8, then as wide as 1/8 of the
/// value.
#[expect(clippy::cast_possible_truncation, reason = "the last bucket is the least upper bound")]
fn bucket(time_ns: u64) -> usize {
    let value = time_ns / 1000;
    let shift = value.checked_ilog2().unwrap_or(0).saturating_sub(SUB_BITS);
    let index = (u64::from(shift) << SUB_BITS) + (value >> shift);
    (index as usize).min(LATENCY_BUCKETS - 1)
}

/// Returns the exclusive upper bound of a bucket.
fn bucket_end_ns(index: usize) -> u64 {
    let shift = (index >> SUB_BITS).saturating_sub(1);
    (((index - (shift << SUB_BITS) + 1) as u64) << shift) * 1000
}

/// Returns the 99th percentile, rounded up to the end of its bucket; 0 without values.
pub(crate) fn p99_ns(counts: &[u64]) -> u64 {
    let rank = (counts.iter().sum::<u64>() * 99).div_ceil(100).max(1);
    let mut seen = 0;
    let found = counts.iter().position(|count| {
        seen += count;
        seen >= rank
    });
    found.map_or(0, bucket_end_ns)
}

/// Counters of one thread. Only that thread writes, so an addition is a load and a store. The
/// alignment avoids false sharing with other threads.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Counters {
    due: AtomicU64,
    sent: AtomicU64,
    ok: AtomicU64,
    failed: AtomicU64,
    cut_off: AtomicU64,
    latency_sum_ns: AtomicU64,
    /// Histogram of latencies of successful iterations.
    latencies: [AtomicU64; LATENCY_BUCKETS],
    /// Histogram of send lags of iterations that ended.
    lags: [AtomicU64; LATENCY_BUCKETS],
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            due: AtomicU64::default(),
            sent: AtomicU64::default(),
            ok: AtomicU64::default(),
            failed: AtomicU64::default(),
            cut_off: AtomicU64::default(),
            latency_sum_ns: AtomicU64::default(),
            latencies: [const { AtomicU64::new(0) }; LATENCY_BUCKETS],
            lags: [const { AtomicU64::new(0) }; LATENCY_BUCKETS],
        }
    }
}

fn add(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Ordering::Relaxed) + more, Ordering::Relaxed);
}

fn add_to(counts: &mut [u64], more: &[AtomicU64]) {
    for (count, more) in counts.iter_mut().zip(more) {
        *count += more.load(Ordering::Relaxed);
    }
}

impl Counters {
    pub(crate) fn due(&self) {
        add(&self.due, 1);
    }

    pub(crate) fn sent(&self) {
        add(&self.sent, 1);
    }

    pub(crate) fn began(&self, lag_ns: i64) {
        add(&self.lags[bucket(lag_ns.max(0).unsigned_abs())], 1);
    }

    pub(crate) fn ended(&self, end: IterationEnd, latency_ns: i64) {
        let latency_ns = latency_ns.max(0).unsigned_abs();
        match end {
            IterationEnd::Ok => {
                add(&self.ok, 1);
                add(&self.latencies[bucket(latency_ns)], 1);
            }
            IterationEnd::Failed => add(&self.failed, 1),
            IterationEnd::CutOff => {
                add(&self.cut_off, 1);
                return;
            }
        }
        add(&self.latency_sum_ns, latency_ns);
    }

    pub(crate) fn add_to(&self, progress: &mut Progress) {
        progress.due += self.due.load(Ordering::Relaxed);
        progress.sent += self.sent.load(Ordering::Relaxed);
        progress.ok += self.ok.load(Ordering::Relaxed);
        progress.failed += self.failed.load(Ordering::Relaxed);
        progress.cut_off += self.cut_off.load(Ordering::Relaxed);
        progress.latency_sum_ns += self.latency_sum_ns.load(Ordering::Relaxed);
    }

    pub(crate) fn add_latencies_to(&self, counts: &mut [u64]) {
        add_to(counts, &self.latencies);
    }

    pub(crate) fn add_lags_to(&self, counts: &mut [u64]) {
        add_to(counts, &self.lags);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_each_other_and_are_an_eighth_of_their_values_wide() {
        let edges: Vec<usize> = (0..64).map(|us| bucket(us * 1000)).collect();
        assert_eq!(edges[..18], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 16]);
        assert!(edges.windows(2).all(|pair| pair[1] - pair[0] <= 1));
        assert_eq!(bucket(((1 << 30) - 1) * 1000), LATENCY_BUCKETS - 9);
        assert_eq!(bucket(u64::MAX), LATENCY_BUCKETS - 1);
    }

    #[test]
    fn a_bucket_ends_where_the_next_one_begins() {
        for index in 0..LATENCY_BUCKETS - 1 {
            assert_eq!(bucket(bucket_end_ns(index)), index + 1);
            assert_eq!(bucket(bucket_end_ns(index) - 1), index);
        }
    }

    #[test]
    fn one_in_a_hundred_lags_may_exceed_p99() {
        let counters = Counters::default();
        let p99 = || {
            let mut counts = vec![0; LATENCY_BUCKETS];
            counters.add_lags_to(&mut counts);
            p99_ns(&counts)
        };
        assert_eq!(p99(), 0);
        (0..98).for_each(|_| counters.began(5_000));
        counters.began(-1);
        counters.began(1_000_000);
        assert_eq!(p99(), 6_000);
        counters.began(1_000_000);
        assert_eq!(p99(), 1_024_000);
    }

    #[test]
    fn only_successful_iterations_have_a_latency() {
        let counters = Counters::default();
        counters.ended(IterationEnd::Ok, 5_000);
        counters.ended(IterationEnd::Ok, -1);
        counters.ended(IterationEnd::Failed, 5_000);
        counters.ended(IterationEnd::CutOff, 5_000);
        let mut counts = vec![0; LATENCY_BUCKETS];
        counters.add_latencies_to(&mut counts);
        counters.add_latencies_to(&mut counts);
        assert_eq!((counts[0], counts[5], counts.iter().sum::<u64>()), (2, 2, 4));
        let mut progress = Progress::default();
        counters.add_to(&mut progress);
        assert_eq!((progress.ok, progress.failed, progress.cut_off), (2, 1, 1));
        assert_eq!(progress.latency_sum_ns, 10_000);
    }
}
