"""Runs a call plan on this machine: CallPlan in, Called out."""

import time
from dataclasses import replace

import numpy as np

from loadstone.engine.callables.dispatcher import MOST_FAILED_STARTS, SPARE, Dispatcher
from loadstone.engine.callables.model import MOST_WORKERS, Called, CallPlan, require_room
from loadstone.engine.callables.pacer import SECOND_NS, Limited
from loadstone.engine.callables.workers import Cost, WorkerPool, cores
from loadstone.engine.health import Health
from loadstone.engine.histogram import Histogram
from loadstone.engine.iteration_buffer import OnSamples
from loadstone.engine.limits import judged
from loadstone.engine.local import TICK_S, LoadResult
from loadstone.engine.progress import OnProgress, Progress
from loadstone.errors import EnvironmentUnusable
from loadstone.plan.load import ClosedLoad
from loadstone.system.interrupts import Interrupts

START_S = 120.0  # for all workers to be ready


def run(
    plan: CallPlan, on_progress: OnProgress | None = None, on_samples: OnSamples | None = None
) -> Called:
    """Run a call plan to its end, or until `on_progress` or Ctrl-C stops it.

    Before each `on_progress`, `on_samples` gets the rows of iterations that have ended since. The
    first Ctrl-C stops the schedule and lets iterations end (`drain_s`), the second cuts them off.
    No worker outlives this call or this process.
    """
    require_room(str(plan.function), plan.load, plan.max_in_flight)
    pool = WorkerPool(plan)
    with Interrupts() as interrupts:
        try:
            dispatcher = Dispatcher(plan, pool, Limited.of(plan), time.monotonic_ns())
            if not _gather(dispatcher, interrupts):
                return _called(dispatcher, Cost(), is_interrupted=True)
            return _drive(
                dispatcher, _ProgressReporter(dispatcher, on_progress, on_samples), interrupts
            )
        finally:
            pool.end()


def _gather(dispatcher: Dispatcher, interrupts: Interrupts) -> bool:
    """Start the initial workers; return False if interrupted."""
    count = (
        dispatcher.most
        if isinstance(dispatcher.plan.load, ClosedLoad)
        else min(dispatcher.most, 2 * SPARE)
    )
    dispatcher.pool.start(count)
    while not all(worker.is_ready for worker in dispatcher.pool.workers):
        if interrupts.count:
            return False
        if dispatcher.now_ns() > START_S * SECOND_NS:
            raise EnvironmentUnusable(
                f"{dispatcher.plan.function}: its workers were not ready after {START_S:g} s"
            )
        for worker, message in dispatcher.pool.messages(TICK_S):
            dispatcher.handle(worker, message)
    dispatcher.begin()
    return True


def _drive(dispatcher: Dispatcher, reporter: "_ProgressReporter", interrupts: Interrupts) -> Called:
    before_s, spent = time.thread_time(), dispatcher.pool.cost()
    give_up_ns: int | None = None
    while True:
        dispatcher.expire()
        dispatcher.dispatch()
        if not reporter.may_continue() or interrupts.count:
            dispatcher.stop()
        if dispatcher.is_over():
            if not dispatcher.busy():
                break
            drain_ns = round(dispatcher.plan.drain_s * SECOND_NS)
            give_up_ns = give_up_ns or dispatcher.now_ns() + drain_ns
            if interrupts.count > 1:
                dispatcher.abandon()
                break
            if dispatcher.now_ns() >= give_up_ns:
                dispatcher.give_up()
                break
        for worker, message in dispatcher.pool.messages(_nap_s(dispatcher, give_up_ns)):
            dispatcher.handle(worker, message)
    reporter.may_continue()
    here = Cost(time.thread_time() - before_s)
    return _called(
        dispatcher,
        dispatcher.pool.cost().plus(spent, -1).plus(here),
        is_interrupted=interrupts.count > 0,
    )


