"""Whether the load generator was the limit, in words."""

from dataclasses import replace

from loadstone.engine.health import Health
from loadstone.plan.load import BandLoad, ClosedLoad, Load, OpenLoad, ReplayLoad, StagedLoad

# Beyond these a trial says more of the generator than of the service. No verdict on capacity hangs
# on less than 100 ms of backlog, nor does metering (docs/methodology.md): a fifth of that does not
# bend it. Where a busy service has all cores of the machine, 5 to 10 ms are common.
LAG_P99_MS = 20.0
# Of the mean time between two arrivals: no verdict hangs on fewer than six requests either, and at
# low rates the 99th percentile is that of a hundred requests, which one hiccup moves.
LAG_SHARE_OF_GAP = 0.5
LAG_SHARE_OF_BAND = 0.2  # of the time in which a band's lower mark would be worked off or filled
CPU_SHARE = 0.70  # of one core per engine thread
# Lag is explained by a busy machine when this share of the run went by waiting for a core.
RUNQUEUE_SHARE = 0.05


def judged(health: Health, load: Load) -> Health:
    """Say in `limits` what made the generator the limit, if anything did."""
    return replace(health, limits=tuple(_limits(health, load)))


def lag_bound_ms(load: Load) -> float:
    """Give the send lag (99th percentile) up to which a run is believed."""
    match load:
        case OpenLoad(rate_rps=rate_rps):
            return max(LAG_P99_MS, LAG_SHARE_OF_GAP * 1000.0 / rate_rps)
        case BandLoad(low=low, fill_rps=fill_rps):
            return max(LAG_P99_MS, LAG_SHARE_OF_BAND * 1000.0 * low / fill_rps)
        case StagedLoad() | ReplayLoad() | ClosedLoad():
            return LAG_P99_MS


def _limits(health: Health, load: Load) -> list[str]:
    limits = []
    bound_ms = lag_bound_ms(load)
    if health.lag_p99_ms > bound_ms:
        limits.append(
            f"1 % of the requests were taken up more than {health.lag_p99_ms:.1f} ms late "
            f"(at most {bound_ms:.1f} ms is believed){_because(health)}"
        )
    if health.cpu_share > CPU_SHARE:
        limits.append(
            f"the load generator used {health.cpu_share:.0%} of its "
            f"{'core' if health.threads == 1 else f'{health.threads} cores'} "
            f"(at most {CPU_SHARE:.0%} is believed)"
        )
    return limits


def _because(health: Health) -> str:
    if health.wall_s <= 0:
        return ""
    waited = health.runqueue_wait_s / (health.wall_s * health.threads)
    if waited <= RUNQUEUE_SHARE:
        return ""
    return f"; it waited for a core during {waited:.0%} of the run: this machine is busy"
