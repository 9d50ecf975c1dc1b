"""Estimates how long a study takes."""

from collections.abc import Callable, Sequence
from typing import assert_never

from loadstone.compare.measure import AFTER_START_S, ALONE_S, warming_again_s
from loadstone.compare.starts import most_starts
from loadstone.keystone.scenarios import named
from loadstone.keystone.scenarios.model import GROUPS, TREE_PROJECTS, Need
from loadstone.lab.hashing import DEFAULT_ROUNDS
from loadstone.lab.keystone.settings import Compute, MiddlewareCache
from loadstone.plan.load import BandLoad, ClosedLoad, OpenLoad, ReplayLoad, StagedLoad
from loadstone.rally.runner import pacing
from loadstone.rally.task.model import Workload
from loadstone.study.cell import task_of
from loadstone.study.duet import TRIAL_S, CellPair, cell_pairs, search_of, warm_up_s
from loadstone.study.model import (
    Cell,
    ClosedLoopStep,
    FaultMeasurement,
    Measurement,
    SearchMeasurement,
    StepsMeasurement,
    Study,
    Tasks,
)
from loadstone.workload.fault import load_s

# Time of a cell apart from its users and its load: create the database, start the servers, wait for
# requests in flight, remove everything. 11 to 13 s in the measured `isp-ras-2015` of
# docs/studies.md.
OVERHEAD_S = 12.0
RESTART_S = 3.0  # of the Keystone of both cells of a pair
# CPU of one request, of one that a cache answers, and of one password check at Keystone's default
# hash cost, on two cores of 2025 (the machine of docs/lab.md); each further step of the hash cost
# doubles the check.
REQUEST_S = 0.05
CACHED_S = 0.01
CHECK_S = 0.25
# Time to start and remove a compute cloud, and time of a boot at any concurrency, on two cores with
# other work. Without the middleware's cache, each request between services is validated.
CLOUD_S = 45.0
BOOT_S, UNCACHED_BOOT_S = 1.2, 5.0
BOOTS = "NovaServers.boot_"
# Requests that make and remove what users share, by the number of users.
SHARED_REQUESTS: dict[Need, Callable[[int], int]] = {
    Need.GROUPS: lambda users: GROUPS * (users + 4),
    Need.PROJECT_TREE: lambda _: 3 * TREE_PROJECTS,  # a removal takes as long as two requests
}
CORES = 2  # up to this concurrency, requests do not slow each other down


def estimate_s(study: Study) -> float:
    """Estimate how long the study takes: searches by their budget, steps and tasks by count."""
    cells_s = study.repeats * sum(turn_s(study, cell) for cell in study.cells) - study.pause_s
    return cells_s + sum(pair_s(study, pair) for pair in cell_pairs(study))


def pair_s(study: Study, pair: CellPair) -> float:
    """Estimate how long it takes to compare a pair of cells in turns."""
    measurement = search_of(study)
    cells = (pair.base, pair.other)
    made_s = sum(OVERHEAD_S + _users_s(measurement.users, cell) for cell in cells)
    trials_s = study.pairs_in_turns * (TRIAL_S + ALONE_S)
    warming_s = warm_up_s(measurement, pair)
    if pair.base.service.is_provider:  # is not started anew
        return made_s + warming_s + trials_s
    first_s = max(warming_s, AFTER_START_S)
    slowest_s = max(_each_s(cell.scenario, cell) for cell in cells)
    further = most_starts(study.pairs_in_turns) - 1
    again_s = warming_again_s(first_s, TRIAL_S, slowest_s)
    return made_s + first_s + trials_s + (1 + further) * RESTART_S + further * again_s


def turn_s(study: Study, cell: Cell) -> float:
    """Estimate how long one measurement of a cell takes, with the pause after it."""
    has_cloud = dict(cell.settings).get("compute", Compute.NONE) != Compute.NONE
    cloud_s = CLOUD_S if has_cloud else 0.0
    return OVERHEAD_S + cloud_s + _load_s(study.measurement, cell) + study.pause_s


def about(seconds: float) -> str:
    """Return a duration in whole minutes."""
    minutes = max(1, round(seconds / 60))
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest} min" if hours else f"{rest} min"


def _load_s(measurement: Measurement, cell: Cell) -> float:
    match measurement:
        case SearchMeasurement(budget_s=budget_s, users=users):
            warm_up_s = measurement.warm_up_of(cell.service)
            return _users_s(users, cell) + budget_s + warm_up_s
        case StepsMeasurement(users=users, steps=steps):
            made = _users_s(users, cell) + _shared_s(steps, users, cell)
            return made + sum(_step_s(step, users, cell) for step in steps)
        case Tasks():
            return sum(_workload_s(one, cell) for one in task_of(measurement).workloads)
        case FaultMeasurement(terms=terms, users=users):
            return _users_s(users, cell) + load_s(terms)
        case _:
            assert_never(measurement)


def _users_s(users: int, cell: Cell) -> float:
    """Estimate how long it takes to create and remove the users."""
    return users * (_check_s(cell) + 2 * _request_s(cell)) / CORES


def _shared_s(steps: Sequence[ClosedLoopStep], users: int, cell: Cell) -> float:
    """Estimate how long it takes to create and remove what users share for some scenarios."""
    needs = {need for step in steps for need in named(step.scenario).needs}
    requests = sum(count(users) for need, count in SHARED_REQUESTS.items() if need in needs)
    return requests * _request_s(cell) / CORES


def _step_s(step: ClosedLoopStep, users: int, cell: Cell) -> float:
    each_s = _each_s(step.scenario, cell)
    load_s = min(step.at_most_s, _closed_s(step.iterations, step.concurrency, each_s))
    if issued := len(named(step.scenario).token_columns):
        return load_s + issued * users * _each_s("issue", cell) / CORES
    return load_s


def _workload_s(workload: Workload, cell: Cell) -> float:
    match pacing(workload.runner).load:
        case ClosedLoad(iterations=int(count)) if workload.scenario.name.startswith(BOOTS):
            is_cached = dict(cell.settings).get("middleware-cache") != MiddlewareCache.OFF
            return count * (BOOT_S if is_cached else UNCACHED_BOOT_S)
        case ClosedLoad(workers=at_once, iterations=int(count)):
            return _closed_s(count, at_once, _each_s("", cell))
        case ClosedLoad(duration_s=duration_s):
            return duration_s or 0.0
        case OpenLoad() | StagedLoad() | ReplayLoad() | BandLoad() as load:
            return load.duration_s


def _closed_s(iterations: int, at_once: int, each_s: float) -> float:
    return iterations * each_s / min(at_once, CORES)


def _each_s(scenario: str, cell: Cell) -> float:
    """Return the CPU time of an iteration; all but validations count a password hash."""
    request_s = _request_s(cell)
    return request_s if scenario == "validate" else request_s + _check_s(cell)


def _request_s(cell: Cell) -> float:
    cache = dict(cell.settings).get("cache", "local")
    return CACHED_S if cache.startswith("mem") else REQUEST_S


def _check_s(cell: Cell) -> float:
    settings = dict(cell.settings)
    # A provider of the lab has its users already; slapd, too, with a cheap password hash.
    if settings.get("identity") == "ldap" or cell.service.is_provider:
        return 0.0
    rounds = int(settings.get("hash-rounds", DEFAULT_ROUNDS))
    return CHECK_S * float(2.0 ** (rounds - DEFAULT_ROUNDS))
