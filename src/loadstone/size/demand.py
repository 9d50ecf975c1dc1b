"""What one iteration of a scenario costs, from the trials of stored runs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import log
from statistics import fmean

from loadstone.analysis.interval import of_logs
from loadstone.analysis.model import Trial
from loadstone.errors import EnvironmentUnusable
from loadstone.monitor.demand import BottleneckKind, Observation
from loadstone.monitor.roles import Role
from loadstone.report.settings import IDENTITY, SettingDifference, differences
from loadstone.result import BESIDE, LEAST_S, Environment, Measurement, Run

ROLES = (Role.KEYSTONE, Role.WEB, Role.DATABASE, Role.CACHE, Role.BALANCER, Role.DIRECTORY)
MOST_FAILED = 0.01  # share of iterations: what fails costs something else
# Of the highest throughput: in a slower trial much of the CPU is what the service does when idle.
LEAST_SHARE = 0.5
LIGHT_SHARE = 0.7  # of the highest throughput: up to here hardly anything queues
LEAST_ITERATIONS = 5
RUNS_FOR_SCATTER = 3  # from so many runs on, the interval is that between runs
MOST_RUNS = 5  # of the same settings, the newest

# Differences that change no cost by themselves.
_NOT_A_COST = IDENTITY | {BESIDE, "loadstone", "revocation.events", "fernet.keys"}


@dataclass(frozen=True, slots=True)
class DemandEstimate:
    """A mean with its 95 % interval; None where one value tells nothing of the scatter."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Demand:
    """What one iteration of a scenario costs."""

    scenario: str
    title: str
    cpu_s: tuple[tuple[Role, DemandEstimate], ...]  # by role, the generator among them
    service_s: DemandEstimate  # duration without queueing: how long a worker is held
    is_light: bool  # service_s was measured in a trial at a low rate
    statements: float | None  # SQL statements
    cache_gets: float | None
    connection_s: float | None  # how long a database connection is in a transaction
    trials: int
    runs: tuple[str, ...]
    environment: Environment  # of the newest of the runs

    def of(self, role: Role) -> DemandEstimate | None:
        """Return the CPU seconds of one role; None: it used none, or was not watched."""
        return dict(self.cpu_s).get(role)


def demands(wanted: Sequence[str], runs: Sequence[Run]) -> tuple[Demand, ...]:
    """Return what each scenario (by its stored name) costs; `runs` are the newest first.

    Runs with the settings of the newest usable one are taken where there are some; otherwise the
    newest of the scenario. Raises EnvironmentUnusable when nothing usable is stored.
    """
    usable = {name: list(_usable(name, runs)) for name in wanted}
    first = max((run for found in usable.values() for run, _ in found), key=_age, default=None)
    return tuple(_demand(name, usable[name], first) for name in wanted)


def settings_that_differ(found: Sequence[Demand]) -> tuple[SettingDifference, ...]:
    """Return the settings in which the runs of the scenarios differ."""
    return differences([one.environment.settings for one in found], _NOT_A_COST)


def usable_trials(measurement: Measurement) -> tuple[Trial, ...]:
    """Return the trials whose figures say what an iteration costs under load."""
    found = [trial for trial in measurement.trials if _is_usable(trial)]
    most = max((trial.stats.throughput_rps for trial in found), default=0.0)
    return tuple(t for t in found if t.stats.throughput_rps >= LEAST_SHARE * most)


def _is_usable(trial: Trial) -> bool:
    stats = trial.stats
    return (
        trial.is_valid
        and trial.resources is not None
        and stats.load_s >= LEAST_S
        and stats.ok >= LEAST_ITERATIONS
        and stats.failed <= MOST_FAILED * stats.total.count
        and bool(_cpu(trial.resources.observation, Role.KEYSTONE))
    )


def _usable(name: str, runs: Sequence[Run]) -> Iterator[tuple[Run, Measurement]]:
    for run in runs:
        for measurement in run.measurements:
            is_wanted = measurement.scenario == name and not measurement.requests_as_rally
            if is_wanted and usable_trials(measurement):
                yield run, measurement


