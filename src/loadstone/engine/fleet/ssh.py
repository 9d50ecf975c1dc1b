"""Starts the workers of a fleet on hosts that ssh reaches, and ends them."""

import json
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version as version_of
from pathlib import Path
from typing import IO

from loadstone.engine.fleet import wheel
from loadstone.engine.fleet.address import Certificates
from loadstone.engine.fleet.hosts_file import SshFleet, SshHost
from loadstone.engine.version import version
from loadstone.errors import EnvironmentUnusable
from loadstone.system.installation import pip_install

PROBE_S, INSTALL_S, START_S, END_S = 30.0, 600.0, 60.0, 5.0
AT_ONCE = 32
MOST_ERROR = 200

PROBE = """
"$1" -c '
import distributed
from loadstone.engine.version import version
print(version(), distributed.__version__)
' 2>/dev/null || echo none
"""
FOLDER = '"$HOME/.cache/loadstone/fleet"'
# With uv if it is installed, else with the host's own Python. Dependencies come from the host's
# package index or from the wheels that were sent, and must have the hashes of requirements.txt.
INSTALL = f"""
set -e
cd {FOLDER}
environment="$1"
shift
cd "$environment.files"
rm -rf "../$environment"
if command -v uv >/dev/null; then
    uv venv --quiet "../$environment"
    install="uv pip install --quiet --python ../$environment/bin/python"
else
    python3 -m venv "../$environment"
    install="../$environment/bin/python -m pip install --quiet --disable-pip-version-check"
fi
$install --require-hashes "$@" -r requirements.txt
$install --no-deps --no-index ./loadstone-*.whl
cd ..
rm -rf "$environment.files"
"""


@dataclass(frozen=True, slots=True)
class StartedHost:
    """Workers on a host, which end with this process of ssh."""

    name: str
    workers: tuple[str, ...]
    process: "subprocess.Popen[bytes]"
    errors: IO[bytes]

    def require_running(self) -> None:
        """Raise EnvironmentUnusable if ssh or a worker has ended."""
        if self.process.poll() is not None:
            raise EnvironmentUnusable(f"{self.name}: its workers ended: {_tail(self.errors)}")


@contextmanager
def started(
    fleet: SshFleet, scheduler: str, pem: Certificates
) -> Iterator[tuple[StartedHost, ...]]:
    """Start the workers of all hosts; send and install this Loadstone where it is missing.

    Raises EnvironmentUnusable that names the host: unreachable, another version, not installable.
    """
    # A host that the file names twice is installed once.
    distinct = {(host.name, host.python): host for host in fleet.hosts}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = pool.map(lambda host: _ready(fleet, host), distinct.values())
        ready = dict(zip(distinct, found, strict=True))
    pythons = [ready[host.name, host.python] for host in fleet.hosts]
    with ExitStack() as stack:
        yield tuple(
            stack.enter_context(_started(fleet, place, python, scheduler, pem))
            for place, python in enumerate(pythons)
        )


def worker_names(hosts: Sequence[SshHost], place: int) -> tuple[str, ...]:
    """Return the names of the workers of the host at a place of the file, which may be repeated.

    Dask refuses a second worker of the same name.
    """
    host = hosts[place]
    before = sum(one.workers for one in hosts[:place] if one.name == host.name)
    return tuple(f"{host.name}-{before + number}" for number in range(1, host.workers + 1))


def _ready(fleet: SshFleet, host: SshHost) -> str:
    """Return the Python on a host that has our version of Loadstone."""
    ours = f"{version()} {version_of('distributed')}"
    environment = wheel.key(version())
    own = f"{FOLDER}/{environment}"
    python = f"{own}/bin/python" if host.python is None else shlex.quote(host.python)
    found = _probe(fleet, host, python)
    if found == ours:
        return python
    if host.python is not None:
        there = "no Loadstone" if found == "none" else f"Loadstone and distributed {found}"
        raise EnvironmentUnusable(
            f"{host.name}: {host.python} has {there}, this machine {ours}; install the same "
            "versions there, or leave out `python`"
        )
    _require_pinned()
    _install(fleet, host, environment)
    if (now := _probe(fleet, host, python)) != ours:
        raise EnvironmentUnusable(
            f"{host.name}: what was installed there is {now}, this machine has {ours}"
        )
    return python


def _probe(fleet: SshFleet, host: SshHost, python: str) -> str:
    """Return the versions of Loadstone and distributed that a Python has, or "none"."""
    printed = _run(fleet, host, f"sh -s -- {python}", PROBE, PROBE_S)
    # A profile of the login shell may print lines before.
    return printed.rpartition("\n")[2]


