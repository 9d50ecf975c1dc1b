"""The live page's server: who gets what, and that nobody is waited for."""

import http.client
import json
import re
import signal
import socket
import ssl
import threading
import time
import urllib.request
from contextlib import closing
from urllib.parse import urlsplit

import pytest
from command_line import CommandLine
from known_service import known_service

from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.live import page as live_page
from loadstone.live.board import Board
from loadstone.live.page import LivePage, interrupt, own_certificate
from loadstone.live.site import LOOPBACK, MOST_CONNECTIONS, ListenAddress, address
from loadstone.live.state import LiveState
from loadstone.report.section import Report

# The hook lets the run end only when somebody follows it, however long that takes.
TASK = """
version: 2
title: Followed
subtasks:
  - title: Tokens
    scenario: {Authenticate.keystone: {}}
    runner: {constant_for_duration: {duration: 3, concurrency: 2}}
    contexts: {users: {tenants: 1, users_per_tenant: 2}}
    hooks:
      - action: {sys_call: "sh -c 'until [ -e followed ]; do sleep 0.1; done'"}
        trigger: {event: {unit: iteration, at: [1]}}
"""


class Stopped:
    """Counts how often it was stopped."""

    count = 0

    def __call__(self) -> None:
        self.count += 1


def nothing(*, is_over: bool):  # noqa: ARG001
    return ()


@pytest.fixture
def stop():
    return Stopped()


@pytest.fixture
def page(stop, monkeypatch):
    monkeypatch.setattr(live_page, "EVERY_S", 0.02)
    page = LivePage(LOOPBACK, nothing, stop=stop)
    yield page
    page.close()


def ask(page, path="", method="GET", **headers):
    """Return status, headers and body of a response; `path` is below the page's."""
    url = urlsplit(page.url)
    with closing(http.client.HTTPConnection(url.hostname, url.port, timeout=10)) as connection:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        target = path if path.startswith("/") else url.path + path
        connection.request(method, target, headers=named)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode()


def own_origin(page):
    url = urlsplit(page.url)
    return f"{url.scheme}://{url.netloc}"


def test_without_the_token_there_is_nothing(page):
    token = urlsplit(page.url).path.strip("/")
    for path in ("/", f"/{token}", f"/{token[:-1]}/", f"/{token}x/", "/x/events", "//", "/../"):
        assert ask(page, path)[0] == 404, path
    assert ask(page)[0] == 200
    assert len(token) >= 24


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1", ""])
def test_another_host_is_refused(page, host):
    assert ask(page, Host=host)[0] == 403


def test_the_page_may_do_nothing_but_what_it_needs(page):
    _, headers, body = ask(page)
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    script = policy.partition("script-src ")[2].partition(";")[0]
    assert re.fullmatch(r"'nonce-[\w-]+'", script)
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cache-Control"] == "no-store"
    assert not [name for name in headers if name.lower().startswith("access-control")]
    assert re.findall(r"(?:src|href)=\"(?!#|data:)", body) == []


def test_only_the_page_itself_can_stop_the_command(page, stop):
    assert ask(page, "stop")[0] == 404
    assert ask(page, "stop", "POST")[0] == 403
    assert ask(page, "stop", "POST", Origin="http://evil.example")[0] == 403
    crossed = {"Origin": own_origin(page), "Sec_Fetch_Site": "cross-site"}
    assert ask(page, "stop", "POST", **crossed)[0] == 403
    assert ask(page, "/stop", "POST", Origin=own_origin(page))[0] == 404
    assert stop.count == 0
    for _ in range(2):  # a second Ctrl-C would cut the clean-up short
        assert ask(page, "stop", "POST", Origin=own_origin(page))[0] == 202
    assert stop.count == 1


def test_a_page_that_only_shows_cannot_stop_anything():
    page = LivePage(LOOPBACK, nothing, stop=None)
    try:
        assert "Stop" not in ask(page)[2].replace("Stopping", "").replace("Stop this command", "")
        assert ask(page, "stop", "POST", Origin=own_origin(page))[0] == 404
    finally:
        page.close()


def test_each_reader_gets_the_newest_state_and_the_end(page, monkeypatch):
    monkeypatch.setattr(live_page, "LAST_S", 5.0)
    shown = []

    def read():
        url = urlsplit(page.url)
        connection = http.client.HTTPConnection(url.hostname, url.port, timeout=20)
        connection.request("GET", f"{url.path}events")
        shown.append(connection.getresponse().read().decode())

    readers = [threading.Thread(target=read) for _ in range(10)]
    for reader in readers:
        reader.start()
    until(lambda: page._board.readers == 10)
    page.show(LiveState(0.0, 10.0, messages=("hello",)))
    until(lambda: "now" in page._board._events)
    page.close()
    for reader in readers:
        reader.join()
    for text in shown:
        assert "event: now" in text
        assert "hello" in text
        assert text.rstrip().splitlines()[-2] == "event: end"


def test_results_that_could_not_be_read_are_read_again_later(monkeypatch):
    monkeypatch.setattr(live_page, "EVERY_S", 0.02)
    monkeypatch.setattr(live_page, "RESULTS_EVERY_S", 0.2)
    tried = []

    def reports(*, is_over: bool):  # noqa: ARG001
        tried.append(time.monotonic())
        if len(tried) == 1:
            raise EnvironmentUnusable("the database is locked")
        return (Report("Results so far", "", ()),)

    page = LivePage(LOOPBACK, reports, stop=None)
    url = urlsplit(page.url)
    with closing(http.client.HTTPConnection(url.hostname, url.port, timeout=20)) as connection:
        connection.request("GET", f"{url.path}events")
        until(lambda: page._board.readers == 1)
        page.show(LiveState(0.0, 10.0, stored=1))
        until(lambda: "results" in page._board._events)
        page.close()
    assert tried[1] - tried[0] >= 0.15  # not every EVERY_S: reading them may take long


