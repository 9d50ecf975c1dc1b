"""Keystone requests per boot of a server, from runs on a lab with a compute cloud."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from loadstone.errors import EnvironmentUnusable
from loadstone.monitor.identity_requests import IdentityRequests, RequestKind
from loadstone.result.model import Measurement, Run

BOOTS = "NovaServers.boot_"  # prefix of scenarios that boot one server per iteration
LEAST_BOOTS = 5
_OF_CLOUD = ("middleware cache", "service tokens")  # facts of a lab that change the cost


@dataclass(frozen=True, slots=True)
class BootCost:
    """Keystone requests of one boot, from the iterations of one workload."""

    scenario: str
    run_id: str
    counted: int  # boots
    logins: float
    validations: float
    others: float  # of other kinds
    cloud: tuple[tuple[str, str], ...]  # settings of the compute cloud
    least: float  # requests of a boot in the run's cheapest workload

    @property
    def total(self) -> float:
        """All requests of a boot."""
        return self.logins + self.validations + self.others

    @property
    def requests(self) -> tuple[tuple[str, float], ...]:
        """Scenario of `loadstone capacity` -> requests of one boot; those that occur."""
        every = (("issue", self.logins), ("validate", self.validations))
        return tuple((name, count) for name, count in every if count > 0)


@dataclass(frozen=True, slots=True)
class Boots:
    """A rate of boots with the cost of a boot."""

    rate_rps: float
    cost: BootCost


def is_boot(scenario: str) -> bool:
    """Return whether each iteration of a scenario boots a server."""
    return scenario.startswith(BOOTS)


def boot_cost(runs: Sequence[Run]) -> BootCost:
    """Return the cost of the most expensive boots of the newest run; `runs` are newest first.

    Raises EnvironmentUnusable if no run has counted Keystone requests of boots.
    """
    for run in runs:
        found = sorted(_costs(run), key=lambda pair: pair[1].total_per_iteration)
        if found:
            (_, least), (measurement, most) = found[0], found[-1]
            cost = _cost(run, measurement, most, least.total_per_iteration)
            if cost.requests:
                return cost
    raise EnvironmentUnusable(
        "no stored run says what a boot asks of Keystone: run a task with "
        "NovaServers.boot_and_list_server on a lab (loadstone lab up NAME --with compute=nova; "
        "loadstone study run keystone-per-boot --quick), or name a run with --run"
    )


def _costs(run: Run) -> Iterator[tuple[Measurement, IdentityRequests]]:
    for measurement in run.measurements:
        for trial in measurement.trials if is_boot(measurement.scenario) else ():
            requests = trial.identity
            # The number of requests of a boot does not depend on whether the generator was late.
            if requests is None or requests.iterations < LEAST_BOOTS:
                continue
            if trial.stats.failed == 0:
                yield measurement, requests


def _cost(run: Run, measurement: Measurement, found: IdentityRequests, least: float) -> BootCost:
    logins = found.per_iteration(RequestKind.LOGIN)
    validations = found.per_iteration(RequestKind.VALIDATION)
    facts = dict(run.environment.target)
    return BootCost(
        scenario=measurement.scenario,
        run_id=run.run_id,
        counted=found.iterations,
        logins=logins,
        validations=validations,
        others=found.total_per_iteration - logins - validations,
        cloud=tuple((name, facts[name]) for name in _OF_CLOUD if name in facts),
        least=least,
    )
