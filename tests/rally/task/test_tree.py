"""YAML as Rally reads it, with lines, and bombs that do not go off."""

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from loadstone.rally.task.problem import TaskInvalid
from loadstone.rally.task.tree import parse


def refusal(text):
    with pytest.raises(TaskInvalid) as refused:
        parse(text, "t.yaml")
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_words_mean_what_they_mean_in_yaml_1_1():
    text = "a: yes\nb: off\nc: 017\nd: 1:30\ne: 1_000\nf: ~\ng: '1'\nh: 1e3\ni: 1.5\nj: 0x1f"
    expected = [True, False, 15, 90, 1000, None, "1", "1e3", 1.5, 31]
    assert list(parse(text, "t").value.values()) == expected


def test_each_value_knows_its_line():
    tree = parse("a:\n  b:\n    - 1\n    -\n      c: 2\nd: {e: [3,\n 4]}", "t.yaml")
    lines = {path: line for path, (_, line) in tree.places.items()}
    assert lines["a", "b"] == 2
    assert lines["a", "b", 1, "c"] == 5
    assert lines["d", "e", 1] == 7


def test_a_problem_stands_at_the_deepest_part_that_is_there():
    tree = parse("a:\n  b: 1", "t.yaml")
    assert str(tree.problem(("a", "b"), "x")) == "t.yaml:2: x"
    assert str(tree.problem(("a", "missing"), "x")) == "t.yaml:1: x"
    assert str(tree.problem(("a", "a tag of pydantic", "b"), "x")) == "t.yaml:2: x"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: 1\nb: 2\na: 3", "t.yaml:3: the key 'a' is given twice in the same mapping"),
        ('{"a": {"x": 1,\n "x": 2}}', "t.yaml:2: the key 'x' is given twice in the same mapping"),
        ("1: a\n1.0: b", "t.yaml:2: the key 1.0 is given twice in the same mapping"),
        ("a: &x {b: 1}\nc:\n  <<: *x", 't.yaml:3: Rally reads no merge keys ("<<")'),
        ("a: !!python/object/apply:os.system [ls]", "t.yaml:1: the tag !!python/object/apply"),
        ("a: !mine 1", "t.yaml:1: the tag !mine is not plain data"),
        ("? [a]\n: 1", "t.yaml:1: a key must be a word"),
        ("a: 2020-13-45", "t.yaml:1: '2020-13-45' cannot be read: month must be in 1..12"),
        ("a: 1\nb: 0x" + "f" * 5000, "t.yaml:2: '0xffff"),
        ("a: {.inf: 1}", "t.yaml:1: inf cannot be a key; quote it if it is text"),
        ("a: *none", "t.yaml:1: not YAML or JSON: found undefined alias"),
        ("a: 1\n---\nb: 1", "t.yaml:2: not YAML or JSON: expected a single document"),
        ("a: [1, 2", "t.yaml:1: not YAML or JSON: "),
        ("a:\n\t- b", "t.yaml:2: not YAML or JSON: while scanning"),
        ("a: 1\nb: \x01", "t.yaml:2: character 1 is not allowed in YAML"),
        ("a: 1\nb: caf\udce9", "t.yaml:2: is not UTF-8 text"),
    ],
)
def test_what_rally_would_not_read_is_refused_with_its_line(text, words):
    assert refusal(text).startswith(words)


LAUGHS = "a0: &a0 [x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 10)
)
BOMBS = {
    "a billion laughs": LAUGHS,
    "many aliases": "a: &a 1\nb: [" + "*a," * 600_000 + "]",
    "many values": "[" + "1," * 900_000 + "]",
    "deep": "[" * 1_000_000,
    "deep blocks": "- " * 100_000 + "a",
    "itself": "a: &a [*a]",
    "directives": "".join(f"%TAG !a{i}! b\n" for i in range(120_000)) + "--- a",
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_is_refused_with_one_line(bomb):
    assert "more than" in refusal(BOMBS[bomb])


# What YAML takes as it stands; the escapes of JSON beyond U+FFFF are not YAML's.
WORDS = st.text(
    st.characters(min_codepoint=32, max_codepoint=0xD7FF, exclude_categories=["C", "Z"])
)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=20,
)


@given(PLAIN)
def test_what_yaml_writes_is_read_back(value):
    assert parse(yaml.safe_dump(value), "t").value == value


@given(PLAIN)
def test_json_is_read_as_json_reads_it(value):
    # What an exponent without a sign means in JSON and in YAML 1.1 differs, in Rally, too.
    text = json.dumps(value, ensure_ascii=False)
    if "e" not in str(value).lower():
        assert parse(text, "t").value == json.loads(text)


@pytest.mark.parametrize(
    "text",
    [json.dumps({"title": "go \U0001f680\U0001f680", "\U0001f511": 1}), r'["\\ud83d\\ude80"]'],
)
def test_characters_that_json_escapes_as_pairs_are_read(text):
    assert parse(text, "t").value == json.loads(text)


def test_in_yaml_a_pair_within_single_quotes_is_no_escape():
    assert parse(r"a: '\ud83d\ude80'", "t").value == {"a": r"\ud83d\ude80"}
