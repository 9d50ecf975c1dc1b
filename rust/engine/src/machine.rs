//! What this machine allows a run, and which cores its threads use.

use rustix::process::{Resource, getpriority_process, getrlimit, setpriority_process, setrlimit};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity, set_current_timer_slack};

use crate::Refusal;
use crate::plan::{Http, Load, Plan, Reuse};

/// Nice value of the engine's threads, where it may be set.
const PRIORITY: i32 = -10;
/// Descriptors that the process needs beside the connections.
const SPARE_DESCRIPTORS: u64 = 64;
/// How long Linux keeps the port of a connection that we closed (`TCP_TIMEWAIT_LEN`).
const PORT_REST_S: f64 = 60.0;
/// How long where it may be taken again (`net.ipv4.tcp_tw_reuse`).
const PORT_REUSE_S: f64 = 1.0;
/// Most that `net.ipv4.ip_local_port_range` can be set to without the reserved ports.
const MOST_PORTS: u64 = 65_535 - 1024 + 1;

/// Refuses a plan that needs more than this machine allows, before anything is sent.
pub(crate) fn require(plan: &Plan, is_local: bool) -> Result<(), Refusal> {
    if let Some(ports) = Ports::of_this_machine() {
        ports.require(plan, is_local)?;
    }
    raise_descriptors(connections(plan) + SPARE_DESCRIPTORS)
}

/// Local ports that connections to one address may use.
struct Ports {
    count: u64,
    /// `net.ipv4.tcp_tw_reuse`: 0 never, 1 always, 2 on loopback.
    reuse: u8,
}

impl Ports {
    /// None where the kernel does not say.
    fn of_this_machine() -> Option<Self> {
        let setting = |name: &str| std::fs::read_to_string(format!("/proc/sys/net/ipv4/{name}"));
        let range = setting("ip_local_port_range").ok()?;
        let mut ends = range.split_whitespace().map_while(|end| end.parse::<u64>().ok());
        let (first, last) = (ends.next()?, ends.next()?);
        let reuse = setting("tcp_tw_reuse").ok().and_then(|text| text.trim().parse().ok());
        Some(Self { count: (last + 1).saturating_sub(first), reuse: reuse.unwrap_or(0) })
    }

    fn require(&self, plan: &Plan, is_local: bool) -> Result<(), Refusal> {
        let is_reused = self.reuse == 1 || (self.reuse == 2 && is_local);
        let needed = needed(plan, if is_reused { PORT_REUSE_S } else { PORT_REST_S });
        if needed <= self.count {
            return Ok(());
        }
        let mend = if needed <= MOST_PORTS || is_reused {
            "sysctl -w net.ipv4.ip_local_port_range=\"1024 65535\""
        } else {
            "sysctl -w net.ipv4.tcp_tw_reuse=1"
        };
        Err(Refusal::Environment(format!(
            "{needed} local ports are needed, {} are allowed: {mend} (as root) raises the limit, \
             fewer connections do without",
            self.count
        )))
    }
}

/// Connections open at once; with HTTP/2 a thread may have one that ends beside its next one.
fn connections(plan: &Plan) -> u64 {
    match plan.placement.http {
        Http::One => u64::from(plan.limits.max_connections),
        Http::Two => 2 * u64::from(plan.placement.threads),
    }
}

/// Ports that are in use or rest at once. A connection of one iteration is closed by us, so that
/// its port rests; one of a single request is closed by the server, as it is asked to.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rounded up, positive")]
fn needed(plan: &Plan, rest_s: f64) -> u64 {
    let connections = connections(plan);
    let resting = plan.load.highest_rps() * rest_s;
    match (plan.connection, &plan.load, plan.load.expected()) {
        (_, Load::Closed { .. } | Load::Band { .. }, _) | (Reuse::Kept | Reuse::Request, ..) => {
            connections
        }
        (Reuse::Iteration, _, expected) => {
            connections + expected.map_or(resting, |all| all.min(resting)).ceil() as u64
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Arrivals;

    const DEFAULT: Ports = Ports { count: 28_232, reuse: 2 };

    fn plan(max_connections: u16, connection: Reuse, rate_rps: f64) -> Plan {
        let json = include_str!("../../../tests/data/plan_open.json");
        let mut plan = Plan::from_json(json).expect("the golden plan is good");
        plan.limits.max_connections = max_connections;
        plan.connection = connection;
        let (arrivals, seed) = (Arrivals::Constant, 0);
        plan.load = Load::Open { rate_rps, duration_s: 600.0, arrivals, seed, iterations: None };
        plan
    }

    fn refusal(ports: &Ports, plan: &Plan, is_local: bool) -> String {
        ports.require(plan, is_local).expect_err("too many").to_string()
    }

    #[test]
    fn more_connections_than_ports_are_refused_with_the_mend() {
        assert!(DEFAULT.require(&plan(28_232, Reuse::Kept, 1.0), false).is_ok());
        assert_eq!(
            refusal(&DEFAULT, &plan(28_233, Reuse::Kept, 1.0), false),
            "28233 local ports are needed, 28232 are allowed: sysctl -w \
             net.ipv4.ip_local_port_range=\"1024 65535\" (as root) raises the limit, fewer \
             connections do without"
        );
    }

    #[test]
    fn ports_that_rest_after_a_close_are_counted() {
        let churn = plan(200, Reuse::Iteration, 2000.0);
        // 60 s of 2,000 a second, and no range is that wide.
        assert!(refusal(&DEFAULT, &churn, false).contains("tcp_tw_reuse=1"));
        // On loopback they rest for a second only.
        assert!(DEFAULT.require(&churn, true).is_ok());
        assert!(Ports { reuse: 1, ..DEFAULT }.require(&churn, false).is_ok());
        assert!(DEFAULT.require(&plan(200, Reuse::Request, 2000.0), false).is_ok());
    }

    #[test]
    fn this_machine_says_how_many_ports_it_has() {
        assert!(Ports::of_this_machine().is_some_and(|ports| ports.count > 0));
    }
}
