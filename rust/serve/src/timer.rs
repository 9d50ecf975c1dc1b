//! Timer with a higher precision than tokio's, which has milliseconds.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::io;
use std::os::fd::OwnedFd;
use std::task::{Poll, Waker};
use std::time::Instant;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Timer of a thread: a timerfd that is set to the earliest deadline.
pub struct Timer {
    timerfd: AsyncFd<OwnedFd>,
    waiting: RefCell<BTreeMap<Key, Waker>>,
    /// Deadline that the timer is set to.
    set_to: Cell<Option<Instant>>,
    numbers: Cell<u64>,
}

/// Deadline, and number of the waiting task.
type Key = (Instant, u64);

impl Timer {
    /// Creates a timer. It needs the runtime of the thread that will sleep.
    #[expect(
        deprecated,
        reason = "the replacement is unsafe; what it guards against are types that do not own what \
                  they register, and an OwnedFd does"
    )]
    pub fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timerfd = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        Ok(Self {
            timerfd: AsyncFd::with_interest(timerfd, Interest::READABLE)?,
            waiting: RefCell::default(),
            set_to: Cell::new(None),
            numbers: Cell::new(0),
        })
    }

    /// Wakes tasks whose deadline has passed, for as long as it is polled.
    pub async fn run(&self) {
        loop {
            let Ok(mut ready) = self.timerfd.readable().await else { return };
            // The number of expirations is not needed.
            let _ = rustix::io::read(self.timerfd.get_ref(), &mut [0; 8]);
            ready.clear_ready();
            let now = Instant::now();
            let mut waiting = self.waiting.borrow_mut();
            while let Some(first) = waiting.first_entry()
                && first.key().0 <= now
            {
                first.remove().wake();
            }
            let next = waiting.keys().next().map(|(due, _)| *due);
            drop(waiting);
            self.set_to.set(None);
            if let Some(due) = next {
                self.set(due);
            }
        }
    }

    /// Sleeps until a deadline.
    pub async fn sleep_until(&self, due: Instant) {
        let number = self.numbers.get();
        self.numbers.set(number + 1);
        let entry = Entry { timer: self, key: (due, number) };
        poll_fn(|context| {
            if Instant::now() >= due {
                return Poll::Ready(());
            }
            self.waiting.borrow_mut().insert(entry.key, context.waker().clone());
            if self.set_to.get().is_none_or(|set_to| due < set_to) {
                self.set(due);
            }
            Poll::Pending
        })
        .await;
    }

    fn set(&self, due: Instant) {
        let left = due.saturating_duration_since(Instant::now());
        let value = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            // Zero would disarm the timer.
            tv_nsec: i64::from(left.subsec_nanos().max(1)),
        };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
        // Fails only for invalid times.
        let _ = timerfd_settime(self.timerfd.get_ref(), TimerfdTimerFlags::empty(), &once);
        self.set_to.set(Some(due));
    }
}

/// Entry in the list of waiting tasks, removed when the sleep ends or is cancelled.
struct Entry<'a> {
    timer: &'a Timer,
    key: Key,
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        self.timer.waiting.borrow_mut().remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;
    use std::time::Duration;

    use rustix::time::timerfd_gettime;
    use tokio::task::LocalSet;

    use super::*;

    fn inside<T>(test: impl AsyncFnOnce(Rc<Timer>) -> T) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        LocalSet::new().block_on(&runtime, async {
            let timer = Rc::new(Timer::new().unwrap());
            let running = timer.clone();
            tokio::task::spawn_local(async move { running.run().await });
            test(timer).await
        })
    }

    #[test]
    fn tasks_wake_in_the_order_of_their_deadlines_and_not_too_early() {
        inside(async |timer: Rc<Timer>| {
            let began = Instant::now();
            let woken = Rc::new(RefCell::new(Vec::new()));
            let tasks: Vec<_> = [3, 1, 2, 1]
                .into_iter()
                .map(|wait_ms| {
                    let (timer, woken) = (timer.clone(), woken.clone());
                    tokio::task::spawn_local(async move {
                        let due = began + Duration::from_millis(100 * wait_ms);
                        timer.sleep_until(due).await;
                        assert!(Instant::now() >= due);
                        woken.borrow_mut().push(wait_ms);
                    })
                })
                .collect();
            for task in tasks {
                task.await.unwrap();
            }
            assert_eq!(*woken.borrow(), [1, 1, 2, 3]);
            assert!(timer.waiting.borrow().is_empty());
        });
    }

    #[test]
    fn the_timer_is_set_to_the_nanosecond() {
        inside(async |timer: Rc<Timer>| {
            let set = |late_ns: u64| {
                let due =
                    Instant::now() + Duration::from_secs(3600) + Duration::from_nanos(late_ns);
                let most = due.saturating_duration_since(Instant::now());
                timer.set(due);
                let left = timerfd_gettime(timer.timerfd.get_ref()).unwrap().it_value;
                let least = due.saturating_duration_since(Instant::now());
                let left = Duration::new(
                    u64::try_from(left.tv_sec).unwrap(),
                    u32::try_from(left.tv_nsec).unwrap(),
                );
                assert!(least <= left && left <= most, "{least:?} <= {left:?} <= {most:?}");
            };
            [0, 1, 200_000, 999_999].into_iter().for_each(set);
        });
    }

    #[test]
    fn a_cancelled_sleep_is_removed() {
        inside(async |timer: Rc<Timer>| {
            let due = Instant::now() + Duration::from_secs(3600);
            tokio::select! {
                biased;
                () = timer.sleep_until(due) => unreachable!("an hour has passed"),
                () = tokio::task::yield_now() => {}
            }
            assert!(timer.waiting.borrow().is_empty());
        });
    }
}
