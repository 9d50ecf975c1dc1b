//! What this machine allows a run, and which cores its threads use.

use rustix::process::{Resource, getpriority_process, getrlimit, setpriority_process, setrlimit};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity, set_current_timer_slack};

use crate::Refusal;
use crate::plan::{Http, Plan};

/// Nice value of the engine's threads, where it may be set.
const PRIORITY: i32 = -10;
/// Descriptors that the process needs beside the connections.
const SPARE_DESCRIPTORS: u64 = 64;

/// Refuses a plan that needs more than this machine allows, before anything is sent. Local ports are
/// not foreseen: how long they rest after a close depends on who closed. Requests that found none
/// are counted.
pub(crate) fn require(plan: &Plan) -> Result<(), Refusal> {
    raise_descriptors(connections(plan) + SPARE_DESCRIPTORS)
}

/// Connections open at once; with HTTP/2 a thread may have one that ends beside its next one.
fn connections(plan: &Plan) -> u64 {
    match plan.placement.http {
        Http::One => u64::from(plan.limits.max_connections),
        Http::Two => 2 * u64::from(plan.placement.threads),
    }
}

/// Raises the soft limit of open files as far as is needed and allowed.
fn raise_descriptors(needed: u64) -> Result<(), Refusal> {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    if limit.maximum.is_none_or(|maximum| maximum >= needed) {
        limit.current = Some(needed);
        if setrlimit(Resource::Nofile, limit).is_ok() {
            return Ok(());
        }
    }
    let allowed = limit.maximum.unwrap_or(u64::MAX);
    Err(Refusal::Environment(format!(
        "{needed} open files are needed, {allowed} are allowed: ulimit -Hn {needed} (as root) \
         raises the limit, fewer connections do without"
    )))
}

/// Makes the calling thread the engine's number `thread`.
pub(crate) fn bind(cores: &[u16], thread: u16) -> Result<(), Refusal> {
    // The default of 50 us is added to every wake-up; without it they are only less precise.
    let _ = set_current_timer_slack(std::num::NonZeroU64::new(1));
    // On a machine that the service fills, a late generator would measure itself: it needs
    // little CPU, but at once. On Linux this is the thread's priority; it takes root. Whoever
    // started the program with another one (nice) meant it.
    if getpriority_process(None) == Ok(0) {
        let _ = setpriority_process(None, PRIORITY);
    }
    if cores.is_empty() {
        return Ok(());
    }
    let core = usize::from(cores[usize::from(thread) % cores.len()]);
    let refuse = |reason: String| {
        Err(Refusal::plan("placement.cores", format!("core {core} cannot be used: {reason}")))
    };
    if core >= CpuSet::MAX_CPU {
        return refuse("there is none of that number".to_owned());
    }
    let mut set = CpuSet::new();
    set.set(core);
    sched_setaffinity(None, &set).or_else(|error| refuse(error.to_string()))
}

/// Keeps the calling thread off the engine's cores, where there are others.
pub(crate) fn leave(cores: &[u16]) {
    let Ok(mut set) = sched_getaffinity(None) else { return };
    for &core in cores.iter().filter(|&&core| usize::from(core) < CpuSet::MAX_CPU) {
        set.unset(usize::from(core));
    }
    if set.count() > 0 {
        // Where it is refused, the thread is only in the way.
        let _ = sched_setaffinity(None, &set);
    }
}

/// The event loop of one thread.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, Refusal> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Refusal::Environment(format!("no event loop can be made: {error}")))
}
