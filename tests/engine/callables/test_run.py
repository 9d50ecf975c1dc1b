"""Functions under load: the same samples, the same truth."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from loopback import OK, Serve, answering

from loadstone.analysis.iterations import iterations
from loadstone.analysis.stats import compute_stats
from loadstone.engine import local
from loadstone.engine.callables.model import (
    ITERATION,
    PAUSE,
    WAIT,
    Called,
    CallPlan,
    Function,
)
from loadstone.engine.callables.run import run
from loadstone.engine.outcome import Outcome
from loadstone.errors import InvalidInput
from loadstone.plan.load import ClosedLoad, OpenLoad, Stage, StagedLoad

PLACE = str(Path(__file__).parents[2] / "support" / "callable_scenarios.py")


def call(name, load, **settings) -> Called:
    return run(CallPlan(Function(PLACE, name), load, **settings))


def rows_of(called, action):
    samples = called.measured.samples
    chosen = samples.action == called.actions.index(action)
    return {name: getattr(samples, name)[chosen] for name in samples.__slots__}


def stats_of(called):
    return compute_stats(called.measured.samples, called.actions).stats


def test_every_action_is_a_row_and_analysis_reads_the_table_as_it_is(tmp_path):
    note = tmp_path / "note"
    rows = ({"name": "ann"}, {"name": "bob"})
    called = call("good", ClosedLoad(3, iterations=30), rows=rows, arguments={"note": str(note)})
    assert called.actions == (WAIT, "first", "second", "second/inner", ITERATION)
    samples = called.measured.samples
    assert Counter(samples.action.tolist()) == dict.fromkeys(range(5), 30)
    assert sorted(set(samples.iteration.tolist())) == list(range(30))
    assert (np.diff(samples.done_ns) >= 0).all()
    whole = iterations(samples)
    assert whole.is_ok.all()
    assert (whole.due_ns <= whole.sent_ns).all()
    assert (whole.sent_ns <= whole.done_ns).all()
    assert stats_of(called).ok == 30
    lines = [line.split() for line in note.read_text().splitlines()]
    # Iteration i, from 0, is of row i mod n; functions count from 1.
    assert {(int(n) % 2, name) for n, name, _ in lines} == {(1, "ann"), (0, "bob")}
    assert len({pid for *_, pid in lines}) <= 3


def test_an_open_load_keeps_its_schedule_and_counts_from_the_intended_start():
    called = call("slow", OpenLoad(40, 0.5), arguments={"seconds": 0.05}, max_in_flight=1)
    rows = rows_of(called, ITERATION)
    due_ns = np.sort(rows["due_ns"])
    assert due_ns.tolist() == [i * 25_000_000 for i in range(20)]
    # One at a time, 50 ms each, due every 25 ms: the last waits for the 19 before it.
    latency_ns = rows["done_ns"] - rows["due_ns"]
    assert latency_ns.max() >= 20 * 50_000_000 - 19 * 25_000_000
    assert latency_ns.max() > 5 * (rows["done_ns"] - rows["sent_ns"]).min()
    # That the user's bound made it wait is no lateness of the generator.
    waited_ms = np.median(rows["sent_ns"] - rows["due_ns"]) / 1e6
    assert called.measured.health.lag_p50_ms < waited_ms - 100


def test_a_rate_that_goes_through_stages_is_kept() -> None:
    load = StagedLoad((Stage(0.2, 20, 20), Stage(0.2, 50, 50)))
    called = call("good", load)
    due_ms = np.sort(rows_of(called, ITERATION)["due_ns"]) / 1e6
    assert due_ms.tolist() == pytest.approx([0, 50, 100, 150, *range(200, 400, 20)], abs=0.01)
    assert called.measured.health.lag_max_ms > 0


def test_poisson_arrivals_are_those_of_the_engine(serve: Serve) -> None:
    load = OpenLoad(100, 0.3, arrivals="poisson", seed=7)
    there = local.run(serve(answering(OK)).plan(load)).samples.due_ns
    here = rows_of(call("good", load), ITERATION)["due_ns"]
    assert len(here) > 10
    assert np.abs(np.sort(here) - np.sort(there)).max() <= 1


def test_a_closed_load_thinks_between_iterations():
    called = call("good", ClosedLoad(1, iterations=5, think_s=0.03))
    rows = rows_of(called, ITERATION)
    gaps_ns = rows["due_ns"][1:] - rows["done_ns"][:-1]
    assert (np.abs(gaps_ns - 30_000_000) < 1000).all()


def test_a_closed_load_ends_with_its_duration():
    called = call("slow", ClosedLoad(2, duration_s=0.3), arguments={"seconds": 0.02})
    rows = rows_of(called, ITERATION)
    assert len(rows["due_ns"]) >= 2
    assert (rows["sent_ns"] < 400_000_000).sum() >= 2
    assert set(rows["outcome"].tolist()) == {Outcome.OK}


def test_a_stuck_iteration_is_ended_and_the_others_go_on():
    called = call("sometimes_stuck", ClosedLoad(2, iterations=6), timeout_s=1.5)
    rows = rows_of(called, ITERATION)
    outcomes = dict(zip(rows["iteration"].tolist(), rows["outcome"].tolist(), strict=True))
    assert outcomes == {i: Outcome.TIMED_OUT if (i + 1) % 3 == 0 else Outcome.OK for i in range(6)}
    assert Counter(rows_of(called, "work")["outcome"].tolist()) == {
        Outcome.OK: 4,
        Outcome.TIMED_OUT: 2,
    }
    assert Counter(rows_of(called, "good")["outcome"].tolist()) == {Outcome.OK: 6}
    (failure,) = called.failures
    assert (failure.action, failure.count) == ("work", 2)
    assert failure.cause == "not complete within 1.5 s"
    assert stats_of(called).errors == (("not complete in time", 2),)


def test_a_worker_that_crashes_is_replaced_and_its_iteration_failed():
    called = call("dying", ClosedLoad(1, iterations=4))
    rows = rows_of(called, ITERATION)
    assert rows["outcome"].tolist() == [0, Outcome.WORKER_DIED, 0, 0]
    (failure,) = called.failures
    assert failure.action == "crash"
    assert "signal 11" in failure.cause


PERISHABLE = """
import os, signal
from pathlib import Path
left = Path({left!r})  # a byte for each start that fails
if left.exists() and left.read_bytes():
    left.write_bytes(left.read_bytes()[1:])
    os._exit(3) if {dies} else missing

