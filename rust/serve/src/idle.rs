//! Idle time-out of connections.

use std::cell::Cell;
use std::time::{Duration, Instant};

use tokio::time::sleep_until;

/// Tracker of a connection's idle time: since its beginning, and since the end of each response.
#[derive(Debug)]
pub(crate) struct IdleTracker {
    /// None while a request is being processed.
    since: Cell<Option<Instant>>,
}

/// Guard that exists while a request is being processed.
pub(crate) struct Busy<'a>(&'a IdleTracker);

impl IdleTracker {
    pub(crate) fn new() -> Self {
        Self { since: Cell::new(Some(Instant::now())) }
    }

    pub(crate) fn busy(&self) -> Busy<'_> {
        self.since.set(None);
        Busy(self)
    }

    /// Waits until the connection has been idle for this long.
    pub(crate) async fn expired(&self, limit: Duration) {
        loop {
            let end = self.since.get().unwrap_or_else(Instant::now) + limit;
            sleep_until(end.into()).await;
            if self.since.get().is_some_and(|since| since.elapsed() >= limit) {
                return;
            }
        }
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.since.set(Some(Instant::now()));
    }
}
