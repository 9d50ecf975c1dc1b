"""Stores that are full, damaged or open to others, as a user of the commands meets them."""

import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from documents import only
from simulator.service import Service
from virtual import VirtualCommandLine

from loadstone.errors import EnvironmentUnusable
from loadstone.store import database

CAPACITY = ("capacity", "--users=0", "--budget=30s")
SERVICE = Service(capacity_rps=50.0)


def test_a_run_on_a_full_disk_goes_on_and_its_rows_follow(
    loadstone: VirtualCommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, calls = database.writing, 0

    @contextmanager
    def full(*words: Any, **more: Any) -> Iterator[Any]:
        nonlocal calls
        calls += 1
        if calls > 3:
            raise EnvironmentUnusable("the disk is full")
        with write(*words, **more) as connection:
            yield connection

    with monkeypatch.context() as here:
        here.setattr(database, "writing", full)
        ended = loadstone(*CAPACITY, service=SERVICE)
    assert ended.code == 0, ended.stderr
    assert ended.stderr.count("the disk is full") == 1
    shown = loadstone("results", "show", "latest", "--json=-")
    assert shown.data["status"] == "finished"
    assert only(shown.data)["capacity"]["rate_rps"] == pytest.approx(50.0, rel=0.2)


def test_an_encrypted_import_is_refused_in_one_line(
    loadstone: VirtualCommandLine, tmp_path: Path
) -> None:
    path = tmp_path / "run.zip"
    with ZipFile(path, "w") as file:
        file.writestr("result.json", "{}")
    content = bytearray(path.read_bytes())
    for signature, offset in ((b"PK\3\4", 6), (b"PK\1\2", 8)):  # bit 0 of the flags
        content[content.index(signature) + offset] |= 1
    path.write_bytes(content)
    ended = loadstone("results", "import", str(path))
    assert ended.code == 2
    assert ended.stderr == f"loadstone: {path} is encrypted; decrypt it first\n"


def test_a_store_that_others_could_read_is_repaired_and_this_is_said(
    loadstone: VirtualCommandLine,
) -> None:
    assert loadstone(*CAPACITY, service=SERVICE).code == 0
    store = loadstone.home / "home" / "results"
    paths = [store, *store.rglob("*")]
    for path in paths:
        path.chmod(0o755 if path.is_dir() else 0o644)
    told = loadstone("results", "list").stderr
    assert f"other users could read the results in {store}" in told
    for path in paths:
        if path.exists():
            mode = stat.S_IMODE(path.stat().st_mode)
            assert mode == (0o700 if path.is_dir() else 0o600), path
    assert "other users" not in loadstone("results", "list").stderr


def test_the_commands_that_a_result_names_find_its_store(
    loadstone: VirtualCommandLine, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "a store"
    ended = loadstone(*CAPACITY, f"--store={elsewhere}", service=SERVICE)
    shown = "".join(ended.stdout.split())  # long lines are wrapped, also inside a path
    option = "".join(f"--store '{elsewhere}'".split())
    assert f"--trials{option}" in shown
    assert re.search(rf"loadstonereport[0-9a-f-]+{re.escape(option)}", shown)
    assert "--store" not in loadstone(*CAPACITY, service=SERVICE).stdout