def perishable(context):
    if context.iteration == 2:
        left.write_bytes(b"x" * {count})
        os.kill(os.getpid(), signal.SIGKILL)
"""


def perishing(tmp_path: Path, count: int, *, dies: bool) -> Called:
    """Run a function whose worker ends in the second iteration, and `count` replacements, too."""
    place = tmp_path / "perishable.py"
    place.write_text(PERISHABLE.format(left=str(tmp_path / "left"), count=count, dies=dies))
    return run(CallPlan(Function(str(place), "perishable"), ClosedLoad(1, iterations=4)))


@pytest.mark.parametrize("dies", [True, False])
def test_a_replacement_that_does_not_start_is_replaced(tmp_path: Path, dies: bool) -> None:
    called = perishing(tmp_path, 2, dies=dies)
    assert rows_of(called, ITERATION)["outcome"].tolist() == [0, Outcome.WORKER_DIED, 0, 0]


@pytest.mark.parametrize(("dies", "why"), [(True, "exit code 3"), (False, "NameError")])
def test_what_was_measured_stays_if_no_replacement_starts(
    tmp_path: Path, dies: bool, why: str
) -> None:
    called = perishing(tmp_path, 100, dies=dies)
    assert rows_of(called, ITERATION)["outcome"].tolist() == [0, Outcome.WORKER_DIED]
    limit = called.measured.health.limits[-1]
    assert limit.startswith("the load ended early: 5 worker processes in a row could not start")
    assert why in limit


def test_secrets_are_struck_out_of_causes():
    called = call(
        "telling",
        ClosedLoad(1, iterations=2),
        rows=({"name": "ann", "password": "quite secret"},),
        settings={"secret_key": "k3y-value"},
    )
    (failure,) = called.failures
    assert failure.action == "log_in"
    assert failure.cause.startswith("PermissionError: user ann with *** in ***: token=*** ***")
    assert "second line" in failure.cause
    assert "\n" not in failure.cause


def test_failures_that_are_alike_are_counted_together():
    called = call("catching", ClosedLoad(1, iterations=12))
    (failure,) = called.failures
    assert (failure.action, failure.count, failure.iteration) == (ITERATION, 12, 0)
    assert failure.cause == "RuntimeError: request 00000001 of server 1"
    assert Counter(rows_of(called, "tried")["outcome"].tolist()) == {Outcome.RAISED: 12}


def test_a_failure_that_the_function_meets_itself_fails_no_iteration():
    called = call("forgiving", ClosedLoad(1, iterations=3))
    assert called.failures == ()
    summary = stats_of(called)
    assert (summary.ok, summary.failed) == (3, 0)
    assert rows_of(called, "tried")["outcome"].tolist() == [Outcome.OK] * 3


def test_an_http_status_on_the_exception_is_kept():
    called = call("conflicting", ClosedLoad(1, iterations=1))
    assert stats_of(called).errors == (("409 Conflict", 1),)
    (failure,) = called.failures
    assert (failure.outcome, failure.status) == (Outcome.HTTP_STATUS, 409)


def test_a_pause_is_kept_apart():
    called = call("paused", ClosedLoad(1, iterations=2))
    rows = rows_of(called, PAUSE)
    assert ((rows["done_ns"] - rows["sent_ns"]) >= 10_000_000).all()


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (Function("loadstone.no_such_place", "x"), "ModuleNotFoundError"),
        (Function(PLACE, "no_such_name"), "no_such_name"),
        (Function("/nowhere/plugin.py", "x"), "FileNotFoundError"),
    ],
)
def test_a_function_that_cannot_be_loaded_is_refused_in_one_line(function, words):
    with pytest.raises(InvalidInput, match=words) as refused:
        run(CallPlan(function, ClosedLoad(2, iterations=1)))
    assert len(str(refused.value).splitlines()) == 1


def test_more_at_a_time_than_there_can_be_processes_is_refused():
    with pytest.raises(InvalidInput, match="at most 256"):
        call("good", ClosedLoad(1000, iterations=1))
