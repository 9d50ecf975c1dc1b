"""What `--monitor` accepts, and which limits hold for what sources answer."""

import base64
import json
import os
import stat
from contextlib import nullcontext

import pytest
from click.testing import CliRunner
from fake_server import handled, serving

from loadstone.cli.monitor import monitor
from loadstone.diagnosis.demand import observe
from loadstone.errors import InvalidInput
from loadstone.monitor.metrics import Recorder
from loadstone.monitor.source import Unreadable
from loadstone.monitor.sources import sockets
from loadstone.monitor.sources import ssh as ssh_source
from loadstone.monitor.sources.open import open_source, open_sources

SECRET = "s3cr3t-9"
ANSWER = {"status": "success", "data": {"result": [{"metric": {}, "value": [0, "1"]}]}}


@pytest.mark.parametrize(
    "text",
    [
        f"prometheus=http://ann:{SECRET}@host:9090",
        f"prometheus=http://{SECRET}@host:9090",
        f"prometheus=http://host:9090?token={SECRET}",
        f"prometheus=http://ann:{SECRET}@host:wrong",
        f"prometheus=http://ann:{SECRET}",
        f"prometheus=http://host:9090,password={SECRET}",
        f"prometheus=//ann:{SECRET}@host",
        f"mariadb://ann:{SECRET}@host",
        f"mariadb://ann:{SECRET}@host:wrong",
        f"mariadb://ann:{SECRET}",
        f"other://ann:{SECRET}@host",
        f"mariadb://ann@host?password={SECRET}",
        f"mariadb://ann@host?{SECRET}",
        "mariadb://ann@host?passwordfile=/etc/secret",
        "mariadb://ann@host?password-file=",
    ],
)
def test_a_secret_in_a_url_is_refused_and_not_repeated(text):
    with pytest.raises(InvalidInput) as refused:
        open_source(text)
    assert SECRET not in str(refused.value)


def test_what_was_monitored_until_an_interrupt_is_written(monkeypatch, tmp_path, capsys):
    def interrupted(_seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr("loadstone.cli.monitor.time.sleep", interrupted)
    ways = (("until", None, nullcontext()), ("for", 60.0, pytest.raises(KeyboardInterrupt)))
    for name, for_s, ends in ways:
        path = tmp_path / f"{name}.json"
        with ends:
            monitor.callback(lab=None, watched=(), for_s=for_s, to=path)
        assert "resources" in json.loads(path.read_text())
        assert "memory" in capsys.readouterr().out


def test_a_source_that_is_named_twice_is_read_once():
    named = ("ssh=far", "memcached://a:1", "ssh=far", "memcached://a:1", "memcached://b:1")
    _, _, *watched = open_sources(lambda: None, (), named)
    assert [one.name for one in watched] == ["ssh far", "memcached", "memcached-2"]


def test_a_service_without_a_port_is_refused_unless_its_port_is_known():
    with pytest.raises(InvalidInput, match=r"has no port; write memcached://\[::1\]:PORT"):
        open_source("memcached://[::1]")
    with pytest.raises(InvalidInput, match=r"has no port; write memcached://cache:PORT"):
        open_source("memcached://cache")
    open_source("mariadb://ann@db")
    open_source("haproxy:///run/haproxy.sock")


@pytest.mark.parametrize(
    "options",
    ["user=ann", "password-file=f", "user=a,password-file=f,token-file=t", "user=a,user=b"],
)
def test_incomplete_credentials_are_refused(options):
    with pytest.raises(InvalidInput, match="prometheus="):
        open_source(f"prometheus=http://host:9090,{options}")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            "user=ann,password-file={file}",
            f"Basic {base64.b64encode(f'ann:{SECRET}'.encode()).decode()}",
        ),
        ("token-file={file}", f"Bearer {SECRET}"),
    ],
)
def test_a_prometheus_gets_the_password_of_a_file(tmp_path, options, expected):
    file = tmp_path / "password"
    file.write_text(f"{SECRET}\n")
    received = []

    def answer(request):
        received.append(request.headers["Authorization"])
        request.answer(200, ANSWER)

    with serving(handled(answer)) as url:
        source = open_source(f"prometheus={url},{options.format(file=file)}")
        assert list(source.read())
        source.close()
    assert set(received) == {expected}
    assert SECRET not in repr(source)


def test_two_results_for_one_source_are_not_mixed_into_one_series():
    rows = [
        {"metric": {"instance": "db:9187", "replica": replica}, "value": [0, value]}
        for replica, value in (("a", "100"), ("b", "7000"))
    ]
    answer = {"status": "success", "data": {"result": rows}}
    with serving(handled(lambda request: request.answer(200, answer))) as url:
        source = open_source(f"prometheus={url}")
        with pytest.raises(Unreadable, match="several results for machine@db:9187/cpu"):
            list(source.read())
        source.close()


@pytest.mark.parametrize("status", [401, 403])
def test_a_prometheus_that_refuses_the_credentials_is_said(status):
    with serving(handled(lambda request: request.answer(status, "Unauthorized"))) as url:
        source = open_source(f"prometheus={url}")
        with pytest.raises(Unreadable, match=f"HTTP {status}; check user= and password-file="):
            list(source.read())
        source.close()


