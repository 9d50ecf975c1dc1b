"""A fault in force is undone after SIGKILL: by the watcher, or by `loadstone fault --undo`."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from command_line import CommandLine, environment
from known_service import known_service
from lab_client import until

from loadstone.faults.watcher import WATCHER

SECRET = "s3cr3t-of-the-environment"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The working directory of the command, with what its faults need."""
    work = tmp_path / "work"
    work.mkdir()
    for name in ("begun", "undone"):
        os.mkfifo(work / name)
    undo = work / "undo.sh"
    undo.write_text('#!/bin/sh\necho "$PWD $GREETING $MY_TOKEN" > undone\n')
    undo.chmod(0o700)
    (work / "faults.yaml").write_text(
        "keystone:\n  hosts: [here]\n  environment: [GREETING, MY_TOKEN]\n"
        "  freeze: {do: 'echo begun > begun', undo: ./undo.sh}\n"
    )
    return work


@contextmanager
def holding(folder: Path, url: str) -> Iterator[subprocess.Popen[bytes]]:
    """The command while its fault is in force."""
    loadstone = CommandLine(folder.parent)
    words = (
        *("fault", "--users", "0", "--faults", "faults.yaml", "--yes-break-this-target"),
        *("--do", "freeze keystone service for 60 seconds", "--rate", "20", "--repeats", "1"),
        *("--baseline", "5s"),
    )
    env = environment(url, folder.parent) | {"GREETING": "hello", "MY_TOKEN": SECRET}
    with subprocess.Popen(
        loadstone.words(*words),
        cwd=folder,
        env=env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            assert (folder / "begun").read_text() == "begun\n"
            yield process
        finally:
            process.kill()


def journals(folder: Path) -> list[Path]:
    return list((folder.parent / "faults").glob("*.json"))


def test_the_watcher_undoes_it_in_the_same_folder_with_the_same_environment(folder: Path) -> None:
    with known_service(4, 0.01) as known, holding(folder, known.url) as process:
        [journal] = journals(folder)
        assert SECRET not in journal.read_text()
        process.send_signal(signal.SIGKILL)
        assert (folder / "undone").read_text() == f"{folder} hello {SECRET}\n"
        until(lambda: not journals(folder), "the step leaves the journal")


def is_watcher(process: psutil.Process) -> bool:
    try:
        return WATCHER in process.cmdline()
    except psutil.NoSuchProcess:  # a short-lived child has ended
        return False


def test_after_the_watcher_is_killed_too_the_next_command_refuses_and_undo_works(
    folder: Path, monkeypatch
) -> None:
    monkeypatch.setenv("MY_TOKEN", "of a later session")
    loadstone = CommandLine(folder.parent)
    with known_service(4, 0.01) as known:
        with holding(folder, known.url) as process:
            [watcher] = filter(is_watcher, psutil.Process(process.pid).children())
            watcher.kill()
            process.kill()
        refused = loadstone("capacity", "--budget", "20s", url=known.url)
        assert refused.returncode == 3
        assert "./undo.sh (here)" in refused.stderr
        with subprocess.Popen(
            loadstone.words("fault", "--undo"),
            env=environment(known.url, folder.parent),
            cwd="/",
        ) as undo:
            told = (folder / "undone").read_text()
        assert (undo.returncode, told) == (0, f"{folder} hello of a later session\n")
    assert not journals(folder)
