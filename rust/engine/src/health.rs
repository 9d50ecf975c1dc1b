//! Health of the generator: lateness and CPU cost.

use rustix::time::{ClockId, clock_gettime};

/// Histogram of nanoseconds with buckets as wide as 1/32 of their value.
#[derive(Debug, Clone)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
    max: u64,
}

const SUB_BITS: u32 = 5;
const SUB: u64 = 1 << SUB_BITS;

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: vec![0; bucket(u64::MAX) + 1], total: 0, max: 0 }
    }
}

impl Histogram {
    /// Returns highest value and count of each bucket that is not empty, in ascending order. All
    /// histograms have the same buckets, so they are merged by adding counts.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        let filled = self.counts.iter().enumerate().filter(|&(_, &count)| count > 0);
        filled.map(|(index, &count)| (upper_edge(index), count))
    }

    /// Records 0 this many times.
    pub(crate) fn record_zeros(&mut self, count: u64) {
        self.counts[0] += count;
        self.total += count;
    }

    /// Returns the number of values.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// Records a value; a negative one as 0.
    pub(crate) fn record(&mut self, value_ns: i64) {
        let value = u64::try_from(value_ns).unwrap_or(0);
        self.counts[bucket(value)] += 1;
        self.total += 1;
        self.max = self.max.max(value);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.total += other.total;
        self.max = self.max.max(other.max);
    }

    /// Returns a quantile, with an error of up to 3 %; 0 without values.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a rank between 1 and the total"
    )]
    pub(crate) fn quantile(&self, share: f64) -> u64 {
        let rank = ((self.total as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return upper_edge(index).min(self.max);
            }
        }
        self.max
    }

    /// Returns the maximum; 0 without values.
    pub fn max(&self) -> u64 {
        self.max
    }
}

#[expect(clippy::cast_possible_truncation, reason = "below 64 * 32")]
fn bucket(value: u64) -> usize {
    if value < SUB {
        return value as usize;
    }
    let shift = value.ilog2() - SUB_BITS;
    (u64::from(shift + 1) * SUB + ((value >> shift) - SUB)) as usize
}

fn upper_edge(index: usize) -> u64 {
    let index = index as u64;
    if index < SUB {
        return index;
    }
    let shift = index / SUB - 1;
    // The last bucket's edge is 2^64: wrapping makes it u64::MAX.
    ((index % SUB + SUB + 1) << shift).wrapping_sub(1)
}

/// Lateness and CPU cost of the generator in a run.
#[derive(Debug, Clone, Default)]
pub struct Health {
    /// Median time from due to sent, without the wait for a connection.
    pub lag_p50_ms: f64,
    /// Its 99th percentile.
    pub lag_p99_ms: f64,
    /// Its maximum.
    pub lag_max_ms: f64,
    /// Iterations that waited because all connections were in use.
    pub waited: u64,
    /// 99th percentile of that wait, over all iterations.
    pub wait_p99_ms: f64,
    /// Maximum of that wait.
    pub wait_max_ms: f64,
    /// CPU time (user and system) of the engine's threads.
    pub cpu_s: f64,
    /// Time from the start to the end of the last request.
    pub wall_s: f64,
    /// Time that threads waited for a core.
    pub runqueue_wait_s: f64,
    /// Number of engine threads.
    pub threads: u16,
    /// Requests that were sent again because a kept-alive connection was closed.
    pub retries: u64,
    /// Connections opened.
    pub connections: u64,
    /// Iterations that `Limits.max_rate_rps` delayed.
    pub throttled: u64,
    /// Sum of these delays.
    pub throttled_s: f64,
    /// Whether `Limits.load_s` ended the load before its schedule.
    pub is_cut_short: bool,
    /// Requests that failed for lack of a local port.
    pub without_port: u64,
    /// Requests that failed for lack of a file descriptor.
    pub without_file: u64,
    /// Time from due to sent of all iterations.
    pub lag: Histogram,
    /// Wait for a connection of all iterations.
    pub wait: Histogram,
}

/// CPU time and run-queue wait of a thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ThreadCost {
    pub cpu_s: f64,
    pub runqueue_wait_s: f64,
}

impl ThreadCost {
    pub(crate) fn so_far() -> Self {
        let cpu = clock_gettime(ClockId::ThreadCPUTime);
        #[expect(clippy::cast_precision_loss, reason = "seconds since the thread's start")]
        let cpu_s = cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9;
        Self { cpu_s, runqueue_wait_s: runqueue_wait_s().unwrap_or(0.0) }
    }

    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            cpu_s: self.cpu_s - before.cpu_s,
            runqueue_wait_s: self.runqueue_wait_s - before.runqueue_wait_s,
        }
    }
}

/// Returns the second field of schedstat, if the kernel has it: time spent waiting for a core.
fn runqueue_wait_s() -> Option<f64> {
    let line = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let waited_ns: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(waited_ns / 1e9)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quantiles_of_a_known_distribution() {
        let mut histogram = Histogram::default();
        (1..=1000).for_each(|value| histogram.record(value * 1000));
        for (share, exact) in [(0.5, 500_000.0), (0.99, 990_000.0)] {
            #[expect(clippy::cast_precision_loss)]
            let got = histogram.quantile(share) as f64;
            assert!((got / exact - 1.0).abs() < 0.035, "{got} for {exact}");
        }
        assert_eq!(histogram.quantile(1.0), 1_000_000);
        assert_eq!(histogram.max(), 1_000_000);
    }

    #[test]
    fn a_quantile_without_values_is_zero() {
        assert_eq!(Histogram::default().quantile(0.99), 0);
    }

    proptest! {
        #[test]
        fn a_bucket_holds_what_falls_into_it(value in any::<u64>()) {
            let index = bucket(value);
            prop_assert!(value <= upper_edge(index));
            prop_assert!(index == 0 || value > upper_edge(index - 1));
        }
    }
}
