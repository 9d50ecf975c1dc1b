"""Runs a call plan on this machine: CallPlan in, Called out."""

import time
from dataclasses import replace

import numpy as np

from loadstone.engine.callables.crew import Cost, Crew, cores
from loadstone.engine.callables.model import MOST_WORKERS, Called, CallPlan
from loadstone.engine.callables.pacer import SECOND_NS, pacer
from loadstone.engine.callables.shift import SPARE, Shift
from loadstone.engine.callables.signals import Interrupts
from loadstone.engine.ending import Look
from loadstone.engine.health import Health
from loadstone.engine.limits import judged
from loadstone.engine.local import TICK_S, Measured
from loadstone.engine.progress import Progress, Watch
from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.plan.load import ClosedLoad, Load

START_S = 120.0  # for all workers to be ready


def run(plan: CallPlan, watch: Watch | None = None, look: Look | None = None) -> Called:
    """Call the function when the plan says so, until its end, `watch` or Ctrl-C stops it.

    Before each `watch`, `look` is given the rows of the iterations that have ended since.

    Ctrl-C once stops the schedule and lets iterations end (`drain_s`), twice gives them up. No
    worker outlives this call, nor this process.
    """
    require_room(str(plan.function), plan.load, plan.max_in_flight)
    crew = Crew(plan)
    with Interrupts() as interrupts:
        try:
            shift = Shift(plan, crew, pacer(plan.load), time.monotonic_ns())
            if not _gather(shift, interrupts):
                return _called(shift, Cost(), is_interrupted=True)
            return _drive(shift, _Looker(shift, watch, look), interrupts)
        finally:
            crew.end()


def require_room(what: str, load: Load, max_in_flight: int | None) -> None:
    """Refuse what asks for more at a time than there may be workers."""
    wanted = load.workers if isinstance(load, ClosedLoad) else max_in_flight
    if wanted is not None and wanted > MOST_WORKERS:
        raise InvalidInput(
            f"{what}: {wanted} at a time are asked for, and each takes a process: "
            f"at most {MOST_WORKERS}"
        )


def _gather(shift: Shift, interrupts: Interrupts) -> bool:
    """Start the workers that the load begins with; False: it was interrupted."""
    count = shift.most if isinstance(shift.plan.load, ClosedLoad) else min(shift.most, 2 * SPARE)
    shift.crew.start(count)
    while not all(member.is_ready for member in shift.crew.members):
        if interrupts.count:
            return False
        if shift.now_ns() > START_S * SECOND_NS:
            raise EnvironmentUnusable(
                f"{shift.plan.function}: its workers were not ready after {START_S:g} s"
            )
        for member, message in shift.crew.heard(TICK_S):
            shift.heard(member, message)
    shift.start_ns = time.monotonic_ns()
    return True


def _drive(shift: Shift, looker: "_Looker", interrupts: Interrupts) -> Called:
    before_s, spent = time.thread_time(), shift.crew.cost()
    give_up_ns: int | None = None
    while True:
        shift.expire()
        shift.take_up()
        if not looker.goes_on() or interrupts.count:
            shift.stop()
        if shift.is_over():
            if not shift.at_work():
                break
            drain_ns = round(shift.plan.drain_s * SECOND_NS)
            give_up_ns = give_up_ns or shift.now_ns() + drain_ns
            if interrupts.count > 1 or shift.now_ns() >= give_up_ns:
                shift.abandon()
                break
        for member, message in shift.crew.heard(_nap_s(shift, give_up_ns)):
            shift.heard(member, message)
    looker.goes_on()
    here = Cost(time.thread_time() - before_s)
    return _called(
        shift, shift.crew.cost().plus(spent, -1).plus(here), is_interrupted=interrupts.count > 0
    )


def _nap_s(shift: Shift, give_up_ns: int | None) -> float:
    marks = [mark for mark in (shift.wake_ns(), give_up_ns) if mark is not None]
    until_ns = min(marks, default=None)
    if until_ns is None:
        return TICK_S
    return min((until_ns - shift.now_ns()) / SECOND_NS, TICK_S)


class _Looker:
    """Shows the watch where the run stands, a few times a second."""

    def __init__(self, shift: Shift, watch: Watch | None, look: Look | None) -> None:
        self._shift, self._watch, self._look = shift, watch, look
        self._next_ns = self._ended = self._latency_ns = self._shown = 0
        self._begun: list[int] = []

    def goes_on(self) -> bool:
        """Say whether the watch lets the run go on."""
        shift, now_ns = self._shift, self._shift.now_ns()
        if self._watch is None or now_ns < self._next_ns or shift.is_stopped:
            return True
        self._next_ns = now_ns + round(TICK_S * SECOND_NS)
        self._show()
        ended = shift.ok + shift.failed
        fresh, latency_ns = ended - self._ended, shift.latency_sum_ns - self._latency_ns
        self._ended, self._latency_ns = ended, shift.latency_sum_ns
        return self._watch(
            Progress(
                elapsed_s=now_ns / SECOND_NS,
                due=shift.due,
                sent=len(shift.lags_ns),
                ok=shift.ok,
                failed=shift.failed,
                latency_ms=latency_ns / fresh / 1e6 if fresh else 0.0,
            )
        )

    def _show(self) -> None:
        if self._look is None:
            return
        record = self._shift.record
        rows, self._begun = record.ended_since(self._shown, self._begun)
        self._shown = len(record)
        self._look(rows, record.actions())


def _called(shift: Shift, spent: Cost, *, is_interrupted: bool) -> Called:
    record = shift.record
    return Called(
        measured=Measured(record.samples(), _health(shift, spent), is_interrupted),
        actions=record.actions(),
        failures=record.failures(),
        outputs=tuple(record.outputs[number] for number in sorted(record.outputs)),
        outputs_dropped=record.outputs_dropped,
    )


def _health(shift: Shift, spent: Cost) -> Health:
    lags_ms = np.array(shift.lags_ns or [0], dtype=np.int64) / 1e6
    p50, p99 = np.percentile(lags_ms, [50, 99])
    health = Health(
        lag_p50_ms=float(p50),
        lag_p99_ms=float(p99),
        lag_max_ms=float(lags_ms.max()),
        cpu_s=spent.cpu_s,
        wall_s=shift.now_ns() / SECOND_NS,
        runqueue_wait_s=spent.runqueue_wait_s,
        # Of the workers and the process that directs them, as many as can run at once.
        threads=min(cores(), shift.crew.slots + 1),
    )
    health = judged(health, shift.plan.load)
    if shift.found_none and health.limits:
        words = (
            f"{shift.found_none} iterations waited for a free worker process "
            f"(at most {MOST_WORKERS} at a time); ask for fewer per second"
        )
        return replace(health, limits=(*health.limits, words))
    return health
