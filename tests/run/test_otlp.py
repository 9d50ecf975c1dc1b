"""Metrics pushed to an OpenTelemetry collector: those of the store, and nobody waits for it."""

import re
import subprocess
import sys
from itertools import pairwise

import pytest
from command_line import CommandLine
from known_service import known_service
from made_runs import runs
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality
from otlp_receiver import metrics, receiving, resource, until
from reserved_port import reserve_port
from secret_watch import files_with, watched
from simulator.service import Service
from virtual import VirtualCommandLine

from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.live import push as pushing
from loadstone.live import state
from loadstone.live.otlp import Collector, collector_url
from loadstone.live.push import Destination, MetricsPush, read_headers
from loadstone.live.state import LiveState
from loadstone.search.model import Capacity
from loadstone.store.store import Store

COUNTERS = ("due_iterations", "completed_iterations", "failed_iterations")
CUMULATIVE = AggregationTemporality.Value("AGGREGATION_TEMPORALITY_CUMULATIVE")
SECRET = "otlp-hunter2-hunter2"


@pytest.fixture
def said():
    return []


@pytest.fixture(autouse=True)
def _often(monkeypatch):
    monkeypatch.setenv(pushing.INTERVAL, "50")


def ended():
    """The state after the trials of a stored search."""
    now = LiveState(
        0.0, 10.0, run_ids=("r1",), kind="capacity", so_far=(Capacity(60.0, 55.0, 65.0, 0.95),)
    )
    for trial in runs()["search"].measurements[0].trials:
        now = state.ended(now, "r1", trial, (0,) * 80 + (trial.stats.ok,) + (0,) * 151)
    return now


def to_collector(url, say):
    return MetricsPush(Collector(Destination(collector_url(url), {"X-Key": SECRET})), say)


def pushed(say, shown=None, **receiver):
    """Return what a collector got from a command that ended so."""
    with receiving(**receiver) as collector:
        with to_collector(collector.url, say) as push:
            push.show(shown or ended())
        return collector


def test_sums_are_those_of_the_trials(said):
    trials = runs()["search"].measurements[0].trials
    collector = pushed(said.append)
    last = collector.pushes()[-1]
    assert tuple(last[name, ()] for name in COUNTERS) == (
        sum(one.stats.due for one in trials),
        sum(one.stats.ok for one in trials),
        sum(one.stats.failed for one in trials),
    )
    verdicts = [value for (name, _), value in last.items() if name == "trials"]
    assert sum(verdicts) == len(trials)
    for bound, value in (("estimate", 60.0), ("low", 55.0), ("high", 65.0)):
        assert last["capacity_iterations_per_second", (("bound", bound),)] == value
    assert last["run_info", (("kind", "capacity"), ("run_id", "r1"))] == 1
    assert said == []


def test_a_histogram_counts_latencies_between_its_bounds(said):
    completed = sum(one.stats.ok for one in runs()["search"].measurements[0].trials)
    point = pushed(said.append).pushes()[-1]["latency_seconds", ()]
    assert point.count == sum(point.bucket_counts) == completed
    assert len(point.bucket_counts) == len(point.explicit_bounds) + 1
    # Bucket 80 of the engine holds 4.096 to 4.608 ms.
    [index] = [index for index, count in enumerate(point.bucket_counts) if count]
    assert point.explicit_bounds[index - 1] == 0.004096
    assert not point.HasField("sum")


def test_counters_are_cumulative_since_the_command_began(said):
    collector = pushed(said.append)
    kinds = {one.name: one.WhichOneof("data") for one in metrics(collector.bodies[-1])}
    assert kinds["loadstone_live_due_iterations"] == "sum"
    assert kinds["loadstone_live_latency_seconds"] == "histogram"
    assert kinds["loadstone_live_backlog_iterations"] == "gauge"
    starts = set()
    for body in collector.bodies:
        for one in metrics(body):
            kind = one.WhichOneof("data")
            data = getattr(one, kind)
            if kind != "gauge":
                assert data.aggregation_temporality == CUMULATIVE
                starts |= {point.start_time_unix_nano for point in data.data_points}
            if kind == "sum":
                assert data.is_monotonic
    assert len(starts) == 1
    assert {*collector.paths} == {"/v1/metrics"}


def test_two_commands_at_a_time_are_told_apart_and_the_environment_names_them(said, monkeypatch):
    first, second = (resource(pushed(said.append).bodies[0]) for _ in range(2))
    assert first["service.name"] == second["service.name"] == "loadstone"
    assert first["service.instance.id"] != second["service.instance.id"]
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "service.instance.id=night,site=north")
    named = resource(pushed(said.append).bodies[0])
    assert (named["service.instance.id"], named["site"]) == ("night", "north")


