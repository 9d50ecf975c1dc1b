"""Resource demand of one iteration of a scenario, from the trials of stored runs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from math import log
from statistics import fmean
from typing import Self

from loadstone.analysis.interval import of_logs
from loadstone.analysis.model import Trial
from loadstone.diagnosis.demand import MACHINE, BottleneckKind, Observation, host_of
from loadstone.errors import EnvironmentUnusable
from loadstone.monitor.roles import Role
from loadstone.report.settings import IDENTITY, SettingDifference, differences
from loadstone.result.model import (
    BESIDE,
    LEAST_S,
    OF_LAB_HOST,
    TAG,
    Environment,
    Measurement,
    Run,
)

ROLES = (
    Role.KEYSTONE,
    Role.WEB,
    Role.DATABASE,
    Role.CACHE,
    Role.BALANCER,
    Role.DIRECTORY,
    Role.PROVIDER,
)
MOST_FAILED = 0.01  # share of failed iterations, which have another cost
# Of the highest throughput: below, the idle cost of the service is a large part of the CPU.
LEAST_SHARE = 0.5
LIGHT_SHARE = 0.7  # of the highest throughput: up to here, hardly any queueing
LEAST_ITERATIONS = 5
RUNS_FOR_SCATTER = 3  # from this number of runs on, the interval is from the scatter between runs
MOST_RUNS = 5  # the newest runs with the same settings and machines

FLEET = "fleet"  # fact: the hosts that sent the load

Seen = Sequence[tuple[str, Observation]]  # the run of each usable trial, and what was seen in it

# Settings that do not affect the cost.
_NOT_A_COST = IDENTITY | {BESIDE, "loadstone", "revocation.events", "fernet.keys"}


@dataclass(frozen=True, slots=True)
class DemandEstimate:
    """A mean with its 95 % interval; None if there is only one value."""

    value: float
    low: float | None = None
    high: float | None = None

    @classmethod
    def of_logs(cls, logs: Sequence[float]) -> Self:
        """Return the geometric mean of values, by their logarithms."""
        found = of_logs(logs)
        return cls(found.mean, found.low, found.high)

    def times(self, factor: float) -> "DemandEstimate":
        """Return the multiple of it."""
        low, high = self.low, self.high
        return DemandEstimate(
            self.value * factor,
            None if low is None else low * factor,
            None if high is None else high * factor,
        )


@dataclass(frozen=True, slots=True)
class MachineDemand:
    """A machine that the service was on, with the CPU of one iteration there."""

    host: str  # empty: the lab host, or the machine that ran Loadstone
    name: str  # within a sentence
    cores: int | None  # None: unknown
    processor: str | None
    cpu_s: tuple[tuple[Role, DemandEstimate], ...]  # by role; of the generator if it ran there

    @property
    def has_keystone(self) -> bool:
        """Whether Keystone used CPU there."""
        return Role.KEYSTONE in dict(self.cpu_s)

    @property
    def has_generator(self) -> bool:
        """Whether the load generator used CPU there."""
        return Role.GENERATOR in dict(self.cpu_s)


@dataclass(frozen=True, slots=True)
class Demand:
    """Resource demand of one iteration of a scenario."""

    scenario: str
    title: str
    cpu_s: tuple[tuple[Role, DemandEstimate], ...]  # by role, over all machines
    machines: tuple[MachineDemand, ...]
    service_s: DemandEstimate  # duration without queueing: the time that a worker is occupied
    is_light: bool  # whether service_s was measured at a low rate
    statements: float | None  # SQL statements
    cache_gets: float | None
    connection_s: float | None  # time of a database connection in a transaction
    trials: int
    runs: tuple[str, ...]
    environment: Environment  # of the newest run

    def of(self, role: Role) -> DemandEstimate | None:
        """Return the CPU seconds of one role; None if it used none or was not monitored."""
        return dict(self.cpu_s).get(role)


def demands(scenarios: Sequence[str], runs: Sequence[Run]) -> tuple[Demand, ...]:
    """Return the demand of each scenario (by its stored name); `runs` are newest first.

    Uses runs with the settings of the newest usable run of all scenarios, or else of the newest run
    of the scenario; of these, the ones that saw Keystone on the same machines. Raises
    EnvironmentUnusable if no run of a scenario is usable.
    """
    usable = {name: list(_usable(name, runs)) for name in scenarios}
    every = (run for found in usable.values() for run, _ in found)
    first = max(every, key=lambda run: run.started_at, default=None)
    return tuple(_demand(name, usable[name], first) for name in scenarios)


def settings_that_differ(found: Sequence[Demand]) -> tuple[SettingDifference, ...]:
    """Return the settings in which the runs of the scenarios differ."""
    return differences([_settings(one.environment) for one in found], _NOT_A_COST)


def _settings(environment: Environment) -> list[tuple[str, str]]:
    """Return what a run was measured with, without its tags."""
    return [pair for pair in environment.settings if not pair[0].startswith(TAG)]


def usable_trials(measurement: Measurement) -> tuple[Trial, ...]:
    """Return the trials that show the cost of an iteration under load."""
    found = [trial for trial in measurement.trials if _is_usable(trial)]
    # If a machine could not be read, its share of an iteration's CPU is missing.
    hosts = _keystone_hosts(found)
    found = [trial for trial in found if _keystone_hosts([trial]) == hosts]
    most = max((trial.stats.throughput_rps for trial in found), default=0.0)
    return tuple(t for t in found if t.stats.throughput_rps >= LEAST_SHARE * most)


def _keystone_hosts(trials: Iterable[Trial]) -> frozenset[str]:
    """Return the hosts on which Keystone's processes were seen in any of the trials."""
    return frozenset(
        host_of(use)
        for trial in trials
        if trial.resources
        for use in trial.resources.observation.uses
        if use.kind is BottleneckKind.CPU and use.role == Role.KEYSTONE.value
    )


