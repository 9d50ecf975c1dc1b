"""Mistakes in YAML files that users write."""

import json

import pytest

from loadstone.errors import InvalidInput
from loadstone.system import yaml_file


def mistake(tmp_path, text, **options):
    path = tmp_path / "file.yaml"
    path.write_bytes(text)
    with pytest.raises(InvalidInput) as told:
        yaml_file.read(path, **options)
    return str(told.value).removeprefix(f"{tmp_path}/")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"a: 1\nb: [1, 2\n", "file.yaml:3: not YAML or JSON: "),
        (b"a: 1\n\tb: 2\n", "file.yaml:2: not YAML or JSON: found character '\\t'"),
        (b"a: !vault |\n  x\n", "file.yaml:1: not YAML or JSON: could not determine"),
        (b"a: 2026-13-45\n", "file.yaml: not YAML or JSON: month must be in 1..12"),
        (b"a: \xff\n", "file.yaml: not UTF-8"),
        (b"a: 1\nb: {c: 2, d: 4,\n  c: 3}\n", "file.yaml:3: 'c' is given twice"),
    ],
)
def test_file_line_and_mistake_are_named(tmp_path, text, says):
    assert mistake(tmp_path, text).startswith(says)


BOMB = b"".join(
    [b"a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"]
    + [b"a%d: &a%d [%s]\n" % (n, n, b",".join([b"*a%d" % (n - 1)] * 10)) for n in range(1, 9)]
)
MERGED = b"".join(
    [b"a0: &a0 {%s}\n" % b",".join(b"k%d: 1" % n for n in range(10))]
    + [b"a%d: &a%d {<<: [%s]}\n" % (n, n, b",".join([b"*a%d" % (n - 1)] * 10)) for n in range(1, 9)]
)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (BOMB, "file.yaml: its aliases expand to more than 100,000 values"),
        (MERGED, "file.yaml: its aliases expand to more than 100,000 values"),
        (b"a: &a [*a]\n", "file.yaml: a value contains itself by an alias"),
        (b"a: &a {children: {b: *a}}\n", "file.yaml: a value contains itself by an alias"),
        (b"[" * 1_000, "file.yaml: not YAML or JSON"),
        (b"[" * 200 + b"]" * 200, "file.yaml: more than 100 levels of nesting"),
        (b"#" * (32 * 2**20 + 1), "file.yaml: longer than 32 MiB"),
    ],
)
def test_what_expands_without_limit_is_refused(tmp_path, text, says):
    assert mistake(tmp_path, text).startswith(says)


def test_aliases_are_followed(tmp_path):
    path = tmp_path / "file.yaml"
    path.write_text("a: &a {x: 1}\nb: {<<: *a, y: [*a, *a]}\n")
    assert yaml_file.read(path).content == {"a": {"x": 1}, "b": {"x": 1, "y": [{"x": 1}, {"x": 1}]}}


TEXT = """# comment
waivers:
  - rule: KS-12
    reason: because
  - {rule: KS-13,
     reason: also}
base: &base
  workers: 2
both:
  <<: *base
  1: one
"""


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        ((), 2),
        (("waivers",), 2),
        (("waivers", 0), 3),
        (("waivers", 0, "reason"), 4),
        (("waivers", 1, "reason"), 6),
        (("waivers", 1, "expires"), 5),  # would be in the second waiver
        (("waivers", 2), 2),
        (("both", "workers"), 8),
        (("both", 1), 11),
        (("none", "at", "all"), 2),
    ],
)
def test_a_part_has_the_line_where_it_stands(tmp_path, keys, line):
    path = tmp_path / "file.yaml"
    path.write_text(TEXT)
    assert yaml_file.read(path, "--waivers").place(*keys) == f"--waivers {path}:{line}"


def test_an_empty_file_has_no_lines(tmp_path):
    path = tmp_path / "file.yaml"
    path.write_text("# nothing\n")
    assert (yaml_file.read(path).content, yaml_file.read(path).place("a")) == (None, str(path))


def test_a_character_that_json_escapes_as_a_pair_is_read(tmp_path):
    path = tmp_path / "file.json"
    path.write_text(json.dumps({"name": "go \U0001f680"}))
    assert yaml_file.read(path).content == {"name": "go \U0001f680"}


def test_a_file_with_passwords_is_not_quoted(tmp_path):
    assert mistake(tmp_path, b"- password: *hunter2\n", is_secret=True) == (
        "file.yaml:1: not YAML or JSON"
    )


def test_a_file_that_is_missing_is_named_with_its_option(tmp_path):
    with pytest.raises(InvalidInput, match=r"^--faults .*gone\.yaml: No such file or directory$"):
        yaml_file.read(tmp_path / "gone.yaml", "--faults")
