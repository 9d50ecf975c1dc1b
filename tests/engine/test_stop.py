import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from loopback import GET, OK, Behaviour, Connection, Serve, answering

from loadstone.engine.local import run
from loadstone.engine.progress import Progress
from loadstone.engine.samples import Outcome
from loadstone.plan.load import ClosedLoad, OpenLoad
from loadstone.plan.model import Limits
from loadstone.plan.script import Pause


def silent(connection: Connection) -> None:
    """Read requests and never answer."""
    while connection.request() is not None:
        pass


def answering_after(released: threading.Event) -> Behaviour:
    def behave(connection: Connection) -> None:
        while connection.request() is not None:
            released.wait(30)
            connection.send(OK)

    return behave


def test_the_watch_sees_counts_and_stops_the_run(serve: Serve) -> None:
    seen: list[Progress] = []

    def watch(progress: Progress) -> bool:
        seen.append(progress)
        return progress.ok < 50

    measured = run(serve(answering(OK)).plan(OpenLoad(200, 3600.0)), watch)
    assert not measured.interrupted
    assert set(measured.samples.outcome) == {Outcome.OK}
    assert 50 <= len(measured.samples) < 20_000
    assert [progress.due for progress in seen] == sorted(progress.due for progress in seen)
    assert seen[-1].latency_ms > 0
    assert seen[-1].sent >= seen[-1].ok >= 50


def test_what_waits_when_the_run_stops_is_not_sent_and_what_is_under_way_ends(
    serve: Serve,
) -> None:
    released = threading.Event()

    def watch(progress: Progress) -> bool:
        if progress.due < 20:
            return True
        released.set()
        return False

    limits = Limits(max_connections=2, drain_s=30.0)
    plan = serve(answering_after(released)).plan(OpenLoad(200, 60.0), limits=limits)
    samples = run(plan, watch).samples
    counts = Counter(Outcome(code) for code in samples.outcome)
    assert counts.pop(Outcome.OK) >= 2
    assert set(counts) <= {Outcome.NOT_SENT}
    unsent = samples.outcome == Outcome.NOT_SENT
    assert (samples.sent_ns[unsent] == -1).all()
    assert sorted(samples.iteration) == list(range(len(samples)))


def test_what_a_stop_cuts_off_is_counted_as_neither_failed_nor_in_flight(serve: Serve) -> None:
    seen: list[Progress] = []

    def watch(progress: Progress) -> bool:
        seen.append(progress)
        # Connections take their time on a busy machine.
        return progress.due < 20 or progress.sent < 2

    limits = Limits(max_connections=2, drain_s=1.0)
    run(serve(silent).plan(OpenLoad(200, 60.0), limits=limits), watch)
    last = seen[-1]
    assert (last.failed, last.cut_off, last.in_flight) == (0, last.due - 2, 2)


def test_a_step_that_is_always_sent_is_not_sent_after_the_run_was_cut_off(serve: Serve) -> None:
    server = serve(answering(OK))
    steps = (GET, Pause("pause", 3600.0, 3600.0), replace(GET, action="always", always=True))
    plan = server.plan(ClosedLoad(1, iterations=1), limits=Limits(drain_s=0.1))
    samples = run(replace(plan, steps=steps)).samples
    is_last = samples.action == 2
    assert samples.outcome[is_last].tolist() == [Outcome.NOT_SENT]
    assert samples.sent_ns[is_last].tolist() == [-1]


def test_outstanding_requests_may_take_no_longer_than_the_drain(serve: Serve) -> None:
    """Requests that the end of a run cuts off do not count as failures of the service."""
    limits = Limits(max_connections=2, drain_s=0.2, request_timeout_s=3600.0)
    samples = run(serve(silent).plan(OpenLoad(50, 0.2), limits=limits)).samples
    assert [Outcome(code) for code in samples.outcome] == [Outcome.NOT_SENT] * 10
    assert (samples.sent_ns >= 0).sum() == 2
    assert (samples.done_ns >= 400_000_000).all()


def test_a_request_that_takes_longer_than_its_time_out_fails_also_in_the_drain(
    serve: Serve,
) -> None:
    limits = Limits(max_connections=2, drain_s=0.5, request_timeout_s=0.3)
    samples = run(serve(silent).plan(OpenLoad(50, 0.2), limits=limits)).samples
    late = samples.outcome == Outcome.FIRST_BYTE_TIMEOUT
    assert late.sum() >= 2
    assert (samples.done_ns - samples.sent_ns >= 300_000_000)[late].all()
    assert set(samples.outcome[~late]) == {Outcome.NOT_SENT}
    assert (samples.done_ns - samples.sent_ns < 300_000_000)[~late & (samples.sent_ns >= 0)].all()


