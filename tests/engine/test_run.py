import json
import threading
from collections import Counter

import numpy as np
import pytest
from loopback import GET, OK, Connection, Serve, answering

from loadstone.engine.local import run
from loadstone.engine.progress import Progress
from loadstone.engine.samples import Outcome, Samples
from loadstone.plan.load import BandLoad, ClosedLoad, OpenLoad, ReplayLoad
from loadstone.plan.model import Limits, Placement, Plan
from loadstone.plan.script import Captured, Column, HeaderCapture, Step, Text, text


def test_what_is_sent_is_what_is_recorded_and_what_the_server_saw(serve: Serve) -> None:
    seen: list[bytes] = []

    def counting(connection: Connection) -> None:
        while (request := connection.request()) is not None:
            seen.append(request)
            connection.send(OK)

    last: list[Progress] = []

    def watch(progress: Progress) -> bool:
        last.append(progress)
        return True

    measured = run(serve(counting).plan(OpenLoad(400, 0.5)), watch)
    assert len(seen) == len(measured.samples) == 200
    assert sorted(measured.samples.iteration) == list(range(200))
    assert set(measured.samples.outcome) == {Outcome.OK}
    assert all(0 <= progress.in_flight <= progress.due <= 200 for progress in last)


def test_columns_belong_to_rust_and_are_not_copied(serve: Serve) -> None:
    samples = run(serve(answering(OK)).plan(ClosedLoad(1, iterations=3))).samples
    for name in Samples.__slots__:
        column = getattr(samples, name)
        assert not column.flags.owndata
        assert len(column) == 3


def test_times_of_a_sample_are_in_order(serve: Serve) -> None:
    samples = run(serve(answering(OK)).plan(OpenLoad(500, 0.2))).samples
    assert (samples.due_ns <= samples.sent_ns).all()
    assert (samples.sent_ns + samples.first_byte_us * np.int64(1000) <= samples.done_ns).all()
    assert (np.diff(samples.done_ns) >= 0).all()


def test_arrivals_are_due_at_index_over_rate(serve: Serve) -> None:
    samples = run(serve(answering(OK)).plan(OpenLoad(300, 1.0))).samples
    order = np.argsort(samples.iteration)
    expected = np.round(np.arange(300) / 300 * 1e9).astype(np.int64)
    assert (samples.due_ns[order] == expected).all()


def test_a_late_start_counts_as_latency(serve: Serve) -> None:
    """One connection, and a server that stalls once: who waits behind it is late, too."""
    released = threading.Event()

    def stalling(connection: Connection) -> None:
        connection.request()
        released.wait(10)
        connection.send(OK)
        while connection.request() is not None:
            connection.send(OK)

    def release(progress: Progress) -> bool:
        if progress.due == 50:
            released.set()
        return True

    plan = serve(stalling).plan(OpenLoad(100, 0.5), limits=Limits(max_connections=1))
    samples = run(plan, release).samples
    assert len(samples) == 50
    # All were answered after the 50th was due, 490 ms after the first.
    assert (samples.done_ns >= 490_000_000).all()
    first_due_first = samples.latency_ns[np.argsort(samples.due_ns)]
    assert first_due_first[0] >= 490_000_000
    # From the actual send it would seem as if next to nobody had waited.
    waited = samples.sent_ns - samples.due_ns
    assert np.sum(waited > 0.2 * samples.latency_ns) >= 40


def test_connections_are_opened_up_to_the_limit_and_no_further(serve: Serve) -> None:
    server = serve(lambda connection: connection.request() and connection.request() and None)
    limits = Limits(max_connections=3, request_timeout_s=0.3, drain_s=5.0)
    run(server.plan(OpenLoad(100, 0.1), limits=limits))
    in_use = {connection.socket for connection in server.accepted[:3]}
    assert len(in_use) == 3
    # Each time-out costs its connection; at no time were there more than three.
    assert len(server.accepted) == 10


def test_a_closed_loop_has_as_many_under_way_as_workers(serve: Serve) -> None:
    server = serve(answering(OK))
    samples = run(server.plan(ClosedLoad(3, iterations=50))).samples
    assert len(samples) == 50
    assert sorted(samples.iteration) == list(range(50))
    assert len(server.accepted) == 3


