"""About how long a study takes, reckoned before anything is started."""

from typing import assert_never

from loadstone.keystone.hashing import DEFAULT_ROUNDS
from loadstone.plan.load import BandLoad, ClosedLoad, OpenLoad, ReplayLoad, StagedLoad
from loadstone.plan.runner import pacing
from loadstone.study.model import Cell, Measurement, Search, Steps, Study, Tasks
from loadstone.study.stretches import task_of
from loadstone.task.model import Runner

# What a cell takes beside its load: an empty database and the servers are started, users are made,
# requests that are under way are waited for.
OVERHEAD_S = 30.0
# CPU of one request and of one password check at Keystone's own hash cost, on two cores of 2025
# (docs/lab.md is of the same machine); each further step of the cost doubles the check.
REQUEST_S = 0.05
CHECK_S = 0.25
CORES = 2  # so many requests at once are each as fast as one alone


def estimate_s(study: Study) -> float:
    """Give about how long the study takes: searches at most, steps and tasks by count."""
    load_s = sum(_load_s(study.measurement, cell) for cell in study.cells)
    count = len(study.cells) * study.repeats
    return study.repeats * load_s + count * OVERHEAD_S + (count - 1) * study.pause_s


def about(seconds: float) -> str:
    """Say about how long that is, in whole minutes."""
    minutes = max(1, round(seconds / 60))
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest} min" if hours else f"{rest} min"


def _load_s(measurement: Measurement, cell: Cell) -> float:
    match measurement:
        case Search(budget_s=budget_s):
            return budget_s
        case Steps(users=users, steps=steps):
            stretches_s = (
                min(step.at_most_s, _closed_s(step.iterations, step.concurrency, each_s))
                for step in steps
                for each_s in (_each_s(step.scenario, cell),)
            )
            return users * _check_s(cell) + sum(stretches_s)
        case Tasks():
            subtasks = task_of(measurement).task.subtasks
            runners = (one.runner for subtask in subtasks for one in subtask.workloads)
            return sum(_runner_s(runner, cell) for runner in runners)
        case _:
            assert_never(measurement)


def _runner_s(runner: Runner, cell: Cell) -> float:
    match pacing(runner).load:
        case ClosedLoad(workers=at_once, iterations=int(count)):
            return _closed_s(count, at_once, _each_s("", cell))
        case ClosedLoad(duration_s=duration_s):
            return duration_s or 0.0
        case OpenLoad() | StagedLoad() | ReplayLoad() | BandLoad() as load:
            return load.duration_s


def _closed_s(iterations: int, at_once: int, each_s: float) -> float:
    return iterations * each_s / min(at_once, CORES)


def _each_s(scenario: str, cell: Cell) -> float:
    """Give the CPU of an iteration; all but a validation are taken to check or hash a password."""
    return REQUEST_S if scenario == "validate" else REQUEST_S + _check_s(cell)


def _check_s(cell: Cell) -> float:
    settings = dict(cell.settings)
    if settings.get("identity") == "ldap":  # slapd's users are there, their hash costs nothing
        return 0.0
    rounds = int(settings.get("hash-rounds", DEFAULT_ROUNDS))
    return CHECK_S * float(2.0 ** (rounds - DEFAULT_ROUNDS))
