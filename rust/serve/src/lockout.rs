//! Lockout: after many failures in a short time, all requests are refused for a while.

use std::collections::VecDeque;

use crate::settings::Lockout as Settings;

/// Counts failures. Times are seconds since the service's start.
#[derive(Debug)]
pub(crate) struct Lockout {
    after: usize,
    lasts_s: f64,
    /// Times of the last failures, oldest first; fewer than `after`.
    failed_s: VecDeque<f64>,
    until_s: f64,
}

impl Lockout {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            after: settings.after,
            lasts_s: settings.lasts_s,
            failed_s: VecDeque::new(),
            until_s: 0.0,
        }
    }

    /// Returns how long the lockout still lasts; none without one.
    pub(crate) fn left_s(&self, now_s: f64) -> Option<f64> {
        (now_s < self.until_s).then_some(self.until_s - now_s)
    }

    /// Counts a failure, and starts the lockout if there were `after` within `lasts_s`. Requests
    /// that the lockout refused do not count.
    pub(crate) fn failed(&mut self, now_s: f64) {
        if now_s < self.until_s {
            return;
        }
        while self.failed_s.front().is_some_and(|at_s| *at_s <= now_s - self.lasts_s) {
            self.failed_s.pop_front();
        }
        self.failed_s.push_back(now_s);
        if self.failed_s.len() >= self.after {
            self.until_s = now_s + self.lasts_s;
            self.failed_s.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_failures_in_a_short_time_start_a_lockout_that_ends() {
        let mut lockout = Lockout::new(&Settings { after: 3, lasts_s: 10.0 });
        lockout.failed(0.0);
        lockout.failed(5.0);
        lockout.failed(11.0);
        assert_eq!(lockout.left_s(11.0), None, "the first is too long ago");
        lockout.failed(12.0);
        assert_eq!(lockout.left_s(12.0), Some(10.0));
        for refused_s in 0..5 {
            lockout.failed(13.0 + f64::from(refused_s));
        }
        assert_eq!(lockout.left_s(21.0), Some(1.0));
        assert_eq!(lockout.left_s(22.0), None);
        lockout.failed(23.0);
        assert_eq!(lockout.left_s(23.0), None, "counting begins anew");
    }
}
