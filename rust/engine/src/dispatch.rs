//! The dispatcher: one task per engine thread that watches clock and commands.

use std::io;
use std::rc::Rc;

use crate::clock::{Alarm, SECOND_NS};
use crate::control::{Command, Control};
use crate::turns::Seat;
use crate::worker::Worker;

/// Above this many iterations a second per thread, waking for each one would cost more than the
/// requests do (docs/performance.md): they are sent on a grid instead.
const PRECISE_RPS: f64 = 2500.0;
/// Its spacing: the lateness that the grid may cause.
const GRID_NS: i64 = 500_000;
/// When nothing is due: how long the dispatcher may sleep at most.
const LONGEST_SLEEP_NS: i64 = 3600 * SECOND_NS;

/// The least time between two wake-ups at a rate per thread.
pub(crate) fn grid_ns(rate_rps: f64) -> i64 {
    if rate_rps > PRECISE_RPS { GRID_NS } else { 0 }
}

/// Runs the schedule to its end: until everything that fell due has ended or was given up.
pub(crate) async fn dispatch(
    worker: &Rc<Worker>,
    control: &Control,
    seat: Option<&Seat>,
    thread: usize,
    grid_ns: i64,
) -> io::Result<()> {
    let alarm = Alarm::new()?;
    let mut give_up_ns = None;
    loop {
        if worker.has_panicked() {
            // What happened was printed by the panic itself; the border turns this into an error.
            std::panic::resume_unwind(Box::new("a lane panicked"));
        }
        let now_ns = worker.clock().now_ns();
        match control.command() {
            Command::Go => worker.pump(now_ns),
            Command::Stop => worker.stop(now_ns),
            Command::Abandon => worker.abandon(now_ns),
        }
        worker.look_at_load_end(now_ns);
        let is_over = worker.is_over(now_ns);
        if is_over {
            if worker.is_at_rest() {
                return Ok(());
            }
            let end_ns = match control.command() {
                Command::Go => worker.end_ns().unwrap_or(now_ns).max(now_ns),
                Command::Stop | Command::Abandon => now_ns,
            };
            // A stop during the drain may only shorten it.
            let until_ns = end_ns + worker.timeouts.drain_ns;
            let until_ns = give_up_ns.map_or(until_ns, |before: i64| before.min(until_ns));
            give_up_ns = Some(until_ns);
            if now_ns >= until_ns {
                worker.abandon(now_ns);
            }
        }
        // A closed loop's idle workers stay due for ever; after the end nobody wakes for them.
        let due_ns = worker.next_due_ns().filter(|_| !is_over);
        let ends_ns = [give_up_ns.or(worker.end_ns()), Some(worker.load_end_ns())];
        let look_ns =
            next_look_ns(now_ns, due_ns.map(|due_ns| due_ns.max(now_ns + grid_ns)), ends_ns);
        tokio::select! {
            biased;
            woken = alarm.after(look_ns - now_ns) => woken?,
            () = worker.nudged(due_ns.unwrap_or(i64::MAX)) => {}
            () = control.changed(thread) => {}
            () = turn_changed(seat) => {}
        }
    }
}

/// Returns when a turn may have come; never without turns.
async fn turn_changed(seat: Option<&Seat>) {
    match seat {
        Some(seat) => seat.changed().await,
        None => std::future::pending().await,
    }
}

fn next_look_ns(now_ns: i64, due_ns: Option<i64>, ends_ns: [Option<i64>; 2]) -> i64 {
    // The ends are moments to look at, too: a closed loop knows no other.
    let ends_ns = ends_ns.into_iter().flatten().filter(|&at_ns| at_ns > now_ns);
    let soonest = due_ns.into_iter().chain(ends_ns).min();
    soonest.unwrap_or(i64::MAX).min(now_ns + LONGEST_SLEEP_NS)
}

/// Ends what has waited too long, for as long as it is polled.
pub(crate) async fn keep_deadlines(worker: Rc<Worker>) {
    loop {
        let next_ns = worker.look_at_deadlines(worker.clock().now_ns());
        tokio::time::sleep_until(worker.clock().instant(next_ns)).await;
    }
}
