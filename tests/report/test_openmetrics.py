import os
import shutil
import socket
import subprocess
import urllib.request
from dataclasses import replace

import pytest
from made_workloads import steps, workload
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_of
from prometheus_client.parser import text_string_to_metric_families as prometheus_of
from realistic import keystone

from loadstone.analysis.sla import Check
from loadstone.live.metrics import families
from loadstone.live.state import LiveState
from loadstone.plan.hooks import HookRun
from loadstone.report import openmetrics
from loadstone.search.model import Capacity

RESULT, SAMPLES = keystone()
# In CI a missing program fails the tests that need it.
needs_prometheus = pytest.mark.skipif(
    "CI" not in os.environ
    and not (shutil.which("promtool") and shutil.which("prometheus-node-exporter")),
    reason="apt-get install prometheus prometheus-node-exporter",
)
ISSUE = {"scenario": "Authenticate.keystone", "measurement": "token issue"}


def task():
    """Two workloads with a broken rule and a hook, then two steps of a third."""
    hook = HookRun(0, "time", 1, 1001.0, 1003.5, "{}", ("Subprocess returned 3", ""))
    trial = RESULT.measurements[0].trials[2]
    known = {"health": trial.health, "usage": trial.usage}
    checks = (Check("failure_rate", True, ""), Check("max_avg_duration", False, ""))
    first = workload(SAMPLES[0, 3], checks, of_trial=known | {"hook_runs": (hook,)}, wall_s=70.0)
    nothing = replace(first, trials=(), status="failed", failure="no such role")
    step = steps(
        workload(SAMPLES[0, 3], of_trial=known, subtask="Rising", title="Rising"),
        [{"constant": {"times": 9, "concurrency": 2}}],
    )
    return replace(RESULT, kind="task", measurements=(first, first, nothing, step))


class Found:
    """Samples by name and some of their labels."""

    def __init__(self, text, parse=openmetrics_of):
        self.families = list(parse(text))
        self.samples = [sample for family in self.families for sample in family.samples]

    def __call__(self, name, **labels):
        (value,) = [
            sample.value
            for sample in self.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        ]
        return value

    def names(self):
        return {sample.name for sample in self.samples}


def test_the_capacity_its_interval_and_the_latency_below_it_are_given():
    found = Found(openmetrics.render(RESULT))
    name = "loadstone_capacity_iterations_per_second"
    assert [found(name, bound=b, **ISSUE) for b in ("low", "estimate", "high")] == [
        7.11,
        7.19,
        7.27,
    ]
    assert found("loadstone_capacity_confidence_ratio", **ISSUE) == 0.95
    trial = RESULT.measurements[0].trials[2]
    for name in ("measurement", "trial"):
        labels = {"trial": "3"} if name == "trial" else {}
        latency_s = found(f"loadstone_{name}_latency_seconds", quantile="0.99", **ISSUE, **labels)
        assert latency_s == pytest.approx(trial.stats.total.p99_s)
    assert found("loadstone_run_end_timestamp_seconds") == 1795253762  # 2026-11-21T09:36:02Z


def test_each_trial_has_rate_latency_errors_the_generators_health_and_the_cpu():
    found = Found(openmetrics.render(RESULT))
    trial = RESULT.measurements[0].trials[3]
    labels = {**ISSUE, "trial": "4"}
    assert found("loadstone_trial_offered_iterations_per_second", **labels) == 7.1
    assert found("loadstone_trial_iterations", **labels) == trial.stats.due
    assert found("loadstone_trial_failed_iterations", **labels) == 0
    assert found("loadstone_trial_generator_valid", **labels) == 0
    assert found("loadstone_trial_generator_send_lag_seconds", stat="p99", **labels) == 0.058
    assert found("loadstone_trial_verdict", verdict="invalid", **labels) == 1
    assert found("loadstone_trial_machine_busy_ratio", **labels) == trial.usage.machine_busy
    assert found("loadstone_trial_service_busy_ratio", **labels) == trial.usage.service_busy
    count = found("loadstone_trial_latency_seconds_count", **labels)
    assert count == trial.stats.ok
    mean_s = found("loadstone_trial_latency_seconds_sum", **labels) / count
    assert mean_s == pytest.approx(trial.stats.total.mean_s)


def test_each_workload_of_a_task_has_the_metrics_of_a_search_its_rules_and_its_hooks():
    result = task()
    found = Found(openmetrics.render(result))
    labels = {"scenario": "Authenticate.keystone", "measurement": "Issue"}
    stats = result.measurements[0].stats
    assert found("loadstone_measurement_iterations", **labels) == stats.total.count
    assert found("loadstone_measurement_failed_iterations", **labels) == 0
    latency = "loadstone_measurement_latency_seconds"
    assert found(latency, quantile="0.95", **labels) == stats.total.p95_s
    assert found("loadstone_measurement_duration_seconds", **labels) == 70.0
    assert found("loadstone_measurement_checks_passed", **labels) == 0
    assert found("loadstone_measurement_failed_hook_runs", **labels) == 1
    assert found("loadstone_measurement_generator_valid", **labels) == 1
    trial = {**labels, "trial": "1"}
    assert found("loadstone_trial_latency_seconds", quantile="0.95", **trial) == stats.total.p95_s
    throughput = found("loadstone_trial_throughput_iterations_per_second", **trial)
    assert throughput == stats.throughput_rps
    action = {**trial, "action": "authenticate.keystone"}
    assert found("loadstone_trial_action_duration_seconds_count", **action) == stats.ok
    assert found("loadstone_trial_check_success", criterion="failure_rate", **trial) == 1
    assert found("loadstone_trial_check_success", criterion="max_avg_duration", **trial) == 0
    busy = result.measurements[0].usage.service_busy
    assert found("loadstone_trial_service_busy_ratio", **trial) == busy
    # Workloads of one name are told apart; a step says at which load it was made.
    assert found("loadstone_measurement_status", status="failed", measurement="Issue (3)") == 1
    step = {"measurement": "Rising", "trial": "1", "setting": "concurrency"}
    assert found("loadstone_trial_step_load", **step) == 2


