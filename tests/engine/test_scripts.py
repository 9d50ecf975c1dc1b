"""Scripts: captures, pauses, conditions, mixes."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from loopback import GET, Behaviour, Connection, Serve

from loadstone.analysis.iterations import iterations
from loadstone.engine.callables.model import PAUSE
from loadstone.engine.local import run
from loadstone.engine.progress import Progress
from loadstone.engine.samples import NO_FIRST_BYTE, Outcome
from loadstone.errors import InvalidInput
from loadstone.live.feed import latencies_of
from loadstone.plan.load import ClosedLoad, OpenLoad
from loadstone.plan.model import Limits, Placement, Plan
from loadstone.plan.script import (
    Captured,
    Iteration,
    JsonCapture,
    OneTimeCode,
    Pause,
    StatusCondition,
    Step,
    Text,
    mixed,
    text,
)

ONE_BY_ONE = ClosedLoad(1, iterations=3)
Answer = Callable[[str, str], tuple[int, object]]


def answering(answer: Answer, seen: list[str]) -> Behaviour:
    """Answer method and path with a status and a JSON body; keep "METHOD path body"."""

    def behave(connection: Connection) -> None:
        while (request := connection.request()) is not None:
            head, _, body = request.decode().partition("\r\n\r\n")
            method, path, _ = head.split(" ", 2)
            seen.append(f"{method} {path} {body}".rstrip())
            status, told = answer(method, path)
            text = json.dumps(told).encode()
            connection.send(
                b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%s" % (status, len(text), text)
            )

    return behave


def stalling(method: bytes, seen: list[str]) -> Behaviour:
    """Leave requests of this method without an answer."""

    def behave(connection: Connection) -> None:
        while (request := connection.request()) is not None:
            seen.append(request.decode().split(" ")[0])
            if not request.startswith(method):
                body = b'{"id": "x"}'
                connection.send(
                    b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
                )

    return behave


MAKE = Step("make", "POST", text("/"), body=text("{}"), captures=(JsonCapture("id", "/id"),))
LOOK = Step(
    "look",
    "GET",
    (Text("/users/"), Iteration("u-")),
    expect_status=(200, 404),
    captures=(JsonCapture("id", "/id", optional=True),),
)
CREATE = Step(
    "create",
    "POST",
    text("/users"),
    body=(Text('{"name": "'), Iteration("u-"), Text('"}')),
    expect_status=(201,),
    captures=(JsonCapture("id", "/id"),),
    only_if=StatusCondition("look", (404,)),
)
CHANGE = Step("change", "PATCH", (Text("/users/"), Captured("id")), body=text("{}"))
DELETE_ANY = Step("delete", "DELETE", text("/"), expect_status=(404,), always=True)
DELETE = Step("delete", "DELETE", (Text("/users/"), Captured("id")), always=True)


def test_a_hole_for_the_iterations_number_makes_names_unique(serve: Serve) -> None:
    seen: list[str] = []
    server = serve(answering(lambda _method, _path: (201, {"id": 1}), seen))
    step = Step(
        "create",
        "POST",
        (Text("/"), Iteration("p")),
        body=(Text('{"name": "'), Iteration("run-"), Text('"}')),
        expect_status=(201,),
    )
    plan = Plan(server.origin, (step,), OpenLoad(400, 0.3), placement=Placement(threads=2))
    assert set(run(plan).samples.outcome) == {Outcome.OK}
    assert sorted(seen) == sorted(f'POST /p{i} {{"name": "run-{i}"}}' for i in range(120))


def test_each_one_time_code_of_a_request_is_of_its_own_column(serve: Serve) -> None:
    seen: list[str] = []
    server = serve(answering(lambda _method, _path: (200, {}), seen))
    columns = {"one": ("GEZDGNBVGY3TQOJQ",), "other": ("MFRGGZDFMZTWQ2LK",)}
    one, other = OneTimeCode("one"), OneTimeCode("other")
    step = Step("log_in", "POST", text("/"), body=(one, Text(" "), other, Text(" "), one))
    run(Plan(server.origin, (step,), ClosedLoad(1, iterations=5), columns=columns))
    codes = [line.split()[2:] for line in seen]
    assert all(len(code) == 6 for line in codes for code in line)
    # A new period may begin within a request.
    assert any(first != second and first == third for first, second, third in codes)


def test_a_step_is_done_only_after_the_status_that_it_hangs_on(serve: Serve) -> None:
    """Those that are there are not created again, and no 404 is a failure."""
    seen: list[str] = []

    def answer(method: str, path: str) -> tuple[int, object]:
        if method == "GET":
            return (404, {}) if path.endswith("1") else (200, {"id": "old"})
        return (201, {"id": "new"}) if method == "POST" else (200, {})

    samples = run(serve(answering(answer, seen)).plan(ONE_BY_ONE, LOOK, CREATE, CHANGE)).samples
    assert seen == [
        "GET /users/u-0",
        "PATCH /users/old {}",
        "GET /users/u-1",
        'POST /users {"name": "u-1"}',
        "PATCH /users/new {}",
        "GET /users/u-2",
        "PATCH /users/old {}",
    ]
    assert iterations(samples).is_ok.tolist() == [True, True, True]
    assert samples.action.tolist() == [0, 2, 0, 1, 2, 0, 2]


def test_a_step_is_left_out_where_an_optional_capture_is_absent(serve: Serve) -> None:
    seen: list[str] = []
    server = serve(answering(lambda _method, _path: (404, {}), seen))
    samples = run(server.plan(ONE_BY_ONE, LOOK, CHANGE, GET)).samples
    assert [line.split()[0] for line in seen] == ["GET", "GET"] * 3
    # The last step was done, and expects 200.
    assert samples.status.tolist() == [404] * 6
    assert iterations(samples).is_failed.all()


@pytest.mark.parametrize("created", [201, 500])
def test_what_was_made_is_deleted_after_a_failure_too(serve: Serve, created: int) -> None:
    """Nothing is deleted where the creation failed without naming what it made."""
    seen: list[str] = []

    def answer(method: str, _path: str) -> tuple[int, object]:
        if method == "POST":
            return created, {"id": "x"} if created == 201 else {}
        return (503, {}) if method == "PATCH" else (200, {})

    create = Step("create", "POST", text("/"), expect_status=(201,), captures=CREATE.captures)
    server = serve(answering(answer, seen))
    samples = run(server.plan(ClosedLoad(1, iterations=1), create, CHANGE, GET, DELETE)).samples
    methods = [line.split()[0] for line in seen]
    assert methods == (["POST", "PATCH", "DELETE"] if created == 201 else ["POST"])
    ended = iterations(samples)
    assert ended.is_failed.all()
    assert ended.status.tolist() == [503 if created == 201 else 500]


def test_a_pause_is_left_out_after_a_failure_unless_it_is_for_always(serve: Serve) -> None:
    server = serve(answering(lambda _method, _path: (404, {}), []))
    naps = (Pause("nap", 0.01, 0.01), Pause("sleep", 0.01, 0.01, always=True))
    plan = server.plan(ClosedLoad(1, iterations=2), GET, *naps, DELETE_ANY)
    samples = run(plan).samples
    assert [plan.steps[step].action for step in samples.action] == ["get", "sleep", "delete"] * 2
    assert (iterations(samples).done_ns - iterations(samples).due_ns >= 10_000_000).all()


def test_a_pause_lasts_and_is_no_request(serve: Serve) -> None:
    seen: list[str] = []
    server = serve(answering(lambda _method, _path: (200, {}), seen))
    plan = Plan(server.origin, (GET, Pause("nap", 0.02, 0.06), GET), ClosedLoad(4, iterations=40))
    shown: list[int] = []
    samples = run(plan, lambda progress: bool(shown.append(progress.sent)) or True).samples
    rests = samples.action == 1
    assert len(seen) == samples.is_request.sum() == 80
    assert set(samples.outcome) == {Outcome.OK}
    lasted_ms = (samples.done_ns - samples.sent_ns)[rests] / 1e6
    assert (samples.first_byte_us[rests] == NO_FIRST_BYTE).all()
    assert lasted_ms.min() >= 20
    # Drawn evenly: 40 draws of [20, 60] without one below 30 or above 50 have odds of 1 in 100,000.
    assert lasted_ms.min() < 30
    assert lasted_ms.max() > 50
    ended = iterations(samples)
    assert ((ended.done_ns - ended.due_ns) / 1e6 >= 20).all()


def test_a_pause_is_in_no_latency_that_is_counted_during_the_load(serve: Serve) -> None:
    server = serve(answering(lambda _method, _path: (200, {}), []))
    plan = Plan(server.origin, (Pause("nap", 0.05, 0.05), GET), OpenLoad(100, 3600.0))
    seen: list[Progress] = []

    def watch(progress: Progress) -> bool:
        seen.append(progress)
        return progress.ok < 20

    samples = run(plan, watch).samples
    stored = latencies_of(samples, (PAUSE, "get"))
    assert stored is not None
    assert sum(seen[-1].latencies) >= 20
    assert all(shown <= kept for shown, kept in zip(seen[-1].latencies, stored, strict=True))


def test_pauses_are_the_same_for_the_same_seed_whatever_the_threads(serve: Serve) -> None:
    server = serve(answering(lambda _method, _path: (200, {}), []))

    def pauses(seed: int, threads: int) -> list[int]:
        plan = Plan(
            server.origin,
            (Pause("nap", 0.0, 0.5), GET),
            ClosedLoad(16, iterations=16),
            placement=Placement(threads=threads),
            seed=seed,
        )
        samples = run(plan).samples
        rests = np.flatnonzero(samples.action == 0)
        order = rests[np.argsort((samples.done_ns - samples.sent_ns)[rests])]
        return [int(number) for number in samples.iteration[order]]

    # The order of the lengths; some that differ by little may change places.
    first, again, other = pauses(1, 1), pauses(1, 3), pauses(2, 1)
    places = np.argsort(first) - np.argsort(again)
    assert np.median(np.abs(places)) <= 1
    assert np.median(np.abs(np.argsort(first) - np.argsort(other))) > 1


def test_a_run_that_is_given_up_does_not_wait_for_pauses(serve: Serve) -> None:
    server = serve(answering(lambda _method, _path: (200, {}), []))
    steps = (Pause("nap", 3600, 3600), GET)
    plan = Plan(server.origin, steps, OpenLoad(100, 0.1), limits=Limits(drain_s=0.1))
    samples = run(plan).samples
    assert Counter(samples.outcome) == {Outcome.NOT_SENT: 10}
    assert not iterations(samples).has_ended.any()


def test_scripts_of_a_mix_are_taken_by_weight_each_with_its_own_steps(serve: Serve) -> None:
    """The same seed takes the same, whatever the threads."""
    seen: list[str] = []

    def answer(method: str, path: str) -> tuple[int, object]:
        if path == "/often":
            return 200, {}
        return (201 if method == "POST" else 200), {"id": path[1:] or "made"}

    make = Step("make", "POST", text("/rare"), body=text("{}"), expect_status=(201,))
    make = replace(make, captures=(JsonCapture("id", "/id"),))
    steps, mix = mixed(
        ((make, CHANGE), 1.0), ((Step("often", "GET", text("/often")),), 9.0)
    )  # fmt: skip
    plan = Plan(serve(answering(answer, seen)).origin, steps, OpenLoad(2000, 0.5), seed=3, mix=mix)
    samples = run(plan).samples
    counts = Counter(samples.action.tolist())
    assert counts[0] == counts[1]
    assert counts[0] + counts[2] == 1000
    # The standard deviation of the count is 9.5.
    assert 60 <= counts[0] <= 140
    assert set(samples.outcome) == {Outcome.OK}
    again = run(replace(plan, placement=Placement(threads=3))).samples
    taken = [set(table.iteration[table.action == 0]) for table in (samples, again)]
    assert taken[0] == taken[1]


def test_what_is_never_sent_belongs_to_the_script_that_it_would_have_executed(
    serve: Serve,
) -> None:
    steps, mix = mixed(((GET,), 1.0), ((DELETE_ANY,), 1.0))
    server = serve(answering(lambda method, _path: (200 if method == "GET" else 404, {}), []))
    sent = run(Plan(server.origin, steps, OpenLoad(200, 0.2), seed=3, mix=mix)).samples
    busy = serve(stalling(b"", []))
    limits = Limits(max_connections=1, drain_s=0.1)
    plan = Plan(busy.origin, steps, OpenLoad(200, 0.2), seed=3, mix=mix, limits=limits)
    cut_off = run(plan).samples
    assert (cut_off.sent_ns < 0).sum() == 39
    tables = (sent, cut_off)
    taken = [dict(zip(one.iteration.tolist(), one.action.tolist(), strict=True)) for one in tables]
    assert taken[0] == taken[1]


def test_an_iteration_that_takes_too_long_ends_at_once_and_cleans_up(serve: Serve) -> None:
    """In the middle of a step; an own time-out of the step's comes first where it is shorter."""
    seen: list[str] = []
    server = serve(stalling(b"PATCH", seen))
    limits = Limits(iteration_timeout_s=1.0, request_timeout_s=60.0, drain_s=60.0)
    plan = server.plan(ClosedLoad(2, iterations=4), MAKE, CHANGE, GET, DELETE, limits=limits)
    samples = run(plan).samples
    ended = iterations(samples)
    assert set(ended.outcome) == {Outcome.TIMED_OUT}
    assert Counter(samples.action.tolist()) == {0: 4, 1: 4, 3: 4}
    assert set(samples.outcome[samples.action == 3]) == {Outcome.OK}
    lasted_s = (ended.done_ns - ended.due_ns) / 1e9
    assert (lasted_s >= 1.0).all()
    assert (lasted_s < limits.request_timeout_s).all()
    short = run(replace(plan, limits=replace(limits, request_timeout_s=0.1))).samples
    assert set(iterations(short).outcome) == {Outcome.FIRST_BYTE_TIMEOUT}


