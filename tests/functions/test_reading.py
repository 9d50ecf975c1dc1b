"""A task file read by another process: the same task, the same words of what is wrong."""

import io
import sys
from types import SimpleNamespace

import pytest

from loadstone.functions.reading import Question, read_apart
from loadstone.task.problem import TaskInvalid
from loadstone.task.read import read

TASK = '{"Authenticate.keystone": [{"runner": {"type": "serial", "times": {{ times }}}}]}'
LOUD = """
from loadstone.functions.plugin import scenario

print("a plugin that prints")


@scenario("Loud.nothing")
def nothing(context, seconds: float = 0.0):
    "Do nothing."
"""


def test_it_is_the_task_that_is_read_here(tmp_path):
    file = tmp_path / "task.yaml"
    file.write_text(TASK)
    assert read_apart(Question(str(file), "times=3", None, ())) == read(str(file), "times=3")


def test_a_task_on_stdin_and_a_plugin_that_prints(tmp_path, monkeypatch, capfd):
    plugin = tmp_path / "loud.py"
    plugin.write_text(LOUD)
    text = b"Loud.nothing: [{args: {seconds: 1.5}}]"
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text)))
    checked = read_apart(Question("-", None, None, (str(plugin),)))
    (workload,) = checked.task.subtasks[0].workloads
    assert workload.scenario.arguments == {"seconds": 1.5}
    assert capfd.readouterr().out == ""


def test_all_that_is_wrong_is_said_with_its_line(tmp_path):
    file = tmp_path / "task.yaml"
    file.write_text("Authenticate.keyston: [{}]\nDummy.dummy: [{args: {sleep: long}}]\n")
    with pytest.raises(TaskInvalid) as apart:
        read_apart(Question(str(file), None, None, ()))
    assert [problem.line for problem in apart.value.problems] == [1, 2]
    with pytest.raises(TaskInvalid) as here:
        read(str(file))
    assert apart.value.problems == here.value.problems
    assert str(apart.value) == str(here.value)
