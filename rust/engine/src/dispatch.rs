//! Dispatcher: a task per engine thread that starts iterations when they are due and obeys
//! commands.

use std::io;
use std::rc::Rc;

use crate::alternation::Side;
use crate::clock::{SECOND_NS, Timer};
use crate::control::{Command, Control};
use crate::pacer::PRECISE_RPS;
use crate::worker::Worker;

/// Spacing of the grid: the lateness that it may cause.
const GRID_NS: i64 = 500_000;
/// Longest sleep of the dispatcher when nothing is due.
const LONGEST_SLEEP_NS: i64 = 3600 * SECOND_NS;

/// Returns the least time between two wake-ups for a rate per thread.
pub(crate) fn grid_ns(rate_rps: f64) -> i64 {
    if rate_rps > PRECISE_RPS { GRID_NS } else { 0 }
}

/// Runs the schedule until all iterations that were due have ended or were aborted.
pub(crate) async fn dispatch(
    worker: &Rc<Worker>,
    control: &Control,
    side: Option<&Side>,
    thread: usize,
    grid_ns: i64,
) -> io::Result<()> {
    let timer = Timer::new()?;
    let mut abandon_ns = None;
    loop {
        if worker.has_panicked() {
            // The panic has printed its message; the Python binding raises an exception.
            std::panic::resume_unwind(Box::new("a task panicked"));
        }
        let now_ns = worker.clock().now_ns();
        match control.command() {
            Command::Go => worker.dispatch_due(now_ns),
            Command::Stop => worker.stop(now_ns),
            Command::Abandon => worker.abandon(now_ns),
        }
        worker.end_load_if_over(now_ns);
        // Requests may hang: rows must not wait for the next one that ends.
        let flush_ns = worker.flush(now_ns);
        let is_over = worker.is_over(now_ns);
        if is_over {
            if worker.is_idle() {
                return Ok(());
            }
            let end_ns = match control.command() {
                Command::Go => worker.end_ns().unwrap_or(now_ns).max(now_ns),
                Command::Stop | Command::Abandon => now_ns,
            };
            // A stop during the drain can only shorten it.
            let until_ns = end_ns + worker.drain_ns();
            let until_ns = abandon_ns.map_or(until_ns, |before: i64| before.min(until_ns));
            abandon_ns = Some(until_ns);
            if now_ns >= until_ns {
                worker.end_drain(now_ns);
            }
        }
        // The idle workers of a closed loop stay due forever: after the end they are ignored.
        let due_ns = worker.next_due_ns().filter(|_| !is_over);
        let ends_ns = [abandon_ns.or(worker.end_ns()), Some(worker.load_end_ns()), Some(flush_ns)];
        let wake_ns =
            next_wake_ns(now_ns, due_ns.map(|due_ns| due_ns.max(now_ns + grid_ns)), ends_ns);
        tokio::select! {
            biased;
            woken = timer.sleep(wake_ns - now_ns) => woken?,
            () = worker.woken_before(due_ns.unwrap_or(i64::MAX)) => {}
            () = control.changed(thread) => {}
            () = turn_changed(side) => {}
        }
    }
}

/// Waits until the turn may have changed; forever without turns.
async fn turn_changed(side: Option<&Side>) {
    match side {
        Some(side) => side.changed().await,
        None => std::future::pending().await,
    }
}

fn next_wake_ns(now_ns: i64, due_ns: Option<i64>, ends_ns: [Option<i64>; 3]) -> i64 {
    // The ends are wake-up times, too, as is the next flush: a closed loop has no other.
    let ends_ns = ends_ns.into_iter().flatten().filter(|&at_ns| at_ns > now_ns);
    let soonest = due_ns.into_iter().chain(ends_ns).min();
    soonest.unwrap_or(i64::MAX).min(now_ns + LONGEST_SLEEP_NS)
}

/// Ends waits whose deadline has passed, for as long as it is polled.
pub(crate) async fn keep_deadlines(worker: Rc<Worker>) {
    loop {
        let next_ns = worker.expire_deadlines(worker.clock().now_ns());
        tokio::time::sleep_until(worker.clock().instant(next_ns)).await;
    }
}
