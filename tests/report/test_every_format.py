"""Every format shows every kind of measurement: runs against `loadstone serve`, one search aside.

The kinds: a search, a task with SLA and hooks, a task at rising load, the steps of a study.
"""

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as Xml

import command_server
import pytest
import result_schema
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from simulator.service import Service
from virtual import VirtualCommandLine

from loadstone.cli.screen import Screen
from loadstone.live.feed import Feed
from loadstone.report import figures
from loadstone.result.model import Measurement, Run
from loadstone.run.flow import run
from loadstone.store.store import Store
from loadstone.study.cell import config_of
from loadstone.study.order import turns
from loadstone.study.read import StudySource

CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
COMMAND = (sys.executable, "-m", "loadstone")
TASK = """
version: 2
title: Tokens and users
subtasks:
  - title: Issue tokens
    scenario: {Authenticate.keystone: {}}
    runner: {constant: {times: 40, concurrency: 4}}
    sla: {failure_rate: {max: 0}, max_seconds_per_iteration: 0.000001}
    hooks:
      - action: {sys_call: "echo hooked"}
        trigger: {event: {unit: iteration, at: [10]}}
"""
STEPS = """
version: 2
title: Rising
subtasks:
  - title: Issue at rising load
    scenario: {Authenticate.keystone: {}}
    runner: {constant: {times: 20, concurrency: 1}}
    sla: {failure_rate: {max: 0}}
"""
STUDY = """
title: The reference service
factors: {workers: [1]}
measurement:
  kind: steps
  figure: rate
  users: 2
  steps:
    - {name: issue at 2, scenario: issue, concurrency: 2, iterations: 40}
reference: {words: "loadstone serve"}
"""
KINDS = ("search", "task", "steps", "study")


class Runs:
    """One run of each kind, and the command line with their store."""

    def __init__(self, home: Path, target: dict[str, str]) -> None:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("OS_", "LOADSTONE_"))}
        self.environment = kept | {"LOADSTONE_HOME": str(home)} | target
        self.home = home
        self.kept: dict[str, Run] = {}

    def __call__(self, *words: str) -> subprocess.CompletedProcess[str]:
        words = (*words, "--store", str(self.home / "store"))
        return command_server.run(words, self.environment, self.home)

    def keep(self, kind: str) -> None:
        """Keep the run that the last command made; runs of one second are in no order."""
        known = {one.run_id for one in self.kept.values()}
        with Store.open(self.home / "store") as store:
            [made] = [one.run_id for one in store.every() if one.run_id not in known]
            self.kept[kind] = store.get(made)

    def report(self, kind: str, form: str) -> str:
        done = self("report", self.kept[kind].run_id, "--as", form, "-o", "-")
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def served() -> Iterator[dict[str, str]]:
    words = (*COMMAND, "serve", "--capacity", "100", "--workers", "1", "--until-stdin-closes")
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        variables: dict[str, str] = {}
        while "OS_REGION_NAME" not in variables:
            name, _, value = process.stdout.readline().removeprefix("export ").partition("=")
            variables[name] = "".join(shlex.split(value))
        yield variables
        process.stdin.close()


