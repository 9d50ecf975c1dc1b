"""Hooks as the users of `loadstone run` meet them."""

import contextlib
import json
import re
from pathlib import Path

import pytest
from documents import workloads

from loadstone.observers.hooks import moments
from loadstone.plan.hooks import Event, Periodic

CHART = {"title": "Nodes", "chart_plugin": "Pie", "data": [["up", 3]]}
LINES = {"title": "Load <of> it", "chart_plugin": "Lines", "data": [["user", [[0, 1], [1, 2.5]]]]}
ODD = {"title": "Odd", "chart_plugin": "Lines", "data": ["no", "lines"]}
EACH = {"title": "Up", "chart_plugin": "StackedArea", "data": [["nodes", 3]]}
TASK = """
version: 2
title: Hooked
subtasks:
  - title: Tokens
    scenario: {Authenticate.keystone: {}}
    runner: {constant: {times: 20, concurrency: 2}}
    hooks:
      - description: says charts
        action: {sys_call: "cat chart.json"}
        trigger: {event: {unit: iteration, at: [3, 20, 21]}}
      - action: {sys_call: "sh -c 'echo $HOME; exit 3'"}
        trigger: {event: {unit: time, at: [0]}}
      - action: {sys_call: "echo $HOME"}
        trigger: {periodic: {unit: iteration, step: 7, start: 2, end: 16}}
      - action: {sys_call: "no-such-command-at-all"}
        trigger: {periodic: {unit: time, step: 1000}}
      - action: {sys_call: "cat lines.json"}
        trigger: {event: {unit: iteration, at: [2, 9]}}
"""


def test_hooks_act_when_they_are_due_and_their_results_are_kept(loadstone, write, tmp_path):
    (tmp_path / "chart.json").write_text(json.dumps({"complete": [CHART]}))
    printed = {"additive": [EACH], "complete": [LINES, ODD]}
    (tmp_path / "lines.json").write_text(json.dumps(printed))
    told = loadstone("run", write(TASK), "--rally-json", "rally.json")
    assert told.returncode == 0, told.stderr
    assert "failed: Subprocess returned 3" in told.stdout
    assert "says charts" in loadstone("results", "show", "latest", "--trials").stdout
    (subtask,) = json.loads((tmp_path / "rally.json").read_text())["tasks"][0]["subtasks"]
    charts, failing, words, missing, lines = subtask["workloads"][0]["hooks"]
    assert charts["summary"] == {"success": 2}
    assert charts["config"]["description"] == "says charts"
    assert [one["triggered_by"]["value"] for one in charts["results"]] == [3, 20]
    assert all(one["output"] == {"additive": [], "complete": [CHART]} for one in charts["results"])
    assert failing["summary"] == {"failed": 1}
    assert failing["results"][0]["error"]["details"].startswith("stdout: /")
    # Without a shell: nothing is put in the place of $HOME.
    assert [one["triggered_by"]["value"] for one in words["results"]] == [2, 9, 16]
    assert "StdOut: $HOME\n" in words["results"][0]["output"]["complete"][0]["data"]
    assert "cannot be started" in missing["results"][0]["error"]["msg"]
    assert loadstone("report", "-o", "page.html").returncode == 0
    marked_and_drawn((tmp_path / "page.html").read_text())
    shown = json.loads(loadstone("results", "show", "latest", "--json", "-").stdout)
    assert workloads(shown)[0]["hooks"] == [charts, failing, words, missing, lines]
    assert loadstone("results", "import", "rally.json", "--store", "other").returncode == 0
    other = loadstone("results", "show", "latest", "--store", "other", "--json", "-").stdout
    assert workloads(json.loads(other))[0]["hooks"] == workloads(shown)[0]["hooks"]
    assert loadstone("report", "latest", "--store", "other", "-o", "other.html").returncode == 0


def marked_and_drawn(page):
    assert "Hooks acted 9 times, 2 failed" in page
    assert page.count('<rect class="span sustained"') == 7
    assert page.count('<rect class="span degraded"') == 2
    for title in ("Hook 1, iteration 3: Nodes", "Hook 5, iteration 9: Odd"):
        assert f"<summary>{title}</summary>" in page
    for title in ("Hook 5, iteration 2: Load &lt;of&gt; it", "Hook 5: Up"):
        assert f"<h4>{title}</h4>" in page
    # What each run printed, over the time at which it ran: both had 3.
    drawn = page.partition("<h4>Hook 5: Up</h4>")[2].partition("</svg>")[0]
    assert len(re.findall(r"<title>[^<]*, 3</title>", drawn)) == 2


