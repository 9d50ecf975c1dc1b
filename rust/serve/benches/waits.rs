//! Precision and cost of short service times: the timer of `loadstone serve`, compared with busy
//! waiting. Prints a table.

use std::io::{self, Write};
use std::rc::Rc;
use std::time::{Duration, Instant};

use loadstone_serve::timer::Timer;
use rustix::time::{ClockId, clock_gettime};
use tokio::task::LocalSet;

const SERVICE_TIMES_US: [u64; 5] = [50, 100, 200, 500, 1000];
const WAITS: usize = 2000;

fn main() -> io::Result<()> {
    let mut out = io::stdout();
    writeln!(out, "| service time µs | by | late p50 µs | late p99 µs | CPU µs/wait |")?;
    writeln!(out, "| --- | --- | --- | --- | --- |")?;
    for service_us in SERVICE_TIMES_US {
        let service = Duration::from_micros(service_us);
        for (name, waits) in [("timerfd", by_timer(service)?), ("spin", by_spinning(service))] {
            let Waits { mut late_us, cpu_us } = waits;
            late_us.sort_by(f64::total_cmp);
            let (p50, p99) = (late_us[WAITS / 2], late_us[WAITS * 99 / 100]);
            writeln!(out, "| {service_us} | {name} | {p50:.0} | {p99:.0} | {cpu_us:.1} |")?;
        }
    }
    Ok(())
}

/// Results of consecutive waits: lateness of each, and CPU time per wait.
struct Waits {
    late_us: Vec<f64>,
    cpu_us: f64,
}

fn by_timer(service: Duration) -> io::Result<Waits> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, async {
        let timer = Rc::new(Timer::new()?);
        let running = timer.clone();
        tokio::task::spawn_local(async move { running.run().await });
        let before_us = cpu_us();
        let mut late_us = Vec::new();
        for _ in 0..WAITS {
            let due = Instant::now() + service;
            timer.sleep_until(due).await;
            late_us.push(due.elapsed().as_secs_f64() * 1e6);
        }
        Ok(Waits { late_us, cpu_us: (cpu_us() - before_us) / count() })
    })
}

fn by_spinning(service: Duration) -> Waits {
    let before_us = cpu_us();
    let mut late_us = Vec::new();
    for _ in 0..WAITS {
        let due = Instant::now() + service;
        while Instant::now() < due {
            std::hint::spin_loop();
        }
        late_us.push(due.elapsed().as_secs_f64() * 1e6);
    }
    Waits { late_us, cpu_us: (cpu_us() - before_us) / count() }
}

#[expect(clippy::cast_precision_loss, reason = "a few thousand")]
fn count() -> f64 {
    WAITS as f64
}

#[expect(clippy::cast_precision_loss, reason = "microseconds of one process")]
fn cpu_us() -> f64 {
    let cpu = clock_gettime(ClockId::ThreadCPUTime);
    cpu.tv_sec as f64 * 1e6 + cpu.tv_nsec as f64 / 1e3
}
