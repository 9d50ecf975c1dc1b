"""Processes that outlive the command that started them.

They are identified by pid and start time, because the kernel reuses pids.
"""

import os
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from loadstone.errors import EnvironmentUnusable
from loadstone.lab import logs

MARK = "LOADSTONE_LAB"  # environment variable of all processes of a deployment; holds its folder
NGINX = b"nginx: "  # begins the title that it writes over its command line
POLL_S = 0.05
_KERNELS = 2  # parent of kernel threads, which have no environment
GRACE_S = 10.0  # uwsgi kills busy workers only after a second signal

# Ended children stay zombies until they are waited for, so their Popen objects are kept.
_children: dict[int, subprocess.Popen[bytes]] = {}


@dataclass(frozen=True, slots=True)
class Process:
    """A process of this boot, identified by pid and start time."""

    pid: int
    started_ticks: int  # since boot, field 22 of /proc/PID/stat


@dataclass(frozen=True, slots=True)
class Command:
    """A program to start, and where its output goes."""

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
    """Return the environment of a deployment's processes, without the user's OS_* and PYTHON*."""
    kept = {name: os.environ[name] for name in ("HOME", "TMPDIR") if name in os.environ}
    path = os.environ.get("PATH", os.defpath)
    return kept | {"PATH": path, "LANG": "C.UTF-8", MARK: str(folder)} | dict(variables or {})


