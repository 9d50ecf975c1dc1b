"""Metrics written to a Prometheus: those of the store, in the form that its protocol demands."""

import contextlib
import json
import shutil
import struct
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request

import pytest
import snappy
from command_line import CommandLine
from known_service import known_service
from lab_client import skipping_without_servers
from made_runs import runs
from opentelemetry.exporter.prometheus_remote_write.gen.remote_pb2 import WriteRequest
from otlp_receiver import receiving, until
from reserved_port import reserve_port

from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.lab.programs import Program, check
from loadstone.live import push as pushing
from loadstone.live import state
from loadstone.live.push import Destination, MetricsPush
from loadstone.live.remote_write import HEADERS, RemoteWrite, write_url
from loadstone.live.state import LiveState
from loadstone.store.store import Store

SECRET = "write-hunter2-hunter2"


@pytest.fixture
def said():
    return []


@pytest.fixture(autouse=True)
def _often(monkeypatch):
    monkeypatch.setenv(pushing.INTERVAL, "50")


def ended():
    """The state after the trials of a stored search."""
    now = LiveState(0.0, 10.0, run_ids=("r1",), kind="capacity")
    for trial in runs()["search"].measurements[0].trials:
        now = state.ended(now, "r1", trial, (0,) * 80 + (trial.stats.ok,) + (0,) * 151)
    return now


def written_to(url, say):
    return MetricsPush(RemoteWrite(Destination(write_url(url), {"X-Key": SECRET})), say)


def series(body):
    """Return the labels and the value of each series of a push."""
    found = WriteRequest.FromString(snappy.decompress(body)).timeseries
    return [([(label.name, label.value) for label in one.labels], one.samples) for one in found]


def test_a_series_has_its_labels_in_order_and_one_sample(said):
    with receiving() as receiver, written_to(receiver.url, said.append) as push:
        push.show(ended())
    assert {*receiver.paths} == {"/api/v1/write"}
    for name, value in HEADERS.items():
        assert {one[name.lower()] for one in receiver.headers} == {value}
    assert {one["x-key"] for one in receiver.headers} == {SECRET}
    last = series(receiver.bodies[-1])
    for labels, samples in last:
        assert labels == sorted(labels)
        assert dict(labels)["job"] == "loadstone"
        assert len(samples) == 1
    assert len({tuple(labels) for labels, _ in last}) == len(last)
    [completed] = [
        samples[0].value
        for labels, samples in last
        if ("__name__", "loadstone_live_completed_iterations_total") in labels
    ]
    assert completed == sum(one.stats.ok for one in runs()["search"].measurements[0].trials)
    buckets = [
        samples[0].value
        for labels, samples in last
        if ("__name__", "loadstone_live_latency_seconds_bucket") in labels
    ]
    assert buckets == sorted(buckets)
    assert buckets[-1] == completed
    assert said == []


def with_run(run_id):
    return LiveState(0.0, 10.0, run_ids=("r0", run_id), kind="capacity")


def runs_named(body):
    """Return the bits of the value of each run's series, by its id."""
    return {
        dict(labels)["run_id"]: struct.pack(">d", samples[0].value).hex()
        for labels, samples in series(body)
        if ("__name__", "loadstone_live_run_info") in labels
    }


def test_a_series_that_ends_is_marked_until_the_receiver_has_taken_it():
    one, stale = struct.pack(">d", 1.0).hex(), "7ff0000000000002"
    answers = iter([200, 500, 200, 200])
    with receiving() as receiver:
        remote = RemoteWrite(Destination(write_url(receiver.url)))
        for run_id in ("r1", "r2", "r2", "r2"):
            receiver.status = next(answers)
            remote.send(with_run(run_id), 0, 10**9)
    assert list(map(runs_named, receiver.bodies)) == [
        {"r1": one},
        {"r1": stale, "r2": one},
        {"r1": stale, "r2": one},
        {"r2": one},
    ]