def test_an_exception_of_the_watch_ends_the_run_and_is_raised(serve: Serve) -> None:
    def watch(progress: Progress) -> bool:
        raise ValueError(progress.due)

    with pytest.raises(ValueError, match=r"^\d+$"):
        run(serve(silent).plan(OpenLoad(10, 3600.0)), watch)


def test_ctrl_c_keeps_what_was_measured(serve: Serve) -> None:
    def watch(progress: Progress) -> bool:
        if progress.ok >= 20:
            os.kill(os.getpid(), signal.SIGINT)
        return True

    measured = run(serve(answering(OK)).plan(OpenLoad(100, 3600.0)), watch)
    assert measured.interrupted
    assert np.sum(measured.samples.outcome == Outcome.OK) >= 20


@pytest.mark.parametrize("load_s", [None, 0.2])
def test_after_a_stop_or_the_end_of_the_load_the_drain_may_be_shorter(
    serve: Serve, load_s: float | None
) -> None:
    limits = Limits(drain_s=3600.0, stopped_drain_s=0.2, load_s=load_s, request_timeout_s=3600.0)
    plan = serve(silent).plan(ClosedLoad(2, duration_s=3600.0), limits=limits)
    measured = run(plan, lambda progress: load_s is not None or not progress.sent)
    assert set(measured.samples.outcome) == {Outcome.NOT_SENT}
    assert measured.health.is_cut_short is (load_s is not None)


def test_iterations_that_only_the_end_of_the_load_shortens_are_reported(serve: Serve) -> None:
    """All of them have begun: the schedule itself is complete."""
    limits = Limits(drain_s=3600.0, stopped_drain_s=0.2, load_s=0.5, request_timeout_s=3600.0)
    measured = run(serve(silent).plan(OpenLoad(10.0, 0.2), limits=limits))
    assert set(measured.samples.outcome) == {Outcome.NOT_SENT}
    assert measured.health.is_cut_short


def test_ctrl_c_twice_gives_up_what_is_under_way(serve: Serve) -> None:
    def watch(progress: Progress) -> bool:
        if progress.sent:
            os.kill(os.getpid(), signal.SIGINT)
        return True

    limits = Limits(drain_s=3600.0, request_timeout_s=3600.0)
    measured = run(serve(silent).plan(ClosedLoad(2, duration_s=3600.0), limits=limits), watch)
    assert measured.interrupted
    assert set(measured.samples.outcome) == {Outcome.NOT_SENT}


def test_the_interpreter_is_free_while_the_engine_runs(serve: Serve) -> None:
    """The server's threads are Python: with the lock held no request would be answered."""
    measured = run(serve(answering(OK)).plan(ClosedLoad(2, iterations=100)))
    assert set(measured.samples.outcome) == {Outcome.OK}


def test_a_run_on_another_thread_than_the_main_one(serve: Serve) -> None:
    plan = serve(answering(OK)).plan(ClosedLoad(2, iterations=100))
    lengths: list[int] = []
    thread = threading.Thread(target=lambda: lengths.append(len(run(plan).samples)))
    thread.start()
    thread.join(60)
    assert lengths == [100]


def test_ctrl_c_at_a_terminal_ends_the_run_within_the_drain(serve: Serve, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import sys\n"
        "from loadstone.engine.local import run\n"
        "from loadstone.plan.load import OpenLoad\n"
        "from loadstone.plan.model import Origin, Plan\n"
        "from loadstone.plan.script import Step, text\n"
        "step = Step('get', 'GET', text('/'))\n"
        "origin = Origin('http', '127.0.0.1', int(sys.argv[1]))\n"
        "plan = Plan(origin, (step,), OpenLoad(50, 3600.0))\n"
        "told = lambda progress: print(progress.ok, flush=True) or True\n"
        "print('interrupted', run(plan, told).interrupted)\n"
    )
    port = str(serve(answering(OK)).port)
    with subprocess.Popen(
        [sys.executable, str(program), port], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        lines = process.stdout.read().split("\n")
    assert process.returncode == 0
    assert lines[-2] == "interrupted True"
