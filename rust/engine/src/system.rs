//! Operating system: limits, CPU affinity and priority of threads, event loop.

use rustix::process::{Resource, getpriority_process, getrlimit, setpriority_process, setrlimit};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity, set_current_timer_slack};

use crate::Error;
use crate::plan::{Http, Plan};

/// Nice value of the engine's threads, if it may be set.
const PRIORITY: i32 = -10;
/// File descriptors that the process needs besides connections.
const SPARE_DESCRIPTORS: u64 = 64;
/// The same of monitors, if they are allowed.
const MORE_DESCRIPTORS: u64 = 1024;

/// Refuses plans that together need more file descriptors than this machine allows. Local ports are
/// not checked: whether they are free depends on which side closes connections. Requests that find
/// none are counted.
pub(crate) fn require_resources(plans: &[&Plan]) -> Result<(), Error> {
    let connections: u64 = plans.iter().map(|plan| connections(plan)).sum();
    raise_descriptors(connections + SPARE_DESCRIPTORS)
}

/// Connections open at once; with HTTP/2 a thread may have one that ends besides its next one.
fn connections(plan: &Plan) -> u64 {
    match plan.placement.http {
        Http::One => u64::from(plan.limits.max_connections),
        Http::Two => 2 * u64::from(plan.placement.threads),
    }
}

/// Raises the soft limit of open files if necessary, by more than that: monitors need some, too.
fn raise_descriptors(needed: u64) -> Result<(), Error> {
    let mut limit = getrlimit(Resource::Nofile);
    let wanted = needed + MORE_DESCRIPTORS;
    if limit.current.is_none_or(|current| current >= wanted) {
        return Ok(());
    }
    let is_enough = limit.current.is_none_or(|current| current >= needed);
    if limit.maximum.is_none_or(|maximum| maximum >= needed) {
        limit.current = Some(limit.maximum.map_or(wanted, |maximum| maximum.min(wanted)));
        if setrlimit(Resource::Nofile, limit).is_ok() || is_enough {
            return Ok(());
        }
    }
    let allowed = limit.maximum.unwrap_or(u64::MAX);
    Err(Error::Environment(format!(
        "{needed} open files are needed, {allowed} are allowed: ulimit -Hn {needed} (as root) \
         raises the limit, fewer connections do without"
    )))
}

/// Sets timer slack, priority and core of the calling thread, number `thread` of the engine.
pub(crate) fn pin_thread(cores: &[u16], thread: u16) -> Result<(), Error> {
    // The default of 50 us delays every wake-up. On failure they are only less precise.
    let _ = set_current_timer_slack(std::num::NonZeroU64::new(1));
    // On a machine that the service saturates, a delayed generator would measure itself. It needs
    // little CPU, but at once. On Linux this is the thread's priority, which only root may raise.
    // A priority that the user has set (nice) is kept.
    if getpriority_process(None) == Ok(0) {
        let _ = setpriority_process(None, PRIORITY);
    }
    if cores.is_empty() {
        return Ok(());
    }
    let core = usize::from(cores[usize::from(thread) % cores.len()]);
    let refuse = |reason: String| {
        Err(Error::plan("placement.cores", format!("core {core} cannot be used: {reason}")))
    };
    if core >= CpuSet::MAX_CPU {
        return refuse("there is none of that number".to_owned());
    }
    let mut set = CpuSet::new();
    set.set(core);
    sched_setaffinity(None, &set).or_else(|error| refuse(error.to_string()))
}

/// Keeps the calling thread off the engine's cores if there are others.
pub(crate) fn avoid_cores(cores: &[u16]) {
    let Ok(mut set) = sched_getaffinity(None) else { return };
    for &core in cores.iter().filter(|&&core| usize::from(core) < CpuSet::MAX_CPU) {
        set.unset(usize::from(core));
    }
    if set.count() > 0 {
        // On failure the thread only competes with the engine's.
        let _ = sched_setaffinity(None, &set);
    }
}

/// Creates the event loop of a thread.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, Error> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Error::Environment(format!("no event loop can be made: {error}")))
}
