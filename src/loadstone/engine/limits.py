"""Decides whether the load generator or a limit on the load set the pace, and says why."""

import resource
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from loadstone.engine.health import Health
from loadstone.engine.histogram import Histogram
from loadstone.plan.load import BandLoad, ClosedLoad, Load, OpenLoad, ReplayLoad, StagedLoad

# Beyond these limits a trial measures the generator more than the service. Verdicts and metering
# depend on at least 100 ms of backlog (docs/methodology.md), so a fifth of that does not change
# them. 5 to 10 ms are common where a busy service uses all cores of the machine.
LAG_P99_MS = 20.0
# Share of the mean time between arrivals: a verdict also depends on at least six requests, and at
# low rates the 99th percentile is that of about a hundred requests, which one hiccup changes.
LAG_SHARE_OF_GAP = 0.5
# Share of a closed-loop worker's mean cycle (start to next start). At most 1 % of starts are later
# than this, so rate and durations are wrong by less than this share.
LAG_SHARE_OF_CYCLE = 0.02
LAG_SHARE_OF_BAND = 0.2  # of the time in which a band's lower mark would drain or fill
CPU_SHARE = 0.70  # of one core per engine thread
# Lag is attributed to a busy machine when threads waited for a core for this share of the run.
RUNQUEUE_SHARE = 0.05


SPARE_DESCRIPTORS = 128  # file descriptors for everything but connections
PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")


MOST_CONNECTIONS = 10_000  # of a load


def most_connections(wanted: int) -> int:
    """Return `wanted`, or the number of connections that open-file limit and ports allow."""
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    most = wanted if allowed == resource.RLIM_INFINITY else min(wanted, allowed - SPARE_DESCRIPTORS)
    try:
        first, last = map(int, PORTS.read_text().split())
    except (OSError, ValueError):
        return max(1, most)
    return max(1, min(most, last - first + 1))


# Mean number of iterations held back by the ceiling from which it counts as the limit: absolute for
# an open loop or a band, a share of the workers for a closed loop. (Closed-loop workers all start
# at once, so any ceiling holds them back briefly.)
HELD_BACK = 0.1
HELD_BACK_SHARE = 0.02
# Figures of `Health` that are added up over the parts of a load.
_SUMMED = (
    *("cpu_s", "runqueue_wait_s", "retries", "connections", "waited"),
    *("without_port", "without_file", "throttled", "throttled_s"),
)


def judged(health: Health, load: Load, max_rate_rps: float | None = None) -> Health:
    """Return the health with the reasons why the generator or the rate ceiling was the limit."""
    ceiling = _ceiling(health, load, max_rate_rps)
    return replace(health, limits=tuple(_limits(health, load)), ceiling=ceiling)


def merged(
    parts: Sequence[Health],
    load: Load,
    max_rate_rps: float | None = None,
    names: Sequence[str] = (),
    cores: int | None = None,
) -> Health:
    """Merge the health of the engines that sent the parts of one load; `names` name the parts.

    `cores` are those that the threads of all parts together may use.

    Percentiles are over all iterations. The load is invalid where one engine was the limit.
    """
    lag = Histogram.merged(part.lag for part in parts)
    wait = Histogram.merged(part.wait for part in parts)
    threads = sum(part.threads for part in parts)
    sums = {name: sum(getattr(part, name) for part in parts) for name in _SUMMED}
    whole = replace(
        parts[0],
        **sums,
        lag_p50_ms=lag.quantile_ms(0.5),
        lag_p99_ms=lag.quantile_ms(0.99),
        lag_max_ms=lag.max_ns / 1e6,
        wall_s=max(part.wall_s for part in parts),
        threads=min(threads, cores or threads),
        wait_p99_ms=wait.quantile_ms(0.99),
        wait_max_ms=wait.max_ns / 1e6,
        is_cut_short=any(part.is_cut_short for part in parts),
        lag=lag,
        wait=wait,
    )
    judged_whole = judged(whole, load, max_rate_rps)
    named = names or [f"part {number}" for number in range(len(parts))]
    of_parts = (
        f"{name}: {limit}"
        for name, part in zip(named, parts, strict=True)
        if part.lag.total  # one that had nothing to send ended at once, and its start took all CPU
        for limit in part.limits
    )
    return replace(judged_whole, limits=(*judged_whole.limits, *of_parts))


def lag_bound_ms(load: Load, cycle_s: float = 0.0) -> float:
    """Return the highest send lag (99th percentile) at which a run is still valid.

    `cycle_s` is the mean time between two starts of a closed-loop worker.
    """
    match load:
        case OpenLoad(rate_rps=rate_rps):
            return max(LAG_P99_MS, LAG_SHARE_OF_GAP * 1000.0 / rate_rps)
        case BandLoad(low=low, fill_rps=fill_rps):
            return max(LAG_P99_MS, LAG_SHARE_OF_BAND * 1000.0 * low / fill_rps)
        case ClosedLoad():
            return max(LAG_P99_MS, LAG_SHARE_OF_CYCLE * 1000.0 * cycle_s)
        case StagedLoad() | ReplayLoad():
            return LAG_P99_MS


def _cycle_s(health: Health, load: Load) -> float:
    """Return the mean time between two starts of a closed-loop worker; 0 for other loads."""
    begun = health.lag.total
    if not isinstance(load, ClosedLoad) or not begun:
        return 0.0
    return load.workers * _load_s(health, load) / begun


def _load_s(health: Health, load: Load) -> float:
    """Return how long iterations were started: without the time for the last answers."""
    return min(health.wall_s, load.duration_s or health.wall_s)


def _ceiling(health: Health, load: Load, max_rate_rps: float | None) -> str:
    if max_rate_rps is None or health.wall_s <= 0:
        return ""
    most = HELD_BACK_SHARE * load.workers if isinstance(load, ClosedLoad) else HELD_BACK
    if health.throttled_s / _load_s(health, load) <= most:
        return ""
    count = f"{health.throttled} iteration{'' if health.throttled == 1 else 's'}"
    return f"the highest rate allowed, {max_rate_rps:g}/s, held back {count}"


def _limits(health: Health, load: Load) -> list[str]:
    limits = []
    bound_ms = lag_bound_ms(load, _cycle_s(health, load))
    if health.lag_p99_ms > bound_ms:
        limits.append(
            f"1 % of the requests were sent more than {health.lag_p99_ms:.1f} ms late "
            f"(the limit is {bound_ms:.1f} ms){_because(health)}"
        )
    if health.cpu_share > CPU_SHARE:
        limits.append(
            f"the load generator used {100 * health.cpu_share:.0f} % of its "
            f"{'core' if health.threads == 1 else f'{health.threads} cores'} "
            f"(the limit is {100 * CPU_SHARE:.0f} %)"
        )
    if health.without_port:
        limits.append(
            f"{health.without_port} requests found no free local port on this machine: fewer new "
            'connections, or sysctl -w net.ipv4.ip_local_port_range="1024 65535" '
            "net.ipv4.tcp_tw_reuse=1 (as root)"
        )
    if health.without_file:
        limits.append(
            f"{health.without_file} requests found no file left to open on this machine: fewer "
            "connections, or a higher limit (ulimit -Hn, as root; sysctl fs.file-max)"
        )
    return limits


def _because(health: Health) -> str:
    if health.wall_s <= 0:
        return ""
    waited = health.runqueue_wait_s / (health.wall_s * health.threads)
    if waited <= RUNQUEUE_SHARE:
        return ""
    return (
        f"; the generator waited for a core during {100 * waited:.0f} % of the run: this machine "
        "is busy"
    )
