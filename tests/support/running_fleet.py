"""A fleet of hosts with networks of their own, and the command line beside it."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import command_server
from command_line import PASSWORD
from known_service import NAME
from network_hosts import HERE, NetworkHost
from reserved_port import reserve_port


def loadstone(home: Path, *words: str, **more: str) -> "subprocess.CompletedProcess[str]":
    return command_server.run(words, _environment(home, more), home)


def _environment(home: Path, more: Mapping[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OS_")}
    return kept | {"LOADSTONE_HOME": str(home), **more}


def begun(home: Path, *words: str, **more: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "loadstone", *words],
        env=_environment(home, more),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=home,
    )


def of_admin(host: str, port: int) -> dict[str, str]:
    return {
        "OS_AUTH_URL": f"http://{host}:{port}/v3",
        "OS_USERNAME": NAME,
        "OS_PASSWORD": PASSWORD,
        "OS_PROJECT_NAME": NAME,
        "OS_USER_DOMAIN_ID": "default",
        "OS_PROJECT_DOMAIN_ID": "default",
    }


@dataclass(frozen=True)
class RunningFleet:
    url: str
    folders: tuple[Path, ...]


@contextmanager
def fleet_of(
    hosts: Sequence[NetworkHost],
    home: Path,
    labs: Mapping[NetworkHost, Path] = MappingProxyType({}),
) -> Iterator[RunningFleet]:
    """Start a scheduler and a worker on this machine, and a worker on each host.

    `labs` are lab hosts, each with a LOADSTONE_HOME of its own.
    """
    port = reserve_port()
    url = f"tls://{HERE}:{port}"
    begun = loadstone(home, "fleet", "up", f"--host={HERE}", f"--port={port}")
    assert begun.returncode == 0, begun.stderr
    folders = [home / host.name for host in (*hosts, *labs)]
    for folder in folders:
        shutil.copytree(
            home / "fleet", folder, ignore=shutil.ignore_patterns("*.json", "*.log", "spill")
        )

    def join(host: NetworkHost) -> None:
        words = ("fleet", "up", f"--join={url}", f"--fleet-certificates={home / host.name}")
        role = "lab" if host in labs else "load"
        done = subprocess.run(
            host.command(sys.executable, "-m", "loadstone", *words, f"--role={role}"),
            check=False,
            capture_output=True,
            text=True,
            env={**os.environ, "LOADSTONE_HOME": str(labs.get(host, home))},
        )
        assert done.returncode == 0, done.stderr

    with ThreadPoolExecutor() as pool:
        try:
            list(pool.map(join, (*hosts, *labs)))
            yield RunningFleet(url, tuple(folders))
        finally:
            list(
                pool.map(
                    lambda folder: loadstone(
                        home, "fleet", "down", f"--fleet-certificates={folder}"
                    ),
                    folders,
                )
            )
