"""Resource usage of a trial."""

from collections.abc import Iterator
from dataclasses import dataclass

from loadstone.diagnosis.bottleneck import Bottleneck, Case, name_bottleneck
from loadstone.diagnosis.demand import MACHINE, Observation, ResourceUse, Setup, observe
from loadstone.diagnosis.finding import Finding
from loadstone.monitor.metrics import COUNTER, Metrics
from loadstone.monitor.roles import Role
from loadstone.monitor.sampler import Monitor

MOST_TIMELINES = 6
MOST_POINTS = 40
MOST_NAMED = 3  # other machines without rates; more are counted
POINT_S = 1.0  # between two points at least; sources are read once a second


@dataclass(frozen=True, slots=True)
class Timeline:
    """Utilisation of a resource over time."""

    name: str
    points: tuple[tuple[float, float], ...]  # seconds since the load's start, share of the capacity


@dataclass(frozen=True, slots=True)
class Resources:
    """Resource usage in one trial, and the bottleneck."""

    observation: Observation
    bottleneck: Bottleneck
    findings: tuple[Finding, ...]
    timelines: tuple[Timeline, ...] = ()
    not_watched: tuple[str, ...] = ()  # sources that could not be read, with the reason
    readings_file: str | None = None  # relative to the run's folder in the store


@dataclass(frozen=True, slots=True)
class Watch:
    """A running monitor of a target, and the known configuration of the target."""

    monitor: Monitor
    setup: Setup

    def busiest(self, over_s: float) -> tuple[ResourceUse, ...]:
        """Return the resources that requests occupied in the last seconds, the busiest first."""
        seen = observe(self.monitor.newest(over_s), 0, self.setup)
        return tuple(filter(_is_of_the_service, seen.uses))

    def resources(
        self,
        metrics: Metrics,
        requests: int,
        between_s: tuple[float, float] | None,
        *,
        is_generator_valid: bool,
        is_overloaded: bool,
    ) -> Resources:
        """Return the resource usage and the bottleneck of a load with so many ended requests.

        `between_s` are Unix times of the part of the readings to evaluate; None: all.
        """
        counted = metrics.between(*between_s) if between_s else metrics
        seen = observe(counted, requests, self.setup)
        verdict = name_bottleneck(Case(seen, self.setup, is_generator_valid, is_overloaded))
        return Resources(
            seen,
            verdict.bottleneck,
            verdict.findings,
            timelines(metrics, seen, self.setup),
            (*(str(one) for one in self.monitor.missing), *without_rates(counted)),
        )


def without_rates(metrics: Metrics) -> Iterator[str]:
    """Say of which other machines no counter was read twice, so that they have no rates."""
    machines: dict[str, bool] = {}
    for source, metric, _ in metrics.names:
        head = source.partition("/")[0]
        kind, _, host = head.partition("@")
        if kind == MACHINE and host:
            is_rate = metric.endswith(COUNTER) and len(metrics.of(source, metric)[1]) > 1
            machines[host] = machines.get(host, False) or is_rate
    hosts = [host for host, has_rates in machines.items() if not has_rates]
    if hosts:
        more = f" and {len(hosts) - MOST_NAMED} more" if len(hosts) > MOST_NAMED else ""
        yield (
            f"how busy {', '.join(hosts[:MOST_NAMED])}{more} was is not known: counters were read "
            "less than twice; watch for longer (a Prometheus has new ones only as often as it "
            "scrapes)"
        )


def timelines(metrics: Metrics, seen: Observation, setup: Setup) -> tuple[Timeline, ...]:
    """Return the utilisation of the busiest resources over time."""
    count = int(min(MOST_POINTS, metrics.duration_s / POINT_S))
    if count < 2:
        return ()
    wanted = [one.name for one in seen.uses if _is_of_the_service(one)]
    points: dict[str, list[tuple[float, float]]] = {name: [] for name in wanted[:MOST_TIMELINES]}
    start_s, step_s = float(metrics.time_s[0]), metrics.duration_s / count
    for number in range(count):
        from_s = start_s + number * step_s
        # One more interval, so that each counter has two readings.
        part = observe(metrics.between(from_s - POINT_S, from_s + step_s), 0, setup)
        for use in part.uses:
            if use.name in points:
                middle_s = (number + 0.5) * step_s
                points[use.name].append((round(middle_s, 2), round(use.utilisation, 4)))
    return tuple(Timeline(name, tuple(found)) for name, found in points.items() if found)


def _is_of_the_service(use: ResourceUse) -> bool:
    """Return whether requests occupy it for a time and it is not the load generator's."""
    return use.is_time_shared and use.role != Role.GENERATOR
