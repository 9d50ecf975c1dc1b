"""The history of a figure over runs: its change points, and the settings that changed there."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from loadstone.analysis.change_points import FEWEST_VALUES, MOST_VALUES, change_points
from loadstone.report import figures
from loadstone.report.settings import SettingDifference, differences
from loadstone.result.model import LAB, Environment, PastSearch
from loadstone.search.model import Capacity

# Parameters of the search's effort, not of the load that it searched with.
EFFORT = frozenset({"method", "load time at most", "highest rate allowed", "connections allowed"})


@dataclass(frozen=True, slots=True)
class TrendChange:
    """A change of the level between two runs."""

    before: str  # run id
    after: str
    ratio: float  # of the level after to the level before
    low: float  # its 95 % interval
    high: float
    settings: tuple[SettingDifference, ...]  # differences between the two runs


@dataclass(frozen=True, slots=True)
class CapacityTrend:
    """Searches for N of one scenario on one target."""

    target: str
    title: str
    runs: tuple[PastSearch, ...]  # oldest first
    changes: tuple[TrendChange, ...]
    load: str = ""  # in what its load differs from that of other trends of this target and title

    @property
    def latest(self) -> Capacity | None:
        """What the last run with a result found."""
        return next((run.capacity for run in reversed(self.runs) if run.capacity), None)

    @property
    def subject(self) -> str:
        """The target, and the load where several are known."""
        return f"{self.target}, {self.load}" if self.load else self.target

    @property
    def known(self) -> int:
        """Number of runs with an N."""
        return sum(n_rps(run) is not None for run in self.runs)


Facts = tuple[tuple[str, str], ...]


def changes(
    run_ids: Sequence[str],
    values: Sequence[float | None],
    facts_of: Callable[[str], Facts],
) -> tuple[TrendChange, ...]:
    """Return the change points of a figure over runs, oldest first.

    Runs without a figure are left out.
    """
    known = [(run, value) for run, value in zip(run_ids, values, strict=True) if value]
    found = []
    for point in change_points([value for _, value in known]):
        before, after = known[point.index - 1][0], known[point.index][0]
        differ = differences([facts_of(before), facts_of(after)])
        found.append(TrendChange(before, after, point.ratio, point.low, point.high, differ))
    return tuple(found)


def capacity_trends(searches: Sequence[PastSearch]) -> tuple[CapacityTrend, ...]:
    """Group searches by target, scenario and load; the latest group first.

    Of searches that a run repeated, the last counts, which combines them.
    """
    groups: dict[tuple[object, ...], dict[str, PastSearch]] = {}
    for one in searches:
        groups.setdefault(_key(one), {})[one.run_id] = one
    found = _with_loads([_trend(list(runs.values())) for runs in groups.values()])
    return tuple(sorted(found, key=lambda trend: trend.runs[-1].started_at, reverse=True))


def _with_loads(trends: Sequence[CapacityTrend]) -> list[CapacityTrend]:
    """Say of trends with the same target and title in what their loads differ."""
    alike: dict[tuple[str, str], list[CapacityTrend]] = {}
    for trend in trends:
        alike.setdefault((trend.target, trend.title), []).append(trend)
    found = []
    for group in alike.values():
        differ = differences([trend.runs[-1].parameters for trend in group], EFFORT)
        for number, trend in enumerate(group):
            values = ((one.name, one.values[number]) for one in differ)
            load = ", ".join(f"{name} {value or 'not known'}" for name, value in values)
            found.append(replace(trend, load=load))
    return found


def cells(run: PastSearch) -> tuple[str, str, str]:
    """Return a run's figures as they are shown."""
    return run.run_id, figures.n(run.capacity), figures.interval(run.capacity)


