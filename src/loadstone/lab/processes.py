"""Processes that outlive the command that started them, and are found again by pid and start time.

A pid alone is reused by the kernel; a pid with the start time of its process is not.
"""

import os
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from loadstone.errors import EnvironmentUnusable
from loadstone.lab import logs

MARK = "LOADSTONE_LAB"  # in the environment of all that a deployment starts: its folder
POLL_S = 0.05
_KERNELS = 2  # parent of the kernel's own threads, which have no environment
GRACE_S = 10.0  # uwsgi kills workers that load or serve for longer only when told twice

# Ended children stay zombies until their parent asks for them; a Popen must live as long.
_children: dict[int, subprocess.Popen[bytes]] = {}


@dataclass(frozen=True, slots=True)
class Process:
    """One process of this boot: the kernel gives no second one the same pair."""

    pid: int
    started_ticks: int  # since boot, field 22 of /proc/PID/stat


@dataclass(frozen=True, slots=True)
class Command:
    """What is started, and where its output goes."""

    arguments: tuple[str, ...]
    log: Path
    folder: Path  # of the deployment
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Stat:
    pid: int
    state: str
    parent: int
    session: int
    started_ticks: int


def clean_environment(folder: Path, variables: Mapping[str, str] | None = None) -> dict[str, str]:
    """Give the environment of a deployment's processes: nothing of the user's OS_* or Python."""
    kept = {name: os.environ[name] for name in ("HOME", "TMPDIR") if name in os.environ}
    path = os.environ.get("PATH", os.defpath)
    return kept | {"PATH": path, "LANG": "C.UTF-8", MARK: str(folder)} | dict(variables or {})


def start(command: Command) -> Process:
    """Start a process in a session of its own, so that no Ctrl-C of ours reaches it."""
    command.log.parent.mkdir(parents=True, exist_ok=True)
    log = os.open(command.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        child = subprocess.Popen(
            command.arguments,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=clean_environment(command.folder, command.variables),
            cwd="/",
            start_new_session=True,
        )
    except FileNotFoundError:
        program = command.arguments[0]
        raise EnvironmentUnusable(f"{program} is not installed on this machine") from None
    finally:
        os.close(log)
    _children[child.pid] = child
    # Not reaped yet, so its entry in /proc stands even if it has ended.
    stat = _read(child.pid)
    return Process(child.pid, stat.started_ticks if stat else 0)


def complete(command: Command, failing: str, told: str = "") -> None:
    """Run a command to its end; where it fails, raise `failing` with the lines that explain it."""
    command.log.parent.mkdir(parents=True, exist_ok=True)
    with command.log.open("ab") as log:
        done = subprocess.run(
            command.arguments,
            input=told.encode(),
            stdout=log,
            stderr=log,
            env=clean_environment(command.folder, command.variables),
            cwd="/",
            check=False,
        )
    if done.returncode != 0:
        raise EnvironmentUnusable(f"{failing}\n{logs.explain((command.log,))}")


def alive(process: Process) -> bool:
    """Say whether exactly this process still runs; a zombie does not."""
    child = _children.get(process.pid)
    if child is not None and child.poll() is not None:
        del _children[process.pid]
    stat = _read(process.pid)
    return (
        stat is not None and stat.started_ticks == process.started_ticks and stat.state not in "ZX"
    )


def family(leader: Process) -> tuple[Process, ...]:
    """Give all living processes of the leader's session, and their descendants.

    Found by session also when the leader is dead. PostgreSQL gives each backend a session of its
    own, so descent counts too.
    """
    stats = [stat for stat in _all() if stat.state not in "ZX"]
    now = _read(leader.pid)
    if now is not None and now.started_ticks != leader.started_ticks:
        return ()  # the pid, and with it the session's number, is another's
    found = {
        s.pid: s
        for s in stats
        if s.session == leader.pid and s.started_ticks >= leader.started_ticks
    }
    grown = True
    while grown:
        more = {s.pid: s for s in stats if s.parent in found and s.pid not in found}
        grown = bool(more)
        found |= more
    return tuple(Process(s.pid, s.started_ticks) for s in found.values())


def marked(folder: Path) -> tuple[Process, ...]:
    """Give all living processes that carry the deployment's mark: also what no record names."""
    wanted = f"{MARK}={folder}".encode()
    living = [s for s in _all() if s.pid != os.getpid() and s.state not in "ZX"]
    seen = {stat: _environment(stat.pid) for stat in living}
    blank = [s for s, variables in seen.items() if variables == b"" and s.parent != _KERNELS]
    if blank:
        # Empty also in the moment of an exec: what is being started just now has its mark soon.
        time.sleep(POLL_S)
        seen |= {stat: _environment(stat.pid) for stat in blank}
    return tuple(
        Process(stat.pid, stat.started_ticks)
        for stat, variables in seen.items()
        if variables is not None and wanted in variables.split(b"\0")
    )


def _environment(pid: int) -> bytes | None:
    """Give what a process was started with; None: it has ended, or is another user's."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return None


def stop(
    leader: Process, *, ask: signal.Signals = signal.SIGTERM, grace_s: float = GRACE_S
) -> None:
    """Ask the leader to end, then whatever of its family outlived it; kill what does not."""
    members = family(leader)
    end((leader,), ask=ask, grace_s=grace_s)
    end({*members, *family(leader)}, grace_s=grace_s)


def end(
    processes: Iterable[Process],
    *,
    ask: signal.Signals = signal.SIGTERM,
    grace_s: float = GRACE_S,
) -> None:
    """Signal those that live, wait for them, kill those that stay."""
    asked = tuple(process for process in processes if alive(process))
    for process in asked:
        _signal(process, ask)
    left = _wait(asked, grace_s)
    for process in left:
        _signal(process, signal.SIGKILL)
    _wait(left, GRACE_S)


def memory_mb(members: Iterable[Process]) -> float:
    """Give the memory of processes, pages that they share counted once (PSS)."""
    total_kb = 0
    for process in members:
        try:
            lines = Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue  # ended meanwhile
        total_kb += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total_kb / 1024


def boot_id() -> str:
    """Name this boot of the machine: start times count from it."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _wait(processes: Iterable[Process], patience_s: float) -> tuple[Process, ...]:
    deadline = time.monotonic() + patience_s
    left = tuple(p for p in processes if alive(p))
    while left and time.monotonic() < deadline:
        time.sleep(POLL_S)
        left = tuple(p for p in left if alive(p))
    return left


def _signal(process: Process, number: signal.Signals) -> None:
    # A pidfd holds on to one process: between the check and the signal the pid cannot change hands.
    try:
        handle = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return
    try:
        if alive(process):
            signal.pidfd_send_signal(handle, number)
    except ProcessLookupError:
        return
    finally:
        os.close(handle)


def _all() -> list[_Stat]:
    pids = (int(name) for name in os.listdir("/proc") if name.isdigit())
    return [stat for stat in map(_read, pids) if stat is not None]


def _read(pid: int) -> _Stat | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    # The name in parentheses may hold spaces and parentheses itself.
    fields = text[text.rindex(")") + 2 :].split()
    return _Stat(pid, fields[0], int(fields[1]), int(fields[3]), int(fields[19]))
