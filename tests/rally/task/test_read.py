"""Both forms of task files, their defaults, and the arguments of templates."""

import json

import pytest
from rally_corpus import NEW, OLD

from loadstone.analysis import criteria
from loadstone.keystone.contexts import model as contexts
from loadstone.plan import hooks
from loadstone.rally.task import model
from loadstone.rally.task.problem import TaskInvalid
from loadstone.rally.task.read import read


def meaning(workload):
    return (
        workload.scenario,
        workload.runner,
        workload.contexts,
        workload.sla,
        workload.hooks,
        workload.description,
    )


def test_the_old_form_and_full_names_mean_the_same(good):
    old, new = good(OLD).task, good(NEW).task
    (old_one,), (new_one,) = old.subtasks, new.subtasks
    assert list(map(meaning, old_one.workloads)) == list(map(meaning, new_one.workloads))
    assert old_one.title == new_one.title
    assert old.title == "Task (adopted from task format v1)"


def test_a_workload_has_all_that_the_file_says(good):
    workload = good(OLD).task.subtasks[0].workloads[0]
    assert workload.scenario.name == "KeystoneBasic.create_user"
    assert workload.scenario.arguments["enabled"] is False
    assert "default_role" not in workload.scenario.arguments
    assert workload.runner == model.Constant(10, 2)
    assert workload.contexts == (
        contexts.Users(tenants=2, users_per_tenant=3),
        contexts.Cleanup(),
    )
    assert workload.hooks == (
        hooks.Hook(hooks.SysCall(("echo", "a b")), hooks.Event("iteration", (2, 4))),
    )


def test_what_the_file_does_not_say_is_as_in_rally(good):
    workload = good(OLD).task.subtasks[0].workloads[1]
    assert workload.runner == model.Serial(1)
    assert workload.sla == (criteria.FailureRate(0, 0),)
    assert workload.contexts[0] == contexts.Users(may_be_existing=True)
    assert workload.description == "Create a user."


@pytest.mark.parametrize("version", ['"2"', "2", "2.0"])
def test_a_simple_subtask_is_one_workload(good, version):
    text = """
version: VERSION
title: T
description: words
tags: [a, b]
subtasks:
  - title: S
    description: of the subtask
    tags: [c]
    scenario: {Dummy.dummy: {sleep: 0.1, anything: [1]}}
    runner: {rps: {times: 20, rps: {start: 1, end: 3, step: 1}, max_concurrency: 5}}
"""
    task = good(text.replace("VERSION", version)).task
    assert task.title == "T"
    (subtask,) = task.subtasks
    (workload,) = subtask.workloads
    # As in Rally, whose workload has the description of its scenario then.
    assert (subtask.description, workload.description) == ("of the subtask", "Sleep.")
    assert workload.scenario.arguments == {"sleep": 0.1, "anything": [1]}
    assert workload.runner == model.Rps(20, model.Ramp(1, 3, 1), None, 5)
    assert workload.contexts == ()
    assert workload.line == 7


def test_only_the_choice_of_users_leaves_room_for_existing_ones(good):
    text = "Dummy.openstack:\n- context: {users: %s}"
    users = good(text % "{user_choice_method: round_robin}").task.subtasks[0].workloads[0].contexts
    assert users == (contexts.Users(choice="round_robin", may_be_existing=True),)
    users = good(text % "{tenants: 1}").task.subtasks[0].workloads[0].contexts
    assert users == (contexts.Users(),)


def test_contexts_come_in_rallys_order(good):
    text = """
Dummy.openstack:
  - context:
      roles: [reader]
      dummy_context: {fail_setup: true}
      quotas: {nova: {cores: -1}}
      api_versions: {nova: {version: 2.2}, cinder: {version: "3", service_type: volumev3}}
      users: {}
"""
    made = good(text).task.subtasks[0].workloads[0].contexts
    assert made == (
        contexts.Users(may_be_existing=True),
        contexts.ApiVersions(),
        contexts.Quotas({"nova": {"cores": -1}}),
        contexts.Roles(("reader",)),
        contexts.DummyContext(fail_setup=True),
    )