@pytest.fixture(scope="module")
def runs(served: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Runs:
    home = tmp_path_factory.mktemp("every-format")
    made = Runs(home, served)
    (home / "task.yaml").write_text(TASK)
    (home / "steps.yaml").write_text(STEPS)
    with pytest.MonkeyPatch.context() as patch:
        virtual = VirtualCommandLine(home, None, patch)
        words = ("capacity", "--budget=20s", "--users=2", "--store=store")
        service = Service(workers=1, capacity_rps=100.0)
        done = virtual(*words, service=service, lag_s=1e-4)
        assert done.code == 0, virtual("results", "show", "latest", "--store=store").stdout
    made.keep("search")
    assert made("run", "task.yaml").returncode == 1
    made.keep("task")
    rising = ("--step", "concurrency=+2", "--until", "median>25ms")
    assert made("run", "steps.yaml", *rising).returncode == 0
    made.keep("steps")
    study = StudySource("reference.yaml", STUDY).study(quick=False)
    turn = next(one for one in turns(study, 1) if one.cell.is_reference)
    config = config_of(study, "20261122-1000-abcdef", turn, "loadstone study run")
    with Store.open(home / "store") as store, Screen() as screen:
        run(config, store, Feed([screen]))
    made.keep("study")
    return made


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


def only(run: Run) -> Measurement:
    (measurement,) = run.measurements
    return measurement


def test_each_run_is_kept_as_one_measurement_with_its_trials(runs: Runs) -> None:
    policies = {kind: only(run).policy for kind, run in runs.kept.items()}
    assert policies == {"search": "search", "task": "fixed", "steps": "steps", "study": "fixed"}
    assert len(only(runs.kept["steps"]).trials) > 1
    for one in runs.kept.values():
        assert all(trial.stats.total.ok for trial in only(one).trials)
        assert all(trial.stats.actions for trial in only(one).trials)
        assert all(trial.usage is not None and trial.health for trial in only(one).trials)


def test_the_terminal_shows_rate_latency_and_what_held(runs: Runs, kind: str) -> None:
    shown = runs("results", "show", runs.kept[kind].run_id, "--trials").stdout
    measurement = only(runs.kept[kind])
    assert measurement.title in shown or measurement.scenario in shown
    for trial in measurement.trials:
        assert figures.rate(trial.stats.throughput_rps) in shown
    match kind:
        case "search":
            assert f"N = {figures.n(measurement.capacity)}" in shown
        case "task":
            assert "max_seconds_per_iteration" in shown
            assert "FAIL" in shown
            assert "echo hooked" in shown
            assert "99%ile" in shown
        case "steps":
            assert "Steps of Authenticate.keystone" in shown
            rows = [line for line in shown.splitlines() if line.rstrip().endswith("%  held")]
            assert len(rows) == len(measurement.trials)
        case "study":
            assert "40 of 40 succeeded" in shown
            assert "99%ile" in shown


def test_json_has_the_figures_of_each_trial(runs: Runs, kind: str) -> None:
    data = json.loads(runs("results", "show", runs.kept[kind].run_id, "--json", "-").stdout)
    measurement = only(runs.kept[kind])
    result_schema.check(data)
    [shown] = data["measurements"]
    assert [one["latency"]["p95_s"] for one in shown["trials"]] == [
        trial.stats.total.p95_s for trial in measurement.trials
    ]
    assert all(one["actions"] and one["usage"] for one in shown["trials"])
    assert (shown["capacity"] is not None) is (kind == "search")
    assert shown["generator"]["send_lag_ms"]["p99"] > 0
    assert bool(shown["checks"]) is (kind in ("task", "steps"))
    assert bool(shown["hooks"]) is (kind == "task")


def test_junit_has_a_case_for_each(runs: Runs, kind: str) -> None:
    suite = Xml.fromstring(runs.report(kind, "junit")).find("testsuite")
    cases = suite.findall("testcase")
    measurement = only(runs.kept[kind])
    assert len(cases) == (len(measurement.trials) if kind == "steps" else 1)
    known = [{p.get("name"): p.get("value") for p in case.iter("property")} for case in cases]
    if kind == "search":
        assert "confidence" in known[0]
    else:
        assert [float(one["p95_s"]) for one in known] == pytest.approx(
            [trial.stats.total.p95_s for trial in measurement.trials], rel=1e-5
        )
    assert suite.get("failures") == ("1" if kind == "task" else "0")


def test_openmetrics_has_the_same_metrics_for_each(runs: Runs, kind: str) -> None:
    families = text_string_to_metric_families(runs.report(kind, "openmetrics"))
    samples = [sample for family in families for sample in family.samples]
    measurement = only(runs.kept[kind])
    for name, value in (
        ("throughput_iterations_per_second", lambda trial: trial.stats.throughput_rps),
        ("latency_seconds_count", lambda trial: trial.stats.ok),
        ("service_time_seconds_count", lambda trial: trial.stats.ok),
        ("iterations", lambda trial: trial.stats.due),
        ("failed_iterations", lambda trial: trial.stats.failed),
        ("generator_valid", lambda trial: trial.health.is_valid),
        ("machine_busy_ratio", lambda trial: trial.usage.machine_busy),
        ("generator_busy_ratio", lambda trial: trial.usage.generator_busy),
        ("load_duration_seconds", lambda trial: trial.stats.load_s),
    ):
        found = {s.labels["trial"]: s.value for s in samples if s.name == f"loadstone_trial_{name}"}
        wanted = {
            str(trial.number): pytest.approx(float(value(trial))) for trial in measurement.trials
        }
        assert found == wanted, name
    names = {sample.name for sample in samples}
    assert "loadstone_trial_action_duration_seconds_count" in names
    assert ("loadstone_trial_check_success" in names) is (kind in ("task", "steps"))
    assert ("loadstone_measurement_hook_runs" in names) is (kind == "task")
    assert ("loadstone_trial_step_load" in names) is (kind == "steps")


def test_rally_json_has_tasks_and_refuses_the_rest(runs: Runs, kind: str) -> None:
    run_id = runs.kept[kind].run_id
    done = runs("report", run_id, "--as", "rally-json", "-o", "-")
    if kind in ("search", "study"):
        assert done.returncode == 2
        assert f"run {run_id} is not a task" in done.stderr
        assert len(done.stderr.splitlines()) == 1
        return
    (task,) = json.loads(done.stdout)["tasks"]
    workloads = [one for subtask in task["subtasks"] for one in subtask["workloads"]]
    trials = only(runs.kept[kind]).trials
    assert [one["total_iteration_count"] for one in workloads] == [
        trial.stats.total.count for trial in trials
    ]
    assert all(len(one["data"]) == one["total_iteration_count"] for one in workloads)
    assert task["pass_sla"] is (kind == "steps")
    assert bool(workloads[0]["hooks"]) is (kind == "task")


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.mark.browser
@pytest.mark.skipif(
    not Path(CHROMIUM).exists() and "CI" not in os.environ, reason="apt-get install chromium"
)
def test_the_page_shows_each_in_a_browser(runs: Runs, kind: str, browser, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    assert runs("report", runs.kept[kind].run_id, "-o", str(path)).returncode == 0
    page = browser.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(path.as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(one => (one.open = true))")
    text = page.locator("body").inner_text()
    measurement = only(runs.kept[kind])
    assert page.locator("table.overview tbody tr").count() == 1
    assert page.locator("figure svg.static").count() > 1
    for trial in measurement.trials:
        assert figures.rate(trial.stats.throughput_rps) in text
    match kind:
        case "search":
            assert figures.n(measurement.capacity) in page.locator("table.overview").inner_text()
        case "task":
            assert "SLA broken: max_seconds_per_iteration" in text
            assert "echo hooked" in text
        case "steps":
            assert "at rising concurrency" in text
        case "study":
            assert "40 iterations, 2 at a time" in text
    assert complaints == []
    page.close()