def test_a_task_has_the_metrics_of_a_search():
    of_search, of_task = (Found(openmetrics.render(one)).names() for one in (RESULT, task()))
    own = ("capacity", "sustained", "verdict", "offered")
    missing = {name for name in of_search - of_task if not any(word in name for word in own)}
    assert missing == set()


@pytest.mark.parametrize(
    ("titles", "names"),
    [
        (("a", "a", "a"), ["a", "a (2)", "a (3)"]),
        (("a", "a", "a (2)"), ["a", "a (3)", "a (2)"]),
        (("a (2)", "a", "a"), ["a (2)", "a", "a (3)"]),
        (("a", "a (2)", "a (2)", "a", "a"), ["a", "a (2)", "a (2) (2)", "a (3)", "a (4)"]),
    ],
)
def test_measurements_of_any_titles_have_different_names(titles, names):
    measurements = tuple(replace(RESULT.measurements[0], title=title) for title in titles)
    found = Found(openmetrics.render(replace(RESULT, measurements=measurements)))
    given = [sample.labels.get("measurement") for sample in found.samples]
    assert [*dict.fromkeys(filter(None, given))] == names


def test_what_is_not_known_is_not_given():
    findings = tuple(replace(f, capacity=None, trials=()) for f in RESULT.measurements)
    found = Found(openmetrics.render(replace(RESULT, ended_at=None, measurements=findings)))
    assert not any("capacity" in name or "generator" in name for name in found.names())
    assert "loadstone_run_end_timestamp_seconds" not in found.names()


def test_a_bound_of_n_is_no_estimate():
    bounds = Capacity(50.0, 50.0, None, 0.95), Capacity(None, 5.0, 7.0, 0.0)
    for capacity, kinds in zip(bounds, ({"low"}, {"low", "high"}), strict=True):
        search = replace(RESULT.measurements[0], capacity=capacity)
        found = Found(openmetrics.render(replace(RESULT, measurements=(search,))))
        name = "loadstone_capacity_iterations_per_second"
        assert {one.labels["bound"] for one in found.samples if one.name == name} == kinds
        assert ("loadstone_capacity_confidence_ratio" in found.names()) is bool(capacity.confidence)
        live = LiveState(0.0, 1.0, so_far=(capacity,))
        live_name = "loadstone_live_capacity_iterations_per_second"
        shown = [sample for one in families(live) for sample in one.samples]
        assert {one.labels["bound"] for one in shown if one.name == live_name} == kinds


def test_a_label_may_hold_anything():
    odd = 'a "b"\nc\\d'
    findings = tuple(replace(f, scenario=odd) for f in RESULT.measurements[:1])
    found = Found(openmetrics.render(replace(RESULT, measurements=findings)))
    assert found("loadstone_measurement_iterations", scenario=odd)


@pytest.mark.processes
@needs_prometheus
@pytest.mark.parametrize("result", [RESULT, task()], ids=["search", "task"])
def test_promtool_has_no_complaint(result):
    done = subprocess.run(
        ["promtool", "check", "metrics"],
        input=openmetrics.render(result),
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.processes
@needs_prometheus
def test_a_real_node_exporter_reads_a_search_and_a_task_side_by_side(tmp_path):
    texts = {"search": openmetrics.render(RESULT), "task": openmetrics.render(task())}
    texts["task"] = texts["task"].replace(RESULT.run_id, "20261121-1000-cd34ef")
    for name, text in texts.items():
        (tmp_path / f"{name}.prom").write_text(text)
    scraped = Found(scrape(tmp_path), prometheus_of)
    assert scraped("node_textfile_scrape_error") == 0
    kept = {series(sample): sample.value for sample in scraped.samples}
    for text in texts.values():
        for sample in Found(text, prometheus_of).samples:
            assert kept[series(sample)] == sample.value


def series(sample):
    """Return what tells a sample from all others; node_exporter writes quantile 1 for 1.0."""
    labels = sample.labels | {k: float(v) for k, v in sample.labels.items() if k == "quantile"}
    return sample.name, *sorted(labels.items())


def scrape(folder) -> str:
    """Return what a node_exporter says that reads only the text files of this folder."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [
        "prometheus-node-exporter",
        "--collector.disable-defaults",
        "--collector.textfile",
        f"--collector.textfile.directory={folder}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as exporter:
        try:
            for line in exporter.stderr:
                if "Listening on" in line:
                    break
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
                return answer.read().decode()
        finally:
            exporter.terminate()
