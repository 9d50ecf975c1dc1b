"""Sample files, imports, task files and facts that are damaged or made up."""

import copy
import json
import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest
import yaml
from audited import CONTEXT, document
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from realistic import keystone

from loadstone.audit import archive, rule
from loadstone.audit.document import Document
from loadstone.audit.evaluate import evaluate
from loadstone.audit.extract import extract
from loadstone.engine.parquet import SampleFile, write
from loadstone.engine.samples import Samples
from loadstone.errors import LoadstoneError
from loadstone.rally.import_run import import_file
from loadstone.rally.task.read import read
from loadstone.store import bundle, codec
from loadstone.store.store import Store

DATA = Path(__file__).parents[1] / "data"
TASK = """\
{% set users = users or 2 %}
---
Authenticate.keystone:
  - args: {name: "x", n: 1}
    runner: {type: constant, times: 4, concurrency: 2}
    context: {users: {tenants: {{ users }}, users_per_tenant: 2}}
    sla: {failure_rate: {max: 0}}
    hooks:
      - {name: sys_call, args: "true", trigger: {name: event, args: {unit: iteration, at: [2]}}}
"""
# Edits of a text or of bytes: where (share of its length), how much is cut, what is put there.
EDITS = st.lists(
    st.tuples(st.floats(0, 1), st.integers(0, 12), st.binary(max_size=8)), min_size=1, max_size=6
)
ODD = st.sampled_from(
    [
        None,
        True,
        -1,
        0,
        10**400,
        1e300,
        "",
        "\0",
        "{{ x }}",
        "../../x",
        [],
        {},
        [[]],
        {"x": {}},
        "9" * 99,
    ]
)
of_one_test = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def edited(content: bytes, edits: list[tuple[float, int, bytes]]) -> bytes:
    for at, cut, put in edits:
        place = int(at * len(content))
        content = content[:place] + put + content[place + cut :]
    return content


@contextmanager
def refused_at_worst(path: Path) -> Iterator[None]:
    """Accept Loadstone's own errors, which must name the file."""
    try:
        yield
    except LoadstoneError as refused:
        if str(path) not in str(refused):
            raise


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


@pytest.fixture(scope="module")
def samples(folder: Path) -> bytes:
    rows = 300
    due = np.arange(rows, dtype=np.int64) * 1000
    zeros = {
        name: np.zeros(rows, dtype)
        for name, dtype in {
            **dict.fromkeys(("first_byte_us", "iteration", "connection"), np.uint32),
            **dict.fromkeys(("status", "generator"), np.uint16),
            **dict.fromkeys(("outcome", "action", "retried"), np.uint8),
        }.items()
    }
    path = folder / "sound.parquet"
    write(path, Samples(due_ns=due, sent_ns=due, done_ns=due + 5, **zeros))
    return path.read_bytes()


@given(EDITS)
@of_one_test
def test_a_damaged_sample_file_is_read_or_refused(folder, samples, edits) -> None:
    path = folder / "damaged.parquet"
    path.write_bytes(edited(samples, edits))
    with refused_at_worst(path):
        for group in SampleFile(path).groups():
            assert len(group.done_ns) == len(group.outcome)


@pytest.fixture(scope="module")
def exported(folder: Path) -> bytes:
    path = folder / "sound.zip"
    text = json.dumps({"format": bundle.FORMAT, "result": codec.to_plain(keystone()[0])})
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("result.json", text)
    return path.read_bytes()


@given(EDITS, st.booleans())
@of_one_test
def test_a_damaged_export_or_report_is_imported_or_refused(
    tmp_path_factory, exported, edits, is_rally
) -> None:
    folder = tmp_path_factory.mktemp("import")
    content = (DATA / "rally/report.json").read_bytes() if is_rally else exported
    path = folder / ("run.json" if is_rally else "run.zip")
    path.write_bytes(edited(content, edits))
    with Store.open(folder / "store") as store:
        with suppress(LoadstoneError):
            import_file(store, path)
        for entry in store.every():
            store.get(entry.run_id)
    assert not [one for one in folder.iterdir() if one.name not in (path.name, "store")]


@given(EDITS)
@example([(0.0, 9999, b"")])
@of_one_test
def test_a_damaged_task_file_is_read_or_refused(folder, edits) -> None:
    path = folder / "task.yaml"
    path.write_bytes(edited(TASK.encode(), edits))
    with refused_at_worst(path):
        read(str(path))


@given(st.lists(st.tuples(st.integers(0, 10**6), ODD), min_size=1, max_size=4))
@of_one_test
def test_a_task_file_with_odd_values_is_read_or_refused(folder, changes) -> None:
    tree = yaml.safe_load(re.sub(r"{%.*%}", "", TASK).replace("{{ users }}", "2"))
    for where, value in changes:
        places = list(_places(tree))
        holder, key = places[where % len(places)]
        holder[key] = copy.deepcopy(value)
    path = folder / "odd.yaml"
    path.write_text(json.dumps(tree))
    with refused_at_worst(path):
        read(str(path))


def _places(tree):
    if isinstance(tree, dict | list):
        for key in list(tree) if isinstance(tree, dict) else range(len(tree)):
            yield tree, key
            yield from _places(tree[key])


SECTIONS = sorted(document().sections)
RULES = rule.select(())


@given(st.sampled_from(SECTIONS), EDITS)
@of_one_test
def test_damaged_facts_are_judged_or_unknown(section, edits) -> None:
    sections = dict(document().sections)
    changed = edited(sections[section].encode(), edits)
    sections[section] = changed.decode(errors="replace")
    host = extract("a", Document(sections), dict(CONTEXT))
    evaluate(RULES, (host,))


@given(EDITS)
@of_one_test
def test_a_damaged_file_of_facts_is_read_or_refused(folder, edits) -> None:
    path = folder / "facts.json"
    tree = {"loadstone_facts": 1, "sections": dict(document().sections), "complete": True}
    path.write_bytes(edited(json.dumps(tree).encode(), edits))
    with refused_at_worst(path):
        archive.read(path)
