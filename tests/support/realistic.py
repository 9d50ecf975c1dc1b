"""A result as a Keystone on two cores gives it, made from a simulated service of two workers.

N is about 7.2/s for token issue and 46/s for validation. One trial is invalid: the generator
starved.
"""

from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from loadstone.analysis.goal import Goal
from loadstone.analysis.judge import TrialSpec
from loadstone.analysis.model import Trial
from loadstone.analysis.trial import assess
from loadstone.engine.health import Health
from loadstone.engine.samples import Outcome, Samples
from loadstone.monitor.usage import Usage
from loadstone.result.model import Environment, Measurement, Run
from loadstone.search.model import Capacity

CORES = 2


LATE = ("sends were late: 99 % within 58 ms, more than 5 ms",)


@dataclass(frozen=True)
class Case:
    """What one trial offers, and how late the generator was."""

    rate_rps: float | None
    seconds: float
    purpose: str
    closed_workers: int = 0
    lag_ms: float = 0.08
    limits: tuple[str, ...] = ()


ISSUE = (
    Case(None, 10.0, "ramp: 4 clients", closed_workers=4),
    Case(None, 30.0, "meter: shallow backlog", closed_workers=8),
    Case(6.9, 60.0, "confirm below N"),
    Case(7.1, 20.0, "confirm below N", lag_ms=58.0, limits=LATE),
    Case(8.4, 30.0, "confirm above N"),
)
VALIDATE = (
    Case(None, 10.0, "ramp: 4 clients", closed_workers=4),
    Case(44.6, 40.0, "confirm below N"),
    Case(50.0, 20.0, "confirm above N"),
)


@cache
def keystone() -> tuple[Run, dict[tuple[int, int], Samples]]:
    """Give the result, and the samples by (finding index, trial number)."""
    samples: dict[tuple[int, int], Samples] = {}
    issue = _finding(
        0, ISSUE, 0.278, samples, ("Authenticate.keystone", "token issue", "POST /v3/auth/tokens")
    )
    validate = _finding(
        1,
        VALIDATE,
        0.0432,
        samples,
        ("Authenticate.validate_token", "token validation", "GET /v3/auth/tokens"),
    )
    issue = replace(
        issue,
        capacity=Capacity(7.19, 7.11, 7.27, 0.95, ("trials on both sides confirm it",)),
        notes=("Users: 20 in 2 projects.",),
        parameters=(("users", "20"), ("budget", "120 s"), ("method", "meter")),
    )
    validate = replace(validate, capacity=Capacity(46.3, 45.9, 46.7, 0.95, ()))
    result = Run(
        run_id="20261121-0931-ab12cd",
        kind="demo",
        status="finished",
        started_at="2026-11-21T09:31:07Z",
        ended_at="2026-11-21T09:36:02Z",
        measurements=(issue, validate),
        environment=Environment(
            machine=(
                ("cores", "2"),
                ("memory", "7.8 GiB"),
                ("kernel", "Linux 6.1.0-41-amd64"),
                ("python", "3.11.7"),
                ("loadstone", "0.1.0"),
            ),
            target=(
                ("url", "http://127.0.0.1:35357/v3"),
                ("release", "Keystone 30.0.0"),
                ("web server", "uwsgi"),
                ("workers", "2"),
                ("database", "SQLite"),
                ("token provider", "fernet"),
                ("cache", "enabled, backend null"),
                ("hash", "bcrypt, cost 12"),
            ),
        ),
        command="loadstone demo",
    )
    return result, samples


def served(case: Case, mean_s: float, seed: int) -> Samples:
    """Simulate two workers that serve in the order of arrival."""
    random = np.random.default_rng(seed)
    if case.closed_workers:
        due, done = _closed(case, mean_s, random)
    else:
        assert case.rate_rps is not None
        due = np.arange(0, case.seconds, 1 / case.rate_rps)
        done = np.empty_like(due)
        free = [0.0] * CORES
        for i, start in enumerate(due):
            worker = int(np.argmin(free))
            done[i] = max(start, free[worker]) + mean_s * random.lognormal(0, 0.06)
            free[worker] = done[i]
    order = np.argsort(done)
    due_ns = (due[order] * 1e9).astype(np.int64)
    done_ns = (done[order] * 1e9).astype(np.int64)
    n = len(due)
    return Samples(
        due_ns=due_ns,
        sent_ns=due_ns + int(case.lag_ms * 1e6),
        done_ns=done_ns,
        first_byte_us=((done_ns - due_ns) // 1000).astype(np.uint32),
        iteration=order.astype(np.uint32),
        connection=(order % 16).astype(np.uint32),
        status=np.full(n, 201, np.uint16),
        outcome=np.full(n, Outcome.OK, np.uint8),
        action=np.zeros(n, np.uint8),
        retried=np.zeros(n, np.uint8),
        generator=np.zeros(n, np.uint16),
    )


def _closed(case: Case, mean_s: float, random: np.random.Generator) -> tuple:
    due, done = [], []
    ready = [0.0] * case.closed_workers
    free = [0.0] * CORES
    while min(ready) < case.seconds:
        client = int(np.argmin(ready))
        worker = int(np.argmin(free))
        due.append(ready[client])
        end = max(ready[client], free[worker]) + mean_s * random.lognormal(0, 0.06)
        done.append(end)
        ready[client] = free[worker] = end
    return np.array(due), np.array(done)


def trial_of(number: int, case: Case, samples: Samples, mean_s: float) -> Trial:
    """Sum up and judge simulated samples as a search does."""
    span_s = float(samples.done_ns.max() / 1e9)
    lag_ms = case.lag_ms
    health = Health(lag_ms / 4, lag_ms, lag_ms * 2, 0.4, span_s, 0.02, 1, limits=case.limits)
    offer = TrialSpec(number, case.purpose, case.rate_rps, case.seconds)
    service_cpu_s = len(samples) * mean_s * 0.9
    usage = Usage(
        wall_s=span_s,
        cores=CORES,
        machine_busy=min(0.99, service_cpu_s / span_s / CORES + 0.07),
        machine_steal=0.0,
        service_cpu_s=service_cpu_s,
        generator_cpu_s=0.4,
    )
    return replace(assess(offer, samples, health, Goal()), usage=usage)


def _finding(
    index: int,
    cases: tuple[Case, ...],
    mean_s: float,
    samples: dict[tuple[int, int], Samples],
    names: tuple[str, str, str],
) -> Measurement:
    trials = []
    for number, case in enumerate(cases, 1):
        samples[index, number] = served(case, mean_s, seed=number)
        trials.append(trial_of(number, case, samples[index, number], mean_s))
    load_s = sum(trial.stats.load_s for trial in trials)
    return Measurement(*names, status="finished", trials=tuple(trials), wall_s=load_s * 1.1)
