"""Metrics while a command measures: their sums are those of the stored trials."""

import re
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from dataclasses import replace
from itertools import pairwise

import pytest
from command_line import CommandLine
from known_service import known_service
from made_runs import runs
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from loadstone.analysis.model import Failure
from loadstone.errors import EnvironmentUnusable
from loadstone.live import metrics, state
from loadstone.live.metrics import MetricsEndpoint
from loadstone.live.site import LOOPBACK, ListenAddress
from loadstone.live.state import NO_PROGRESS, HostPoint, LiveState, LoadState
from loadstone.plan.load import OpenLoad
from loadstone.search.model import Capacity, TrialRequest
from loadstone.store.store import Store

PROMTOOL = shutil.which("promtool")
COUNTERS = ("due_iterations_total", "completed_iterations_total", "failed_iterations_total")


def values(text):
    """Return the value of each series; the text is a whole OpenMetrics exposition."""
    return {
        (one.name.removeprefix("loadstone_live_"), tuple(sorted(one.labels.items()))): one.value
        for family in text_string_to_metric_families(text)
        for one in family.samples
    }


def scraped(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        assert answer.headers["Content-Type"].startswith("application/openmetrics-text")
        return answer.read().decode()


def ended():
    """The state after the trials of a stored search."""
    now = LiveState(0.0, 10.0, run_ids=("r1",), kind="capacity")
    for trial in runs()["search"].measurements[0].trials:
        now = state.ended(now, "r1", trial, (0,) * 80 + (trial.stats.ok,) + (0,) * 151)
    return now


def of_fleet():
    """The state while two hosts send a load, of which one is lost."""
    hosts = (
        HostPoint("load1", 60.0, 58.0, 0.25, 1, 2, 1.5, ""),
        HostPoint("load2", 0.0, 0.0, 0.0, 0, 9, None, "no answer for 10 s"),
    )
    request = TrialRequest(OpenLoad(120.0, 30.0), "a trial")
    return replace(ended(), loads=(LoadState("r1", request, 0.0, NO_PROGRESS, hosts=hosts),))


def test_each_host_of_a_fleet_has_its_own_figures():
    found = values(metrics.render(of_fleet()))
    of_host = {
        (name, labels[0][1]): value
        for (name, labels), value in found.items()
        if name.startswith("host_")
    }
    assert of_host == {
        ("host_up", "load1"): 1,
        ("host_up", "load2"): 0,
        ("host_offered_iterations_per_second", "load1"): 60,
        ("host_offered_iterations_per_second", "load2"): 0,
        ("host_completed_iterations_per_second", "load1"): 58,
        ("host_completed_iterations_per_second", "load2"): 0,
        ("host_cpu_cores", "load1"): 0.25,
        ("host_cpu_cores", "load2"): 0,
        ("host_send_lag_p99_seconds", "load1"): 0.0015,
    }
    assert not [name for name, _ in values(metrics.render(ended())) if name.startswith("host_")]


def test_sums_are_those_of_the_trials():
    trials = runs()["search"].measurements[0].trials
    found = values(metrics.render(ended()))
    sums = tuple(found[name, ()] for name in COUNTERS)
    assert sums == (
        sum(one.stats.due for one in trials),
        sum(one.stats.ok for one in trials),
        sum(one.stats.failed for one in trials),
    )
    verdicts = [value for (name, _), value in found.items() if name == "trials_total"]
    assert sum(verdicts) == len(trials)


def test_errors_of_many_kinds_never_fall():
    [trial, *_] = runs()["search"].measurements[0].trials
    now, before = LiveState(0.0, 10.0), {}
    for kinds in ({f"a{one}": 2 for one in range(20)}, {"new": 9}, {"a19": 1}, {"new": 1}):
        failures = tuple(Failure(one, count, one, 1, "issue", 9, 0) for one, count in kinds.items())
        stats = replace(trial.stats, failures=failures)
        now = state.ended(now, "r1", replace(trial, stats=stats), None)
        found = dict(now.totals.errors)
        assert len(found) <= state.MOST_KINDS + 1
        assert all(found.get(one, 0) >= count for one, count in before.items())
        before = found
    assert sum(before.values()) == 51
    assert before[state.OTHER] == 10


def test_a_histogram_counts_latencies_up_to_each_bound():
    completed = sum(one.stats.ok for one in runs()["search"].measurements[0].trials)
    found = values(metrics.render(ended()))
    buckets = {
        labels[0][1]: value
        for (name, labels), value in found.items()
        if name == "latency_seconds_bucket"
    }
    # Bucket 80 of the engine holds 4.096 to 4.608 ms.
    assert buckets["0.004096"] == 0
    assert buckets["0.006144"] == completed
    assert buckets["+Inf"] == completed


def test_n_so_far_and_the_run_are_named():
    now = LiveState(
        0.0, 1.0, run_ids=("r1",), kind="capacity", so_far=(Capacity(60.0, 55.0, 65.0, 0.95),)
    )
    found = values(metrics.render(now))
    for bound, value in (("estimate", 60.0), ("low", 55.0), ("high", 65.0)):
        assert found["capacity_iterations_per_second", (("bound", bound),)] == value
    assert found["run_info", (("kind", "capacity"), ("run_id", "r1"))] == 1


@pytest.mark.skipif(PROMTOOL is None, reason="apt-get install prometheus")
def test_prometheus_accepts_names_and_types():
    # promtool reads the older format, which has no EOF, units and type "info".
    lines = metrics.render(of_fleet()).splitlines()
    text = "\n".join(one for one in lines if not one.startswith(("# UNIT", "# EOF"))) + "\n"
    text = text.replace("run info\n", "run gauge\n")
    done = subprocess.run(
        [PROMTOOL, "check", "metrics"], input=text, capture_output=True, text=True, check=False
    )
    assert "error" not in done.stderr.lower(), done.stderr


def test_only_get_of_metrics_is_answered():
    with MetricsEndpoint(LOOPBACK, is_open=False) as served:
        served.show(ended())
        assert "completed_iterations_total" in scraped(served.url)
        for wrong in (served.url + "/x", served.url.removesuffix("/metrics")):
            with pytest.raises(urllib.error.HTTPError, match="404"):
                urllib.request.urlopen(wrong, timeout=10)
        foreign = urllib.request.Request(served.url, headers={"Host": "evil.example"})
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(foreign, timeout=10)


def test_a_port_that_is_taken_is_one_line():
    with MetricsEndpoint(LOOPBACK, is_open=False) as served:
        port = int(re.search(r":(\d+)/", served.url)[1])
        with pytest.raises(EnvironmentUnusable, match=f"--metrics 127.0.0.1:{port}: cannot listen"):
            MetricsEndpoint(ListenAddress("127.0.0.1", port), is_open=False)


def test_an_address_of_all_machines_needs_a_permission(tmp_path):
    done = CommandLine(tmp_path)("hit", "http://127.0.0.1:9/", "--metrics", "0.0.0.0:0")
    assert done.returncode == 2
    assert "--metrics-beyond-loopback" in done.stderr


def test_a_search_is_scraped_and_the_last_scrape_has_what_is_stored(tmp_path):
    found = []
    with (
        known_service(4, 0.06) as service,
        CommandLine(tmp_path).begun(
            *("capacity", "--users=0", "--budget=20s", "--metrics=0", "--store=store"),
            url=service.url,
        ) as process,
    ):
        url = re.fullmatch(r"metrics: (\S+)\n", process.stderr.readline())[1]
        try:
            while True:
                found.append(values(scraped(url)))
                time.sleep(0.1)
        except (OSError, urllib.error.URLError):
            pass  # the command has ended
        _, errors = process.communicate()
        assert process.returncode in (0, 4), errors
    for before, after in pairwise(found):
        for name in COUNTERS:
            assert after[name, ()] >= before[name, ()]
    last = found[-1]
    with Store.open(tmp_path / "store") as store:
        [entry] = store.every()
        [measurement] = store.get(entry.run_id).measurements
    stored = [one.stats for one in measurement.trials]
    capacity = measurement.capacity
    assert capacity is not None
    bounds = {"estimate": capacity.rate_rps, "low": capacity.low_rps, "high": capacity.high_rps}
    for bound, rate_rps in bounds.items():  # a range has no estimate
        assert last.get(("capacity_iterations_per_second", (("bound", bound),))) == rate_rps
    assert last["completed_iterations_total", ()] == sum(one.ok for one in stored)
    assert last["due_iterations_total", ()] == sum(one.due for one in stored)
    assert (
        last["latency_seconds_bucket", (("le", "+Inf"),)]
        == (last["completed_iterations_total", ()])
    )
