"""Formats numbers for people."""

import math

from loadstone.analysis.model import Trial, TrialState
from loadstone.monitor.demand import ResourceUse
from loadstone.search.low_load import is_low_load
from loadstone.search.model import Capacity

MISSING = "–"  # noqa: RUF001 (a dash, where a figure is not known)
NOT_FOUND = "not found"


def rate(value_rps: float | None) -> str:
    """Return a rate with three digits, without decimals from 1000 on."""
    if value_rps is None or not math.isfinite(value_rps):
        return MISSING
    if value_rps >= 1000:
        return f"{value_rps:,.0f}"
    return f"{value_rps:.{0 if value_rps >= 100 else 1 if value_rps >= 10 else 2}f}"


def precise(value_rps: float | None, width_rps: float) -> str:
    """Return a rate rounded to the precision of its interval."""
    if value_rps is None or not math.isfinite(value_rps):
        return MISSING
    if width_rps <= 0 or not math.isfinite(width_rps):
        return rate(value_rps)
    digits = max(0, min(3, -math.floor(math.log10(width_rps / 4))))
    return f"{value_rps:,.{digits}f}"


def milliseconds(value_ms: float) -> str:
    """Return a time in milliseconds; from ten seconds on in seconds."""
    if not math.isfinite(value_ms):
        return MISSING
    if value_ms >= 10_000:
        return f"{value_ms / 1000:,.1f} s"
    return f"{value_ms:.{0 if value_ms >= 100 else 1 if value_ms >= 10 else 2}f} ms"


def plain_ms(value_ms: float) -> str:
    """Return a time in milliseconds for a column whose head names the unit."""
    if not math.isfinite(value_ms):
        return MISSING
    return f"{value_ms:,.{0 if value_ms >= 100 else 1}f}"


def percent(share: float) -> str:
    """Return a share as a percentage, without decimals from 10 % on."""
    if not math.isfinite(share):
        return MISSING
    return f"{share * 100:.{0 if share >= 0.0995 else 1}f} %"


def seconds(value_s: float) -> str:
    """Return a duration."""
    if value_s < 90:
        return f"{value_s:.0f} s"
    minutes, rest = divmod(round(value_s), 60)
    return f"{minutes} min {rest} s" if rest else f"{minutes} min"


def n(capacity: Capacity | None) -> str:
    """Return N alone, with "at least" or "below" where only one side is known."""
    if capacity is None:
        return NOT_FOUND
    rate_rps, low, high = capacity.rate_rps, capacity.low_rps, capacity.high_rps
    if low is not None and high is not None:
        alone = f"{precise(low, high - low)} to {precise(high, high - low)}"
        return alone if rate_rps is None else precise(rate_rps, high - low)
    if low is not None:
        return f"at least {rate(low)}"
    if high is not None:
        return f"below {rate(high)}"
    return NOT_FOUND if rate_rps is None else rate(rate_rps)


def interval(capacity: Capacity | None) -> str:
    """Return the interval of N; a dash where a side is not known."""
    if capacity is None or capacity.low_rps is None or capacity.high_rps is None:
        return MISSING
    low, high = capacity.low_rps, capacity.high_rps
    return f"{precise(low, high - low)} to {precise(high, high - low)}"


def margin(capacity: Capacity) -> str:
    """Return how far the interval's further end is from N, as a share of N: "± 17 %"."""
    rate_rps, low, high = capacity.rate_rps, capacity.low_rps, capacity.high_rps
    if not rate_rps or low is None or high is None:
        return MISSING
    return f"± {percent(max(high - rate_rps, rate_rps - low) / rate_rps)}"


def offered(trial: Trial) -> str:
    """Return a trial's offered rate; a dash for closed loops."""
    return MISSING if trial.rate_rps is None else rate(trial.rate_rps)


def verdict(trial: Trial) -> str:
    """Return a trial's verdict; one without a constant rate is not judged."""
    if is_without_rate(trial):
        return "low load" if is_low_load(trial) else "saturated"
    return trial.verdict.state.value


def is_without_rate(trial: Trial) -> bool:
    """Return whether no constant rate was offered, so that there is nothing to judge."""
    return trial.rate_rps is None and trial.verdict.state is TrialState.UNDECIDED


def is_metered(trial: Trial) -> bool:
    """Return whether the trial measured the throughput of a saturated service."""
    return is_without_rate(trial) and not is_low_load(trial)


def capacity(use: ResourceUse) -> str:
    """Return how much there is of a resource, with its unit."""
    return f"{use.capacity:.4g} {use.unit.removesuffix('s') if use.capacity == 1 else use.unit}"


def errors(trial: Trial) -> str:
    """Return the number of failures and the most frequent kind."""
    if not trial.stats.errors:
        return "0"
    kind, count = trial.stats.errors[0]
    total = trial.stats.failed
    return f"{total} ({kind})" if total == count else f"{total} ({kind} {count}, ...)"
