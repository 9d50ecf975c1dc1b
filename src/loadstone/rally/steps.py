"""A workload repeated at rising load until a figure reaches its bound."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from loadstone.analysis.model import Stats
from loadstone.errors import InvalidInput
from loadstone.rally.task.model import (
    MOST_CONCURRENCY,
    Constant,
    ConstantForDuration,
    Rps,
    Runner,
    Workload,
)

MOST_STEPS = 100
_STEP = re.compile(r"(concurrency|rps)=\+(\d+(?:\.\d+)?)")
_UNTIL = re.compile(r"(success|median|p90|p95|p99)([<>])(\d+(?:\.\d+)?)(%|ms|s)")


@dataclass(frozen=True, slots=True)
class Until:
    """The figure and the bound at which the steps end."""

    figure: str
    bound: float  # a share, or seconds

    def is_reached(self, stats: Stats) -> bool:
        """Return whether a step was the last, also because no iteration succeeded."""
        if not stats.ok:
            return True
        total = stats.total
        value = {
            "success": total.success,
            "median": total.median_s,
            "p90": total.p90_s,
            "p95": total.p95_s,
            "p99": total.p99_s,
        }[self.figure]
        return value < self.bound if self.figure == "success" else value > self.bound


@dataclass(frozen=True, slots=True)
class RisingLoad:
    """The setting that rises with each step, the increment, and the end."""

    setting: str  # "concurrency" or "rps"
    by: float
    until: Until
    most: float = math.inf  # of the setting

    def at(self, workload: Workload, number: int) -> Workload | None:
        """Return the workload of a step, from 0; None if the runner cannot rise further."""
        runner = _risen(workload, self, number)
        if runner is None:
            return None
        spec, value = workload.spec, getattr(runner, _FIELD[self.setting])
        risen = {spec.runner_name: {**spec.runner_settings, self.setting: value}}
        return replace(workload, runner=runner, spec=spec.at(risen))


_FIELD = {"concurrency": "concurrency", "rps": "rate"}


def _risen(workload: Workload, rising: RisingLoad, number: int) -> Runner | None:
    runner, more = workload.runner, rising.by * number
    most = min(rising.most, MOST_CONCURRENCY)  # of iterations at a time
    match runner:
        case Constant() if rising.setting == "concurrency":
            risen = runner.concurrency + int(more)
            is_possible = risen <= min(runner.times, most)
            return replace(runner, concurrency=risen) if is_possible else None
        case ConstantForDuration() if rising.setting == "concurrency":
            risen = runner.concurrency + int(more)
            return replace(runner, concurrency=risen) if risen <= most else None
        case Rps(rate=float() | int() as rate) if rising.setting == "rps":
            return replace(runner, rate=rate + more)
        case _:
            raise InvalidInput(
                f"{workload.file}:{workload.line}: its runner has no {rising.setting} that --step "
                "could raise; constant and constant_for_duration have concurrency, rps has rps"
            )


def rising_load(
    step: str | None, until: str | None, caps: Mapping[str, int] | None = None
) -> RisingLoad | None:
    """Read --step and --until; None without them. No step exceeds the `caps` of --at-most."""
    if step is None and until is None:
        return None
    if step is None or until is None:
        raise InvalidInput("--step and --until go together")
    rise = _STEP.fullmatch(step.replace(" ", ""))
    if rise is None or float(rise[2]) <= 0 or (rise[1] == "concurrency" and "." in rise[2]):
        raise InvalidInput(f"--step {step}: write it like concurrency=+10 or rps=+2.5")
    end = _UNTIL.fullmatch(until.replace(" ", ""))
    if end is None or len({end[1] == "success", end[2] == "<", end[4] == "%"}) == 2:
        raise InvalidInput(f"--until {until}: write it like success<100%, p99>2s or median>500ms")
    if end[4] == "%" and float(end[3]) > 100:
        raise InvalidInput(f"--until {until}: at most 100 % succeed")
    bound = float(end[3]) * {"%": 0.01, "ms": 0.001, "s": 1.0}[end[4]]
    goal = Until(end[1], bound)
    return RisingLoad(rise[1], float(rise[2]), goal, (caps or {}).get(rise[1], math.inf))