def _nap_s(dispatcher: Dispatcher, give_up_ns: int | None) -> float:
    marks = [mark for mark in (dispatcher.wake_ns(), give_up_ns) if mark is not None]
    until_ns = min(marks, default=None)
    if until_ns is None:
        return TICK_S
    return min((until_ns - dispatcher.now_ns()) / SECOND_NS, TICK_S)


class _ProgressReporter:
    """Calls `on_samples` and `on_progress` several times a second."""

    def __init__(
        self, dispatcher: Dispatcher, on_progress: OnProgress | None, on_samples: OnSamples | None
    ) -> None:
        self._dispatcher, self._on_progress, self._on_samples = dispatcher, on_progress, on_samples
        self._next_ns = self._ended = self._latency_ns = self._shown = 0
        self._begun: list[int] = []

    def may_continue(self) -> bool:
        """Report progress if due; return False if `on_progress` stops the run."""
        dispatcher, now_ns = self._dispatcher, self._dispatcher.now_ns()
        if self._on_progress is None or now_ns < self._next_ns:
            return True
        self._next_ns = now_ns + round(TICK_S * SECOND_NS)
        self._report_samples()
        ended = dispatcher.ok + dispatcher.failed
        fresh, latency_ns = ended - self._ended, dispatcher.latency_sum_ns - self._latency_ns
        self._ended, self._latency_ns = ended, dispatcher.latency_sum_ns
        return self._on_progress(
            Progress(
                elapsed_s=now_ns / SECOND_NS,
                due=dispatcher.due,
                sent=len(dispatcher.lags_ns),
                ok=dispatcher.ok,
                failed=dispatcher.failed,
                latency_ms=latency_ns / fresh / 1e6 if fresh else 0.0,
                cut_off=dispatcher.cut_off,
            )
        )

    def _report_samples(self) -> None:
        if self._on_samples is None:
            return
        recorder = self._dispatcher.recorder
        rows, self._begun = recorder.ended_since(self._shown, self._begun)
        self._shown = len(recorder)
        self._on_samples(rows, recorder.actions())


def _called(dispatcher: Dispatcher, spent: Cost, *, is_interrupted: bool) -> Called:
    recorder = dispatcher.recorder
    return Called(
        measured=LoadResult(recorder.samples(), _health(dispatcher, spent), is_interrupted),
        actions=recorder.actions(),
        failures=recorder.failures(),
        outputs=tuple(recorder.outputs[number] for number in sorted(recorder.outputs)),
        outputs_dropped=recorder.outputs_dropped,
    )


def _health(dispatcher: Dispatcher, spent: Cost) -> Health:
    lags_ms = np.array(dispatcher.lags_ns or [0], dtype=np.int64) / 1e6
    p50, p99 = np.percentile(lags_ms, [50, 99])
    health = Health(
        lag_p50_ms=float(p50),
        lag_p99_ms=float(p99),
        lag_max_ms=float(lags_ms.max()),
        cpu_s=spent.cpu_s,
        wall_s=dispatcher.now_ns() / SECOND_NS,
        runqueue_wait_s=spent.runqueue_wait_s,
        # The workers and this process, as far as they can run in parallel.
        threads=min(cores(), dispatcher.pool.slots + 1),
        throttled=dispatcher.pacer.throttled,
        throttled_s=dispatcher.pacer.throttled_ns / SECOND_NS,
        is_cut_short=dispatcher.is_cut_short,
        lag=Histogram.of(dispatcher.lags_ns),
    )
    health = judged(health, dispatcher.plan.load, dispatcher.plan.max_rate_rps)
    limits = list(health.limits)
    if dispatcher.starved and limits:
        limits.append(
            f"{dispatcher.starved} iterations waited for a free worker process "
            f"(at most {MOST_WORKERS} at a time); ask for fewer per second"
        )
    if dispatcher.ended_by:
        limits.append(
            f"the load ended early: {MOST_FAILED_STARTS} worker processes in a row could not "
            f"start ({dispatcher.ended_by})"
        )
    is_broken_off = bool(dispatcher.ended_by)
    return replace(health, limits=tuple(limits), is_broken_off=is_broken_off)
