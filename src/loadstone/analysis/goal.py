"""Goals of a search: conditions under which a rate counts as sustained."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import assert_never

from loadstone.analysis.criteria import (
    FIGURES,
    FailureRate,
    MaxAvgDuration,
    MaxAvgDurationPerAtomic,
    MaxPercentiles,
    MaxSecondsPerIteration,
    MinIterations,
    MinThroughput,
    Objective,
    Outliers,
    PerformanceDegradation,
    SlaRule,
)
from loadstone.errors import InvalidInput

NO_OBJECTIVES = "no growing backlog, no errors"  # how the usual goal is named
# Where most requests fail, their share hardly changes with the rate: it shows no N.
MOST_ERRORS = 0.5
SECONDS = {"ms": 0.001, "s": 1.0}
LATENCY = r"\s*(mean|p50|p90|p95|p99|max)\s*<\s*([\d.]+)\s*(ms|s)\s*"


@dataclass(frozen=True, slots=True)
class Goal:
    """Allowed share of failed iterations, and latency objectives; the backlog must never grow."""

    error_share: float = 0.001
    objectives: tuple[Objective, ...] = ()

    def __str__(self) -> str:
        return ", ".join((f"errors<={self.error_share * 100:.4g}%", *map(str, self.objectives)))


def goal(texts: tuple[str, ...], besides: Goal = Goal()) -> Goal:
    """Parse objectives such as p99<500ms and errors<0.1%, and add them to those of a goal."""
    error_share = besides.error_share
    objectives = list(besides.objectives)
    for text in texts:
        if match := re.fullmatch(r"\s*errors\s*<\s*([\d.]+)\s*%\s*", text):
            error_share = _number(match[1], text) / 100
            if error_share > MOST_ERRORS:
                raise InvalidInput(
                    f"objective {text!r}: at most {100 * MOST_ERRORS:.0f} % may fail; "
                    "write errors<0.1%"
                )
        elif match := re.fullmatch(LATENCY, text):
            figure = FIGURES[FIGURES.index(match[1])]
            objectives.append(Objective(figure, _number(match[2], text) * SECONDS[match[3]]))
        else:
            raise InvalidInput(
                f"objective {text!r} is not understood; write it like p99<500ms, mean<0.3s or "
                f"errors<0.1% (latency figures: {', '.join(FIGURES)})"
            )
    if error_share > MOST_ERRORS:
        raise InvalidInput(
            f"the task's failure_rate lets {100 * error_share:.4g} % of its iterations fail, and "
            f"in a search at most {100 * MOST_ERRORS:.0f} % may; add --objective 'errors<0.1%'"
        )
    return Goal(error_share, tuple(objectives))


def _number(digits: str, text: str) -> float:
    try:
        number = float(digits)
    except ValueError:
        raise InvalidInput(f"objective {text!r}: {digits} is not a number") from None
    if not number > 0:
        raise InvalidInput(f"objective {text!r}: the limit must be above zero")
    return number


def with_rules(rules: Iterable[SlaRule]) -> tuple[Goal, tuple[str, ...]]:
    """Return the rules of an SLA as a goal, and the names of rules that a goal cannot express."""
    goal = Goal()
    left_out: list[str] = []
    for rule in rules:
        goal, names = _with_rule(goal, rule)
        left_out.extend(names)
    return goal, tuple(left_out)


def _with_rule(goal: Goal, rule: SlaRule) -> tuple[Goal, list[str]]:
    match rule:
        case FailureRate():
            left_out = [f"{rule.name}.min"] if rule.min_percent else []
            return replace(goal, error_share=rule.max_percent / 100), left_out
        case MaxAvgDuration():
            return _with_limits(goal, {"mean": rule.max_s}), []
        case MaxSecondsPerIteration():
            return _with_limits(goal, {"max": rule.max_s}), []
        case MaxPercentiles():
            limits = {f"p{percent:g}": limit_s for percent, limit_s in rule.max_s.items()}
            others = [f"{rule.name}.{name[1:]}" for name in limits if name not in FIGURES]
            return _with_limits(goal, limits), others
        case (
            MaxAvgDurationPerAtomic()
            | Outliers()
            | PerformanceDegradation()
            | MinThroughput()
            | MinIterations()
        ):
            return goal, [rule.name]
        case _:
            assert_never(rule)


def _with_limits(goal: Goal, limits_s: Mapping[str, float]) -> Goal:
    more = (Objective(figure, limits_s[figure]) for figure in FIGURES if figure in limits_s)
    return replace(goal, objectives=(*goal.objectives, *more))