def test_every_sla_rule_is_read(good):
    text = """
Dummy.dummy:
  - sla:
      failure_rate: {min: 1, max: 5}
      max_seconds_per_iteration: 4
      max_avg_duration: 2.5
      max_avg_duration_per_atomic: {a: 1}
      outliers: {sigmas: 2}
      performance_degradation: {max_degradation: 50}
      max_percentiles: {p50: 0.2, p99.9: 1}
      min_throughput: 10
      min_iterations: 100
"""
    checked = good(text)
    assert checked.warnings == ()
    assert checked.task.subtasks[0].workloads[0].sla == (
        criteria.FailureRate(1, 5),
        criteria.MaxSecondsPerIteration(4),
        criteria.MaxAvgDuration(2.5),
        criteria.MaxAvgDurationPerAtomic({"a": 1}),
        criteria.Outliers(0, 3, 2),
        criteria.PerformanceDegradation(50),
        criteria.MaxPercentiles({50: 0.2, 99.9: 1}),
        criteria.MinThroughput(10),
        criteria.MinIterations(100),
    )


@pytest.mark.parametrize(
    ("trigger", "meant"),
    [
        ("{unit: time, step: 10}", hooks.Periodic("time", 10, 0)),
        ("{unit: iteration, step: 10}", hooks.Periodic("iteration", 10, 1)),
        ("{unit: time, step: 2, start: 3, end: 9}", hooks.Periodic("time", 2, 3, 9)),
    ],
)
def test_a_periodic_trigger_begins_at_0_s_or_at_iteration_1(trigger, meant, good):
    hook = f"{{name: sys_call, args: ls, trigger: {{name: periodic, args: {trigger}}}}}"
    hooks = good(f"Dummy.dummy: [{{hooks: [{hook}]}}]").task.subtasks[0].workloads[0].hooks
    assert hooks[0].trigger == meant


TEMPLATE = "Dummy.dummy: [{runner: {type: constant, times: {{ times }}, concurrency: {{ c }}}}]"


@pytest.mark.processes
@pytest.mark.parametrize(
    "raw",
    [
        '{"times": 8, "c": 2}',
        "times: 8\nc: 2",
        "times=8,c=2",
        "{times: 8, c: 2}",
        "{times: 8, c: 2, of-others: 1}",
    ],
)
def test_arguments_come_as_json_yaml_or_pairs(raw, good):
    task = good(TEMPLATE, raw_arguments=raw).task
    assert task.subtasks[0].workloads[0].runner == model.Constant(8, 2)


@pytest.mark.processes
def test_the_command_lines_arguments_win_over_the_files(good, write):
    given = write("---\ntimes: 8\nc: 3", "args.yaml")
    task = good(TEMPLATE, raw_arguments="c=2", arguments_file=given).task
    assert task.subtasks[0].workloads[0].runner == model.Constant(8, 2)


@pytest.mark.parametrize(
    "raw",
    ["[1]", "5", "word", "{times: 1, times: 2}", "{1: 2}", "times=1,times=2", "times=\udce9"],
)
def test_arguments_that_are_no_names_with_values_are_refused(raw, wrongs):
    (said,) = wrongs(TEMPLATE, raw_arguments=raw)
    assert said.startswith(("--task-args: ", "--task-args:1: "))


def test_bad_arguments_name_their_file(wrongs, write):
    given = write("a: 1\nb: [", "args.yaml")
    (said,) = wrongs(TEMPLATE, arguments_file=given)
    assert said.startswith("args.yaml:2: not YAML or JSON")


def test_a_file_that_cannot_be_read_is_one_line(tmp_path):
    with pytest.raises(TaskInvalid, match="cannot be read: No such file or directory"):
        read(str(tmp_path / "none.yaml"))
    with pytest.raises(TaskInvalid, match="cannot be read: Is a directory"):
        read(str(tmp_path))
    (tmp_path / "latin.yaml").write_bytes("a: 1\nb: ä".encode("latin-1"))
    with pytest.raises(TaskInvalid, match=r"latin.yaml:2: is not UTF-8 text"):
        read(str(tmp_path / "latin.yaml"))


def test_ten_megabytes_of_aliases_are_refused(wrongs):
    said = wrongs("a: &a 1\nb: [" + "*a," * 3_400_000 + "]")
    assert said == ["task.yaml: the file is larger than 2 MB, which no task needs"]