def test_a_closed_loop_ends_by_time_too(serve: Serve) -> None:
    samples = run(serve(answering(OK)).plan(ClosedLoad(2, duration_s=0.3))).samples
    assert len(samples) >= 2
    assert (samples.due_ns < 300_000_000).all()


def test_a_band_keeps_the_number_in_flight_between_its_edges(serve: Serve) -> None:
    def slow(connection: Connection) -> None:
        while connection.request() is not None:
            threading.Event().wait(0.02)
            connection.send(OK)

    def unfinished(progress: Progress) -> bool:
        return progress.ok < 40

    # Ends by its progress, since a busy machine may answer nothing for a second.
    load = BandLoad(low=2, high=6, fill_rps=2000, ebb_rps=0, duration_s=60)
    samples = run(serve(slow).plan(load), unfinished).samples
    events = [(due, 1) for due in samples.due_ns] + [(done, -1) for done in samples.done_ns]
    level = np.cumsum([change for _, change in sorted(events)])
    assert level.max() == 6
    # It fills again and again, each time from `low`.
    assert np.sum((level[1:] == 6) & (level[:-1] == 5)) > 3


def test_poisson_arrivals_are_the_same_for_the_same_seed(serve: Serve) -> None:
    server = serve(answering(OK))

    def due(seed: int) -> list[int]:
        samples = run(server.plan(OpenLoad(400, 0.5, "poisson", seed))).samples
        return sorted(samples.due_ns)

    first, again, other = due(1), due(1), due(2)
    assert first == again != other
    # The gaps of a constant rate would all be the same.
    assert np.std(np.diff(first)) > 0.5 * np.mean(np.diff(first))


def test_a_worker_thinks_between_its_iterations(serve: Serve) -> None:
    load = ClosedLoad(1, iterations=4, think_s=0.05)
    samples = run(serve(answering(OK)).plan(load)).samples
    assert (samples.due_ns[1:] - samples.done_ns[:-1] == 50_000_000).all()


def test_holes_are_filled_from_columns_row_by_row(serve: Serve) -> None:
    seen: list[bytes] = []

    def keeping(connection: Connection) -> None:
        while (request := connection.request()) is not None:
            seen.append(request)
            connection.send(OK)

    step = Step(
        "issue",
        "POST",
        (Text("/users/"), Column("user")),
        headers=(("X-Password", (Column("password"),)),),
        body=(Text('{"password": "'), Column("password"), Text('"}')),
    )
    server = serve(keeping)
    plan = Plan(
        server.origin,
        (step,),
        ClosedLoad(1, iterations=5),
        {"user": ("ann", "bob", "cid"), "password": ("é" * 50, "two")},
    )
    assert set(run(plan).samples.outcome) == {Outcome.OK}
    lines = [request.split(b" ")[1] for request in seen]
    assert lines == [b"/users/ann", b"/users/bob", b"/users/cid", b"/users/ann", b"/users/bob"]
    bodies = [json.loads(request.partition(b"\r\n\r\n")[2])["password"] for request in seen]
    assert bodies == ["é" * 50, "two", "é" * 50, "two", "é" * 50]
    assert f"Host: 127.0.0.1:{server.port}\r\n".encode() in seen[0]


def test_a_captured_header_flows_into_later_steps(serve: Serve) -> None:
    used: list[bytes] = []

    def issuing(connection: Connection) -> None:
        for number in range(100):
            request = connection.request()
            if request is None:
                return
            if request.startswith(b"POST"):
                token = b"token-%d-%d" % (connection.number, number)
                connection.send(
                    b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\nx-subject-TOKEN: %s\r\n\r\n"
                    % token
                )
            else:
                used.append(request)
                connection.send(OK if token in request else b"HTTP/1.1 401 No\r\n\r\n")

    issue = Step(
        "issue",
        "POST",
        text("/tokens"),
        expect_status=(201,),
        captures=(HeaderCapture("token", "X-Subject-Token"),),
    )
    validate = Step("validate", "GET", text("/tokens"), (("X-Auth-Token", (Captured("token"),)),))
    samples = run(serve(issuing).plan(ClosedLoad(2, iterations=10), issue, validate)).samples
    assert Counter(zip(samples.action, samples.outcome, strict=True)) == {(0, 0): 10, (1, 0): 10}
    assert len(set(used)) == 10
    for iteration in range(10):
        first, second = np.flatnonzero(samples.iteration == iteration)
        assert samples.due_ns[second] == samples.done_ns[first]