def test_no_password_of_a_netrc_is_sent(said, monkeypatch, tmp_path):
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login ann password other-hunter2\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    chosen = {"Authorization": f"Bearer {SECRET}"}
    for headers, sent in ((chosen, chosen["Authorization"]), ({}, None)):
        with receiving() as receiver:
            to = Destination(write_url(receiver.url), headers)
            with MetricsPush(RemoteWrite(to), said.append) as push:
                push.show(ended())
        assert {one.get("authorization") for one in receiver.headers} == {sent}
    assert said == []


@pytest.mark.parametrize(
    ("receiver", "problem"),
    [
        ({"status": 500}, "HTTP status 500"),
        ({"status": 404}, "HTTP status 404"),
        ({"status": 302, "location": "http://127.0.0.1:9/"}, "HTTP status 302"),
    ],
)
def test_a_receiver_that_refuses_costs_one_line(said, receiver, problem):
    with receiving(**receiver) as found, written_to(found.url, said.append) as push:
        until(lambda: len(found.bodies) > 3)
        push.show(ended())
    about = f"--remote-write {found.url}/api/v1/write"
    assert said == [f"{about}: {problem}; the measurement is not affected"]


def test_a_receiver_that_is_away_costs_one_line(said):
    port = reserve_port()
    with written_to(f"http://127.0.0.1:{port}", said.append) as push:
        until(lambda: push._receiver.problem)
    assert [one.partition(": ")[2] for one in said] == [
        "cannot be reached; the measurement is not affected"
    ]


def test_without_the_extra_it_is_said_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "snappy", None)
    with pytest.raises(EnvironmentUnusable, match="pip install opentelemetry-exporter-"):
        written_to("http://127.0.0.1:9", print)


def test_a_url_holds_no_secret():
    with pytest.raises(InvalidInput, match="--remote-write-headers") as refused:
        write_url(f"http://u:{SECRET}@x")
    assert SECRET not in str(refused.value)


def test_headers_without_a_url_are_refused(tmp_path):
    done = CommandLine(tmp_path)("hit", "http://127.0.0.1:9/", "--remote-write-headers", "away")
    assert done.returncode == 2
    assert "--remote-write-headers needs --remote-write URL" in done.stderr


@contextlib.contextmanager
def prometheus(folder):
    """A Prometheus that takes remote writes; yields its URL."""
    with skipping_without_servers():
        check([Program("prometheus", "prometheus")])
    port = reserve_port()
    (folder / "prometheus.yml").write_text("global: {}\n")
    command = (
        shutil.which("prometheus") or "prometheus",
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--web.enable-remote-write-receiver",
    )
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


def asked(url, query):
    """Return the values of a query; none if the server does not answer yet."""
    words = urllib.parse.urlencode({"query": query})
    try:
        with urllib.request.urlopen(f"{url}/api/v1/query?{words}", timeout=10) as answer:
            found = json.load(answer)["data"]["result"]
    except (urllib.error.URLError, OSError):
        return []
    return [float(one["value"][1]) for one in found]


def test_a_real_prometheus_has_what_is_stored(tmp_path):
    with prometheus(tmp_path) as url, known_service(4, 0.06) as service:
        until(lambda: asked(url, "vector(1)") == [1.0])
        done = CommandLine(tmp_path)(
            *("hit", service.url, "--rate=40", "--for=2s", "--store=store"),
            *("--remote-write", url),
        )
        assert "--remote-write" not in done.stderr
        names = ("due_iterations_total", "completed_iterations_total")
        written = [asked(url, f"loadstone_live_{name}") for name in names]
        most = asked(url, 'loadstone_live_latency_seconds_bucket{le="+Inf"}')
    with Store.open(tmp_path / "store") as store:
        [entry] = store.every()
        [measurement] = store.get(entry.run_id).measurements
    stored = [one.stats for one in measurement.trials]
    sums = [[float(sum(one.due for one in stored))], [float(sum(one.ok for one in stored))]]
    assert written == sums
    assert most == sums[1]
