"""The dispatcher records the lag of its workers; no worker process is started."""

import multiprocessing
import selectors
import time
from types import SimpleNamespace
from typing import Any, cast

from loadstone.engine.callables.dispatcher import Dispatcher
from loadstone.engine.callables.model import PAUSE, CallPlan, Function
from loadstone.engine.callables.pacer import SECOND_NS, Limited
from loadstone.engine.callables.workers import Cost, Worker, WorkerPool
from loadstone.engine.outcome import Outcome
from loadstone.plan.load import ClosedLoad

PLAN = CallPlan(Function("a", "scenario"), ClosedLoad(1, iterations=1))


def ready_before_the_load(dispatcher: Dispatcher) -> Worker:
    """Add a worker that became ready a second before the load begins."""
    ours, theirs = multiprocessing.Pipe()
    process = SimpleNamespace(pid=None, theirs=theirs)
    worker = Worker(0, cast("Any", process), ours)
    dispatcher.pool.workers.append(worker)
    dispatcher.start_ns = time.monotonic_ns() - SECOND_NS
    dispatcher.handle(worker, ("ready",))
    return worker


def test_a_late_first_iteration_of_a_closed_loop_counts_as_lag() -> None:
    dispatcher = Dispatcher(PLAN, WorkerPool(PLAN), Limited.of(PLAN), 0)
    worker = ready_before_the_load(dispatcher)
    dispatcher.begin()
    dispatcher.dispatch()
    late_ns = 250_000_000
    dispatcher.handle(worker, ("took", dispatcher.start_ns + late_ns))
    assert dispatcher.lags_ns.tolist() == [late_ns]


def test_a_pause_is_in_no_latency_that_is_counted_during_the_load() -> None:
    dispatcher = Dispatcher(PLAN, WorkerPool(PLAN), Limited.of(PLAN), 0)
    worker = ready_before_the_load(dispatcher)
    dispatcher.begin()
    dispatcher.dispatch()
    took_ns = dispatcher.start_ns + worker.job.arrival.due_ns
    work_ns, pause_ns = 10_000_000, 2_000_000_000
    paused_ns, over_ns = took_ns + work_ns, took_ns + work_ns + pause_ns
    dispatcher.handle(worker, ("took", took_ns))
    dispatcher.handle(worker, ("begin", PAUSE, paused_ns))
    dispatcher.handle(worker, ("end", PAUSE, paused_ns, over_ns, (Outcome.OK, 0, "")))
    dispatcher.handle(worker, ("over", over_ns, (Outcome.OK, 0, "")))
    assert dispatcher.latency_sum_ns == work_ns


def test_a_worker_that_ended_by_itself_takes_no_time_off_the_others() -> None:
    pool = WorkerPool(PLAN)
    ours, theirs = multiprocessing.Pipe()
    ended = SimpleNamespace(pid=None, kill=bool, join=bool, close=bool, exitcode=0, theirs=theirs)
    worker = Worker(0, cast("Any", ended), ours, is_ready=True, began_with=Cost(1.5, 0.5))
    pool.workers.append(worker)
    pool.selector.register(ours, selectors.EVENT_READ, worker)
    assert pool.cost() == Cost()
    assert pool.drop(worker) == 0
    assert pool.cost() == Cost()
