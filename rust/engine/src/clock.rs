//! Time relative to the start of a run, and a precise timer.

use std::os::fd::OwnedFd;
use std::time::Instant;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::unix::AsyncFd;

pub(crate) const SECOND_NS: i64 = 1_000_000_000;

/// Clock in nanoseconds since the start of the run, by `CLOCK_MONOTONIC` (what `Instant` reads on
/// Linux).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    start: Instant,
}

impl Clock {
    pub(crate) fn starting_at(start: Instant) -> Self {
        Self { start }
    }

    /// Returns the time; negative before the start.
    #[expect(clippy::cast_possible_truncation, reason = "a run is shorter than 292 years")]
    pub(crate) fn now_ns(self) -> i64 {
        let now = Instant::now();
        match now.checked_duration_since(self.start) {
            Some(since) => since.as_nanos() as i64,
            None => -(self.start.duration_since(now).as_nanos() as i64),
        }
    }

    /// Converts a time to an instant for tokio's timers; a negative one to the start.
    pub(crate) fn instant(self, at_ns: i64) -> tokio::time::Instant {
        (self.start + std::time::Duration::from_nanos(at_ns.max(0).unsigned_abs())).into()
    }
}

/// Converts seconds of a plan to nanoseconds.
#[expect(clippy::cast_possible_truncation, reason = "plans are checked to be at most a year")]
pub(crate) fn nanos(seconds: f64) -> i64 {
    (seconds * 1e9).round() as i64
}

/// Timer with a precision of tens of microseconds; tokio's timers have milliseconds.
pub(crate) struct Timer {
    timer: AsyncFd<OwnedFd>,
}

impl Timer {
    pub(crate) fn new() -> std::io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        #[expect(deprecated, reason = "unsound only for types whose descriptor may change")]
        let timer = AsyncFd::new(timer)?;
        Ok(Self { timer })
    }

    /// Waits for `delay_ns` or slightly longer.
    pub(crate) async fn sleep(&self, delay_ns: i64) -> std::io::Result<()> {
        let delay_ns = delay_ns.max(1);
        let value = Timespec { tv_sec: delay_ns / SECOND_NS, tv_nsec: delay_ns % SECOND_NS };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
        timerfd_settime(self.timer.get_ref(), TimerfdTimerFlags::empty(), &once)?;
        // Setting the timer re-arms the descriptor, so its count need not be read.
        self.timer.readable().await?.clear_ready();
        Ok(())
    }
}
