"""Durations and other numbers on the command line."""

import math
import re
from typing import Any

import click

from loadstone.search.settings import LONGEST_BUDGET_S

SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}
RATE_HINT = "write it like 40/s, 2400/min or 100000/h"
_PER = {"s": 1.0, "min": 60.0, "h": 3600.0}
SHORTEST_S = 20.0
YEAR_S = 365 * 86_400.0  # the longest load and time-out of the engine


class Span(click.ParamType[float]):
    """Duration such as 0, 20ms, 1.5s, 4m or 1h, at most a year; if `is_positive`, more than 0."""

    name, like = "time", "20ms, 1.5s, 4m or 1h"

    def __init__(self, *, is_positive: bool = False) -> None:
        self.is_positive = is_positive

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return seconds."""
        match = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h|)", str(value).strip())
        if match is None:
            self.fail(f"{value!r} is not a {self.name}; write it like {self.like}", param, ctx)
        seconds = float(match[1]) * (0.001 if match[2] == "ms" else SECONDS[match[2] or "s"])
        if self.is_positive and not 0 < seconds <= YEAR_S:
            self.fail(f"{value} must be more than 0 and at most a year (8760h)", param, ctx)
        if seconds > YEAR_S:
            self.fail(f"{value} must be at most a year (8760h)", param, ctx)
        return seconds


class Duration(Span):
    """Duration of a search's load, such as 90, 90s, 4m or 0.5h."""

    name, like = "duration", "90s, 4m or 0.5h"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return seconds within the limits of a search."""
        seconds = super().convert(value, param, ctx)
        if not SHORTEST_S <= seconds <= LONGEST_BUDGET_S:
            longest = f"{LONGEST_BUDGET_S / 60:.0f}m"
            self.fail(f"{value} is outside {SHORTEST_S:.0f}s to {longest}", param, ctx)
        return seconds


class Number(click.FloatRange):
    """Float range that rejects NaN and infinity."""

    name = "number"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number."""
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            # NaN passes every range check, as all comparisons with it are false.
            self.fail(f"{value} is not a number", param, ctx)
        return number


class RateRange(Number):
    """Rate within a range, as 40, 40/s, 2400/min or 100000/h."""

    name = "rate"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the rate per second."""
        if isinstance(value, str) and "/" in value:
            value = per_second(value) or value
        if isinstance(value, str) and not _is_number(value):
            self.fail(f"{value!r} is not a rate; {RATE_HINT}", param, ctx)
        return super().convert(value, param, ctx)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def per_second(text: str) -> float | None:
    """Return the rate per second of a text; None if it is not a rate above 0."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(?:/\s*(s|min|h))?", text.strip())
    rate = float(match[1]) / _PER[match[2] or "s"] if match else 0.0
    return rate if rate > 0 and math.isfinite(rate) else None


class ShareParam(click.ParamType[float]):
    """Share such as 3%, 0.5% or 0.03: above 0 and below `limit`, or from `least` to `most`."""

    name = "share"

    def __init__(
        self, *, limit: float = 1.0, least: float | None = None, most: float = 1.0
    ) -> None:
        self.limit, self.least, self.most = limit, least, most

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the share."""
        text = str(value).strip()
        try:
            share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
        except ValueError:
            share = float("nan")
        if self.least is None:
            is_within, limits = 0 < share < self.limit, ""
        else:
            is_within = self.least <= share <= self.most
            limits = f" from {self.least:.0%} to {self.most:.0%}"
        if not is_within:
            self.fail(f"{value!r} is not a share{limits}; write it like 3% or 0.03", param, ctx)
        return share
