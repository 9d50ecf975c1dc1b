"""A task's way from its file's workloads to a result in the store."""

import json
import time
from dataclasses import dataclass, field, replace

from loadstone import run
from loadstone.analysis.long_run import look
from loadstone.engine.parquet import SampleFile
from loadstone.engine.progress import Progress
from loadstone.engine.samples import Samples
from loadstone.errors import EnvironmentUnusable, LoadstoneError, MeasurementInvalid
from loadstone.keystone.identity import Unreachable
from loadstone.perform.abort import ABORTED, aborted
from loadstone.perform.hooks import Hooks
from loadstone.perform.live import LiveSla
from loadstone.perform.order import Job, Observer, Order, jobs, stepped
from loadstone.perform.resume import link
from loadstone.perform.work import Loaded, Work, ready
from loadstone.result import Performance, Result
from loadstone.run import Subject
from loadstone.store.store import Store
from loadstone.task.given import config_id
from loadstone.task.sla import Criterion, judge


@dataclass(frozen=True, slots=True)
class Begun:
    """A task that was looked at and stands in the store; nothing was made in the cloud yet."""

    result: Result
    todo: tuple[tuple[Job, Work], ...]


def begin(order: Order, subject: Subject, store: Store, command: str) -> Begun:
    """Look at all workloads; InvalidInput says which cannot be carried out."""
    todo = tuple((job, ready(job)) for job in jobs(order))
    result = replace(run.begun("task", subject, command), title=order.task.title)
    folder = store.begin(result)
    if order.users_of is not None:
        link(folder, store.folder(order.users_of))
    return Begun(result, todo)


def perform(begun: Begun, order: Order, subject: Subject, store: Store, observer: Observer) -> None:
    """Carry the task out; what was measured is in the store also when this raises."""
    result, todo = begun.result, begun.todo
    observer.say(f"run {result.run_id}: {subject.access.identity_url}")
    with run.closing(result, store):
        left_s, index = order.budget_s, 0
        for number, (first, work) in enumerate(todo, 1):
            for job in stepped(order, first, index):
                index += 1
                observer.say(f"{number} of {len(todo)}: {job.words}")
                trip = _Trip(order, subject, store, observer, result.run_id, job, left_s)
                done = trip.perform(work if job.workload is first.workload else ready(job))
                left_s -= done.showing.load_s if done.showing else 0.0
                if trip.is_out_of_budget:
                    raise MeasurementInvalid(
                        f"the load was ended after {order.budget_s:.0f} s, in workload "
                        f"{number} of {len(todo)}; raise --budget, or ask for less"
                    )
                if done.status == "aborted":
                    return
                if order.steps and order.steps.until.is_reached(done.showing):
                    break


@dataclass(slots=True)
class _Trip:
    """One workload's way from its contexts to its verdict."""

    order: Order
    subject: Subject
    store: Store
    observer: Observer
    run_id: str
    job: Job
    left_s: float  # of load that may still be made
    is_out_of_budget: bool = field(default=False, init=False)
    kept: Performance = field(init=False)

    def perform(self, work: Work) -> Performance:
        """Set up, load, judge, clean up; keep what is known as soon as it is."""
        began_s = time.monotonic()
        self._keep(replace(_begun(self.job), requests_as_rally=work.requests_as_rally))
        ended = "interrupted"
        failure = None
        try:
            maker = self.order.users_of or self.run_id
            with work.prepared(self.subject, maker, self.store, self.observer.say):
                ended = self._load(work)
        except LoadstoneError as error:
            ended, failure = "failed", str(error)
            self.observer.say(f"  this workload failed: {failure}")
            # As in Rally: what one workload lacks, the next may not need.
            if isinstance(error, Unreachable) or not isinstance(error, EnvironmentUnusable):
                raise
        finally:
            full_s = time.monotonic() - began_s
            self._keep(replace(self.kept, status=ended, failure=failure, full_s=full_s))
        return self.kept

    def _load(self, work: Work) -> str:
        """Load and judge; gives how it ended."""
        file = self.store.samples_path(self.run_id, self.job.index)
        with Hooks(self.job.workload.hooks) as hooks:
            watcher = Watcher(self, self._live(), hooks)
            measured = work.load(self.subject, file, watcher, watcher.sla)
            self._judged(measured, work, watcher)
            if measured.interrupted:
                raise KeyboardInterrupt
            showing = self.kept.showing
            if self.job.workload.hooks and showing is not None:
                count = showing.total.count + showing.cut_off
                self._keep(replace(self.kept, hook_runs=hooks.finished(count, showing.load_s)))
        if why := self.subject.failure():
            raise EnvironmentUnusable(why)
        is_aborted = any(row.criterion == ABORTED for row in self.kept.sla)
        return "aborted" if is_aborted else "finished"

    def _judged(self, measured: Loaded, work: Work, watcher: "Watcher") -> None:
        """Keep the figures and the verdict."""
        samples, actions = measured.samples, work.actions
        rules = self.job.workload.sla
        showing, sums = look(samples, actions, rules)
        sla = judge(rules, sums)
        live = watcher.sla
        if live is not None and (live.is_broken or not all(row.success for row in sla)):
            sla = (*sla, aborted(samples, actions, rules, sla))
        kept = replace(
            self.kept,
            start_s=watcher.start_s,
            showing=replace(showing, failures=work.failures or showing.failures),
            sla=sla,
            health=measured.health,
            actions=actions,
            outputs=work.outputs,
            outputs_dropped=work.outputs_dropped,
        )
        self._keep(kept, samples)

    def _live(self) -> LiveSla | None:
        return LiveSla(self.job.workload.sla) if self.order.aborts_on_sla_failure else None

    def _keep(self, performance: Performance, samples: Samples | SampleFile | None = None) -> None:
        if performance.failure is not None:
            # Rally's own row for what kept a workload from being carried out.
            row = Criterion("something_went_wrong", False, performance.failure)
            performance = replace(performance, sla=(*performance.sla, row))
        index = self.job.index
        self.kept = self.store.keep_performance(self.run_id, index, performance, samples)


@dataclass(slots=True)
class Watcher:
    """Looks a few times a second whether the load is to go on."""

    trip: _Trip
    sla: LiveSla | None  # where it ends the load
    hooks: Hooks
    start_s: float = field(default_factory=time.time)  # Unix time of the load's first instant
    _has_looked: bool = False

    def __call__(self, progress: Progress) -> bool:
        """Show the progress; False stops the load."""
        trip = self.trip
        # Before its first instant a load may have waited for its workers; a look that comes late
        # would put that instant later than it was.
        began_s = time.time() - progress.elapsed_s
        self.start_s = min(self.start_s, began_s) if self._has_looked else began_s
        self._has_looked = True
        self.hooks.look(progress)
        trip.observer.progress(trip.job.workload.scenario.name, progress)
        trip.is_out_of_budget = trip.is_out_of_budget or progress.elapsed_s > trip.left_s
        is_broken = self.sla is not None and self.sla.is_broken
        is_over = trip.is_out_of_budget or is_broken
        return not is_over and trip.subject.failure() is None


def _begun(job: Job) -> Performance:
    workload = job.workload
    return Performance(
        subtask=job.subtask,
        scenario=workload.scenario.name,
        description=workload.description,
        given=json.dumps(workload.given),
        config_id=config_id(workload.given),
        status="running",
        is_step=job.is_step,
        reduced=workload.reduced,
    )