def _demand(name: str, found: list[tuple[Run, Measurement]], like: Run | None) -> Demand:
    if like is None or not found:
        raise EnvironmentUnusable(
            f"no stored run says what {name} costs: measure it with its resources on a lab "
            "deployment (loadstone capacity --lab NAME --scenario ...), or name runs with --run"
        )
    of_same = [pair for pair in found if not _differ(pair[0], like)]
    if not of_same:
        of_same = [pair for pair in found if not _differ(pair[0], found[0][0])]
    taken = of_same[:MOST_RUNS]
    newest, measurement = taken[0]
    seen = [(run.run_id, trial) for run, one in taken for trial in usable_trials(one)]
    light = [_fastest(one) for _, one in taken]
    roles = (*ROLES, Role.GENERATOR)
    return Demand(
        scenario=name,
        title=measurement.title,
        cpu_s=tuple(
            (role, estimate) for role in roles if (estimate := _estimate(seen, role)) is not None
        ),
        service_s=_service_s([trial for trial, _ in light]),
        is_light=all(is_light for _, is_light in light),
        statements=_figure(seen, "statements_per_request"),
        cache_gets=_figure(seen, "cache_gets_per_request"),
        connection_s=_connection_s(seen),
        trials=len(seen),
        runs=tuple(dict.fromkeys(run_id for run_id, _ in seen)),
        environment=newest.environment,
    )


def _differ(a: Run, b: Run) -> bool:
    return bool(differences([a.environment.settings, b.environment.settings], _NOT_A_COST))


def _age(run: Run) -> str:
    return run.started_at


def _estimate(seen: Sequence[tuple[str, Trial]], role: Role) -> DemandEstimate | None:
    """Return the mean over trials, or over runs where there are enough of them."""
    values = [(run, cost) for run, trial in seen if (cost := _cost(trial, role))]
    if not values:
        return None
    by_run = [
        fmean(log(cost) for _, cost in own) for _, own in groupby(values, key=lambda one: one[0])
    ]
    logs = by_run if len(by_run) >= RUNS_FOR_SCATTER else [log(cost) for _, cost in values]
    found = of_logs(logs)
    return DemandEstimate(found.mean, found.low, found.high)


def _cost(trial: Trial, role: Role) -> float:
    return _cpu(trial.resources.observation, role) if trial.resources else 0.0


def _cpu(seen: Observation, role: Role) -> float:
    """Return the CPU seconds of an iteration in one role, over all machines."""
    uses = (one for one in seen.uses if one.kind is BottleneckKind.CPU and one.role == role.value)
    return sum(one.demand_s or 0.0 for one in uses)


def _fastest(measurement: Measurement) -> tuple[Trial, bool]:
    """Return the trial in which an iteration took the least time, and whether it was a light one.

    That is the one without queueing where there was one, as in the first step of a search's ramp.
    """
    ended = [t for t in measurement.trials if t.is_valid and t.stats.ok >= LEAST_ITERATIONS]
    fastest = min(ended, key=lambda trial: trial.stats.service.mean_s)
    most = max(trial.stats.throughput_rps for trial in ended)
    return fastest, fastest.stats.throughput_rps <= LIGHT_SHARE * most


def _service_s(trials: Sequence[Trial]) -> DemandEstimate:
    found = of_logs([log(trial.stats.service.mean_s) for trial in trials])
    return DemandEstimate(found.mean, found.low, found.high)


def _figure(seen: Sequence[tuple[str, Trial]], name: str) -> float | None:
    found = [
        value
        for _, trial in seen
        if trial.resources and (value := trial.resources.observation.figure(name)) is not None
    ]
    return fmean(found) if found else None


def _connection_s(seen: Sequence[tuple[str, Trial]]) -> float | None:
    found = [
        use.demand_s
        for _, trial in seen
        if trial.resources
        and (use := trial.resources.observation.use(BottleneckKind.CONNECTIONS, Role.KEYSTONE))
        and use.demand_s is not None
    ]
    return fmean(found) if found else None
