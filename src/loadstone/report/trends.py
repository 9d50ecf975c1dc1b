"""Results of the same workload over time."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from loadstone.errors import EnvironmentUnusable
from loadstone.report import figures
from loadstone.report.history import TrendChange, changes, changes_as_data, facts
from loadstone.result.listing import Performed
from loadstone.result.model import Run
from loadstone.result.task_workload import TaskWorkload
from loadstone.system.say import Say

MEDIAN = "the median duration"
HEADS = ("min", "median", "90%ile", "95%ile", "max", "avg", "success", "count")


@dataclass(frozen=True, slots=True)
class Trend:
    """The runs of one configuration (scenario, runner, contexts, hooks, as Rally or not)."""

    config_id: str
    scenario: str
    workload: TaskWorkload  # of the latest run
    runs: tuple[Performed, ...]  # oldest first
    changes: tuple[TrendChange, ...] = ()  # of the median
    requests_as_rally: bool = False  # iterations sent every request that Rally sends
    paced_as_rally: bool = False

    @property
    def known(self) -> int:
        """Number of runs with a successful iteration."""
        return sum(bool(median_s) for median_s in _medians_s(self.runs).values())

    @property
    def count(self) -> int:
        """Number of runs; a task may have several equal workloads."""
        return len({one.run_id for one in self.runs})


def trends(
    history: Sequence[Performed],
    run_of: Callable[[str], Run],
    say: Say = lambda _: None,
) -> tuple[Trend, ...]:
    """Group workloads by configuration, the one with the latest run first.

    Runs that cannot be read are left out; `say` gets a line for each.
    """
    groups: dict[str, list[Performed]] = {}
    for performed in history:
        groups.setdefault(performed.config_id, []).append(performed)
    found = []
    for config_id, runs in groups.items():
        if (trend := _readable(config_id, runs, run_of, say)) is not None:
            found.append(trend)
    return tuple(sorted(found, key=lambda trend: trend.runs[-1].started_at, reverse=True))


@dataclass(slots=True)
class _RunReader:
    """Reads runs, and remembers which it read last."""

    run_of: Callable[[str], Run]
    last: str = ""

    def __call__(self, run_id: str) -> Run:
        self.last = run_id
        return self.run_of(run_id)


def _readable(
    config_id: str,
    runs: list[Performed],
    run_of: Callable[[str], Run],
    say: Say,
) -> Trend | None:
    """Return the trend of the runs that can be read; None without any."""
    reader = _RunReader(run_of)
    while runs:
        try:
            return _trend(config_id, runs, reader)
        except EnvironmentUnusable as damaged:
            say(str(damaged))
            runs = [run for run in runs if run.run_id != reader.last]
    return None


def _trend(config_id: str, runs: list[Performed], run_of: Callable[[str], Run]) -> Trend:
    last = runs[-1]
    measurement = run_of(last.run_id).workloads[last.position]
    of_runs = _medians_s(runs)
    found = changes(
        list(of_runs),
        list(of_runs.values()),
        lambda run_id: facts(run_of(run_id).environment),
    )
    workload = measurement.workload or TaskWorkload()
    return Trend(
        config_id,
        last.scenario,
        workload,
        tuple(runs),
        found,
        measurement.requests_as_rally,
        measurement.paced_as_rally,
    )


def cells(run: Performed) -> tuple[str, ...]:
    """Return a run's figures as they are shown, in the order of HEADS."""
    times = (run.min_s, run.median_s, run.p90_s, run.p95_s, run.max_s, run.mean_s)
    shown = (figures.MISSING if time_s is None else figures.plain_s(time_s) for time_s in times)
    return (*shown, figures.success(run.ok, run.count), str(run.count))


def as_data(trend: Trend) -> dict[str, Any]:
    """Return a trend as JSON values; durations of successful iterations, in seconds."""
    return {
        "kind": "workload",
        "config_id": trend.config_id,
        "scenario": trend.scenario,
        "given": trend.workload.as_data(),
        "requests_as_rally": trend.requests_as_rally,
        "paced_as_rally": trend.paced_as_rally,
        "runs": [
            asdict(run) | {"success": run.ok / run.count if run.count else None}
            for run in trend.runs
        ],
        "changes": changes_as_data(trend.changes),
    }


def _medians_s(performed: Sequence[Performed]) -> dict[str, float | None]:
    """Return the median of each run; of several equal workloads, the median of theirs."""
    of_runs: dict[str, list[float]] = {}
    for one in performed:
        known = of_runs.setdefault(one.run_id, [])
        if one.median_s:
            known.append(one.median_s)
    return {run_id: median(found) if found else None for run_id, found in of_runs.items()}