def test_a_password_is_in_no_repr(good):
    text = "Dummy.openstack: [{context: {users: {user_password: hunter2}}}]"
    task = good(text).task
    assert task.subtasks[0].workloads[0].contexts[0].password == "hunter2"
    assert "hunter2" not in repr(task)


@pytest.mark.processes
def test_a_big_task_of_macros_reads_as_its_parts_say(write):
    write(
        """
{%- macro users(tenants, existing) -%}
{%- if existing and caller is not defined -%} {}
{%- else %}
          users: {tenants: {{ tenants }}}
  {%- if caller is defined %}
    {{ caller() }}
  {%- endif %}
{%- endif %}
{%- endmacro %}
{%- macro steady(concurrency=1, times=1, smoke=True) %}
          constant:
            concurrency: {{ 1 if smoke else concurrency }}
            times: {{ 1 if smoke else times }}
{%- endmacro %}
""",
        "macro/macro.yaml",
    )
    write(
        """
  - title: "Tokens"
    workloads:
      - scenario: {Authenticate.keystone: {}}
        contexts:
          {{ users(tenants, existing) }}
        runner:
          {{ steady(concurrency=min(50, 7*nodes), times=min(200, 67*nodes), smoke=smoke) }}
      - scenario: {KeystoneBasic.create_user: {}}
        contexts:
          {% call users(tenants, existing) %}
          roles: [reader]
          {% endcall %}
        runner:
          {{ steady(smoke=smoke) }}
""",
        "scenario/keystone.yaml",
    )
    path = write(
        """---
{%- set services = services|default(["keystone"]) %}
{%- set smoke = smoke|default(false) %}
{%- set nodes = nodes|default(3) %}
{%- set tenants = tenants|default(2) %}
{%- set existing = existing|default(false) %}
{%- from "macro/macro.yaml" import users, steady %}
version: 2
title: "Certification"
subtasks:
{% if "keystone" in services %}
{%- include "scenario/keystone.yaml" -%}
{% endif %}
"""
    )
    workloads = read(path).task.subtasks[0].workloads
    assert workloads[0].runner == model.Constant(200, 21)
    assert workloads[0].contexts == (contexts.Users(tenants=2),)
    assert workloads[1].contexts[:2] == (contexts.Users(tenants=2), contexts.Roles(("reader",)))
    assert (workloads[1].file.rpartition("/")[2], workloads[1].line) == ("keystone.yaml", 9)
    smoke = read(path, json.dumps({"smoke": True, "existing": True})).task.subtasks[0].workloads
    assert smoke[0].runner == model.Constant(1, 1)
    assert smoke[0].contexts == (contexts.Users(may_be_existing=True),)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_problem_is_at_its_line_whatever_ends_the_lines(tmp_path, end):
    task = tmp_path / "task.yaml"
    lines = ("version: 2", "title: T", "subtasks:", "- title: S", "  scenario: {Dumy.dummy: {}}")
    task.write_bytes(end.join(lines).encode())
    with pytest.raises(TaskInvalid, match=r"task\.yaml:5: "):
        read(str(task))
    task.write_bytes(end.join((*lines, "")).encode() + b"\xff")
    with pytest.raises(TaskInvalid, match=r"task\.yaml:6: is not UTF-8"):
        read(str(task))


def test_whole_floats_are_counts_of_the_rps_runner_as_in_rally(good):
    counts = "times: 20.0, max_concurrency: 3.0, max_cpu_count: 4.0"
    checked = good(f"Dummy.dummy: [{{runner: {{type: rps, rps: 5, {counts}}}}}]")
    [workload] = checked.task.subtasks[0].workloads
    assert workload.runner == model.Rps(20, 5, None, 3, 4)
    assert isinstance(workload.runner.times, int)


def test_an_empty_name_of_a_file_is_said(tmp_path):
    task = tmp_path / "task.yaml"
    task.write_text("{}")
    for files, place in ((("",), "TASK"), ((str(task), None, ""), "--task-args-file")):
        with pytest.raises(TaskInvalid, match=f"^{place}: the name of the file is empty"):
            read(*files)
