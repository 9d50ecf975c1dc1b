//! Load: the schedule of iterations.

use serde::Deserialize;

/// Schedule of iterations.
#[derive(Clone, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Load {
    /// Open loop at a constant rate.
    Open {
        /// Iterations per second.
        rate_rps: f64,
        /// Time during which iterations start.
        duration_s: f64,
        /// Distribution of arrivals.
        arrivals: Arrivals,
        /// Seed of random arrivals.
        seed: u64,
        /// Limit on their number.
        iterations: Option<u32>,
    },
    /// Open loop at a rate that changes in stages.
    Stages {
        /// Stages, in order.
        stages: Vec<Stage>,
        /// Distribution of arrivals.
        arrivals: Arrivals,
        /// Seed of random arrivals.
        seed: u64,
        /// Limit on their number.
        iterations: Option<u32>,
    },
    /// Open loop with recorded due times.
    Replay {
        /// Times since the start, in ascending order.
        offsets_s: Vec<f64>,
    },
    /// Closed loop: each worker starts an iteration when its last one has ended.
    Closed {
        /// Number of workers.
        workers: u32,
        /// Time during which iterations start.
        duration_s: Option<f64>,
        /// Total number of iterations.
        iterations: Option<u32>,
        /// Think time between two iterations of a worker.
        think_s: f64,
        /// Iterations per turn, if it alternates with a second run (`Prepared::pair`).
        turn: Option<u32>,
    },
    /// Open loop that keeps the number of running iterations in a band.
    Band {
        /// Number at or below which arrivals come at `fill_rps`.
        low: u32,
        /// Number at or above which arrivals come at `ebb_rps`.
        high: u32,
        /// Arrivals per second while filling.
        fill_rps: f64,
        /// Arrivals per second while ebbing; may be 0.
        ebb_rps: f64,
        /// Time during which iterations start.
        duration_s: f64,
    },
}

/// Stage with a linear change of the rate, or a constant rate.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stage {
    /// Duration.
    pub duration_s: f64,
    /// Iterations per second at the beginning.
    pub from_rps: f64,
    /// Iterations per second at the end.
    pub to_rps: f64,
}

impl Stage {
    /// Returns the number of iterations that are due in it.
    pub(crate) fn count(self) -> f64 {
        f64::midpoint(self.from_rps, self.to_rps) * self.duration_s
    }
}

/// Distribution of arrivals of an open loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// Iteration i is due when the integral of the rate is i: at i / rate.
    Constant,
    /// Poisson process: exponential gaps of mean 1 / rate.
    Poisson,
}

impl Load {
    /// Returns the highest rate; the mean rate of a recording, 0 for a closed loop.
    pub(crate) fn highest_rps(&self) -> f64 {
        match self {
            Self::Open { rate_rps, .. } => *rate_rps,
            Self::Stages { stages, .. } => {
                stages.iter().map(|stage| stage.from_rps.max(stage.to_rps)).fold(0.0, f64::max)
            }
            Self::Replay { offsets_s } => {
                let last_s = offsets_s.last().copied().unwrap_or_default();
                count(offsets_s.len()) / last_s.max(f64::MIN_POSITIVE)
            }
            Self::Closed { .. } => 0.0,
            Self::Band { fill_rps, ebb_rps, .. } => fill_rps.max(*ebb_rps),
        }
    }

    /// Returns the expected number of iterations, if it is known.
    pub(crate) fn expected(&self) -> Option<f64> {
        let limited = |iterations: &Option<u32>, expected: f64| {
            Some(iterations.map_or(expected, |most| expected.min(f64::from(most))))
        };
        match self {
            Self::Open { rate_rps, duration_s, iterations, .. } => {
                limited(iterations, rate_rps * duration_s)
            }
            Self::Stages { stages, iterations, .. } => {
                limited(iterations, stages.iter().map(|stage| stage.count()).sum())
            }
            Self::Replay { offsets_s } => Some(count(offsets_s.len())),
            Self::Closed { iterations, .. } => iterations.map(f64::from),
            Self::Band { duration_s, .. } => Some(self.highest_rps() * duration_s),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "fewer than 2^32")]
fn count(length: usize) -> f64 {
    length as f64
}
