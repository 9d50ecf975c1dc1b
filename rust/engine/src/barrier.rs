//! Barrier at which the engine's threads wait until all are ready and the start time is known.

use std::time::Instant;

use tokio::sync::watch;

/// Barrier that opens at an instant. It is cancelled if a thread cannot be started.
pub(crate) struct StartBarrier {
    state: watch::Sender<State>,
}

#[derive(Debug)]
struct State {
    /// Threads that are not ready yet.
    missing: u16,
    is_cancelled: bool,
    start: Option<Instant>,
}

/// Thread that has not reached the barrier. Dropped before it does, it cancels the barrier; the
/// other threads would wait forever.
pub(crate) struct Participant<'a>(Option<&'a StartBarrier>);

/// Reason why a barrier cannot be opened.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BarrierError {
    AlreadyOpened,
    Cancelled,
}

impl StartBarrier {
    pub(crate) fn new(threads: u16) -> Self {
        let state = State { missing: threads, is_cancelled: false, start: None };
        Self { state: watch::Sender::new(state) }
    }

    /// Sets the instant at which the load starts; threads pass once all are ready.
    pub(crate) fn open(&self, start: Instant) -> Result<(), BarrierError> {
        let mut opened = Ok(());
        self.state.send_modify(|state| match (state.is_cancelled, state.start) {
            (true, _) => opened = Err(BarrierError::Cancelled),
            (_, Some(_)) => opened = Err(BarrierError::AlreadyOpened),
            (_, None) => state.start = Some(start),
        });
        opened
    }

    pub(crate) fn participant(&self) -> Participant<'_> {
        Participant(Some(self))
    }

    /// Waits until every thread is ready. Returns false if the barrier was cancelled.
    pub(crate) async fn all_ready(&self) -> bool {
        let mut state = self.state.subscribe();
        let ready = state.wait_for(|state| state.is_cancelled || state.missing == 0).await;
        ready.is_ok_and(|state| !state.is_cancelled)
    }

    /// Releases all threads without a start. Has no effect after the start.
    pub(crate) fn cancel(&self) {
        self.state.send_modify(|state| state.is_cancelled |= !state.is_open());
    }
}

impl State {
    fn is_open(&self) -> bool {
        self.missing == 0 && self.start.is_some()
    }
}

impl Participant<'_> {
    /// Waits for the other threads and the start time; none if the barrier was cancelled.
    pub(crate) async fn wait(mut self) -> Option<Instant> {
        let barrier = self.0.take()?;
        let mut state = barrier.state.subscribe();
        barrier.state.send_modify(|state| state.missing -= 1);
        let opened = state.wait_for(|state| state.is_cancelled || state.is_open()).await.ok()?;
        opened.start.filter(|_| !opened.is_cancelled)
    }
}

impl Drop for Participant<'_> {
    fn drop(&mut self) {
        if let Some(barrier) = self.0 {
            barrier.cancel();
        }
    }
}
