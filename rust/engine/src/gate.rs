//! Where the engine's threads wait until all of them are ready and the start is known.

use std::time::Instant;

use tokio::sync::watch;

/// A barrier that opens at an instant; it can be given up, for when a thread cannot be started.
pub(crate) struct Gate {
    state: watch::Sender<State>,
}

#[derive(Debug)]
struct State {
    missing: u16,
    is_given_up: bool,
    /// Wait for `open`, instead of starting as soon as all threads are ready.
    is_held: bool,
    start: Option<Instant>,
}

/// A thread on its way to the gate. Dropped before it arrives, it gives the gate up, or the other
/// threads would wait for ever.
pub(crate) struct Arriving<'a>(Option<&'a Gate>);

/// Why the gate cannot be opened.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Shut {
    Started,
    GivenUp,
}

impl Gate {
    pub(crate) fn new(threads: u16) -> Self {
        let state = State { missing: threads, is_given_up: false, is_held: false, start: None };
        Self { state: watch::Sender::new(state) }
    }

    /// Keeps the gate closed until `open`.
    pub(crate) fn hold(&self) {
        self.state.send_modify(|state| state.is_held = true);
    }

    /// Opens a held gate: the load starts at `start`.
    pub(crate) fn open(&self, start: Instant) -> Result<(), Shut> {
        let mut opened = Ok(());
        self.state.send_modify(|state| match (state.is_given_up, state.start) {
            (true, _) => opened = Err(Shut::GivenUp),
            (_, Some(_)) => opened = Err(Shut::Started),
            (_, None) => state.start = Some(start),
        });
        opened
    }

    pub(crate) fn arriving(&self) -> Arriving<'_> {
        Arriving(Some(self))
    }

    /// Waits until every thread is ready; false when the gate was given up.
    pub(crate) async fn all_ready(&self) -> bool {
        let mut state = self.state.subscribe();
        let ready = state.wait_for(|state| state.is_given_up || state.missing == 0).await;
        ready.is_ok_and(|state| !state.is_given_up)
    }

    /// Lets all threads go without a start. Changes nothing after the start.
    pub(crate) fn give_up(&self) {
        self.state.send_modify(|state| state.is_given_up |= !state.is_open());
    }
}

impl State {
    fn is_open(&self) -> bool {
        self.missing == 0 && self.start.is_some()
    }
}

impl Arriving<'_> {
    /// Waits for the other threads and for the start; none when the gate was given up.
    pub(crate) async fn pass(mut self) -> Option<Instant> {
        let gate = self.0.take()?;
        let mut state = gate.state.subscribe();
        gate.state.send_modify(|state| {
            state.missing -= 1;
            if state.missing == 0 && !state.is_held {
                state.start = Some(Instant::now());
            }
        });
        let opened = state.wait_for(|state| state.is_given_up || state.is_open()).await.ok()?;
        opened.start.filter(|_| !opened.is_given_up)
    }
}

impl Drop for Arriving<'_> {
    fn drop(&mut self) {
        if let Some(gate) = self.0 {
            gate.give_up();
        }
    }
}
