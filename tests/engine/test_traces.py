"""Requests carry the W3C `traceparent` that samples are looked up by."""

import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from fake_server import Request, serving

from loadstone.analysis.traces import MOST, slowest
from loadstone.engine.callables.model import PAUSE
from loadstone.engine.local import run
from loadstone.engine.samples import Outcome, Samples
from loadstone.plan.load import ClosedLoad
from loadstone.plan.model import Limits, Origin, Plan
from loadstone.plan.script import Column, Iteration, Pause, Step, Text, text
from loadstone.plan.trace import Trace

FORM = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-01")
TRACE = Trace(1.0, 0xFEDC_BA98_7654_3210)
# Without holes, with some, and with a body.
STEPS = (
    Step("fixed", "GET", text("/fixed")),
    Pause("pause", 0.0, 0.001),
    Step("filled", "GET", (Text("/"), Iteration("n"), Column("word"))),
    Step("posted", "POST", text("/posted"), body=text("{}")),
)
COLUMNS = {"word": ("a", "bc")}


@pytest.fixture
def seen():
    """The header of each request that a server gets, and its path."""
    return []


@pytest.fixture
def origin(seen):
    class Handler(Request):
        def do_GET(self):  # noqa: N802
            length = int(self.headers.get("Content-Length", 0))
            body = self.rfile.read(length)
            seen.append((self.path, self.headers.get_all("traceparent"), body))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def do_POST(self):  # noqa: N802
            self.do_GET()

    with serving(Handler) as url:
        yield Origin("http", "127.0.0.1", int(url.rpartition(":")[2]))


def sent(origin, trace, iterations=40):
    limits = Limits(max_connections=4)
    whole = Plan(origin, STEPS, ClosedLoad(2, iterations=iterations), COLUMNS, limits, trace=trace)
    return run(whole).samples


def ids_of(samples, trace):
    """Return the ids that the samples of requests should have."""
    rows = samples.picked(samples.is_request)
    rows = rows.picked(trace.is_traced(rows.action, rows.iteration))
    return Counter(trace.ids(rows.action, rows.iteration))


def test_without_a_trace_no_request_has_the_header(origin, seen):
    sent(origin, None)
    assert len(seen) == 120
    assert all(header is None for _, header, _ in seen)


def test_every_request_has_one_header_whose_id_is_known_from_its_sample(origin, seen):
    samples = sent(origin, TRACE)
    headers = [header for _, [header], _ in seen]
    parts = [FORM.fullmatch(header) for header in headers]
    assert all(parts)
    assert Counter(part[1] for part in parts) == ids_of(samples, TRACE)
    assert len({part[1] for part in parts}) == len({part[2] for part in parts}) == 120
    assert {part[1][:16] for part in parts} == {"fedcba9876543210"}
    assert all(body == (b"{}" if path == "/posted" else b"") for path, _, body in seen)


def test_a_share_is_traced_by_the_number_of_the_request(origin, seen):
    trace = replace(TRACE, share=0.3)
    samples = sent(origin, trace, iterations=200)
    traced = Counter(FORM.fullmatch(header[0])[1] for _, header, _ in seen if header)
    assert traced == ids_of(samples, trace)
    assert len(seen) == 600
    # Of 600 draws with 0.3 each, the number deviates by 11; the key is fixed.
    assert 140 < len(traced) < 220
    seen.clear()
    sent(origin, trace, iterations=200)
    assert traced == Counter(FORM.fullmatch(header[0])[1] for _, header, _ in seen if header)


def test_the_slowest_are_listed_with_their_ids(origin):
    samples = sent(origin, TRACE)
    listed = slowest(samples, TRACE, ("fixed", "pause", "filled", "posted"))
    rows = samples.picked(samples.is_request)
    assert [one.latency_s for one in listed] == pytest.approx(
        (np.sort(rows.latency_ns)[::-1][:MOST] / 1e9).tolist()
    )
    known = ids_of(samples, TRACE)
    assert all(one.trace_id in known for one in listed)
    assert {one.action for one in listed} <= {"fixed", "filled", "posted"}
    assert {one.outcome for one in listed} == {"200"}


def test_a_pause_that_was_cut_off_is_not_listed():
    """It carried no header; its row is that of a request without a response."""
    columns = {name: np.zeros(2, dtype=np.int64) for name in Samples.__slots__}
    columns |= {"status": np.array([200, 0]), "outcome": np.array([Outcome.OK, Outcome.NOT_SENT])}
    columns |= {"action": np.array([0, 1]), "done_ns": np.array([1_000_000, 30_000_000_000])}
    listed = slowest(Samples(**columns), TRACE, ("fixed", PAUSE))
    assert [one.action for one in listed] == ["fixed"]


def test_trials_have_ids_of_their_own():
    keys = {
        Trace.of(0.1, run, at, number).key for run in "ab" for at in (0, 1) for number in (1, 2)
    }
    assert len(keys) == 8
    assert Trace.of(0.0, "a", 0, 1) is None
