//! Open-loop schedules: due times that are known in advance.

use super::arrival::{Arrival, Partition};
use crate::clock::nanos;
use crate::plan::{Arrivals, Stage};
use crate::random::SplitMix;

/// A thread's partition of an open-loop schedule.
pub(crate) struct Open {
    times: DueTimes,
    /// Iterations due then or later are not part of the schedule.
    end_s: f64,
    /// Limit on the number of iterations, over all threads.
    limit: u32,
    next: u32,
    next_due_s: f64,
    last_due_s: f64,
    partition: Partition,
}

/// Due times by index.
enum DueTimes {
    /// Constant arrivals, computed from the index, not as a sum of intervals, so that they do not
    /// drift.
    Constant(RateCurve),
    /// Poisson process of rate 1, mapped through the curve. Every thread draws all gaps, so the
    /// schedule does not depend on the number of threads.
    Poisson {
        curve: RateCurve,
        random: SplitMix,
        gaps: f64,
    },
    Recorded(Vec<f64>),
}

impl Open {
    pub(crate) fn staged(
        stages: &[Stage],
        (arrivals, seed): (Arrivals, u64),
        iterations: Option<u32>,
        partition: Partition,
    ) -> Self {
        let curve = RateCurve::new(stages);
        let end_s = curve.end_s;
        let times = match arrivals {
            Arrivals::Constant => DueTimes::Constant(curve),
            Arrivals::Poisson => {
                DueTimes::Poisson { curve, random: SplitMix::new(seed), gaps: 0.0 }
            }
        };
        Self::new(times, end_s, iterations.unwrap_or(u32::MAX), partition)
    }

    pub(crate) fn recorded(offsets_s: &[f64], partition: Partition) -> Self {
        let end_s = offsets_s.last().map_or(0.0, |last_s| last_s.next_up());
        Self::new(DueTimes::Recorded(offsets_s.to_vec()), end_s, u32::MAX, partition)
    }

    fn new(times: DueTimes, end_s: f64, limit: u32, partition: Partition) -> Self {
        let next = u32::from(partition.index);
        let mut open =
            Self { times, end_s, limit, next, next_due_s: 0.0, last_due_s: 0.0, partition };
        open.advance(partition.index + 1);
        open
    }

    /// Advances by this number of arrivals.
    fn advance(&mut self, arrivals: u16) {
        self.next_due_s = match &mut self.times {
            DueTimes::Constant(curve) => curve.instant_s(f64::from(self.next)),
            DueTimes::Poisson { curve, random, gaps } => {
                // One by one, so that rounding does not depend on the number of threads.
                for _ in 0..arrivals {
                    *gaps += random.exponential();
                }
                curve.instant_s(*gaps)
            }
            DueTimes::Recorded(offsets_s) => {
                offsets_s.get(self.next as usize).copied().unwrap_or(f64::INFINITY)
            }
        };
    }

    pub(crate) fn next_due_ns(&self) -> Option<i64> {
        let is_due = self.next_due_s < self.end_s && self.next < self.limit;
        is_due.then(|| nanos(self.next_due_s))
    }

    pub(crate) fn take(&mut self, now_ns: i64) -> Option<Arrival> {
        let due_ns = self.next_due_ns().filter(|&due_ns| due_ns <= now_ns)?;
        let iteration = self.next;
        self.last_due_s = self.next_due_s;
        self.next = self.next.saturating_add(u32::from(self.partition.count));
        self.advance(self.partition.count);
        Some(Arrival { iteration, due_ns })
    }

    /// Returns when the last one may be due.
    pub(crate) fn end_ns(&self) -> i64 {
        nanos(if self.next < self.limit { self.end_s } else { self.last_due_s })
    }
}

/// Inverse of the integral of a piecewise linear rate: when the n-th iteration is due.
struct RateCurve {
    pieces: Vec<Piece>,
    end_s: f64,
    total: f64,
}

/// Stage of a rate curve.
struct Piece {
    begins_s: f64,
    /// Iterations due before this stage.
    before: f64,
    from_rps: f64,
    /// Change of the rate per second.
    slope: f64,
}

/// Rounding error of sums over stages.
const ROUNDING: f64 = 1e-9;

impl RateCurve {
    fn new(stages: &[Stage]) -> Self {
        let mut curve = Self { pieces: Vec::new(), end_s: 0.0, total: 0.0 };
        for stage in stages {
            curve.pieces.push(Piece {
                begins_s: curve.end_s,
                before: curve.total,
                from_rps: stage.from_rps,
                slope: (stage.to_rps - stage.from_rps) / stage.duration_s,
            });
            curve.end_s += stage.duration_s;
            curve.total += stage.count();
        }
        curve
    }

    /// Returns the last instant at which at most `count` are due: after a stage with rate 0.
    fn instant_s(&self, count: f64) -> f64 {
        if count + ROUNDING >= self.total {
            return f64::INFINITY;
        }
        let index = self.pieces.partition_point(|piece| piece.before <= count + ROUNDING);
        let piece = &self.pieces[index.saturating_sub(1)];
        let left = count - piece.before;
        if left <= 0.0 {
            return piece.begins_s;
        }
        // Root of from t + slope t^2 / 2 = left, in the form that is exact for slope 0.
        let square = piece.from_rps * piece.from_rps + 2.0 * piece.slope * left;
        piece.begins_s + 2.0 * left / (piece.from_rps + square.max(0.0).sqrt())
    }
}
