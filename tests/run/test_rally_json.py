"""What we give to Rally, real Rally takes."""

import json
import re

import pytest
from real_rally import Rally

TASK = """
version: 2
title: Tokens
subtasks:
  - title: Issue tokens
    workloads:
      - scenario: {Authenticate.keystone: {}}
        runner: {constant: {times: 5, concurrency: 2}}
      - scenario: {KeystoneBasic.authenticate_user_and_validate_token: {}}
        runner: {rps: {times: 3, rps: 50}}
      - scenario: {Dummy.dummy_output: {}}
        runner: {serial: {times: 2}}
  - title: Dummy
    scenario: {Dummy.dummy: {}}
    runner: {constant: {times: 3}}
    hooks:
      - action: {sys_call: "echo hooked"}
        trigger: {event: {unit: iteration, at: [1]}}
"""


@pytest.fixture
def rally(rally_python, tmp_path):
    """Real Rally with a database of its own."""
    ours = Rally(rally_python, tmp_path)
    ours("env", "create", "--no-use", "--name", "ours")
    return ours


def failing_once(fake):
    """Let one login of the load fail."""
    seen = []

    def disturb(method, path):
        if (method, path) == ("POST", "/v3/auth/tokens"):
            seen.append(path)
        return 503 if len(seen) == 5 and path == "/v3/auth/tokens" else None

    fake.disturb = disturb


def test_rally_imports_and_reports_what_was_measured(loadstone, fake, write, rally, tmp_path):
    failing_once(fake)
    told = loadstone("run", write(TASK), "--rally-json", "ours.json")
    assert "Traceback" not in told.stderr
    ours = json.loads((tmp_path / "ours.json").read_text())
    assert loadstone("report", "--as", "rally-json", "-o", "again.json").returncode == 0
    assert json.loads((tmp_path / "again.json").read_text()) == ours
    said = rally("task", "import", "--env", "ours", "--file", str(tmp_path / "ours.json"))
    uuid = re.search(r"Task UUID: ([0-9a-f-]{36})", said)[1]
    rally("task", "report", uuid, "--json", "--out", str(tmp_path / "rally.json"))
    rally("task", "report", str(tmp_path / "ours.json"), "--out", str(tmp_path / "rally.html"))
    assert "Authenticate.keystone" in (tmp_path / "rally.html").read_text()
    theirs = json.loads((tmp_path / "rally.json").read_text())
    mine = [one for sub in ours["tasks"][0]["subtasks"] for one in sub["workloads"]]
    rallys = [one for sub in theirs["tasks"][0]["subtasks"] for one in sub["workloads"]]
    assert len(rallys) == 4
    for one, other in zip(mine, rallys, strict=True):
        same = ("scenario", "runner", "statistics", "sla", "sla_results", "pass_sla", "data")
        assert [hook["summary"] for hook in one["hooks"]] == [
            hook["summary"] for hook in other["hooks"]
        ]
        for key in same:
            assert one[key] == other[key], key
        assert one["failed_iteration_count"] == other["failed_iteration_count"]
        assert one["total_iteration_count"] == other["total_iteration_count"]
    assert len(mine[2]["data"][0]["output"]["complete"]) == 5
    assert sum(one["failed_iteration_count"] for one in mine) == 1
