//! Since when the client of a connection sends nothing that could be answered.

use std::cell::Cell;
use std::time::{Duration, Instant};

use tokio::time::sleep_until;

/// Quiet from its beginning, and from the end of each answer.
#[derive(Debug)]
pub(crate) struct Quiet {
    /// Nothing while an answer is being made.
    since: Cell<Option<Instant>>,
}

/// While it lives, an answer is being made.
pub(crate) struct Busy<'a>(&'a Quiet);

impl Quiet {
    pub(crate) fn new() -> Self {
        Self { since: Cell::new(Some(Instant::now())) }
    }

    pub(crate) fn busy(&self) -> Busy<'_> {
        self.since.set(None);
        Busy(self)
    }

    /// Ends when the connection has been quiet for so long.
    pub(crate) async fn ended(&self, most: Duration) {
        loop {
            let end = self.since.get().unwrap_or_else(Instant::now) + most;
            sleep_until(end.into()).await;
            if self.since.get().is_some_and(|since| since.elapsed() >= most) {
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
