"""Whatever a server of HTTP/2 sends, each request has one outcome."""

from frames import (
    ACK,
    CONTINUATION,
    DATA,
    END_HEADERS,
    GOAWAY,
    HEADERS,
    PING,
    RST_STREAM,
    SETTINGS,
    STATUS_200,
    frame,
    http2,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from loopback import POST, Serve

from loadstone.engine.local import run
from loadstone.engine.samples import Outcome
from loadstone.plan.load import ClosedLoad
from loadstone.plan.model import Limits, Placement, Plan

IMPATIENT = Limits(connect_timeout_s=2.0, request_timeout_s=0.05, drain_s=2.0)
KINDS = (DATA, HEADERS, 2, RST_STREAM, SETTINGS, 5, PING, GOAWAY, 8, CONTINUATION, 99)
FLAGS = (0, ACK, END_HEADERS, ACK | END_HEADERS, 0x8, 0x20, 0xFF)
STREAMS = (0, 1, 2, 3, 2**31 - 1)
PAYLOADS = st.binary(max_size=40) | st.sampled_from((STATUS_200, b"\0" * 4, b"\xff" * 8))
FRAMES = st.builds(
    frame, st.sampled_from(KINDS), st.sampled_from(FLAGS), st.sampled_from(STREAMS), PAYLOADS
)


@given(pieces=st.lists(FRAMES | st.binary(max_size=30), max_size=8), ends=st.booleans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_a_server_sends_each_request_has_one_outcome(
    serve: Serve, pieces: list[bytes], ends: bool
) -> None:
    def respond(connection, _stream):
        connection.send(b"".join(pieces))
        return None if ends else b""

    server = serve(http2(respond))
    plan = Plan(
        server.origin,
        (POST,),
        ClosedLoad(1, iterations=2),
        limits=IMPATIENT,
        placement=Placement(http="2"),
    )
    samples = run(plan).samples
    assert len(samples) == 2
    assert Outcome.NOT_SENT not in samples.outcome
    server.stop()
