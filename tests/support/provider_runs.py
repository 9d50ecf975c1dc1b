"""The made results, as if an OpenID provider had been measured."""

from dataclasses import replace

import made_runs

from loadstone.analysis.model import Trial
from loadstone.compare.section import Compared
from loadstone.diagnosis.bottleneck import Case, name_bottleneck
from loadstone.diagnosis.demand import (
    BottleneckKind,
    Observation,
    ResourceUse,
    Setup,
    cpu_name,
    worker_threads,
)
from loadstone.diagnosis.resources import Resources, Timeline
from loadstone.diagnosis.service import MeasuredService
from loadstone.monitor.roles import Role
from loadstone.result.model import Measurement, Run

TARGET = (("url", "http://127.0.0.1:8080/realms/load"), ("service", "OpenID Connect"))
ACTION = "oidc.login"


def runs(service: MeasuredService) -> dict[str, Run]:
    """Return the runs by kind."""
    return {kind: _of(run, service) for kind, run in made_runs.runs().items() if kind != "failed"}


def compared() -> Compared:
    """A comparison of two providers."""
    made = made_runs.compared()
    [(_, rows)] = made.metrics
    return replace(made, settings=(), metrics=(("login with code and PKCE", rows),))


def resources(service: MeasuredService) -> Resources:
    """Return what was watched of a provider whose workers are all busy."""
    setup = Setup(workers=2, threads=1, service=service)
    uses = (
        _use(cpu_name(Role.KEYSTONE, service), BottleneckKind.CPU, "cores", 1.96),
        _use(worker_threads(service), BottleneckKind.WORKERS, "threads", 2.0),
        ResourceUse("the machine's CPU", BottleneckKind.CPU, "machine", 2.0, 2, "cores", 0.28),
    )
    seen = Observation(30.0, 216, uses, (("worker_cpu", 0.98), ("workers", 2.0)), service)
    verdict = name_bottleneck(Case(seen, setup))
    timelines = tuple(Timeline(one.name, ((0.5, 0.9), (1.5, 1.0))) for one in uses)
    return Resources(seen, verdict.bottleneck, verdict.findings, timelines)


def _use(name: str, kind: BottleneckKind, unit: str, busy: float) -> ResourceUse:
    return ResourceUse(name, kind, Role.KEYSTONE, busy, 2.0, unit, 0.272)


def _of(run: Run, service: MeasuredService) -> Run:
    environment = replace(run.environment, target=TARGET, audit=(), facts=())
    measurements = tuple(_measurement(one, service) for one in run.measurements)
    return replace(run, environment=environment, measurements=measurements, command="loadstone")


def _measurement(one: Measurement, service: MeasuredService) -> Measurement:
    return replace(
        one,
        scenario="oidc-login",
        title="login with code and PKCE",
        request="GET /auth, POST /login, POST /token",
        trials=tuple(_trial(trial, service) for trial in one.trials),
    )


def _trial(trial: Trial, service: MeasuredService) -> Trial:
    stats = replace(
        trial.stats, actions=tuple(replace(row, name=ACTION) for row in trial.stats.actions)
    )
    actions = tuple(ACTION for _ in trial.actions)
    return replace(trial, stats=stats, actions=actions, resources=resources(service))