def _is_usable(trial: Trial) -> bool:
    stats = trial.stats
    return (
        trial.is_valid
        and not trial.had_fault
        and trial.resources is not None
        and stats.load_s >= LEAST_S
        and stats.ok >= LEAST_ITERATIONS
        and stats.failed <= MOST_FAILED * stats.total.count
        and bool(_cpu(trial.resources.observation, Role.KEYSTONE))
    )


def _usable(name: str, runs: Sequence[Run]) -> Iterator[tuple[Run, Measurement]]:
    for run in runs:
        for measurement in run.measurements:
            # A broken service is not what a load is sized for.
            is_wanted = (
                measurement.scenario == name
                and not measurement.requests_as_rally
                and not measurement.held_fault
            )
            if is_wanted and usable_trials(measurement):
                yield run, measurement


def _demand(name: str, found: list[tuple[Run, Measurement]], like: Run | None) -> Demand:
    if like is None or not found:
        raise EnvironmentUnusable(
            f"no stored run says what {name} costs: measure it with its resources on a lab "
            "deployment (loadstone capacity --lab NAME --scenario ...), or on a cloud with "
            "--monitor ssh=HOST for each of its controllers, or name runs with --run"
        )
    of_same = [pair for pair in found if not _differ(pair[0], like)]
    if not of_same:
        of_same = [pair for pair in found if not _differ(pair[0], found[0][0])]
    newest, measurement = of_same[0]
    hosts = _keystone_hosts(usable_trials(measurement))
    same_hosts = (pair for pair in of_same if _keystone_hosts(usable_trials(pair[1])) == hosts)
    newest_runs = list(islice(same_hosts, MOST_RUNS))
    seen = [
        (run.run_id, trial.resources.observation)
        for run, one in newest_runs
        for trial in usable_trials(one)
        if trial.resources is not None
    ]
    light = [_fastest(one) for _, one in newest_runs]
    return Demand(
        scenario=name,
        title=measurement.title,
        cpu_s=_cpu_s(seen, (*ROLES, Role.GENERATOR)),
        machines=tuple(_machines(seen, dict(newest.environment.settings))),
        service_s=DemandEstimate.of_logs([log(one.stats.service.mean_s) for one, _ in light]),
        is_light=all(is_light for _, is_light in light),
        statements=_figure(seen, "statements_per_request"),
        cache_gets=_figure(seen, "cache_gets_per_request"),
        connection_s=_connection_s(seen),
        trials=len(seen),
        runs=tuple(dict.fromkeys(run_id for run_id, _ in seen)),
        environment=newest.environment,
    )


