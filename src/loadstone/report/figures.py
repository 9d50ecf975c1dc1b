"""Formats numbers and sentences for people."""

import math
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from loadstone.diagnosis.demand import ResourceUse

MISSING = "–"  # noqa: RUF001 (a dash, for an unknown figure)
NOT_FOUND = "not found"
LEAST_S = 0.0001  # a shorter time would have at most one of Rally's digits
MOST_DIGITS = 5  # of a rate: one request a day is 0.00001/s


class CapacityFigures(Protocol):
    """N with its interval; None: unknown."""

    @property
    def rate_rps(self) -> float | None: ...  # noqa: D102

    @property
    def low_rps(self) -> float | None: ...  # noqa: D102

    @property
    def high_rps(self) -> float | None: ...  # noqa: D102


def rate(value_rps: float | None) -> str:
    """Return a rate with three digits, without decimals from 1000 on."""
    if value_rps is None or not math.isfinite(value_rps):
        return MISSING
    shown_rps = float(f"{value_rps:.3g}")  # 9.996 is shown as 10.0
    if shown_rps >= 1000:
        return f"{value_rps:,.0f}"
    digits = 2 if shown_rps <= 0 else max(0, 2 - math.floor(math.log10(shown_rps)))
    return f"{value_rps:.{min(digits, MOST_DIGITS)}f}"


def precise(value_rps: float | None, width_rps: float) -> str:
    """Return a rate rounded to the precision of its interval."""
    if value_rps is None or not math.isfinite(value_rps):
        return MISSING
    if width_rps <= 0 or not math.isfinite(width_rps):
        return rate(value_rps)
    digits = max(0, min(MOST_DIGITS, -math.floor(math.log10(width_rps / 4))))
    return f"{value_rps:,.{digits}f}"


def milliseconds(value_ms: float) -> str:
    """Return a time in milliseconds; from ten seconds on in seconds."""
    if not math.isfinite(value_ms):
        return MISSING
    if value_ms >= 9_999.5:
        return f"{value_ms / 1000:,.1f} s"
    return f"{value_ms:.{0 if value_ms >= 99.95 else 1 if value_ms >= 9.995 else 2}f} ms"


def plain_ms(value_ms: float) -> str:
    """Return a time in milliseconds for a column whose head names the unit."""
    if not math.isfinite(value_ms):
        return MISSING
    digits = 0 if value_ms >= 99.95 else 1 if value_ms >= 0.995 or not value_ms else 2
    return f"{value_ms:,.{digits}f}"


def plain_s(value_s: float) -> str:
    """Return a time in seconds for a column whose head names the unit, in Rally's digits."""
    if not math.isfinite(value_s):
        return MISSING
    if 0.0 < value_s < LEAST_S:
        return f"{value_s:.6f}"
    return f"{value_s:.{4 if value_s < 0.0995 else 3}f}"


def percent(share: float) -> str:
    """Return a share as a percentage, without decimals from 10 % on."""
    if not math.isfinite(share):
        return MISSING
    return f"{share * 100:.{0 if share >= 0.0995 else 1}f} %"


def success(ok: int, count: int) -> str:
    """Return the share that succeeded; 100 % only if none failed."""
    if ok == count:
        return percent(1.0 if count else math.nan)
    return f"{math.floor(1000 * ok / count) / 10:.1f} %"


def seconds(value_s: float) -> str:
    """Return a duration."""
    if value_s < 90:
        return f"{value_s:.0f} s"
    minutes, rest = divmod(round(value_s), 60)
    return f"{minutes} min {rest} s" if rest else f"{minutes} min"


def counted(count: int, noun: str) -> str:
    """Return "1 worker" or "2,000 workers"."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def begun(text: str) -> str:
    """Return a text with an initial capital."""
    return text[:1].upper() + text[1:]


def n(capacity: CapacityFigures | None) -> str:
    """Return N alone, with "at least" or "below" if only one end is known."""
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


def n_per_second(capacity: CapacityFigures | None) -> str:
    """Return N with its unit, which an N that was not found does not have."""
    found = n(capacity)
    return found if found == NOT_FOUND else f"{found}/s"


def interval(capacity: CapacityFigures | None) -> str:
    """Return the interval of N; a dash if an end is unknown."""
    if capacity is None or capacity.low_rps is None or capacity.high_rps is None:
        return MISSING
    low, high = capacity.low_rps, capacity.high_rps
    return f"{precise(low, high - low)} to {precise(high, high - low)}"


def capacity(use: "ResourceUse") -> str:
    """Return the capacity of a resource with its unit."""
    number = f"{use.capacity:,.0f}" if use.capacity >= 1000 else f"{use.capacity:.4g}"
    return f"{number} {use.unit.removesuffix('s') if use.capacity == 1 else use.unit}"
