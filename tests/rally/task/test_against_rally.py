"""Side by side with real Rally: the same files, the same iterations, the same answers."""

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
from judged_iterations import judged
from rally_corpus import BAD, GOOD, INCLUDES

from loadstone.analysis.sla import first_failure
from loadstone.analysis.sums import WorkloadIterations
from loadstone.rally.task.catalogue import foreign
from loadstone.rally.task.catalogue.contexts import CONTEXTS
from loadstone.rally.task.catalogue.scenarios import SCENARIOS
from loadstone.rally.task.catalogue.slas import SLAS
from loadstone.rally.task.problem import TaskInvalid
from loadstone.rally.task.read import load, read

SIDE = Path(__file__).parent / "rally_side.py"
RULES = {
    "failure_rate": {"min": 5, "max": 40},
    "max_seconds_per_iteration": 3.0,
    "max_avg_duration": 1.05,
    "max_avg_duration_per_atomic": {"a": 0.55, "b": 0.6, "none": 1.0},
    "outliers": {"max": 1, "min_iterations": 4, "sigmas": 1.5},
    "performance_degradation": {"max_degradation": 900},
}


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tasks")
    for name, text in INCLUDES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    for name, (text, _) in (GOOD | BAD).items():
        (folder / f"{name}.yaml").write_text(text)
    return folder


@pytest.fixture(scope="session")
def runs():
    """Random iterations, in the order of their ends."""
    random = np.random.default_rng(5)
    rows = []
    for count in (1, 2, 3, 5, 10, 40, 200):
        for share in (0.0, 0.3, 1.0):
            failed = random.random(count) < share
            seconds = random.lognormal(0, 0.5, count)
            rows.append((seconds, failed))
    return rows


@pytest.fixture(scope="session")
def rally(rally_python, files, runs):
    """What Rally says to all of it."""
    asked = {
        "tasks": [
            {"file": str(files / f"{name}.yaml"), "raw": raw}
            for name, (_, raw) in (GOOD | BAD).items()
        ],
        "slas": [
            {"rules": {name: rule}, "iterations": list(map(as_rally, *run))}
            for run in runs
            for name, rule in RULES.items()
        ],
    }
    answered = subprocess.run(
        [rally_python, SIDE], input=json.dumps(asked), text=True, stdout=subprocess.PIPE, check=True
    )
    answers = json.loads(answered.stdout)
    return answers | {"tasks": dict(zip(GOOD | BAD, answers["tasks"], strict=True))}


def as_rally(seconds, failed):
    """Give one iteration with an action a, and b twice."""
    parts = (("a", 0.5), ("b", 0.2), ("b", 0.3))
    return {
        "duration": seconds,
        "error": ["Error"] if failed else [],
        "atomic_actions": [
            {"name": name, "started_at": 7.0, "finished_at": 7.0 + share * seconds}
            for name, share in parts
        ],
    }


def as_ours(seconds, failed):
    sums = {"a": 0.5 * seconds, "b": 0.5 * seconds}
    counts = {"a": np.ones(len(seconds)), "b": np.full(len(seconds), 2.0)}
    return WorkloadIterations(seconds, failed, sums, counts)


@pytest.mark.parametrize("name", GOOD)
def test_what_rally_reads_we_read_the_same(name, rally, files):
    _, raw = GOOD[name]
    theirs = rally["tasks"][name]
    path = str(files / f"{name}.yaml")
    assert load(path, raw).value == theirs["value"]
    if name == "big, nothing":  # Rally refuses it only later: "subtasks" of a null
        return
    assert "refused" not in theirs
    assert theirs["wrong"] == []
    task = read(path, raw).task
    ours = [one for subtask in task.subtasks for one in subtask.workloads]
    assert task.title == theirs["title"]
    assert [one.scenario.name for one in ours] == [
        name.partition("@")[0] for name, _, _ in theirs["workloads"]
    ]
    assert [len(one.sla) for one in ours] == [len(sla) for _, _, sla in theirs["workloads"]]


@pytest.mark.parametrize("name", BAD)
def test_what_rally_refuses_we_refuse(name, rally, files):
    theirs = rally["tasks"][name]
    assert theirs.get("refused") or theirs["wrong"]
    with pytest.raises(TaskInvalid) as refused:
        read(str(files / f"{name}.yaml"), BAD[name][1])
    if name.startswith("missing"):
        wording = theirs["refused"].split("\n")[-1].partition(":")[0]
        assert wording in str(refused.value)


def test_sla_rules_judge_as_rally_does(rally, runs):
    theirs = iter(rally["slas"])
    for run in runs:
        for name, settings in RULES.items():
            rule = SLAS[name].model_validate(settings).to_model()
            (ours,) = judged([rule], as_ours(*run))
            expected = next(theirs)
            assert {
                "criterion": ours.criterion,
                "success": ours.success,
                "detail": ours.detail,
            } == expected["results"][0]
            assert first_failure([rule], as_ours(*run)) == expected["first"]


def test_the_catalogue_is_rallys(rally):
    theirs = rally["catalogue"]["scenarios"]
    for name, scenario in theirs.items():
        entry = SCENARIOS.get(name)
        if entry is None:
            is_foreign = name.partition(".")[0] in foreign.SCENARIO_GROUPS
            assert is_foreign or name in foreign.SCENARIOS, name
            continue
        ours = {argument.name: argument for argument in entry.arguments}
        assert set(scenario["arguments"]) <= set(ours), name
        assert {one.name for one in entry.arguments if one.is_required} == set(
            scenario["required"]
        ), name
        for argument, default in scenario["defaults"].items():
            if default is not None and argument != "name_length":
                assert ours[argument].default == default, (name, argument)
        assert entry.platform == scenario["platform"]
        implied = {f"{one}@openstack" for one in (entry.cleanup, "users") if one}
        assert set(scenario["contexts"]) == (implied if entry.makes_users else set()), name
        assert scenario["takes_any"] or set(ours) == set(scenario["arguments"]), name
    known = {*CONTEXTS, *foreign.CONTEXTS}
    assert set(rally["catalogue"]["contexts"]) <= known
