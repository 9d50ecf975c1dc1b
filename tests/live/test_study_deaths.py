"""What dies in mid-study is named, the study goes on, and nothing stays running."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from lab_client import until

from loadstone.lab import deployment, processes
from loadstone.lab.deployment import Deployment
from loadstone.study import journal
from loadstone.system import paths

pytestmark = [pytest.mark.live, pytest.mark.timeout(900), pytest.mark.verify]

STUDY = [sys.executable, "-m", "loadstone", "study", "run"]
UNDER_LOAD = "  validate |"  # how a live line of the step begins
EVERY_PART = """\
title: Every kind of part
settings: {database: mariadb, cache: memcached, nodes: 2, balance: roundrobin, workers: 1}
factors: {hash-rounds: [4, 5, 6]}
measurement:
  kind: steps
  users: 2
  steps:
    - {name: validate, scenario: validate, concurrency: 2, iterations: 400}
"""


@contextmanager
def running(*words: str) -> Iterator[subprocess.Popen[str]]:
    """A study of the command line, whose stderr is read line by line."""
    with subprocess.Popen(
        [*STUDY, *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as study:
        try:
            yield study
        finally:
            study.kill()


def lines_until(study: subprocess.Popen[str], begin: str) -> list[str]:
    """What was said up to the line that begins so."""
    assert study.stderr is not None
    said = []
    for line in study.stderr:
        said.append(line)
        if line.startswith(begin):
            return said
    raise AssertionError("".join(said))


def measured() -> Deployment:
    """The deployment of the study."""
    (found,) = [one for one in deployment.every() if one.name.startswith("study-")]
    return found


def kill(part: str) -> None:
    """Kill a part of what is measured, and its workers."""
    (leader,) = [r.process for r in measured().state.records if r.part == part and r.process]
    for process in processes.family(leader):
        os.kill(process.pid, signal.SIGKILL)


@pytest.fixture
def home(lab_home: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:  # noqa: ARG001
    """A home of its own, with no other study in it; environments and templates are shared."""
    kept = paths.labs()
    (tmp_path / "lab").mkdir()
    for shared in ("environments", "templates"):
        (kept / shared).mkdir(parents=True, exist_ok=True)
        (tmp_path / "lab" / shared).symlink_to(kept / shared)
    monkeypatch.setenv("LOADSTONE_HOME", str(tmp_path))
    return tmp_path


def test_what_dies_in_mid_study_is_named_and_the_study_goes_on(home: Path) -> None:
    store, file = home / "store", home / "parts.yaml"
    file.write_text(EVERY_PART)
    with running(str(file), "--store", str(store)) as study:
        for part in ("mariadb", "memcached", "uwsgi-2"):
            lines_until(study, UNDER_LOAD)
            kill(part)
            told = lines_until(study, "this cell failed")[-1]
            assert f"this cell failed, the study goes on: {part} of deployment" in told
            assert "died" in told
            assert study.stderr is not None
            # The log with the lines that explain it; memcached writes none.
            explained = study.stderr.readline()
            assert f"{part}.log" in explained or "its logs are empty" in explained
        assert study.wait() == 3
    (study_id,) = journal.ids(store)
    again = ("--resume", study_id, "--store", str(store), "--json", str(home / "table"))
    with running(*again) as study:
        lines_until(study, UNDER_LOAD)
        folder = measured().folder
        study.kill()
    until(lambda: processes.marked(folder) == (), "servers outlived the killed study")
    with running(*again) as study:
        assert study.stderr is not None
        said = study.stderr.read()
        assert study.wait() == 0, said
    rows = json.loads((home / "table").read_text())["measurements"]
    assert [(row["failures"], len(row["values"])) for row in rows] == [([], 1)] * 3
    assert deployment.every() == ()
