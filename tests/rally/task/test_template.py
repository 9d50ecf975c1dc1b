"""Jinja2 in task files: what it may, what it may not, and where its lines come from."""

import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest

from loadstone.rally.task import template
from loadstone.rally.task.limits import MEMORY_BYTES
from loadstone.rally.task.problem import TaskInvalid


def render(source, folder=Path(), **arguments):
    return template.render(source, "task.yaml", folder, arguments)


def refusal(source, folder=Path(), **arguments):
    with pytest.raises(TaskInvalid) as refused:
        render(source, folder, **arguments)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_rallys_functions_are_there():
    assert (
        render("{{ min(2, 3) }} {{ max(2, 3) }} {{ ceil(1.2) }} {{ round(1.6) }}").text == "2 3 2 2"
    )


def test_a_mapping_is_printed_as_json_and_a_list_as_python_does():
    text = render("a: {{ a }}\nb: {{ b }}", a={"x": True, "y": None}, b=[{"z": "q"}, 1]).text
    assert text == 'a: {"x": true, "y": null}\nb: [{"z": "q"}, 1]'


def test_keys_that_are_not_text_stay_as_they_are():
    assert render("{{ sizes[1] }} {{ sizes[2] }}", sizes={1: 10, 2: 20}).text == "10 20"
    assert render("{{ days }}", days={date(2026, 1, 1): [{True: 5}]}).text.startswith("{")


def test_a_missing_argument_is_named_in_rallys_words():
    assert refusal("a: 1\nb: {{ size }}").startswith(
        "task.yaml:2: Please specify template task argument: size"
    )
    assert "Please specify next template task arguments: a, b" in refusal("{{ b }} {{ a }}")


@pytest.mark.parametrize(
    "source",
    [
        "{% set times = times or 10 %}{{ times }}",
        "{{ times|default(10) }}",
        "{%- set times = times|default(10) %}{{ times }}",
    ],
)
def test_a_default_makes_an_argument_optional(source):
    assert render(source).text == "10"
    assert render(source, times=3).text == "3"


def test_an_undeclared_python_builtin_is_forgiven_as_rally_does():
    assert render("a: [{{ input }}]").text == "a: []"


def test_includes_imports_and_macros_work_from_the_tasks_folder(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/part.yaml").write_text("- part {{ n }}")
    (tmp_path / "macro.yaml").write_text(
        "{% macro hey(x) %}hey {{ x }} {{ caller() }}{% endmacro %}"
    )
    source = (
        '{% from "macro.yaml" import hey %}{% include "sub/part.yaml" %}\n'
        "{% call hey(2) %}you{% endcall %}"
    )
    assert render(source, tmp_path, n=1).text == "- part 1\nhey 2 you"


def test_a_list_can_be_appended_to_as_operators_do():
    source = "{% set names = [] %}{% for i in range(3) %}{% if names.append(i) %}{% endif %}"
    assert render(source + "{% endfor %}{{ names }}").text == "[0, 1, 2]"


def test_lines_are_those_of_the_file_in_loops_and_includes(tmp_path):
    (tmp_path / "part.yaml").write_text("- x\n- y")
    source = '{% for i in [1, 2] %}\n- {{ i }}\n{% include "part.yaml" %}\n{% endfor %}\nend: 1'
    rendered = render(source, tmp_path)
    places = [
        (line, *place)
        for line, place in zip(rendered.text.split("\n"), rendered.origins, strict=True)
        if line
    ]
    part = str(tmp_path / "part.yaml")
    turn = [("- 1", "task.yaml", 2), ("- x", part, 1), ("- y", part, 2)]
    assert places == [*turn, ("- 2", "task.yaml", 2), *turn[1:], ("end: 1", "task.yaml", 5)]


def test_where_marks_would_change_the_text_the_text_wins():
    source = "{% set x %}\nyes\n{% endset %}{% if x.strip() == 'yes' %}a: 1{% endif %}"
    rendered = render(source)
    assert rendered.text == "a: 1"
    assert rendered.origins == [("task.yaml (rendered)", 1)]


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../secret.yaml", "link.yaml", "a/../../secret.yaml"]
)
def test_nothing_outside_of_the_folder_is_read(path, tmp_path):
    folder = tmp_path / "tasks"
    folder.mkdir()
    (tmp_path / "secret.yaml").write_text("secret")
    (folder / "link.yaml").symlink_to(tmp_path / "secret.yaml")
    said = refusal(f'a: 1\n{{% include "{path}" %}}', folder)
    assert said == f'task.yaml:2: "{path}" is outside of the folder of the task file'


