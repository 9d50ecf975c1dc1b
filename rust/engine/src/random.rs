//! Seeded random numbers: a run is reproducible.

/// `SplitMix64` generator (Steele, Lea, Flood 2014).
pub(crate) struct SplitMix {
    state: u64,
}

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

impl SplitMix {
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        mix(self.state)
    }

    /// Returns a value of the exponential distribution with mean 1.
    pub(crate) fn exponential(&mut self) -> f64 {
        // In (0, 1], so the logarithm is finite.
        -unit_above_zero(self.next()).ln()
    }
}

/// Returns a value of [0, 1) that depends on seed, stream and iteration only, not on the number of
/// threads or the order of responses. Each purpose has a stream of its own.
pub(crate) fn uniform(seed: u64, stream: u64, iteration: u32) -> f64 {
    unit(bits(seed, stream, iteration))
}

/// Returns 64 random bits that depend on seed, stream and iteration only.
pub(crate) fn bits(seed: u64, stream: u64, iteration: u32) -> u64 {
    let state = mix(seed ^ mix(stream.wrapping_mul(GOLDEN)));
    mix(state.wrapping_add(u64::from(iteration).wrapping_add(1).wrapping_mul(GOLDEN)))
}

fn mix(state: u64) -> u64 {
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

#[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

#[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
fn unit_above_zero(bits: u64) -> f64 {
    ((bits >> 11) + 1) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_uniform_and_depend_on_seed_stream_and_iteration() {
        let mean = |seed, stream| {
            (0..10_000).map(|iteration| uniform(seed, stream, iteration)).sum::<f64>() / 1e4
        };
        for (seed, stream) in [(0, 0), (0, 1), (1, 0)] {
            // The standard error of the mean of 10,000 values is 0.003.
            assert!((mean(seed, stream) - 0.5).abs() < 0.015, "{seed} {stream}");
        }
        let values = [uniform(0, 0, 0), uniform(1, 0, 0), uniform(0, 1, 0), uniform(0, 0, 1)];
        for (index, one) in values.iter().enumerate() {
            assert!(values[index + 1..].iter().all(|other| (one - other).abs() > 1e-9));
        }
    }
}
