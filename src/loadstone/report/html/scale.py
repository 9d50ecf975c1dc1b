"""Axes: map values to positions on the page."""

import math
from dataclasses import dataclass

STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
LEAST_SPAN = 1e-9  # of an axis around one value, as a share of that value: well above an ulp


@dataclass(frozen=True, slots=True)
class Scale:
    """Linear scale: maps `low` to `high` onto an interval of positions."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Return the position of a value, clamped to the range."""
        share = (value - self.low) / (self.high - self.low)
        return round(self.start + min(1.0, max(0.0, share)) * (self.end - self.start), 1)

    @property
    def step(self) -> float:
        """Distance between two labels of the axis."""
        return _step(self.high - self.low)

    def ticks(self) -> list[float]:
        """Return round values for the labels of the axis."""
        step = self.step
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        # Without the last digits of i * step, which are of the binary fraction.
        return [float(f"{i * step:.12g}") for i in range(first, last + 1)]


def fitted(values: list[float], start: float, end: float, *, from_zero: bool = False) -> Scale:
    """Return a scale from one round value to another that includes all values."""
    low, high = min(values), max(values)
    low = 0.0 if from_zero else low
    if high <= low:
        # Half of 1 changes nothing of a number as large as a time in nanoseconds.
        room = max(0.5, abs(low) * LEAST_SPAN)
        low, high = (low - room, high + room) if not from_zero else (0.0, low + 1.0)
    step = _step(high - low)
    return Scale(math.floor(low / step) * step, math.ceil(high / step) * step, start, end)


def written(value: float) -> str:
    """Format a tick's value; from 10,000 on in thousands or millions, to fit beside the axis."""
    for size, letter in ((1e6, "M"), (1e3, "K")):
        if abs(value) >= 10 * size or (letter == "M" and abs(value) >= size):
            return f"{value / size:,g}{letter}"
    return f"{value:,g}"


def _step(span: float) -> float:
    rough = span / 5
    size = 10.0 ** math.floor(math.log10(rough))
    return next(step * size for step in STEPS if step * size >= rough * 0.999)