def test_a_failed_step_ends_its_iteration(serve: Serve) -> None:
    server = serve(answering(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"))
    samples = run(server.plan(ClosedLoad(1, iterations=4), GET, GET)).samples
    assert Counter(zip(samples.action, samples.status, strict=True)) == {(0, 403): 4}
    assert set(samples.outcome) == {Outcome.HTTP_STATUS}


def test_an_answer_without_the_captured_header_fails_the_step(serve: Serve) -> None:
    step = Step("issue", "GET", text("/"), captures=(HeaderCapture("token", "X-Token"),))
    samples = run(serve(answering(OK)).plan(ClosedLoad(1, iterations=1), step, GET)).samples
    assert [Outcome(code) for code in samples.outcome] == [Outcome.BAD_HTTP]


@pytest.mark.parametrize("load", [OpenLoad(1000, 0.3), ClosedLoad(6, iterations=300)])
def test_several_threads_send_the_schedule_together(
    serve: Serve, load: OpenLoad | ClosedLoad
) -> None:
    server = serve(answering(OK))
    plan = Plan(server.origin, (GET,), load, placement=Placement(threads=3, cores=(0,)))
    measured = run(plan)
    assert sorted(measured.samples.iteration) == list(range(300))
    assert (np.diff(measured.samples.done_ns) >= 0).all()
    assert measured.health.threads == 3
    assert len(set(measured.samples.connection)) == measured.health.connections


def test_a_closed_loop_has_no_more_threads_than_workers(serve: Serve) -> None:
    plan = Plan(
        serve(answering(OK)).origin,
        (GET,),
        ClosedLoad(1, iterations=5),
        placement=Placement(threads=4),
    )
    measured = run(plan)
    assert len(measured.samples) == 5
    assert measured.health.threads == 1


def test_the_generator_tells_its_own_cost(serve: Serve) -> None:
    health = run(serve(answering(OK)).plan(OpenLoad(200, 0.5))).health
    assert 0 < health.cpu_s <= health.wall_s
    assert health.wall_s >= 0.49
    assert 0 <= health.lag_p50_ms <= health.lag_p99_ms <= health.lag_max_ms


def test_what_waits_for_the_generators_thread_is_its_lag(serve: Serve) -> None:
    """One thread sends fifty requests that are due at one instant one after the other."""
    offsets_s = (0.0,) * 50 + (2.0,) * 50
    measured = run(serve(answering(OK)).plan(ReplayLoad(offsets_s)))
    samples = measured.samples
    # On a connection that is open already, a request is sent when its iteration begins.
    is_second = samples.due_ns > 0
    is_kept = np.isin(samples.connection, samples.connection[~is_second])
    late_ns = (samples.sent_ns - samples.due_ns)[is_second & is_kept]
    assert len(late_ns) > 0
    assert measured.health.waited == 0
    assert measured.health.lag_max_ms >= late_ns.max() / 1e6


def test_what_waits_for_a_free_connection_is_not_the_generators_lag(serve: Serve) -> None:
    def behave(connection: Connection) -> None:
        while connection.request() is not None:
            server.stopping.wait(0.2)
            connection.send(OK)

    server = serve(behave)
    limits = Limits(max_connections=1)
    health = run(server.plan(ReplayLoad((0.0,) * 6), limits=limits)).health
    assert health.waited == 5
    # Five answers of 200 ms each came before the last one's turn.
    assert health.wait_max_ms >= health.wait_p99_ms >= 900
    assert health.lag_max_ms < health.wait_max_ms