def sentences(found: Sequence[TrendChange], count: int, figure: str) -> Iterator[str]:
    """Describe each change, or say that there is none; `count` runs have the figure."""
    for change in found:
        direction = "rose" if change.ratio > 1 else "fell"
        share = figures.percent(abs(change.ratio - 1))
        yield (
            f"{figure} {direction} by {share} between {change.before} and {change.after} "
            f"(95 %: {change.low:.3f} to {change.high:.3f} times). {_settings(change)}"
        )
    if not found and count >= FEWEST_VALUES:
        searched = f"the newest {MOST_VALUES} of " if count > MOST_VALUES else ""
        yield f"{figure} has no change point in {searched}{count} runs."
    elif not found and count > 1:
        yield f"Change points of {figure} are looked for from {FEWEST_VALUES} runs on."


def changes_as_data(found: Sequence[TrendChange]) -> list[dict[str, Any]]:
    """Return changes as JSON values."""
    return [
        {
            "before": one.before,
            "after": one.after,
            "ratio": one.ratio,
            "low": one.low,
            "high": one.high,
            "settings": [
                {"name": s.name, "before": s.values[0], "after": s.values[1]} for s in one.settings
            ],
        }
        for one in found
    ]


def as_data(trend: CapacityTrend) -> dict[str, Any]:
    """Return a trend as JSON values; rates per second."""
    return {
        "kind": "capacity",
        "target": trend.target,
        "load": trend.load,
        "scenario": trend.runs[-1].scenario,
        "title": trend.title,
        "runs": [
            {
                "run_id": run.run_id,
                "started_at": run.started_at,
                "rate_rps": run.capacity.rate_rps if run.capacity else None,
                "low_rps": run.capacity.low_rps if run.capacity else None,
                "high_rps": run.capacity.high_rps if run.capacity else None,
            }
            for run in trend.runs
        ],
        "changes": changes_as_data(trend.changes),
    }


def facts(environment: Environment, parameters: Facts = ()) -> Facts:
    """Return all known settings of a run."""
    return (*environment.settings, *parameters)


def _trend(runs: list[PastSearch]) -> CapacityTrend:
    last = runs[-1]
    by_id = {run.run_id: facts(run.environment, run.parameters) for run in runs}
    found = changes(
        [run.run_id for run in runs],
        [n_rps(run) for run in runs],
        by_id.__getitem__,
    )
    return CapacityTrend(_target(last), base_title(last.title), tuple(runs), found)


def n_rps(run: PastSearch) -> float | None:
    """Return a run's N; None also if N is only known to be at least so much."""
    found = run.capacity
    is_bound = found is not None and found.low_rps is not None and found.high_rps is None
    return None if found is None or is_bound else found.rate_rps


def _key(one: PastSearch) -> tuple[object, ...]:
    parameters = tuple(pair for pair in one.parameters if pair[0] not in EFFORT)
    return (_target(one), one.scenario, base_title(one.title), parameters)


def base_title(title: str) -> str:
    """Return the title without the number of repeated searches, or of one of them."""
    head, comma, tail = title.rpartition(", ")
    is_repeated = tail.endswith(" searches") or re.fullmatch(r"search \d+( of \d+)?", tail)
    return head if comma and is_repeated else title


def _target(one: PastSearch) -> str:
    target = dict(one.environment.target)
    return f"lab {target[LAB]}" if LAB in target else target.get("url", "")


def percent(trend: CapacityTrend, run: PastSearch) -> str:
    """Return by how much N changed from the run before; empty if it did not."""
    change = next((one for one in trend.changes if one.after == run.run_id), None)
    if change is None:
        return ""
    sign = "+" if change.ratio > 1 else "-"
    return f"{sign}{figures.percent(abs(change.ratio - 1))}"


def _settings(change: TrendChange) -> str:
    if not change.settings:
        return "No setting that is known differs between them."
    listed = "; ".join(
        f"{one.name} {one.values[0] or 'not known'} -> {one.values[1] or 'not known'}"
        for one in change.settings
    )
    return f"What differs: {listed}."