def _install(fleet: SshFleet, host: SshHost, environment: str) -> None:
    """Send this machine's Loadstone and its pinned dependencies, and install them."""
    place = f"{FOLDER}/{environment}.files"
    with tempfile.TemporaryDirectory(prefix="loadstone-wheel-") as name:
        folder = Path(name)
        wheel.pack(folder)
        shutil.copy(wheel.REQUIREMENTS, folder)
        _run(fleet, host, f"rm -rf {place} && mkdir -p {place}", "", PROBE_S)
        _send(fleet, host, folder, place)
    source: tuple[str, ...] = ()
    if fleet.wheels is not None:
        _run(fleet, host, f"mkdir -p {place}/wheels", "", PROBE_S)
        _send(fleet, host, fleet.wheels, f"{place}/wheels")
        source = ("--no-index", "--find-links", "wheels")
    _run(fleet, host, f"sh -s -- {shlex.join((environment, *source))}", INSTALL, INSTALL_S)


def _send(fleet: SshFleet, host: SshHost, folder: Path, place: str) -> None:
    """Copy the files of a folder into a folder of the host."""
    archive = subprocess.run(
        ["tar", "-C", str(folder), "-cf", "-", "."], capture_output=True, check=True
    ).stdout
    _run(fleet, host, f"tar -C {place} -xf -", archive, INSTALL_S)


def _require_pinned() -> None:
    """Refuse a Dask here that is not the one that hosts get."""
    pinned = re.search(r"^distributed==([^ ;]+)", wheel.REQUIREMENTS.read_text(), re.MULTILINE)
    if pinned is None:
        raise AssertionError("`make requirements` pins distributed")
    if (ours := version_of("distributed")) != pinned[1]:
        raise EnvironmentUnusable(
            f"this machine has distributed {ours}, hosts get {pinned[1]}; install the same here: "
            f"{pip_install(f'distributed=={pinned[1]}')}"
        )


@contextmanager
def _started(
    fleet: SshFleet, place: int, python: str, scheduler: str, pem: Certificates
) -> Iterator[StartedHost]:
    host, names = fleet.hosts[place], worker_names(fleet.hosts, place)
    config = {
        "ca": pem.ca,
        "certificate": pem.certificate,
        "key": pem.key,
        "scheduler": scheduler,
        "names": names,
        "role": host.role,
    }
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(
            _command(fleet, host, f"{python} -m loadstone.engine.fleet.host_process"),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,  # Ctrl-C is for this process only
        ) as process,
    ):
        if process.stdin is None:
            raise AssertionError("it is a pipe")
        try:
            with suppress(BrokenPipeError):  # the error output of ssh says why
                process.stdin.write(f"{json.dumps(config)}\n".encode())
                process.stdin.flush()
            yield StartedHost(host.name, names, process, errors)
        finally:
            with suppress(BrokenPipeError):
                process.stdin.close()
            try:
                process.wait(END_S)
            except subprocess.TimeoutExpired:
                process.kill()


def _command(fleet: SshFleet, host: SshHost, command: str) -> tuple[str, ...]:
    own = () if fleet.ssh_config is None else ("-F", str(fleet.ssh_config))
    patience = ("-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=5")
    return ("ssh", "-T", "-o", "BatchMode=yes", *patience, *own, "--", host.name, command)


def _run(fleet: SshFleet, host: SshHost, command: str, stdin: str | bytes, timeout_s: float) -> str:
    """Run a command on a host; return its output."""
    data = stdin.encode() if isinstance(stdin, str) else stdin
    try:
        done = subprocess.run(
            _command(fleet, host, command),
            input=data,
            capture_output=True,
            timeout=timeout_s,
            check=False,
            start_new_session=True,
        )
    except FileNotFoundError:
        raise EnvironmentUnusable("a fleet of hosts needs ssh (openssh-client)") from None
    except subprocess.TimeoutExpired:
        raise EnvironmentUnusable(f"{host.name}: no answer within {timeout_s:g} s") from None
    if done.returncode != 0:
        raise EnvironmentUnusable(f"{host.name}: {_last_line(done.stderr)}")
    return done.stdout.decode(errors="replace").strip()


def _tail(errors: IO[bytes]) -> str:
    errors.seek(0)
    return _last_line(errors.read())


def _last_line(stderr: bytes) -> str:
    lines = [one.strip() for one in stderr.decode(errors="replace").splitlines() if one.strip()]
    return "".join(c for c in (lines or ["it said nothing"])[-1] if c.isprintable())[:MOST_ERROR]
