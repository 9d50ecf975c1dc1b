"""CPU of a real Keystone whose processes end under load, beside what the kernel counted."""

import configparser
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path

import psutil
import pytest
from documents import workloads

from loadstone.engine.progress import Progress
from loadstone.lab.deployment import Deployment
from loadstone.monitor.service import ServiceProcess
from loadstone.report.sections import statements
from loadstone.result.model import Measurement
from loadstone.result.observer import Display
from loadstone.run.flow import run_on
from loadstone.store.store import Store
from loadstone.study.cell import steps_groups
from loadstone.study.model import ClosedLoopStep, Figure, StepsMeasurement
from loadstone.system.redaction import Redaction
from loadstone.target.choice import NamedTarget
from loadstone.target.connect import connected_lab
from loadstone.workload.model import RunConfig

pytestmark = [pytest.mark.live, pytest.mark.timeout(900)]

TASK = """\
version: 2
title: Logins
subtasks:
  - title: Logins
    scenario: {Authenticate.keystone: {}}
    runner: {rps: {times: %d, rps: %d}}
"""
# Burns CPU in a backend of its own, which ends with it.
QUERY = """\
import psycopg2, sys
with psycopg2.connect(sys.stdin.read().replace("+psycopg2", "")) as connection:
    connection.cursor().execute("SELECT sum(sqrt(i)) FROM generate_series(1, 2000000) AS i")
connection.close()
"""


def kernels_count_s(deployment: Deployment) -> float:
    """CPU of the service since its start: parts wait for their children, so nothing is lost."""
    total_s = 0.0
    for record in deployment.state.records:
        if record.process is not None:
            leader = psutil.Process(record.process.pid)
            for one in (leader, *leader.children(recursive=True)):
                times = one.cpu_times()
                total_s += times.user + times.system + times.children_user + times.children_system
    return total_s


def workers(deployment: Deployment) -> list[int]:
    """The pids of uwsgi's workers."""
    (leader,) = [r.process for r in deployment.state.records if r.part == "uwsgi" and r.process]
    return [one.pid for one in psutil.Process(leader.pid).children()]


@dataclass
class Killer(Display):
    """Shows nothing, and does something to the service once ten iterations have ended."""

    act: object
    lines: list[str] = field(default_factory=list)
    has_acted: bool = False

    def say(self, line: str) -> None:
        self.lines.append(line)

    def begin(self, load_s: float) -> None:
        pass

    def hide(self, redaction: Redaction) -> None:
        pass

    def on_progress(self, progress: Progress) -> bool:
        if progress.ok >= 10 and not self.has_acted:
            self.has_acted = True
            self.act()
        return True


def loaded(deployment: Deployment, observer: Killer, folder: Path) -> tuple[Measurement, float]:
    """Put logins on the service; returns what was found and the kernel's count meanwhile."""
    counts = []

    def members() -> tuple[ServiceProcess, ...]:
        counts.append(kernels_count_s(deployment))
        return deployment.members()

    step = ClosedLoopStep("logins", "issue", 4, 60, timed=True, at_most_s=120.0)
    [group] = steps_groups(StepsMeasurement(Figure.RATE, 0, (step,)))
    group = replace(group, most_existing=0)  # the administrator alone
    config = RunConfig("study", NamedTarget(), (group,), "test")
    with Store.open(folder) as store, connected_lab(deployment, print) as target:
        result = run_on(replace(target, members=members), config, store, observer)
    assert observer.has_acted
    return result.measurements[0], counts[-1] - counts[0]


@pytest.mark.verify
def test_a_worker_that_is_killed_under_load_costs_no_cpu_and_is_told(exclusive_keystone, tmp_path):
    victim = workers(exclusive_keystone)[0]
    killer = Killer(lambda: os.kill(victim, signal.SIGKILL))
    finding, counted_s = loaded(exclusive_keystone, killer, tmp_path)
    (trial,) = finding.trials
    assert trial.usage.service_cpu_s == pytest.approx(counted_s, rel=0.02, abs=0.1)
    assert [(one.part, one.pid) for one in trial.usage.ended] == [("uwsgi", victim)]
    said = f"process of uwsgi (pid {victim}) died at"
    assert any(said in line for line in killer.lines)
    assert any(said in one.text for one in statements.of(finding))
    assert trial.usage.others_busy > -0.02


