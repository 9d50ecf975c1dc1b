"""HTTP/2 against nginx, which logs what it saw."""

import os
import re
import shutil
import socket
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from authority import Authority
from loopback import GET, OK, POST, Serve, answering

from loadstone.engine.local import run
from loadstone.engine.samples import Outcome
from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.plan.load import ClosedLoad, Load, OpenLoad
from loadstone.plan.model import Limits, Origin, Placement, Plan, Tls
from loadstone.plan.script import Captured, HeaderCapture, JsonCapture, Step, Text, text
from loadstone.plan.trace import Trace

HTTP2 = Placement(http="2")
CONF = """\
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
worker_processes 1;
{user}
events {{ worker_connections 512; }}
http {{
    log_format seen '$server_protocol $connection $request_method $request_uri $status';
    access_log {folder}/access.log seen;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    uwsgi_temp_path {folder}/uwsgi;
    fastcgi_temp_path {folder}/fastcgi;
    scgi_temp_path {folder}/scgi;
    ssl_certificate {certificate};
    ssl_certificate_key {certificate};
    {settings}
    server {{
        listen 127.0.0.1:{port} {listen};
        location /big {{ root {folder}; }}
        location / {{
            add_header X-Subject-Token secret;
            return 200 '{{"token": {{"user": {{"id": "u1"}}}}}}';
        }}
    }}
}}
"""


@dataclass
class Nginx:
    """A running nginx."""

    folder: Path
    origin: Origin
    process: subprocess.Popen[bytes]

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(20)

    def seen(self) -> list[list[str]]:
        """Give what it logged: protocol, connection, method, path, status; it has ended."""
        self.stop()
        return [line.split() for line in (self.folder / "access.log").read_text().splitlines()]


Start = Callable[..., Nginx]


@pytest.fixture
def nginx(tmp_path: Path) -> Iterator[Start]:
    """Start an nginx, which ends with the test."""
    program = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/bin")
    if program is None:
        assert "CI" not in os.environ, "nginx is not installed"
        pytest.skip("nginx is not installed")
    authority = Authority(tmp_path, "ours")
    running: list[Nginx] = []

    def start(listen: str, settings: str = "") -> Nginx:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        conf = tmp_path / "nginx.conf"
        values = {"folder": tmp_path, "port": port, "listen": listen, "settings": settings}
        # What pytest makes is nobody else's to read.
        values["user"] = "user root;" if os.geteuid() == 0 else ""
        conf.write_text(CONF.format(certificate=authority.issue("server"), **values))
        command = [program, "-p", str(tmp_path), "-c", str(conf), "-e", str(tmp_path / "error.log")]
        process = subprocess.Popen(command)
        scheme = "https" if "ssl" in listen else "http"
        origin = Origin(scheme, "127.0.0.1", port, Tls(ca_file=str(authority.file)))
        running.append(Nginx(tmp_path, origin, process))
        until_it_listens(port, process)
        return running[-1]

    yield start
    for server in running:
        server.stop()


def until_it_listens(port: int, process: subprocess.Popen[bytes]) -> None:
    while process.poll() is None:
        with socket.socket() as knocking:
            if knocking.connect_ex(("127.0.0.1", port)) == 0:
                return
    raise AssertionError("nginx did not start")


def plan(origin: Origin, load: Load, *steps: Step, connections: int = 256) -> Plan:
    limits = Limits(max_connections=connections, drain_s=5.0)
    return Plan(origin, steps or (GET,), load, limits=limits, placement=HTTP2)


@pytest.mark.parametrize("listen", ["http2", "ssl http2"])
def test_what_is_sent_is_what_is_recorded_and_what_the_server_saw(
    nginx: Start, listen: str
) -> None:
    server = nginx(listen)
    # More than a server takes before it has said so; more in all, and nginx sees a flood.
    issue = replace(POST, body=text("x" * 100_000))
    measured = run(plan(server.origin, ClosedLoad(16, iterations=60), GET, issue))
    assert Counter(measured.samples.outcome) == {Outcome.OK: 120}
    assert set(measured.samples.status) == {200}
    assert measured.health.http == "2"
    assert measured.health.connections == 1
    assert set(measured.samples.connection) == {0}
    seen = server.seen()
    assert Counter((line[0], line[2]) for line in seen) == {
        ("HTTP/2.0", "GET"): 60,
        ("HTTP/2.0", "POST"): 60,
    }
    assert len({line[1] for line in seen}) == 1


def test_each_thread_has_a_connection(nginx: Start) -> None:
    server = nginx("http2")
    placed = replace(
        plan(server.origin, OpenLoad(200, 1.0)), placement=Placement(threads=2, http="2")
    )
    measured = run(placed)
    assert Counter(measured.samples.outcome) == {Outcome.OK: 200}
    assert measured.health.connections == 2
    assert set(measured.samples.connection) == {0, 1}
    assert len({line[1] for line in server.seen()}) == 2


