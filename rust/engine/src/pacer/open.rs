//! Iterations that are due at instants known beforehand.

use super::{Arrival, Share};
use crate::clock::nanos;
use crate::plan::{Arrivals, Stage};
use crate::random::SplitMix;

/// This thread's part of the schedule: iterations i mod n.
pub(crate) struct Open {
    times: Times,
    /// What is due then is due no more.
    end_s: f64,
    /// How many there are at most, over all threads.
    most: u32,
    next: u32,
    next_due_s: f64,
    last_due_s: f64,
    share: Share,
}

enum Times {
    // From the index, not a sum of intervals, so that it does not drift.
    Even(Curve),
    /// A Poisson process of rate 1, its time stretched by the curve. Every thread draws all gaps,
    /// so that their number does not change the schedule.
    Poisson {
        curve: Curve,
        random: SplitMix,
        drawn: f64,
    },
    Recorded(Vec<f64>),
}

impl Open {
    pub(crate) fn staged(
        stages: &[Stage],
        (arrivals, seed): (Arrivals, u64),
        iterations: Option<u32>,
        share: Share,
    ) -> Self {
        let curve = Curve::new(stages);
        let end_s = curve.end_s;
        let times = match arrivals {
            Arrivals::Constant => Times::Even(curve),
            Arrivals::Poisson => Times::Poisson { curve, random: SplitMix::new(seed), drawn: 0.0 },
        };
        Self::new(times, end_s, iterations.unwrap_or(u32::MAX), share)
    }

    pub(crate) fn recorded(offsets_s: &[f64], share: Share) -> Self {
        let end_s = offsets_s.last().map_or(0.0, |last_s| last_s.next_up());
        Self::new(Times::Recorded(offsets_s.to_vec()), end_s, u32::MAX, share)
    }

    fn new(times: Times, end_s: f64, most: u32, share: Share) -> Self {
        let next = u32::from(share.thread);
        let mut open = Self { times, end_s, most, next, next_due_s: 0.0, last_due_s: 0.0, share };
        open.advance(share.thread + 1);
        open
    }

    /// Goes on to the arrival `arrivals` further.
    fn advance(&mut self, arrivals: u16) {
        self.next_due_s = match &mut self.times {
            Times::Even(curve) => curve.instant_s(f64::from(self.next)),
            Times::Poisson { curve, random, drawn } => {
                // One by one: another order of adding would round differently.
                for _ in 0..arrivals {
                    *drawn += random.exponential();
                }
                curve.instant_s(*drawn)
            }
            Times::Recorded(offsets_s) => {
                offsets_s.get(self.next as usize).copied().unwrap_or(f64::INFINITY)
            }
        };
    }

    pub(crate) fn next_due_ns(&self) -> Option<i64> {
        let is_due = self.next_due_s < self.end_s && self.next < self.most;
        is_due.then(|| nanos(self.next_due_s))
    }

    pub(crate) fn take(&mut self, now_ns: i64) -> Option<Arrival> {
        let due_ns = self.next_due_ns().filter(|&due_ns| due_ns <= now_ns)?;
        let iteration = self.next;
        self.last_due_s = self.next_due_s;
        self.next = self.next.saturating_add(u32::from(self.share.threads));
        self.advance(self.share.threads);
        Some(Arrival { iteration, due_ns })
    }

    /// When the last one may be due.
    pub(crate) fn end_ns(&self) -> i64 {
        nanos(if self.next < self.most { self.end_s } else { self.last_due_s })
    }
}

/// How many iterations are due by an instant, as the integral of the rate; and the inverse.
struct Curve {
    pieces: Vec<Piece>,
    end_s: f64,
    total: f64,
}

struct Piece {
    begins_s: f64,
    /// Iterations due before it.
    before: f64,
    from_rps: f64,
    /// By how much the rate grows in a second.
    slope: f64,
}

/// What sums of stages may be off by.
const ROUNDING: f64 = 1e-9;

impl Curve {
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

    /// The last instant at which no more than `count` are due: after a stage at rate 0, not before.
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
        // The root of from t + slope t^2 / 2 = left, in the form that is exact for slope 0.
        let square = piece.from_rps * piece.from_rps + 2.0 * piece.slope * left;
        piece.begins_s + 2.0 * left / (piece.from_rps + square.max(0.0).sqrt())
    }
}