def start(command: Command) -> Process:
    """Start a process in a session of its own, so that Ctrl-C does not reach it."""
    command.log.parent.mkdir(parents=True, exist_ok=True)
    log = os.open(command.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    os.lseek(log, 0, os.SEEK_END)  # haproxy clears O_APPEND
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
    # It is not reaped yet, so its entry in /proc exists even if it has ended.
    return identify(child.pid)


def complete(command: Command, failing: str, stdin: str = "", *, own_session: bool = False) -> None:
    """Run a command until it ends. If it fails, raise `failing` with log lines that explain it.

    In a session of its own, Ctrl-C of the terminal does not reach it.
    """
    command.log.parent.mkdir(parents=True, exist_ok=True)
    with command.log.open("ab") as log:
        done = subprocess.run(
            command.arguments,
            input=stdin.encode(),
            stdout=log,
            stderr=log,
            env=clean_environment(command.folder, command.variables),
            cwd="/",
            check=False,
            start_new_session=own_session,
        )
    if done.returncode != 0:
        raise EnvironmentUnusable(f"{failing}\n{logs.explain((command.log,))}")


def alive(process: Process) -> bool:
    """Return whether exactly this process still runs; a zombie does not count."""
    child = _children.get(process.pid)
    if child is not None and child.poll() is not None:
        del _children[process.pid]
    stat = _read(process.pid)
    return (
        stat is not None and stat.started_ticks == process.started_ticks and stat.state not in "ZX"
    )


def family(leader: Process) -> tuple[Process, ...]:
    """Return all living processes of the leader's session, and their descendants.

    The session finds them even if the leader is dead. PostgreSQL starts each backend in a session
    of its own, so descendants are included.
    """
    return families((leader,))[0]


def families(leaders: Sequence[Process]) -> tuple[tuple[Process, ...], ...]:
    """Return the family of each leader, from one scan of all processes."""
    living = [stat for stat in _all() if stat.state not in "ZX"]
    return tuple(_family(leader, living) for leader in leaders)


def _family(leader: Process, living: Sequence[_Stat]) -> tuple[Process, ...]:
    now = _read(leader.pid)
    if now is not None and now.started_ticks != leader.started_ticks:
        return ()  # another process has the pid, and thus the session number
    found = {
        s.pid: s
        for s in living
        if s.session == leader.pid and s.started_ticks >= leader.started_ticks
    }
    grown = True
    while grown:
        more = {s.pid: s for s in living if s.parent in found and s.pid not in found}
        grown = bool(more)
        found |= more
    return tuple(Process(s.pid, s.started_ticks) for s in found.values())


def marked(folder: Path) -> tuple[Process, ...]:
    """Return all living processes of the deployment in this folder, recorded or not.

    Those in containers are left out: a lab there may have a folder of the same path.
    """
    own = _pid_namespace("self")
    # nginx writes its title over its environment; its output still goes to a log of the deployment.
    logging = (
        Process(stat.pid, stat.started_ticks)
        for stat in _all()
        if stat.state not in "ZX"
        and _command_line(stat.pid).startswith(NGINX)
        and _output(stat.pid).startswith(f"{folder}/logs")
    )
    found = dict.fromkeys((*with_variable(MARK, str(folder)), *logging))
    return tuple(process for process in found if _pid_namespace(str(process.pid)) == own)


def with_variable(name: str, value: str) -> tuple[Process, ...]:
    """Return all living processes that were started with this environment variable."""
    wanted = f"{name}={value}".encode()
    living = [s for s in _all() if s.pid != os.getpid() and s.state not in "ZX"]
    seen = {stat: _environment(stat.pid) for stat in living}
    blank = [s for s, variables in seen.items() if variables == b"" and s.parent != _KERNELS]
    if blank:
        # The environment is also empty during an exec; look again shortly after.
        time.sleep(POLL_S)
        seen |= {stat: _environment(stat.pid) for stat in blank}
    return tuple(
        Process(stat.pid, stat.started_ticks)
        for stat, variables in seen.items()
        if variables is not None and wanted in variables.split(b"\0")
    )


def _pid_namespace(pid: str) -> str | None:
    """Return the namespace of a process's PID; None if it has ended or belongs to another user."""
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")
    except OSError:
        return None


def _command_line(pid: int) -> bytes:
    """Return the command line of a process; empty if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _output(pid: int) -> str:
    """Return the path of a process's standard output; empty if it cannot be known."""
    try:
        return os.readlink(f"/proc/{pid}/fd/1")
    except OSError:
        return ""


def _environment(pid: int) -> bytes | None:
    """Return the environment of a process; None if it has ended or belongs to another user."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return None


def stop(leader: Process, *, stop_signal: signal.Signals = signal.SIGTERM) -> None:
    """Stop the leader, then the remaining processes of its family; kill those that do not end."""
    members = family(leader)
    end((leader,), stop_signal=stop_signal)
    end({*members, *family(leader)})


def end(
    processes: Iterable[Process],
    *,
    stop_signal: signal.Signals = signal.SIGTERM,
    grace_s: float = GRACE_S,
) -> None:
    """Send the signal to living processes, wait, and kill those that remain."""
    running = tuple(process for process in processes if alive(process))
    send(stop_signal, running)
    kill(_wait(running, grace_s))


def kill(members: Iterable[Process]) -> None:
    """Kill processes at once, and wait until they are gone."""
    killed = tuple(members)
    send(signal.SIGKILL, killed)
    _wait(killed, GRACE_S)


def send(number: signal.Signals, members: Iterable[Process]) -> None:
    """Send a signal to each process that still lives."""
    for process in members:
        _signal(process, number)


def memory_mb(members: Iterable[Process]) -> float:
    """Return the memory of the processes, with shared pages counted once (PSS)."""
    total_kb = 0
    for process in members:
        try:
            lines = Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue  # ended in the meantime
        total_kb += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total_kb / 1024


def identify(pid: int) -> Process:
    """Return the process that has this PID at present."""
    stat = _read(pid)
    return Process(pid, stat.started_ticks if stat else 0)


def bind(process: Process, cores: Iterable[int]) -> None:
    """Let all threads of a process use these cores only; one that has ended is left out."""
    if not alive(process):
        return
    with suppress(OSError):
        for thread in Path(f"/proc/{process.pid}/task").iterdir():
            with suppress(OSError):
                os.sched_setaffinity(int(thread.name), set(cores))


def boot_id() -> str:
    """Return the id of this boot of the machine; start times count from it."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _wait(processes: Iterable[Process], patience_s: float) -> tuple[Process, ...]:
    deadline = time.monotonic() + patience_s
    left = tuple(p for p in processes if alive(p))
    while left and time.monotonic() < deadline:
        time.sleep(POLL_S)
        left = tuple(p for p in left if alive(p))
    return left


def _signal(process: Process, number: signal.Signals) -> None:
    if not hasattr(os, "pidfd_open"):  # Python built for old kernels
        with suppress(ProcessLookupError):
            if alive(process):
                os.kill(process.pid, number)
        return
    # A pidfd refers to one process, so the pid cannot be reused between check and signal.
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
    # The name in parentheses may itself contain spaces and parentheses.
    fields = text[text.rindex(")") + 2 :].split()
    return _Stat(pid, fields[0], int(fields[1]), int(fields[3]), int(fields[19]))
