//! What other threads may ask of a run.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU8, Ordering};

use tokio::sync::Notify;

/// What the engine's threads are to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Command {
    /// Follow the schedule.
    Go,
    /// Take up nothing more; let what is under way end.
    Stop,
    /// Give up what is under way, too.
    Abandon,
}

/// The instant at which a run stops; what is due at or after it is not taken up. Every thread
/// looks at it after it has read the clock, so that an instant which is set before it has come
/// stops all threads, and all parts of a load, at the same iteration.
#[derive(Debug, Clone)]
pub(crate) struct StopAt(Arc<AtomicI64>);

impl StopAt {
    pub(crate) fn never() -> Self {
        Self(Arc::new(AtomicI64::new(i64::MAX)))
    }

    /// An earlier instant counts, a later one changes nothing.
    pub(crate) fn set(&self, due_ns: i64) {
        self.0.fetch_min(due_ns, Ordering::SeqCst);
    }

    /// `i64::MAX` where none was set.
    pub(crate) fn due_ns(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }
}

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

    /// Gives a command; a weaker one than before changes nothing.
    pub(crate) fn give(&self, command: Command) {
        self.command.fetch_max(command as u8, Ordering::Relaxed);
        self.notify();
    }

    /// Lets nothing begin that is due at or after an instant.
    pub(crate) fn stop_at(&self, due_ns: i64) {
        self.stop_at.set(due_ns);
        self.notify();
    }

    fn notify(&self) {
        self.changed.iter().for_each(Notify::notify_one);
    }

    /// Does what a thread has to do; unless it ends well, the other threads end at once, too.
    pub(crate) fn unless_fine<T, E>(&self, work: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let failing = Failing(self);
        let worked = work();
        if worked.is_ok() {
            std::mem::forget(failing);
        }
        worked
    }

    pub(crate) fn command(&self) -> Command {
        match self.command.load(Ordering::Relaxed) {
            0 => Command::Go,
            1 => Command::Stop,
            _ => Command::Abandon,
        }
    }

    /// Returns when a command was given since the last look.
    pub(crate) async fn changed(&self, thread: usize) {
        self.changed[thread].notified().await;
    }
}

/// Gives everything up when it is dropped, as it is by a panic.
struct Failing<'a>(&'a Control);

impl Drop for Failing<'_> {
    fn drop(&mut self) {
        self.0.give(Command::Abandon);
    }
}