def test_a_reader_that_takes_nothing_is_not_waited_for(page):
    url = urlsplit(page.url)
    with socket.create_connection((url.hostname, url.port)) as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.sendall(f"GET {url.path}events HTTP/1.1\r\nHost: {url.netloc}\r\n\r\n".encode())
        until(lambda: page._board.readers == 1)
        for number in range(200):
            page.show(LiveState(0.0, number, messages=("x" * 100_000,)))
        assert ask(page)[0] == 200
        # Whatever it is shown, of each kind only the newest event is kept.
        until(lambda: "now" in page._board._events)
        assert set(page._board._events) <= {"now", "results"}


def test_too_many_connections_are_closed_and_the_others_go_on(page):
    url = urlsplit(page.url)
    idle = [socket.create_connection((url.hostname, url.port)) for _ in range(MOST_CONNECTIONS)]
    try:
        with pytest.raises((http.client.HTTPException, OSError)):
            ask(page)
    finally:
        for one in idle:
            one.close()
    until(lambda: _answers(page))


def _answers(page):
    try:
        return ask(page)[0] == 200
    except (http.client.HTTPException, OSError):
        return False


def test_a_port_that_is_taken_is_one_line(page):
    port = urlsplit(page.url).port
    with pytest.raises(EnvironmentUnusable, match=f"--live 127.0.0.1:{port}: cannot listen there"):
        LivePage(ListenAddress("127.0.0.1", port), nothing, stop=None)


@pytest.mark.parametrize("host", ["a..b", "x" * 64])
def test_a_host_without_an_address_cannot_be_listened_on(host):
    with pytest.raises(EnvironmentUnusable, match=f"^cannot listen on {host}:0: the host has"):
        LivePage(ListenAddress(host, 0), nothing, stop=None)


def test_beyond_loopback_the_page_is_served_with_tls():
    context, fingerprint = own_certificate(ListenAddress("127.0.0.1", 0))
    page = LivePage(LOOPBACK, nothing, stop=None, tls=context)
    try:
        url = urlsplit(page.url)
        assert url.scheme == "https"
        trusting = ssl.create_default_context()
        trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
        connection = http.client.HTTPSConnection(url.hostname, url.port, context=trusting)
        connection.request("GET", url.path)
        assert connection.getresponse().status == 200
        connection.close()
        der = ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate((url.hostname, url.port)))
        import hashlib

        assert hashlib.sha256(der).hexdigest().upper() == fingerprint.replace(":", "")
    finally:
        page.close()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("9105", ListenAddress("127.0.0.1", 9105)),
        ("0.0.0.0:80", ListenAddress("0.0.0.0", 80)),
        ("[::1]:0", ListenAddress("::1", 0)),
        ("localhost:8080", ListenAddress("localhost", 8080)),
    ],
)
def test_addresses(text, expected):
    assert address(text) == expected


@pytest.mark.parametrize("text", ["task.yaml", "host", "1:2:3", "99999", "http://x:1", "x:y", ""])
def test_what_is_no_address_is_refused(text):
    with pytest.raises(InvalidInput, match="is not an address"):
        address(text)


def test_the_stop_button_is_ctrl_c():
    with pytest.raises(KeyboardInterrupt):
        _interrupted()


def test_where_ctrl_c_is_ignored_the_stop_button_is_sigterm(monkeypatch):
    received = []
    monkeypatch.setattr("os.kill", lambda _pid, number: received.append(number))
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        interrupt()
    finally:
        signal.signal(signal.SIGINT, before)
    assert received == [signal.SIGTERM]


def _interrupted():
    interrupt()
    time.sleep(5)


def test_events_are_one_line_whatever_they_hold():
    board = Board()
    board.post("now", {"html": "a\nb\r\n\n</script>"})
    board.post("end", {"html": ""})
    text = b"".join(board.events()).decode()
    [line] = [line for line in text.splitlines() if "</script>" in line]
    assert json.loads(line.removeprefix("data: "))["html"] == "a\nb\r\n\n</script>"


def test_a_run_of_another_command_is_followed_to_its_report(tmp_path):
    # A fixed load ends with 0 on a busy machine, too; a search may end undecided.
    (tmp_path / "task.yaml").write_text(TASK)
    loadstone = CommandLine(tmp_path)
    with (
        known_service(4, 0.06) as service,
        loadstone.begun("run", "task.yaml", url=service.url) as measuring,
    ):
        until(lambda: measuring.stderr.readline().startswith("run "))
        with loadstone.begun("live", url=service.url) as watching:
            url = re.fullmatch(r"live page: (\S+)\n", watching.stderr.readline())[1]
            with urllib.request.urlopen(f"{url}events", timeout=60) as events:
                first = events.readline()
                (tmp_path / "followed").touch()
                text = (first + events.read()).decode()
            _, errors = watching.communicate(timeout=60)
            assert watching.returncode == 0, errors
        _, errors = measuring.communicate(timeout=60)
        assert measuring.returncode == 0, errors
    assert "event: results" in text
    [_, last] = text.split("event: end")
    assert "Authenticate.keystone" in last
    ended = loadstone("live")
    assert ended.returncode == 2
    assert "has ended (finished); `loadstone report " in ended.stderr


def until(is_so):
    end_s = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < end_s
        time.sleep(0.01)
