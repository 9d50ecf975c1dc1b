import json
import os
from dataclasses import replace
from pathlib import Path
from zipfile import ZipFile

import pytest
from realistic import keystone

from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.store import bundle, codec
from loadstone.store.store import Store

KEYSTONE, SAMPLES = keystone()
RESULT = replace(
    KEYSTONE, started_at="2026-11-21T09:31:07+00:00", ended_at="2026-11-21T09:36:02+00:00"
)


@pytest.fixture
def exported(store, tmp_path):
    store.begin(RESULT)
    store.keep_trial(RESULT.run_id, 0, RESULT.measurements[0].trials[0], SAMPLES[0, 1])
    path = tmp_path / "run.zip"
    bundle.export(store, store.get("latest"), path)
    return path


def test_an_exported_run_is_the_same_in_another_store(store, exported, tmp_path):
    with Store.open(tmp_path / "other") as other:
        assert bundle.import_run(other, exported) == RESULT.run_id
        ours, theirs = store.get("latest"), other.get("latest")
        assert codec.dumps(ours) == codec.dumps(theirs)
        assert len(other.samples(RESULT.run_id, theirs.measurements[0].trials[0])) == 76


def test_samples_that_are_damaged_before_their_footer_are_left_out(store, exported, tmp_path):
    [samples] = (store.folder(RESULT.run_id) / "samples").iterdir()
    content = samples.read_bytes()
    samples.write_bytes(content[:4] + bytes(len(content) // 2) + content[4 + len(content) // 2 :])
    bundle.export(store, store.get("latest"), exported)
    said = []
    with Store.open(tmp_path / "other") as other:
        bundle.import_run(other, exported, said.append)
        assert other.get("latest").measurements[0].trials[0].samples_file is None
    [line] = said
    assert line.startswith(f"samples/{samples.name}: ")


def test_samples_that_are_damaged_after_the_export_are_left_out(exported, tmp_path):
    with ZipFile(exported) as zipped:
        [samples] = [one for one in zipped.infolist() if one.filename.endswith(".parquet")]
    content = bytearray(exported.read_bytes())
    content[samples.header_offset + len(samples.filename) + 30 + 100] ^= 0xFF
    exported.write_bytes(content)
    said = []
    with Store.open(tmp_path / "other") as other:
        bundle.import_run(other, exported, said.append)
        assert other.get("latest").measurements[0].trials[0].samples_file is None
    [line] = said
    assert line.startswith(f"{samples.filename}: Bad CRC-32")


def test_a_file_of_1970_is_exported(store, exported, tmp_path):
    (samples,) = (store.folder(RESULT.run_id) / "samples").iterdir()
    os.utime(samples, (0, 0))
    bundle.export(store, store.get("latest"), exported)
    with Store.open(tmp_path / "other") as other:
        assert bundle.import_run(other, exported) == RESULT.run_id


def test_an_export_below_a_file_is_refused(store, exported):
    with pytest.raises(EnvironmentUnusable, match="cannot write"):
        bundle.export(store, store.get("latest"), exported / "below.zip")


def test_a_run_is_not_taken_in_twice(store, exported):
    with pytest.raises(InvalidInput, match="already in this store"):
        bundle.import_run(store, exported)


def test_an_import_leaves_the_files_of_another_that_began_at_the_same_moment(
    exported, tmp_path, monkeypatch
):
    with Store.open(tmp_path / "other") as other:
        samples = other.folder(RESULT.run_id) / "samples" / "1-001.parquet"
        samples.parent.mkdir(parents=True)
        samples.write_bytes(b"half")
        # The other one creates the folder after this one has looked for it.
        monkeypatch.setattr(Path, "exists", lambda _path: False)
        with pytest.raises(InvalidInput, match="is there already"):
            bundle.import_run(other, exported)
        assert samples.read_bytes() == b"half"


def test_a_file_that_is_no_run_is_named(store, tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("shopping")
    with pytest.raises(InvalidInput, match="is not an exported run"):
        bundle.import_run(store, path)


def with_head(path, head):
    with ZipFile(path, "w") as file:
        file.writestr("result.json", json.dumps(head))
    return path


def test_a_run_with_another_utc_offset_is_listed_at_its_moment(store, tmp_path):
    """Midnight of Kiritimati, UTC+14, is 10:00 of the day before in UTC."""
    days = {"1": "2026-01-02T00:00:00+14:00", "2": "2026-01-01T12:00:00+00:00"}
    for run_id, day in days.items():
        run = replace(RESULT, run_id=run_id, started_at=day, ended_at=day)
        head = {"format": bundle.FORMAT, "result": codec.to_plain(run)}
        bundle.import_run(store, with_head(tmp_path / "run.zip", head))
    assert [one.run_id for one in store.every()] == ["2", "1"]
    assert store.get("1").started_at == "2026-01-01T10:00:00+00:00"


def test_a_format_of_another_version_is_named(store, tmp_path):
    path = with_head(tmp_path / "run.zip", {"format": "loadstone run 9"})
    with pytest.raises(InvalidInput, match="'loadstone run 9', this Loadstone reads"):
        bundle.import_run(store, path)


@pytest.mark.parametrize(
    "head",
    ["[]", "{}", '{"format":"loadstone run 1","result":{"a":1}}'],
)
def test_a_run_of_another_shape_is_named(store, tmp_path, head):
    path = tmp_path / "run.zip"
    with ZipFile(path, "w") as file:
        file.writestr("result.json", head)
    with pytest.raises(InvalidInput, match=r"not an exported run|this Loadstone reads"):
        bundle.import_run(store, path)


def test_what_is_unpacked_stays_in_the_runs_folder(store, tmp_path):
    path = tmp_path / "run.zip"
    for run_id in ("../../out", "/etc", "..", ""):
        plain = codec.to_plain(replace(RESULT, run_id=run_id))
        with ZipFile(path, "w") as file:
            file.writestr("result.json", json.dumps({"format": bundle.FORMAT, "result": plain}))
            file.writestr("../out.parquet", "x")
        with pytest.raises(InvalidInput, match="is not a run id"):
            bundle.import_run(store, path)
    with ZipFile(path, "w") as file:
        good = {"format": bundle.FORMAT, "result": codec.to_plain(RESULT)}
        file.writestr("result.json", json.dumps(good))
        file.writestr("samples/../../out.parquet", "x")
        file.writestr("samples/1-001.parquet", "x")
    bundle.import_run(store, path)
    folder = store.folder(RESULT.run_id)
    assert [p.name for p in folder.rglob("*.parquet")] == ["1-001.parquet"]
    assert not list(tmp_path.rglob("out.parquet"))


def test_an_export_that_cannot_be_written_is_named(store, tmp_path):
    store.begin(RESULT)
    with pytest.raises(EnvironmentUnusable, match="cannot write"):
        bundle.export(store, store.get("latest"), tmp_path / "missing" / "run.zip")
