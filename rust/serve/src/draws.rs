//! Service times, drawn from a law.

use crate::settings::{Capacity, Law};

/// The bursty law: with this probability a short service, else a long one. The means are balanced
/// (each kind makes up half of all work), which gives the squared coefficient of variation 4:
/// p = (1 + sqrt((scv - 1) / (scv + 1))) / 2.
const SHORT_SHARE: f64 = 0.887_298_334_620_741_7;

/// An endless row of service times with the law's mean.
#[derive(Debug)]
pub(crate) struct Draws {
    law: Law,
    mean_s: f64,
    even_over: usize,
    block_s: Vec<f64>,
    random: fastrand::Rng,
}

impl Draws {
    pub(crate) fn new(capacity: &Capacity) -> Self {
        Self {
            law: capacity.law,
            mean_s: capacity.service_s,
            even_over: capacity.even_over,
            block_s: Vec::with_capacity(capacity.even_over),
            random: fastrand::Rng::with_seed(capacity.seed),
        }
    }

    pub(crate) fn next_s(&mut self) -> f64 {
        if self.even_over == 0 || self.law == Law::Fixed {
            return self.one_s();
        }
        if self.block_s.is_empty() {
            self.fill();
        }
        self.block_s.pop().unwrap_or(self.mean_s)
    }

    /// A block of independent draws, stretched so that its mean is exact.
    #[expect(clippy::cast_precision_loss, reason = "blocks are far shorter than 2^52")]
    fn fill(&mut self) {
        for _ in 0..self.even_over {
            let drawn_s = self.one_s();
            self.block_s.push(drawn_s);
        }
        let stretch = self.mean_s * self.even_over as f64
            / self.block_s.iter().sum::<f64>().max(f64::MIN_POSITIVE);
        for drawn_s in &mut self.block_s {
            *drawn_s *= stretch;
        }
    }

    fn one_s(&mut self) -> f64 {
        match self.law {
            Law::Fixed => self.mean_s,
            Law::Exponential => self.exponential_s(self.mean_s),
            Law::Bursty => {
                let is_short = self.random.f64() < SHORT_SHARE;
                let share = if is_short { SHORT_SHARE } else { 1.0 - SHORT_SHARE };
                self.exponential_s(self.mean_s / (2.0 * share))
            }
        }
    }

    fn exponential_s(&mut self, mean_s: f64) -> f64 {
        // 1 - u is never 0, so the logarithm is finite.
        -mean_s * (1.0 - self.random.f64()).ln()
    }
}