def test_a_slash_in_a_label_does_not_split_a_source(tmp_path):
    queries = tmp_path / "queries.yaml"
    queries.write_text(
        "- {query: a, source: 'postgres@{instance}', metric: connections}\n"
        "- {query: b, source: 'postgres@{instance}', metric: connections_limit}\n"
    )

    def answer(request):
        value = "40" if "query=a" in request.path else "100"
        rows = [
            {"metric": {"instance": f"postgresql://{host}:5432/keystone"}, "value": [0, value]}
            for host in ("db1", "db2")
        ]
        request.answer(200, {"status": "success", "data": {"result": rows}})

    recorder = Recorder()
    with serving(handled(answer)) as url:
        source = open_source(f"prometheus={url},queries={queries}")
        recorder.add(1000.0, source.read())
        source.close()
    uses = observe(recorder.metrics(), 100).uses
    assert [(one.busy, one.capacity) for one in uses] == [(40.0, 100.0), (40.0, 100.0)]


def test_a_query_that_gives_no_vector_is_said():
    answer = {"status": "success", "data": {"resultType": "scalar", "result": [1.0, "2"]}}
    with serving(handled(lambda request: request.answer(200, answer))) as url:
        source = open_source(f"prometheus={url}")
        with pytest.raises(Unreadable, match="gives a scalar; it must give an instant vector"):
            list(source.read())
        source.close()


def test_counters_that_prometheus_repeats_between_scrapes_are_no_readings(tmp_path):
    # Scraped every 15 s, read every 5 s; one of the cores is always busy, the other idle.
    scraped = [{"0": 100 + 15 * (n // 3), "1": 7} for n in range(9)]
    reads = iter(scraped)
    queries = tmp_path / "queries.yaml"
    queries.write_text(
        "- {query: cpu, source: 'machine@{instance}/cpu{cpu}', metric: cpu_busy_seconds_total}\n"
    )

    def answer(request):
        rows = [
            {"metric": {"instance": "node", "cpu": cpu}, "value": [0, str(value)]}
            for cpu, value in next(reads).items()
        ]
        request.answer(200, {"status": "success", "data": {"result": rows}})

    recorder = Recorder()
    with serving(handled(answer)) as url:
        source = open_source(f"prometheus={url},queries={queries}")
        for number in range(len(scraped)):
            source._next_s = 0.0
            recorder.add(1000.0 + 5 * number, source.read())
        source.close()
    seen = observe(recorder.metrics(), 100)
    assert seen.machine("node").busy == 1.0
    assert recorder.metrics().of("machine@node/cpu0", "cpu_busy_seconds_total")[1].tolist() == [
        *(115.0, 130.0)
    ]


def test_a_machine_that_prometheus_did_not_scrape_meanwhile_is_named():
    rows = [{"metric": {"instance": "node:9100", "cpu": "0"}, "value": [0, "7"]}]
    answer = {"status": "success", "data": {"result": rows}}
    with serving(handled(lambda request: request.answer(200, answer))) as url:
        ended = CliRunner().invoke(monitor, ["--for", "1s", "--monitor", f"prometheus={url}"])
    assert ended.exit_code == 0
    assert "how busy node:9100 was is not known" in ended.stderr


def test_a_prometheus_that_answers_without_end_is_left(monkeypatch):
    monkeypatch.setattr("loadstone.monitor.sources.prometheus.MOST_BYTES", 100_000)

    def answer(request):
        request.send_response(200)
        request.end_headers()
        request.close_connection = True
        while True:
            request.wfile.write(b" " * 65_536)

    with serving(handled(answer)) as url:
        source = open_source(f"prometheus={url}")
        with pytest.raises(Unreadable, match="longer than"):
            list(source.read())
        source.close()


def test_a_status_page_without_end_is_left(monkeypatch):
    monkeypatch.setattr(sockets, "MOST_BYTES", 100_000)

    def answer(request):
        request.send_response(200)
        request.end_headers()
        request.close_connection = True
        while True:
            request.wfile.write(b" " * 65_536)

    with serving(handled(answer)) as url:
        source = open_source(f"apache://{url.removeprefix('http://')}/server-status")
        with pytest.raises(Unreadable, match="longer than"):
            list(source.read())
        source.close()


@pytest.mark.parametrize(
    "script",
    [
        "echo @begin; yes",  # many lines
        "echo @begin; cat /dev/zero",  # one line
    ],
)
def test_a_host_that_prints_without_end_is_left(monkeypatch, tmp_path, script):
    monkeypatch.setattr(ssh_source, "MOST_BLOCK", 100_000)
    program = tmp_path / "ssh"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    source = open_source("ssh=host")
    with pytest.raises(Unreadable, match="longer than"):
        list(source.read())
    source.close()


def test_two_sources_of_a_kind_have_series_of_their_own() -> None:
    opened = open_sources(
        lambda: None,
        ("memcached://127.0.0.1:1?name=memcached-1",),
        ("memcached://127.0.0.1:2", "memcached://127.0.0.1:3", "mariadb://u@127.0.0.1:4"),
    )
    assert [one.name for one in opened[2:]] == [
        "memcached-1",
        "memcached",
        "memcached-2",
        "mariadb",
    ]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{}", ":1: must be a list of queries"),
        ("- query: up\n  metric: up_ratio\n", ":1: entry 1: source is missing"),
        ("- query: up\n  metric: 3\n", ":2: entry 1: metric must be a text, not 3"),
        ("- query: up\n  labels: x\n", ":2: entry 1: labels: no such field"),
    ],
)
def test_a_mistake_in_queries_has_its_line(tmp_path, text, says):
    queries = tmp_path / "queries.yaml"
    queries.write_text(text)
    with pytest.raises(InvalidInput, match=says):
        open_source(f"prometheus=http://127.0.0.1:9,queries={queries}")