def test_no_password_of_a_netrc_is_sent(said, monkeypatch, tmp_path):
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login ann password other-hunter2\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    chosen = {"Authorization": f"Bearer {SECRET}"}
    for headers, sent in ((chosen, chosen["Authorization"]), ({}, None)):
        with receiving() as collector:
            to = Destination(collector_url(collector.url), headers)
            with MetricsPush(Collector(to), said.append) as push:
                push.show(ended())
        assert {one.get("authorization") for one in collector.headers} == {sent}
    assert said == []


@pytest.mark.parametrize(
    ("receiver", "problem"),
    [
        ({"status": 500}, "HTTP status 500"),
        ({"status": 401}, "HTTP status 401"),
        ({"status": 302, "location": "http://127.0.0.1:9/"}, "HTTP status 302"),
    ],
)
def test_a_collector_that_refuses_costs_one_line(said, receiver, problem):
    with (
        receiving(**receiver) as collector,
        to_collector(collector.url, said.append) as push,
    ):
        until(lambda: len(collector.bodies) > 3)
        push.show(ended())
    assert said == [
        f"--otlp {collector.url}/v1/metrics: {problem}; the measurement is not affected"
    ]


def test_a_collector_that_is_away_costs_one_line(said):
    port = reserve_port()
    with to_collector(f"http://127.0.0.1:{port}/x", said.append) as push:
        until(lambda: push._receiver.problem)
    assert said == [
        f"--otlp http://127.0.0.1:{port}/x: cannot be reached; the measurement is not affected"
    ]


def test_quiet_hides_no_collector_that_is_away(tmp_path, capsys, monkeypatch):
    port = reserve_port()
    command = VirtualCommandLine(tmp_path, capsys, monkeypatch)
    words = ("--budget=20s", "--users=2", "--store=store", "--quiet")
    done = command(
        "capacity", *words, "--otlp", f"http://127.0.0.1:{port}/x", service=Service(1, 100.0)
    )
    assert done.stderr.splitlines() == [
        f"--otlp http://127.0.0.1:{port}/x: cannot be reached; the measurement is not affected"
    ]


def test_a_collector_that_never_answers_is_left_alone(said, monkeypatch):
    monkeypatch.setattr(pushing, "LAST_PUSH_S", 0.1)
    with receiving(wait_s=60.0) as collector:
        with to_collector(collector.url, said.append) as push:
            until(lambda: collector.bodies)
            push.show(ended())
        assert len(collector.bodies) == 1
    [line] = said
    assert "it did not take the last figures in time" in line


def test_what_a_redirect_names_gets_nothing(said):
    with receiving() as other:
        pushed(said.append, status=307, location=f"{other.url}/v1/metrics")
        assert other.bodies == []


def test_after_a_failure_of_the_collector_the_next_push_has_everything(said):
    with receiving(status=400) as collector:
        with to_collector(collector.url, said.append) as push:
            until(lambda: said)
            collector.status = 200
            push.show(ended())
        completed = sum(one.stats.ok for one in runs()["search"].measurements[0].trials)
        assert collector.pushes()[-1]["completed_iterations", ()] == completed
    assert len(said) == 1


def test_state_that_cannot_be_sent_ends_nothing(said):
    collector = pushed(said.append, shown=object())
    assert len(said) == 1
    assert "cannot be sent (AttributeError)" in said[0]
    assert collector.port


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/metrics"),
        ("http://127.0.0.1:4318/", "http://127.0.0.1:4318/v1/metrics"),
        ("https://otel.example/otlp/v1/metrics", "https://otel.example/otlp/v1/metrics"),
        ("http://[::1]:4318", "http://[::1]:4318/v1/metrics"),
    ],
)
def test_urls(given, url):
    assert collector_url(given) == url


@pytest.mark.parametrize(
    "given", ["", "4318", "localhost:4318", "ftp://x", "http://", "http://x:99999", "http://x y/"]
)
def test_what_is_no_url_is_refused(given):
    with pytest.raises(InvalidInput, match="not a URL of a receiver"):
        collector_url(given)


@pytest.mark.parametrize("given", [f"http://u:{SECRET}@x", f"http://x/?k={SECRET}", "http://x/#f"])
def test_a_url_holds_no_secret(given):
    with pytest.raises(InvalidInput, match="--otlp-headers") as refused:
        collector_url(given)
    assert SECRET not in str(refused.value)


