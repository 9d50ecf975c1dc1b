"""Reads another machine with one read-only shell script over the system's ssh."""

import os
import queue
import shutil
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO, ClassVar

from loadstone.errors import InvalidInput
from loadstone.monitor.metrics import Reading
from loadstone.monitor.roles import Role, role_of_command
from loadstone.monitor.source import Unreadable
from loadstone.monitor.sources.machine import FILES, MACHINE, PROC, TICKS, readings

FIRST_S = 20.0  # time-out of the first answer, which includes connecting and key exchange
NEXT_S = 5.0
MOST_BLOCK = 16 * 2**20  # characters of one block: /proc of 50,000 processes
MOST_WAITING = 4  # blocks that were not read yet; the oldest is dropped
MOST_ERROR = 4_096  # characters
# Together they tell whose processes a machine's /proc shows: a container has its own.
BOOT, NAMESPACE = "sys/kernel/random/boot_id", "self/ns/pid"
# Prints files of /proc once a second, and command lines every tenth time. It ends with its
# connection: a write then fails.
SCRIPT = f"""\
n=0
while echo @begin; do
  for f in {" ".join(FILES)}; do echo "@file $f"; cat "/proc/$f" 2>/dev/null; done
  echo @kernel; cat /proc/{BOOT} 2>/dev/null; readlink /proc/{NAMESPACE} 2>/dev/null
  echo @processes; cat /proc/[0-9]*/stat 2>/dev/null
  if [ $((n % 10)) = 0 ]; then echo @commands; ps -eo pid=,args= 2>/dev/null; fi
  n=$((n + 1)); echo @end; sleep 1
done
"""


_Blocks = queue.Queue[str | None]


def _no_blocks() -> _Blocks:
    return queue.Queue(MOST_WAITING)


def _put(blocks: _Blocks, block: str | None) -> None:
    if blocks.full():
        with suppress(queue.Empty):
            blocks.get_nowait()
    blocks.put(block)


