//! Random service times.

use crate::settings::{Capacity, Law};

/// Probability of a short service time in the bursty distribution. Short and long ones make up half
/// of all work each, which gives the squared coefficient of variation 4: p = (1 + sqrt((scv - 1) /
/// (scv + 1))) / 2.
const SHORT_SHARE: f64 = 0.887_298_334_620_741_7;

/// Generator of service times with a given mean.
#[derive(Debug)]
pub(crate) struct ServiceTimes {
    law: Law,
    mean_s: f64,
    even_over: usize,
    block_s: Vec<f64>,
    random: fastrand::Rng,
}

impl ServiceTimes {
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

    /// Generates a block of independent service times, scaled so that their mean is exact.
    #[expect(clippy::cast_precision_loss, reason = "blocks are far shorter than 2^52")]
    fn fill(&mut self) {
        for _ in 0..self.even_over {
            let service_s = self.one_s();
            self.block_s.push(service_s);
        }
        let scale = self.mean_s * self.even_over as f64
            / self.block_s.iter().sum::<f64>().max(f64::MIN_POSITIVE);
        for service_s in &mut self.block_s {
            *service_s *= scale;
        }
    }

    fn one_s(&mut self) -> f64 {
        match self.law {
            Law::Fixed => self.mean_s,
            Law::Exponential => self.exponential_s(self.mean_s),
            Law::Bursty => {
                let is_thread_limit = self.random.f64() < SHORT_SHARE;
                let share = if is_thread_limit { SHORT_SHARE } else { 1.0 - SHORT_SHARE };
                self.exponential_s(self.mean_s / (2.0 * share))
            }
        }
    }

    fn exponential_s(&mut self, mean_s: f64) -> f64 {
        // 1 - u is never 0, so the logarithm is finite.
        -mean_s * (1.0 - self.random.f64()).ln()
    }
}
