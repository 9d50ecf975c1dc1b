//! Rate limiter with token buckets.

use std::collections::HashMap;

use crate::settings::{Limit, LimitMode, LimitPer};

/// Number of buckets above which full ones are removed. That changes nothing: a new one is full,
/// too.
const MAX_KEYS: usize = 100_000;
/// Bound on rounding errors.
const ROUNDING_S: f64 = 1e-9;

/// Key of a bucket.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    Service,
    Connection(u64),
    /// Id of the user; empty if the request names no known user.
    User(String),
}

/// Token buckets of one size. Times are seconds since the service's start.
#[derive(Debug)]
pub(crate) struct Limiter {
    mode: LimitMode,
    /// Kind of key.
    pub(crate) per: LimitPer,
    /// Time per token.
    token_s: f64,
    /// Tokens of a full bucket beyond the first, as time.
    spare_s: f64,
    /// Time when each bucket is full again.
    full_s: HashMap<Key, f64>,
}

/// Decision about a request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Verdict {
    Pass,
    /// Delay by this many seconds.
    Delay(f64),
    /// Refuse; the next token comes after this many seconds.
    Refuse(f64),
}

impl Limiter {
    pub(crate) fn new(limit: &Limit) -> Self {
        let size = (limit.rate_rps * limit.burst_s).max(1.0);
        Self {
            mode: limit.mode,
            per: limit.per,
            token_s: 1.0 / limit.rate_rps,
            spare_s: (size - 1.0) / limit.rate_rps,
            full_s: HashMap::new(),
        }
    }

    /// Takes a token if there is one, or the request may wait for it.
    pub(crate) fn take(&mut self, key: Key, now_s: f64) -> Verdict {
        if self.full_s.len() >= MAX_KEYS && !self.full_s.contains_key(&key) {
            self.full_s.retain(|_, full_s| *full_s > now_s);
        }
        let full_s = self.full_s.entry(key).or_insert(now_s);
        *full_s = full_s.max(now_s);
        let wait_s = *full_s - now_s - self.spare_s;
        if wait_s > ROUNDING_S && self.mode == LimitMode::Refuse {
            return Verdict::Refuse(wait_s);
        }
        *full_s += self.token_s;
        if wait_s > ROUNDING_S { Verdict::Delay(wait_s) } else { Verdict::Pass }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limiter(rate_rps: f64, burst_s: f64, mode: LimitMode) -> Limiter {
        Limiter::new(&Limit { rate_rps, burst_s, mode, per: LimitPer::Service })
    }

    /// Number of requests that pass, of those that come at a constant rate.
    fn passed(limiter: &mut Limiter, rate_rps: f64, requests: u32) -> usize {
        (0..requests)
            .filter(|n| limiter.take(Key::Service, f64::from(*n) / rate_rps) == Verdict::Pass)
            .count()
    }

    #[test]
    fn at_the_limit_nothing_is_refused_and_above_it_the_excess() {
        for rate_rps in [0.7, 30.0, 90.0, 2000.0] {
            let mut at = limiter(rate_rps, 0.0, LimitMode::Refuse);
            assert_eq!(passed(&mut at, rate_rps, 10_000), 10_000, "{rate_rps}");
            let mut above = limiter(rate_rps, 0.0, LimitMode::Refuse);
            assert_eq!(passed(&mut above, 2.0 * rate_rps, 10_000), 5000, "{rate_rps}");
        }
    }

    #[test]
    fn a_full_bucket_holds_rate_times_burst_tokens() {
        let mut limiter = limiter(90.0, 0.1, LimitMode::Refuse);
        let at_once = (0..100).filter(|_| limiter.take(Key::Service, 5.0) == Verdict::Pass);
        assert_eq!(at_once.count(), 9);
        let Verdict::Refuse(wait_s) = limiter.take(Key::Service, 5.0) else { panic!("passed") };
        assert!((wait_s - 1.0 / 90.0).abs() < 1e-9);
        assert_eq!(limiter.take(Key::Service, 5.0 + 1.01 / 90.0), Verdict::Pass);
    }

    #[test]
    fn delayed_requests_pass_at_the_rate() {
        let mut limiter = limiter(10.0, 0.0, LimitMode::Delay);
        assert_eq!(limiter.take(Key::Service, 0.0), Verdict::Pass);
        for n in 1..5 {
            let Verdict::Delay(wait_s) = limiter.take(Key::Service, 0.0) else { panic!("{n}") };
            assert!((wait_s - f64::from(n) / 10.0).abs() < 1e-9);
        }
    }

    #[test]
    fn each_key_has_a_bucket_of_its_own() {
        let mut limiter = limiter(1.0, 0.0, LimitMode::Refuse);
        for key in [Key::Connection(1), Key::Connection(2), Key::User("u".into())] {
            assert_eq!(limiter.take(key.clone(), 0.0), Verdict::Pass);
            assert_eq!(limiter.take(key, 0.5), Verdict::Refuse(0.5));
        }
    }

    #[test]
    fn full_buckets_are_removed_when_there_are_many() {
        let mut limiter = limiter(1.0, 0.0, LimitMode::Refuse);
        for connection in 0..=100_000 {
            limiter.take(Key::Connection(connection), 0.0);
        }
        limiter.take(Key::Connection(200_000), 2.0);
        assert_eq!(limiter.full_s.len(), 1);
    }
}
