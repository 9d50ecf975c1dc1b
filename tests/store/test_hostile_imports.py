"""Imports of files that are damaged or made to harm."""

import copy
import json
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from realistic import keystone

from loadstone.errors import InvalidInput, LoadstoneError
from loadstone.rally.export import as_rally
from loadstone.rally.import_run import import_file
from loadstone.store import bundle, codec
from loadstone.store.store import Store

REPORT = json.loads((Path(__file__).parent.parent / "data/rally/report.json").read_text())
RESULT = {"format": bundle.FORMAT, "result": codec.to_plain(keystone()[0])}
ODD = st.sampled_from(
    [None, True, -1, 10**400, 1e300, float("nan"), "", "\0", "\ud800", "../../x", [], {}, [[]]]
)


def places(value, path=()):
    """Yield the path of each value in JSON data."""
    yield path
    if isinstance(value, dict | list):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(part, (*path, key))


def changed(data, path, odd):
    data = copy.deepcopy(data)
    if not path:
        return odd
    at = data
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = odd
    return data


def packed(path, data, compression=0):
    with ZipFile(path, "w", compression) as file:
        file.writestr("result.json", json.dumps(data))
    return path


@pytest.mark.long
@settings(
    derandomize=True, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.sampled_from([*places(REPORT)]), st.sampled_from([*places(RESULT)]), ODD)
def test_whatever_is_imported_can_be_listed_and_shown(tmp_path_factory, rally, ours, odd):
    folder = tmp_path_factory.mktemp("import")
    (folder / "rally.json").write_text(json.dumps(changed(REPORT, rally, odd)))
    packed(folder / "run.zip", changed(RESULT, ours, odd))
    with Store.open(folder / "store") as store:
        for name in ("rally.json", "run.zip"):
            try:
                import_file(store, folder / name)
            except LoadstoneError:
                continue
        for entry in store.every():
            store.get(entry.run_id)


def test_a_bundle_that_unpacks_to_far_more_is_refused(tmp_path):
    path = packed(tmp_path / "run.zip", {"x": "0" * 10_000_000}, ZIP_DEFLATED)
    with Store.open(tmp_path / "store") as store, pytest.raises(InvalidInput, match="unpack"):
        import_file(store, path)


@pytest.mark.parametrize("span", [1e300, 1e9])
def test_a_load_of_an_absurd_span_is_named(tmp_path, span):
    path = tmp_path / "rally.json"
    where = ("tasks", 0, "subtasks", 0, "workloads", 0, "data", 0, "timestamp")
    path.write_text(json.dumps(changed(REPORT, where, span)))
    told = []
    with Store.open(tmp_path / "store") as store:
        assert len(import_file(store, path, told.append)) == 1
    assert "task 1" in told[0]


WORKLOAD = ("tasks", 0, "subtasks", 0, "workloads", 0)


def exported(folder, data):
    """Import the first task of a report of Rally's, and export it."""
    path = folder / "rally.json"
    path.write_text(json.dumps({**data, "tasks": data["tasks"][:1]}))
    with Store.open(folder / "store") as store:
        (run,) = import_file(store, path)
        [task] = as_rally(store.get(run), lambda one: store.samples(run, one))["tasks"]
    return task


@pytest.mark.parametrize("scenario", [{}, {"A.b": {}, "A.c": {}}])
def test_a_workload_needs_one_scenario(tmp_path, scenario):
    with pytest.raises(InvalidInput, match="not in the form that Rally writes"):
        exported(tmp_path, changed(REPORT, (*WORKLOAD, "scenario"), scenario))


@pytest.mark.parametrize("path", [("tasks", 0), ("tasks", 0, "subtasks", 0), WORKLOAD])
def test_what_has_no_words_does_not_get_the_word_none(tmp_path, path):
    data = REPORT
    for name in ("title", "description"):
        data = changed(data, (*path, name), None)
    assert "None" not in json.dumps(exported(tmp_path, data))


@pytest.mark.parametrize(
    ("given", "kept"), [("", "action"), ("(iteration)", "action (iteration)"), ("a/b", "a-b")]
)
def test_an_action_may_have_any_name(tmp_path, given, kept):
    place = (*WORKLOAD, "data", 0, "atomic_actions", 0, "name")
    task = exported(tmp_path, changed(REPORT, place, given))
    [workload, *_] = task["subtasks"][0]["workloads"]
    assert workload["data"][0]["atomic_actions"][0]["name"] == kept
    assert kept in [row["name"] for row in workload["statistics"]["durations"]["atomics"]]


def test_deep_json_is_refused(tmp_path):
    path = tmp_path / "deep.json"
    path.write_text("[" * 100_000 + "]" * 100_000)
    with Store.open(tmp_path / "store") as store, pytest.raises(InvalidInput, match="nested"):
        import_file(store, path)
