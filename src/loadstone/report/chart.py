"""What a chart shows, as values."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Xy = tuple[float, float]
Tone = Literal[
    "sustained", "degraded", "invalid", "undecided", "metered", "p50", "p95", "p99", "even"
]


@dataclass(frozen=True, slots=True)
class ChartSeries:
    """One line, one cloud of points, one row of bars."""

    name: str
    kind: Literal["line", "dashed", "points", "cloud", "area", "bars", "intervals"]
    tone: Tone
    # Bars: the left edge and height of each, then the right edge of the last. Intervals: both ends
    # of each in turn.
    data: tuple[Xy, ...]


@dataclass(frozen=True, slots=True)
class Band:
    """N and its interval, marked on one axis."""

    low: float
    high: float
    at: float | None
    label: str
    axis: Literal["x", "y"] = "x"


@dataclass(frozen=True, slots=True)
class MarkedSpan:
    """A stretch of the x axis, marked over the whole height."""

    low: float
    high: float
    label: str
    tone: Tone


@dataclass(frozen=True, slots=True)
class Chart:
    """One chart; `summary` describes it in a sentence."""

    id: str
    title: str
    summary: str
    x_label: str
    y_label: str
    series: tuple[ChartSeries, ...]
    band: Band | None = None
    from_zero_x: bool = True
    from_zero_y: bool = True
    spans: tuple[MarkedSpan, ...] = ()
    # Row names instead of a y axis, from the top: the first is at y = their count, the last at 1.
    rows: tuple[str, ...] = ()


def with_data(charts: Iterable[Chart]) -> tuple[Chart, ...]:
    """Return the charts in which anything is drawn."""
    return tuple(chart for chart in charts if any(series.data for series in chart.series))
