"""When, where, and with which versions."""

import datetime
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from verification.engine.settings import Settings

VERSIONS = {
    "wrk": ["wrk", "-v"],
    "ab": ["ab", "-V"],
    "oha": ["oha", "--version"],
    "vegeta": ["vegeta", "-version"],
    "h2load": ["h2load", "--version"],
    "nginx": ["nginx", "-v"],
    "rustc": ["rustc", "--version"],
}


def words(settings: Settings) -> Iterator[str]:
    """Give date, machine, versions and how it was measured."""
    cores = len(os.sched_getaffinity(0))
    today = datetime.datetime.now(datetime.UTC).date()
    yield f"{today}, {processor()}, {cores} cores, Linux {platform.release()}, commit {_commit()}."
    yield f"Rounds: {settings.rounds}, alternating; runs of {settings.seconds} s;"
    yield f"load before: {os.getloadavg()[0]:.2f}. Versions: {', '.join(_versions(settings))}."


def processor() -> str:
    """Give the model of the processor."""
    found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return found[1] if found else platform.machine()


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def _versions(settings: Settings) -> Iterator[str]:
    yield f"Python {platform.python_version()}"
    commands = dict(VERSIONS)
    if settings.rally:
        pip = [str(settings.rally / "bin/python"), "-c"]
        commands["Rally"] = [*pip, "from importlib.metadata import version as v; print(v('rally'))"]
    for name, command in commands.items():
        if shutil.which(command[0]) is None:
            continue
        told = subprocess.run(command, capture_output=True, text=True, check=False)
        version = re.search(r"\d+\.\d+(\.\d+)?", told.stdout + told.stderr)
        yield f"{name} {version[0] if version else '?'}"