@dataclass(slots=True)
class Ssh:
    """The machine HOST: its /proc, and its processes by role."""

    host: str
    is_remote: ClassVar[bool] = True
    _process: subprocess.Popen[str] | None = field(default=None, init=False)
    _blocks: _Blocks = field(default_factory=_no_blocks, init=False)
    _is_too_long: bool = field(default=False, init=False)
    _cpu: "RoleCpu" = field(init=False)

    def __post_init__(self) -> None:
        self._cpu = RoleCpu()

    @property
    def name(self) -> str:
        """Name in messages."""
        return f"ssh {self.host}"

    def read(self) -> Iterator[Reading]:
        """Read the newest block that the script has printed; count the CPU time of those before."""
        patience_s = NEXT_S
        if self._process is None:
            self._process = self._start()
            patience_s = FIRST_S
        try:
            block = self._blocks.get(timeout=patience_s)
        except queue.Empty:
            raise Unreadable(f"no answer within {patience_s:.0f} s") from None
        while block is not None:
            if _texts(block).get("kernel") == own_kernel():
                raise Unreadable("it is this machine, which is watched already")
            found = tuple(block_readings(block, self.host, self._cpu))
            try:
                block = self._blocks.get_nowait()
            except queue.Empty:
                yield from found
                return
        why = self._why()
        self.close()  # the next read connects again
        raise Unreadable(why)

    def close(self) -> None:
        """End ssh, and with it the script."""
        process, self._process = self._process, None
        if process is None:
            return
        self._blocks, self._is_too_long = _no_blocks(), False
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(NEXT_S)
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()

    def _start(self) -> subprocess.Popen[str]:
        program = shutil.which("ssh")
        if program is None:
            raise Unreadable("ssh is not installed; install: apt-get install openssh-client")
        process = subprocess.Popen(
            (program, "-o", "BatchMode=yes", "-T", "--", self.host, f"sh -c '{SCRIPT}'"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env=os.environ | {"LC_ALL": "C"},
            start_new_session=True,
        )
        if process.stdout is not None:
            arguments = (process.stdout, self._blocks)
            reader = threading.Thread(target=self._collect, args=arguments, daemon=True)
            reader.start()
        return process

    def _collect(self, lines: IO[str], blocks: _Blocks) -> None:
        block: list[str] = []
        size = 0
        with suppress(ValueError):  # closed meanwhile
            while line := lines.readline(MOST_BLOCK):
                if line == "@begin\n":
                    block, size = [], 0
                elif line == "@end\n":
                    _put(blocks, "".join(block))
                else:
                    block.append(line)
                    size += len(line)
                if size >= MOST_BLOCK:
                    self._is_too_long = True
                    break
        _put(blocks, None)

    def _why(self) -> str:
        process = self._process
        if process is None:
            raise AssertionError("a block is read from a process")
        if self._is_too_long:
            process.kill()
            return f"what it prints is longer than {MOST_BLOCK} characters a second"
        process.terminate()  # it may have closed its output only
        stderr = process.stderr.read(MOST_ERROR).strip() if process.stderr else ""
        return stderr.splitlines()[-1] if stderr else "the connection ended"


@dataclass(slots=True)
class RoleCpu:
    """CPU time per role from what each process used since it was last seen."""

    roles: dict[int, Role] = field(default_factory=dict)
    # By pid and start time: what is counted of a process, or was used when it was first seen.
    last: dict[tuple[int, int], float] = field(default_factory=dict)
    total_s: dict[Role, float] = field(default_factory=dict)
    has_begun: bool = False


def block_readings(block: str, host: str, cpu: RoleCpu) -> Iterator[Reading]:
    """Parse one block of the script's output."""
    yield from host_readings(_texts(block), host, cpu)


def own_kernel() -> str:
    """Return what the script prints of the kernel on this machine."""
    return f"{(PROC / BOOT).read_text()}{os.readlink(PROC / NAMESPACE)}"


def _texts(block: str) -> dict[str, str]:
    texts: dict[str, str] = {}
    for part in ("\n" + block).split("\n@")[1:]:
        head, _, text = part.partition("\n")
        texts[head.removeprefix("file ")] = text
    return texts


def host_readings(texts: Mapping[str, str], host: str, cpu: RoleCpu) -> Iterator[Reading]:
    """Parse files of /proc by their names, all `/proc/PID/stat` as `processes`.

    `commands` has a line with the pid and the command line of each process; it may be missing.
    """
    yield from readings(texts, f"{MACHINE}@{host}")
    for line in texts.get("commands", "").splitlines():
        pid, _, command = line.strip().partition(" ")
        if pid.isdigit():
            cpu.roles[int(pid)] = role_of_command(command)
    _account(texts.get("processes", ""), cpu)
    for role, total_s in cpu.total_s.items():
        yield Reading(f"{role.value}@{host}", "cpu_seconds_total", total_s, "s")


def _account(processes: str, cpu: RoleCpu) -> None:
    seen: dict[tuple[int, int], float] = {}
    for line in processes.splitlines():
        with suppress(ValueError, IndexError):  # ended while it was read
            pid = int(line.partition(" ")[0])
            # The name in parentheses may itself contain spaces and parentheses.
            fields = line[line.rindex(")") + 2 :].split()
            used_s = (int(fields[11]) + int(fields[12])) / TICKS
            key = (pid, int(fields[19]))
            role = cpu.roles.get(pid)
            before_s = cpu.last.get(key, 0.0 if cpu.has_begun else used_s)
            # A new process has a role once the command lines were read again: it counts then.
            seen[key] = before_s if role is None else used_s
            if role is not None and role is not Role.OTHER:
                cpu.total_s[role] = cpu.total_s.get(role, 0.0) + max(used_s - before_s, 0.0)
    cpu.last, cpu.has_begun = seen, True


def read_host(host: str) -> Ssh:
    """Return the source for ssh=HOST; InvalidInput if it could be taken for an option."""
    if not host or host.startswith("-") or any(sign.isspace() for sign in host):
        raise InvalidInput(f"--monitor ssh={host}: must be a host that ssh knows, as admin@node-1")
    return Ssh(host)
