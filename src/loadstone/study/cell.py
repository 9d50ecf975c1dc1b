"""One turn on the lab: a deployment of its own is started, measured, and removed."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Protocol

from loadstone import run as run_
from loadstone.keystone import deployment
from loadstone.keystone.deploy import settings
from loadstone.keystone.deployment import Deployment
from loadstone.perform.flow import begin, perform
from loadstone.perform.order import Observer as TaskObserver
from loadstone.perform.order import Order as TaskOrder
from loadstone.result import Result
from loadstone.run import Order, Subject, run
from loadstone.store.store import Store
from loadstone.study.order import Turn


class Observer(run_.Observer, TaskObserver, Protocol):
    """Whoever shows what goes on in either."""


@dataclass(frozen=True, slots=True)
class Bench:
    """Where the turns of a study are measured."""

    study_id: str
    order: Callable[[Turn], Order | TaskOrder]
    connect: Callable[[Deployment], AbstractContextManager[Subject]]
    reference: Callable[[], AbstractContextManager[Subject]]
    store: Store
    observer: Observer
    command: str

    def measure(self, turn: Turn) -> Result:
        """Measure one cell on a new deployment, which is gone afterwards."""
        if turn.cell.is_reference:
            with self.reference() as subject:
                return self._carry_out(turn, subject)
        self._clear()  # what a kill left behind
        try:
            chosen = settings.read(turn.cell.settings)
            started = deployment.up(self._name, chosen, self.observer.say, owned=True)
            with self.connect(started) as subject:
                return self._carry_out(turn, subject)
        finally:
            self._clear()

    def _carry_out(self, turn: Turn, subject: Subject) -> Result:
        order = self.order(turn)
        if isinstance(order, TaskOrder):
            begun = begin(order, subject, self.store, self.command)
            perform(begun, order, subject, self.store, self.observer)
            return self.store.get(begun.result.run_id)
        about = (("study", f"{self.study_id}, turn {turn.number}"), ("cell", str(turn.cell)))
        jobs = tuple(replace(job, parameters=about + job.parameters) for job in order.jobs)
        wanted = replace(order, jobs=jobs)
        return run(wanted, subject, self.store, self.observer, self.command)

    @property
    def _name(self) -> str:
        return f"study-{self.study_id}"

    def _clear(self) -> None:
        if any(one.name == self._name for one in deployment.every()):
            deployment.down(self._name, purge=True)