def test_a_file_that_is_not_there_is_named(tmp_path):
    assert 'there is no file "no.yaml"' in refusal('{% include "no.yaml" %}', tmp_path)


def test_an_included_file_that_is_not_utf_8_is_named(tmp_path):
    (tmp_path / "part.yaml").write_bytes("title: café".encode("latin-1"))
    said = refusal('a: 1\n{% include "part.yaml" %}', tmp_path)
    assert said == 'task.yaml:2: "part.yaml" is not UTF-8 text'


def test_pythons_internals_are_out_of_reach():
    said = refusal("{{ ''.__class__.__mro__[1].__subclasses__() }}")
    assert said.startswith("task.yaml:1: access to attribute '__class__'")


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("\n{% if %}", "task.yaml:2: Expected an expression"),
        ("\n{{ 1|nope }}", "task.yaml:2: No filter named 'nope'."),
        ("\n\n{{ 1 / 0 }}", "task.yaml:3: ZeroDivisionError: division by zero"),
        ("\n{{ x.y.z }}", "task.yaml:2: 'int object' has no attribute 'y'"),
    ],
)
def test_an_error_of_the_template_names_its_line(source, words):
    assert refusal(source, x=1).startswith(words)


def test_an_error_in_an_include_names_the_include(tmp_path):
    (tmp_path / "part.yaml").write_text("a\n{{ 1 / 0 }}")
    assert refusal('{% include "part.yaml" %}', tmp_path).startswith(f"{tmp_path}/part.yaml:2: ")


ENDLESS = {
    "output": "{% for i in range(90000) %}{% for j in range(90000) %}aaa{% endfor %}{% endfor %}",
    "one piece": "{{ 'a' * 10**7 }}",
    "memory": "{{ 'a' * 10**10 }}",
    "range": "{% for i in range(10**9) %}{% endfor %}",
    "itself": '{% include "self.yaml" %}',
    "loops in loops": "{% for i in [1] %}" * 30 + "{% endfor %}" * 30,
    "nesting": "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
}


PEAK = """
import resource, sys
from loadstone.rally.task.problem import TaskInvalid
from loadstone.rally.task.read import load
try:
    load(sys.argv[1])
except TaskInvalid:
    print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


@pytest.mark.parametrize("kind", ENDLESS)
def test_a_template_without_end_is_refused_with_one_line(kind, tmp_path):
    (tmp_path / "self.yaml").write_text(ENDLESS["itself"])
    assert refusal(ENDLESS[kind], tmp_path)


@pytest.mark.parametrize("kind", ENDLESS)
def test_a_template_without_end_takes_no_more_memory_than_it_may(kind, tmp_path):
    """In a process of its own, whose children are this template's alone."""
    (tmp_path / "self.yaml").write_text(ENDLESS["itself"])
    (tmp_path / "task.yaml").write_text(ENDLESS[kind])
    told = subprocess.run(
        [sys.executable, "-c", PEAK, str(tmp_path / "task.yaml")],
        check=True,
        capture_output=True,
        text=True,
    )
    assert int(told.stdout) * 1024 < MEMORY_BYTES


def test_a_loop_without_output_is_stopped_by_its_cpu_time():
    said = refusal("{% for i in range(90000) %}{% for j in range(90000) %}{% endfor %}{% endfor %}")
    assert "it may use 3 s of CPU" in said