@pytest.mark.parametrize(
    ("trigger", "first", "last", "at"),
    [
        (Event("time", (5, 1, 9)), 0, 5, [1, 5]),
        (Periodic("iteration", 3, 2), 1, 9, [2, 5, 8]),
        (Periodic("iteration", 3, 2), 6, 8, [8]),
        (Periodic("time", 1, 0, 2), 2, 9, [2]),
        (Periodic("time", 5, 7), 0, 6, []),
    ],
)
def test_no_moment_is_left_out_or_taken_twice(trigger, first, last, at):
    assert list(moments(trigger, first, last)) == at


def hooked(*hooks):
    """A task of 20 iterations with these (command, trigger)."""
    lines = [
        f"      - {{action: {{sys_call: {json.dumps(command)}}}, trigger: {json.dumps(trigger)}}}"
        for command, trigger in hooks
    ]
    return TASK.partition("      - description")[0] + "\n".join(lines) + "\n"


def hook_runs(loadstone):
    shown = json.loads(loadstone("results", "show", "latest", "--json", "-").stdout)
    return [hook["results"] for hook in workloads(shown)[0]["hooks"]]


def test_a_hook_whose_moment_did_not_come_is_named(loadstone, write):
    late = {"event": {"unit": "iteration", "at": [21]}}
    told = loadstone("run", write(hooked(("echo never", late))))
    assert told.returncode == 0, told.stderr
    assert "echo never: its moment did not come" in told.stdout
    assert hook_runs(loadstone) == [[]]


def living(group):
    """The processes of a group that have not ended."""
    stats = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            stats.append((path.parent.name, path.read_text().rpartition(")")[2].split()))
    return [pid for pid, (state, _, pgrp, *_) in stats if int(pgrp) == group and state not in "ZX"]


FIRST = {"event": {"unit": "iteration", "at": [1]}}


@pytest.mark.parametrize(
    "command",
    [
        "trap '' TERM; echo begun; sleep 1000",
        "sleep 1000 & echo begun",  # what stays behind holds the output open
        "echo begun; exec >&- 2>&-; sleep 1000",
    ],
)
def test_a_hook_that_never_ends_is_ended_with_its_whole_group(
    loadstone, write, tmp_path, monkeypatch, command
):
    monkeypatch.setattr("loadstone.observers.hooks.GRACE_S", 0.2)
    write("echo $$ > group\n" + command, "never.sh")
    write(hooked(("sh never.sh", FIRST), ("echo well", FIRST)))
    told = loadstone("run", "task.yaml", "--hook-timeout", "3s")
    assert told.returncode == 0, told.stderr
    ((never,), (well,)) = hook_runs(loadstone)
    assert never["status"] == "failed"
    assert never["error"]["msg"] == "Subprocess was ended after 3 s"
    assert "begun" in str(never["output"])
    assert well["status"] == "success"
    assert living(int((tmp_path / "group").read_text())) == []


def test_of_a_long_output_the_beginning_is_kept(loadstone, write):
    write("head -c 30000000 /dev/zero | tr '\\0' x; head -c 3000000 /dev/zero >&2", "long.sh")
    write(hooked(("sh long.sh", FIRST)))
    assert loadstone("run", "task.yaml").returncode == 0
    (((run,),),) = (hook_runs(loadstone),)
    assert run["status"] == "success"
    _, out, err = run["output"]["complete"][0]["data"]
    assert out == f"StdOut: {'x' * 65_536}\n(cut: 30,000,000 bytes in all)"
    assert err.endswith("(cut: 3,000,000 bytes in all)")


def test_so_many_hooks_run_at_once_and_the_others_wait(loadstone, write):
    each = {"periodic": {"unit": "iteration", "step": 1}}
    write(hooked(("sleep 0.3", each), ("sleep 0.3", each)))
    assert loadstone("run", "task.yaml").returncode == 0
    runs = [run for results in hook_runs(loadstone) for run in results]
    assert len(runs) == 40
    assert all(run["status"] == "success" for run in runs)
    at_once = [
        sum(one["started_at"] <= run["started_at"] < one["finished_at"] for one in runs)
        for run in runs
    ]
    assert max(at_once) <= 16


def test_of_too_many_hook_runs_one_line_says_that_there_are_no_more(loadstone, write, monkeypatch):
    monkeypatch.setattr("loadstone.observers.hooks.MOST_RUNS", 5)
    write(hooked(("echo well", {"periodic": {"unit": "iteration", "step": 1}})))
    assert loadstone("run", "task.yaml").returncode == 0
    ((*begun, last),) = hook_runs(loadstone)
    assert [run["status"] for run in begun] == ["success"] * 5
    assert "at most" in last["error"]["msg"]
    assert last["triggered_by"]["value"] == 6
