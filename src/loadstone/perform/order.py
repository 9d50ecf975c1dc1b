"""What of a task is to be carried out, and how."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Protocol

from loadstone.engine.progress import Progress
from loadstone.errors import InvalidInput
from loadstone.perform.steps import MOST_STEPS, Steps
from loadstone.plan.load import OpenLoop, peak_rps
from loadstone.plan.model import Placement
from loadstone.plan.runner import Pacing, pacing
from loadstone.task.model import Rps, Runner, Task, Workload


@dataclass(frozen=True, slots=True)
class Order:
    """A checked task, and within which limits it may load."""

    task: Task
    aborts_on_sla_failure: bool = False
    max_rate_rps: float = 5000.0  # of open loops; a closed one is as fast as the service
    budget_s: float = 3000.0  # of load, over all workloads
    paces_as_rally: bool = False  # keep a rate as Rally does, bursts included
    requests_as_rally: bool = False  # send all that Rally sends for an iteration
    placement: Placement = field(default_factory=Placement)
    users_of: str | None = None  # the interrupted run whose users are gone on with
    steps: Steps | None = None  # each workload again and again, at rising load


class Observer(Protocol):
    """Whoever shows what goes on."""

    def say(self, line: str) -> None:
        """Show one line that stays."""

    def progress(self, purpose: str, progress: Progress) -> None:
        """Show where a stretch of load stands."""


@dataclass(frozen=True, slots=True)
class Job:
    """One workload, ready to be loaded."""

    index: int  # in the task, from 0
    subtask: str
    workload: Workload
    pacing: Pacing
    requests_as_rally: bool
    placement: Placement
    is_step: bool

    @property
    def words(self) -> str:
        """Say what it does, and how hard."""
        runner = json.dumps(self.workload.given["runner"])[1:-1].replace('"', "")
        return f"{self.workload.scenario.name}, {runner}"


def jobs(order: Order) -> tuple[Job, ...]:
    """Give the task's workloads in order; InvalidInput names one that cannot be loaded."""
    return tuple(_jobs(order))


def _jobs(order: Order) -> Iterator[Job]:
    pairs = ((sub.title, one) for sub in order.task.subtasks for one in sub.workloads)
    for index, (title, workload) in enumerate(pairs):
        if rate := _asks_too_much(order, workload):
            raise InvalidInput(
                f"{workload.file}:{workload.line}: {rate:g} iterations a second are more than the "
                f"{order.max_rate_rps:g} that are allowed; raise --max-rate"
            )
        if order.steps:
            order.steps.at(workload, 0)
        yield job(order, index, title, workload)


def stepped(order: Order, first: Job, index: int) -> Iterator[Job]:
    """Give the job, and where steps are ordered its further steps; the caller says when to end."""
    yield replace(first, index=index)
    for number in range(1, MOST_STEPS if order.steps else 0):
        workload = order.steps.at(first.workload, number) if order.steps else None
        if workload is None or _asks_too_much(order, workload):
            return
        yield job(order, index + number, first.subtask, workload)


def job(order: Order, index: int, title: str, workload: Workload) -> Job:
    """Give a workload ready to be loaded."""
    found = pacing(workload.runner, _processes(order, workload.runner))
    placed = (order.requests_as_rally, order.placement, order.steps is not None)
    return Job(index, title, workload, found, *placed)


def _asks_too_much(order: Order, workload: Workload) -> float | None:
    """Give the rate that a workload asks for where it is more than is allowed."""
    load = pacing(workload.runner, _processes(order, workload.runner)).load
    rate = peak_rps(load) if isinstance(load, OpenLoop) else 0.0
    return rate if rate > order.max_rate_rps else None


def _processes(order: Order, runner: Runner) -> int | None:
    """Give in how many processes Rally would keep the rate here; None: it is kept as asked."""
    if not order.paces_as_rally or not isinstance(runner, Rps):
        return None
    return min(os.cpu_count() or 1, runner.times, runner.max_concurrency or runner.times)
