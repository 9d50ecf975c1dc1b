//! How hard: the schedule of iterations.

use serde::Deserialize;

/// The schedule of iterations.
#[derive(Clone, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Load {
    /// Iterations are due at a rate.
    Open {
        /// Iterations per second.
        rate_rps: f64,
        /// How long iterations are started.
        duration_s: f64,
        /// How their instants follow each other.
        arrivals: Arrivals,
        /// Of random arrivals.
        seed: u64,
        /// How many are started at most.
        iterations: Option<u32>,
    },
    /// Iterations are due at a rate that goes through stages.
    Stages {
        /// One after the other.
        stages: Vec<Stage>,
        /// How their instants follow each other.
        arrivals: Arrivals,
        /// Of random arrivals.
        seed: u64,
        /// How many are started at most.
        iterations: Option<u32>,
    },
    /// Iterations are due when they were in a recording.
    Replay {
        /// From the start, in ascending order.
        offsets_s: Vec<f64>,
    },
    /// Each worker starts its next iteration when its last one has ended.
    Closed {
        /// How many.
        workers: u32,
        /// How long iterations are started.
        duration_s: Option<f64>,
        /// How many are started in all.
        iterations: Option<u32>,
        /// From the end of one iteration to the start of the next.
        think_s: f64,
        /// Iterations in each of its turns with a second run (`Prepared::pair`).
        turn: Option<u32>,
    },
    /// Open-loop arrivals that hold the number in flight inside a band.
    Band {
        /// At or below it arrivals come at `fill_rps`.
        low: u32,
        /// At or above it arrivals come at `ebb_rps`.
        high: u32,
        /// Arrivals per second while filling.
        fill_rps: f64,
        /// Arrivals per second while ebbing; may be 0.
        ebb_rps: f64,
        /// How long iterations are started.
        duration_s: f64,
    },
}

/// A stretch in which the rate goes evenly from one value to another, or stays.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stage {
    /// How long.
    pub duration_s: f64,
    /// Iterations per second at its beginning.
    pub from_rps: f64,
    /// And at its end.
    pub to_rps: f64,
}

impl Stage {
    /// The iterations that are due in it.
    pub(crate) fn count(self) -> f64 {
        f64::midpoint(self.from_rps, self.to_rps) * self.duration_s
    }
}

/// How the instants of an open loop follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// Iteration i is due when the integral of the rate is i: at i / rate.
    Constant,
    /// With exponential gaps of mean 1 / rate.
    Poisson,
}

impl Load {
    /// The highest rate that is asked for; 0 where none is, the mean rate of a recording.
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

    /// How many iterations it will probably come to, where that can be said.
    pub(crate) fn expected(&self) -> Option<f64> {
        let at_most = |iterations: &Option<u32>, expected: f64| {
            Some(iterations.map_or(expected, |most| expected.min(f64::from(most))))
        };
        match self {
            Self::Open { rate_rps, duration_s, iterations, .. } => {
                at_most(iterations, rate_rps * duration_s)
            }
            Self::Stages { stages, iterations, .. } => {
                at_most(iterations, stages.iter().map(|stage| stage.count()).sum())
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