def _differ(a: Run, b: Run) -> bool:
    return bool(differences([_settings(one.environment) for one in (a, b)], _NOT_A_COST))


def _machines(seen: Seen, facts: Mapping[str, str]) -> Iterator[MachineDemand]:
    """Yield the machines on which the service used CPU."""
    uses = [use for _, one in seen for use in one.uses if use.kind is BottleneckKind.CPU]
    for host in sorted({host_of(use) for use in uses if use.role in ROLES and use.demand_s}):
        if host:
            machines = [one for one in uses if one.role == MACHINE and host_of(one) == host]
            counts = {int(one.capacity) for one in machines}
            cores = counts.pop() if len(counts) == 1 else None
            yield MachineDemand(host, host, cores, None, _cpu_s(seen, ROLES, host))
        else:
            yield _machine_of_facts(seen, facts)


def _machine_of_facts(seen: Seen, facts: Mapping[str, str]) -> MachineDemand:
    """Return the machine that the facts of a run describe."""
    is_lab_host = f"{OF_LAB_HOST}cores" in facts
    of = OF_LAB_HOST if is_lab_host else ""
    has_generator = not is_lab_host and FLEET not in facts
    cores = facts.get(f"{of}cores", "")
    return MachineDemand(
        host="",
        name="the lab host" if is_lab_host else "the machine that ran Loadstone",
        cores=int(cores) if cores.isdigit() else None,
        processor=facts.get(f"{of}processor"),
        cpu_s=_cpu_s(seen, (*ROLES, Role.GENERATOR) if has_generator else ROLES, ""),
    )


def _cpu_s(
    seen: Seen, roles: Iterable[Role], host: str | None = None
) -> tuple[tuple[Role, DemandEstimate], ...]:
    """Return the CPU seconds of an iteration by role, on one machine or (None) on all."""
    return tuple(
        (role, estimate) for role in roles if (estimate := _estimate(seen, role, host)) is not None
    )


def _estimate(seen: Seen, role: Role, host: str | None) -> DemandEstimate | None:
    """Return the mean over trials, or over runs if there are enough."""
    values = [(run, cost) for run, one in seen if (cost := _cpu(one, role, host))]
    if not values:
        return None
    by_run = [
        fmean(log(cost) for _, cost in costs)
        for _, costs in groupby(values, key=lambda one: one[0])
    ]
    logs = by_run if len(by_run) >= RUNS_FOR_SCATTER else [log(cost) for _, cost in values]
    return DemandEstimate.of_logs(logs)


def _cpu(observation: Observation, role: Role, host: str | None = None) -> float:
    """Return the CPU seconds of an iteration in one role, on one machine or (None) on all."""
    uses = (
        one
        for one in observation.uses
        if one.kind is BottleneckKind.CPU
        and one.role == role.value
        and (host is None or host_of(one) == host)
    )
    return sum(one.demand_s or 0.0 for one in uses)


def _fastest(measurement: Measurement) -> tuple[Trial, bool]:
    """Return the trial with the lowest mean service time, and whether its load was light.

    This is a trial without queueing if there is one, as the first step of a search's ramp.
    """
    ended = [t for t in measurement.trials if t.is_valid and t.stats.ok >= LEAST_ITERATIONS]
    fastest = min(ended, key=lambda trial: trial.stats.service.mean_s)
    most = max(trial.stats.throughput_rps for trial in ended)
    return fastest, fastest.stats.throughput_rps <= LIGHT_SHARE * most


def _figure(seen: Seen, name: str) -> float | None:
    found = [value for _, one in seen if (value := one.figure(name)) is not None]
    return fmean(found) if found else None


def _connection_s(seen: Seen) -> float | None:
    uses = (one.use(BottleneckKind.CONNECTIONS, Role.KEYSTONE) for _, one in seen)
    found = [use.demand_s for use in uses if use is not None and use.demand_s is not None]
    return fmean(found) if found else None
