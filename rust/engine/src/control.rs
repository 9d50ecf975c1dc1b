//! Commands from other threads to a run.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU8, Ordering};

use tokio::sync::Notify;

/// Command to the engine's threads, from weak to strong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Command {
    /// Follow the schedule.
    Go,
    /// Start no further iteration; let running ones end.
    Stop,
    /// Abort running iterations, too.
    Abandon,
}

/// Due time at which a run stops: iterations that are due then or later do not start. Threads read
/// it after the clock. If it is set before it has passed, all threads, and all parts of a load,
/// stop at the same iteration.
#[derive(Debug, Clone)]
pub(crate) struct StopAt(Arc<AtomicI64>);

impl StopAt {
    pub(crate) fn never() -> Self {
        Self(Arc::new(AtomicI64::new(i64::MAX)))
    }

    /// Sets the time, unless an earlier one is set.
    pub(crate) fn set(&self, due_ns: i64) {
        self.0.fetch_min(due_ns, Ordering::SeqCst);
    }

    /// Returns the time; `i64::MAX` if none is set.
    pub(crate) fn due_ns(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// Commands to a run, which wake its threads.
#[derive(Debug)]
pub(crate) struct Control {
    pub stop_at: StopAt,
    command: AtomicU8,
    changed: Vec<Notify>,
}

impl Control {
    pub(crate) fn new(threads: u16) -> Self {
        let changed = (0..threads).map(|_| Notify::new()).collect();
        Self { stop_at: StopAt::never(), command: AtomicU8::new(Command::Go as u8), changed }
    }

    /// Sends a command. It has no effect after a stronger one.
    pub(crate) fn send(&self, command: Command) {
        self.command.fetch_max(command as u8, Ordering::Relaxed);
        self.notify();
    }

    /// Stops the run at a due time.
    pub(crate) fn stop_at(&self, due_ns: i64) {
        self.stop_at.set(due_ns);
        self.notify();
    }

    fn notify(&self) {
        self.changed.iter().for_each(Notify::notify_one);
    }

    /// Runs the work of a thread. If it fails or panics, aborts the other threads, too.
    pub(crate) fn abandon_on_error<T, E>(
        &self,
        work: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        let guard = AbandonGuard(self);
        let result = work();
        if result.is_ok() {
            std::mem::forget(guard);
        }
        result
    }

    pub(crate) fn command(&self) -> Command {
        match self.command.load(Ordering::Relaxed) {
            0 => Command::Go,
            1 => Command::Stop,
            _ => Command::Abandon,
        }
    }

    /// Waits for a command that was sent since the last call.
    pub(crate) async fn changed(&self, thread: usize) {
        self.changed[thread].notified().await;
    }
}

/// Guard that aborts the run when it is dropped, as it is by a panic.
struct AbandonGuard<'a>(&'a Control);

impl Drop for AbandonGuard<'_> {
    fn drop(&mut self) {
        self.0.send(Command::Abandon);
    }
}
