"""Mistakes in YAML files that users write."""

import pytest

from loadstone import yaml_file
from loadstone.errors import InvalidInput


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
    ],
)
def test_file_line_and_mistake_are_named(tmp_path, text, says):
    assert mistake(tmp_path, text).startswith(says)


def test_a_file_with_passwords_is_not_quoted(tmp_path):
    assert mistake(tmp_path, b"- password: *hunter2\n", is_secret=True) == (
        "file.yaml:1: not YAML or JSON"
    )


def test_a_file_that_is_missing_is_named_with_its_option(tmp_path):
    with pytest.raises(InvalidInput, match=r"^--faults .*gone\.yaml: No such file or directory$"):
        yaml_file.read(tmp_path / "gone.yaml", "--faults")