def test_headers_of_a_file(tmp_path):
    file = tmp_path / "headers"
    file.write_text("# of the team\n\nAuthorization: Bearer a b=:c\r\nX-Scope-OrgID:7\n")
    assert read_headers(file, "--otlp-headers") == {
        "Authorization": "Bearer a b=:c",
        "X-Scope-OrgID": "7",
    }


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (f"Authorization {SECRET}".encode(), "line 1: not a header; write NAME: VALUE"),
        (b"A: b\n: c", "line 2: not a header"),
        (b"A: b\nX: \x00", "line 2: not a header"),
        (b"A: b\nX: c\na: d", "line 3: a is given twice; join the values with a comma"),
        (b"\xff", "not UTF-8"),
        (b"A" * 70_000, "more than 65,536 bytes"),
    ],
)
def test_a_file_of_headers_that_is_none_is_one_line(tmp_path, content, problem):
    file = tmp_path / "headers"
    file.write_bytes(content)
    with pytest.raises(InvalidInput, match=re.escape(problem)) as refused:
        read_headers(file, "--otlp-headers")
    assert SECRET not in str(refused.value)


def test_without_the_extra_it_is_said_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.metrics.export", None)
    with pytest.raises(EnvironmentUnusable, match="pip install opentelemetry-sdk"):
        to_collector("http://127.0.0.1:9", print)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--otlp", "4318"), "not a URL of a receiver"),
        (
            ("--otlp", "http://127.0.0.1:9", "--otlp-headers", "away"),
            "--otlp-headers away: No such",
        ),
        (("--otlp-headers", "away"), "--otlp-headers needs --otlp URL"),
    ],
)
def test_bad_options_are_one_line_before_any_load(tmp_path, words, problem):
    done = CommandLine(tmp_path)("hit", "http://127.0.0.1:9/", *words)
    assert done.returncode == 2
    assert problem in done.stderr
    assert "Traceback" not in done.stderr


def test_without_the_option_nothing_of_opentelemetry_is_imported(tmp_path):
    with known_service(2, 0.01) as service:
        code = (
            "import sys; from loadstone.cli import main\n"
            f"sys.argv = ['loadstone', 'hit', '{service.url}', '--rate=5', '--for=1s', "
            "'--metrics=0']\n"
            "try: main()\n"
            "except SystemExit: pass\n"
            "print([one for one in sys.modules if one.startswith(('opentelemetry', 'google'))])"
        )
        done = CommandLine(tmp_path)  # for its environment
        shown = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            cwd=done.home,
            env={"LOADSTONE_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        )
    assert shown.stdout.splitlines()[-1] == "[]", shown.stderr


def test_the_last_push_has_what_is_stored(tmp_path):
    with known_service(4, 0.06) as service, receiving() as collector:
        done = CommandLine(tmp_path)(
            *("hit", service.url, "--rate=40", "--for=2s", "--store=store"),
            *("--otlp", collector.url),
        )
    assert "--otlp" not in done.stderr
    pushes = collector.pushes()
    assert len(pushes) > 2
    for before, after in pairwise(pushes):
        for name in COUNTERS:
            assert after[name, ()] >= before[name, ()]
    last = pushes[-1]
    with Store.open(tmp_path / "store") as store:
        [entry] = store.every()
        [measurement] = store.get(entry.run_id).measurements
    stored = [one.stats for one in measurement.trials]
    sums = (sum(one.due for one in stored), sum(one.ok for one in stored))
    assert (last["due_iterations", ()], last["completed_iterations", ()]) == sums
    assert last["latency_seconds", ()].count == sums[1]
    assert last["run_info", (("kind", entry.kind), ("run_id", entry.run_id))] == 1


@pytest.mark.usefixtures("loadstone")
def test_headers_reach_the_collector_and_nothing_else(tmp_path, write):
    write("Authenticate.keystone: [{runner: {type: serial, times: 3}}]")
    (tmp_path / "headers").write_text(f"Authorization: Bearer {SECRET}\n")
    with receiving(status=403) as collector:
        ended = watched([
            *("run", "task.yaml", "--json", "result.json"),
            *("--otlp", collector.url, "--otlp-headers", "headers"),
        ])  # fmt: skip
    assert ended.returncode == 0, ended.printed
    assert ended.printed.count("HTTP status 403") == 1
    assert {one["authorization"] for one in collector.headers} == {f"Bearer {SECRET}"}
    assert SECRET not in ended.printed
    assert not any(SECRET.encode() in one for one in ended.command_lines | ended.environments)
    assert files_with(SECRET, tmp_path) == [tmp_path / "headers"]