def test_what_always_runs_is_sent_although_the_time_was_over_before_it(serve: Serve) -> None:
    """Answers come after the time-out and before it ends the wait, which takes a millisecond."""
    seen: list[str] = []
    server = serve(answering(lambda method, _path: (200 if method == "GET" else 404, {}), seen))
    limits = Limits(iteration_timeout_s=1e-9)
    plan = server.plan(ClosedLoad(1, iterations=100), GET, DELETE_ANY, limits=limits)
    samples = run(plan).samples
    assert sum(line.startswith("DELETE") for line in seen) == 100
    assert set(samples.outcome[samples.action == 1]) == {Outcome.OK}


def test_a_pause_counts_in_the_time_that_an_iteration_may_take(serve: Serve) -> None:
    limits = Limits(iteration_timeout_s=1.0)
    server = serve(stalling(b"PATCH", []))
    plan = Plan(server.origin, (GET, Pause("nap", 60, 60), GET), ONE_BY_ONE, limits=limits)
    samples = run(plan).samples
    assert samples.outcome.tolist() == [Outcome.OK, Outcome.TIMED_OUT] * 3


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ((LOOK, Pause("nap", 2, 1)), r"steps\[1\].min_s must be at most max_s \(1\), is 2"),
        ((Pause("nap", -1, 1),), r"steps\[0\].min_s must be zero or more"),
        ((GET, CREATE), r'steps\[1\].only_if hangs on the action "look", which no earlier step'),
    ],
)
def test_a_script_that_cannot_be_is_refused(
    serve: Serve, steps: tuple[Step | Pause, ...], words: str
) -> None:
    server = serve(answering(lambda _method, _path: (200, {}), []))
    with pytest.raises(InvalidInput, match=words):
        run(Plan(server.origin, steps, ONE_BY_ONE))