def test_a_server_that_goes_away_loses_no_request(nginx: Start) -> None:
    """It takes 20 requests a connection and says GOAWAY in the middle of the others."""
    server = nginx("http2", "keepalive_requests 20;")
    measured = run(plan(server.origin, ClosedLoad(8, iterations=300), POST))
    assert Counter(measured.samples.outcome) == {Outcome.OK: 300}
    assert measured.health.connections >= 15
    seen = server.seen()
    assert Counter(line[0] for line in seen) == {"HTTP/2.0": 300}


def test_no_more_streams_are_begun_than_the_server_allows(nginx: Start) -> None:
    server = nginx("http2", "http2_max_concurrent_streams 2;")
    measured = run(plan(server.origin, ClosedLoad(16, iterations=200), POST))
    assert Counter(measured.samples.outcome) == {Outcome.OK: 200}
    assert measured.health.retries == 0
    assert len(server.seen()) == 200


def test_a_body_is_read_to_its_end(nginx: Start, tmp_path: Path) -> None:
    """Longer than what the engine lets a server send ahead."""
    with (tmp_path / "big").open("wb") as file:
        file.truncate(20_000_000)
    server = nginx("ssl http2")
    big = replace(GET, path=text("/big"))
    samples = run(plan(server.origin, ClosedLoad(2, iterations=4), big)).samples
    assert Counter(samples.outcome) == {Outcome.OK: 4}


def test_later_steps_are_filled_with_what_an_answer_held(nginx: Start) -> None:
    server = nginx("ssl http2")
    captures = (HeaderCapture("token", "X-Subject-Token"), JsonCapture("id", "/token/user/id"))
    first = replace(POST, captures=captures)
    path = (Text("/users/"), Captured("id"), Text("?token="), Captured("token"))
    run(plan(server.origin, ClosedLoad(1, iterations=2), first, replace(GET, path=path)))
    assert [line[3] for line in server.seen()] == ["/", "/users/u1?token=secret"] * 2


def unusable(plan: Plan) -> str:
    with pytest.raises(EnvironmentUnusable) as raised:
        run(plan)
    message = str(raised.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize("listen", ["", "ssl"])
def test_a_server_that_does_not_offer_it_is_never_loaded_otherwise(
    nginx: Start, listen: str
) -> None:
    server = nginx(listen)
    message = unusable(plan(server.origin, ClosedLoad(1, iterations=5)))
    assert re.fullmatch(
        r"https?://127.0.0.1:\d+ does not (offer|speak) HTTP/2 .*: switch it on there, or leave "
        r"out --http2",
        message,
    )
    # What came in was no request of the load.
    assert all(line[4] in {"400", "000"} for line in server.seen())


def test_a_server_of_http_1_is_refused_in_one_line(serve: Serve) -> None:
    server = serve(answering(OK))
    message = unusable(plan(server.origin, ClosedLoad(1, iterations=5)))
    assert "does not speak HTTP/2 without TLS" in message


def test_where_nobody_listens_requests_are_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        origin = Origin("http", "127.0.0.1", free.getsockname()[1])
    samples = run(plan(origin, ClosedLoad(2, iterations=6))).samples
    assert Counter(samples.outcome) == {Outcome.REFUSED: 6}


def test_connections_of_an_iteration_are_no_connections_that_are_shared() -> None:
    asked = plan(Origin("http", "127.0.0.1", 1), ClosedLoad(1, iterations=1))
    with pytest.raises(InvalidInput, match="connection must be kept with HTTP/2"):
        run(replace(asked, connection="iteration"))


def test_a_header_that_speaks_of_the_connection_is_refused() -> None:
    closing = replace(GET, headers=(("Connection", text("close")),))
    with pytest.raises(InvalidInput, match="Connection does not exist in HTTP/2"):
        run(plan(Origin("http", "127.0.0.1", 1), ClosedLoad(1, iterations=1), closing))


def test_requests_carry_the_ids_that_their_samples_have(nginx: Start, tmp_path: Path) -> None:
    log = f"log_format traced '$http_traceparent'; access_log {tmp_path}/traced.log traced;"
    server = nginx("http2", log)
    trace = Trace(0.5, 0xFEDC_BA98_7654_3210)
    rows = run(replace(plan(server.origin, ClosedLoad(4, iterations=100)), trace=trace)).samples
    server.stop()
    headers = (tmp_path / "traced.log").read_text().split()
    rows = rows.picked(trace.is_traced(rows.action, rows.iteration))
    assert len(headers) == 100
    assert 20 < len(rows) < 80
    sent = Counter(one.split("-")[1] for one in headers if one != "-")
    assert sent == Counter(trace.ids(rows.action, rows.iteration))