@pytest.mark.verify
def test_backends_of_postgres_that_end_under_load_are_the_services(start, tmp_path):
    deployment = start("workers=1", "database=postgres")
    conf = configparser.RawConfigParser(strict=False)
    conf.read(deployment.folder / "secret/keystone.conf")
    connection = conf["database"]["connection"]

    def query() -> None:
        for _ in range(3):
            command = [str(deployment.python), "-c", QUERY]
            subprocess.run(command, input=connection, text=True, check=True)
        os.kill(workers(deployment)[0], signal.SIGKILL)  # its connections end with it

    finding, counted_s = loaded(deployment, Killer(query), tmp_path)
    (trial,) = finding.trials
    assert trial.usage.service_cpu_s == pytest.approx(counted_s, rel=0.02, abs=0.1)
    assert {one.part for one in trial.usage.ended} == {"uwsgi", "postgres"}
    said = " ".join(one.text for one in statements.of(finding))
    assert "process of uwsgi" in said
    assert "of postgres" not in said  # connections come and go


def command(*given: object) -> list[str]:
    return [sys.executable, "-m", "loadstone", *map(str, given)]


def ended(*given: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*given), capture_output=True, text=True, check=False, timeout=500)


def begun(*given: object) -> tuple[subprocess.Popen[str], str]:
    """A command whose load has begun, and the id of its run."""
    process = subprocess.Popen(
        command(*given), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    run_id = ""
    for line in process.stderr:
        if line.startswith("run "):
            run_id = line.split()[1].rstrip(":")
        if "| waiting" in line:
            return process, run_id
    raise AssertionError(f"it ended with {process.wait()} before its load")


def test_a_task_has_cpu_figures_and_tells_a_death(exclusive_keystone, tmp_path):
    (tmp_path / "task.yaml").write_text(TASK % (24, 4))
    store = ("--store", tmp_path / "store")
    process, run_id = begun("run", tmp_path / "task.yaml", "--lab", exclusive_keystone.name, *store)
    victim = workers(exclusive_keystone)[0]
    os.kill(victim, signal.SIGKILL)
    _, told = process.communicate(timeout=500)
    assert f"process of uwsgi (pid {victim}) died at" in told
    kept = json.loads(ended("results", "show", run_id, *store, "--json", "-").stdout)
    (workload,) = workloads(kept)
    assert [one["pid"] for one in workload["usage"]["ended_processes"]] == [victim]
    assert workload["usage"]["service_cpu_seconds"] > 0
    shown = ended("results", "show", run_id, "--trials", *store).stdout
    assert "CPU: service" in " ".join(shown.split())
    brief = ended("results", "show", run_id, *store).stdout
    assert f"process of uwsgi (pid {victim}) died at" in " ".join(brief.split())


def test_two_measurements_of_one_lab_are_refused_or_say_so(exclusive_keystone, tmp_path):
    (tmp_path / "long.yaml").write_text(TASK % (600, 1))
    (tmp_path / "short.yaml").write_text(TASK % (2, 2))
    lab = ("--lab", exclusive_keystone.name, "--store", tmp_path / "store")
    first, run_id = begun("run", tmp_path / "long.yaml", *lab)
    try:
        name = f"run {run_id} (pid {first.pid})"
        for given in (("run", tmp_path / "short.yaml"), ("capacity", "--budget", "20s")):
            refused = ended(*given, *lab)
            assert refused.returncode == 3
            assert f"lab {exclusive_keystone.name} is being measured by {name}" in refused.stderr
            assert refused.stderr.count("\n") == 1, refused.stderr
            assert refused.stdout == ""
        both = ended("run", tmp_path / "short.yaml", *lab, "--anyway", "--json", tmp_path / "j")
        assert both.returncode == 0, both.stderr
        target = json.loads((tmp_path / "j").read_text())["environment"]["target"]
        assert target["measured beside"] == name
        assert f"Measured at the same time as {name}." in both.stdout
    finally:
        first.kill()
        first.communicate()
    after = ended("run", tmp_path / "short.yaml", *lab, "--json", tmp_path / "k")
    assert after.returncode == 0, after.stderr
    assert (
        "measured beside" not in json.loads((tmp_path / "k").read_text())["environment"]["target"]
    )
