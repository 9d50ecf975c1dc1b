"""Runs the collector on hosts: on this one, in containers and pods, and over ssh; all at once."""

import asyncio
import os
import shlex
import signal
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from loadstone.audit.document import Document, UnreadableFacts, parse
from loadstone.errors import InvalidInput

COLLECTOR = Path(__file__).parent / "collector.sh"
MOST_BYTES = 8_000_000  # twice what a collector could print
MOST_ERROR_BYTES = 4000
TIMEOUT_S = 60.0
END_S = 5.0  # for a killed command to end
AT_ONCE = 32
LOCAL = "localhost"


@dataclass(frozen=True, slots=True)
class Host:
    """Where the collector runs: a command that reads a shell script from its input."""

    name: str
    command: tuple[str, ...]
    settings: Mapping[str, str] = field(default_factory=dict)  # AUDIT_* of the collector


@dataclass(frozen=True, slots=True)
class Collected:
    """A host's document, or why there is none."""

    name: str
    document: Document | None = None
    failure: str | None = None


def own_name(document: Document) -> str:
    """Return the name that a document's machine has for itself."""
    return document.pairs("meta").get("name") or LOCAL


def distinct(found: Sequence[Collected]) -> tuple[Collected, ...]:
    """Return the documents under different names.

    Where each of several machines calls itself localhost, their own names count. Then there is a
    number behind each name that an earlier one has.
    """
    is_ambiguous = sum(one.name == LOCAL for one in found) > 1
    counts: Counter[str] = Counter()
    named = []
    for one in found:
        name = one.name
        if name == LOCAL and is_ambiguous and one.document is not None:
            name = own_name(one.document)
        counts[name] += 1
        number = counts[name]
        named.append(replace(one, name=name if number == 1 else f"{name} ({number})"))
    return tuple(named)


@dataclass(frozen=True, slots=True)
class SshOptions:
    """Options of ssh beyond the user's own configuration."""

    config: str | None = None  # in place of ~/.ssh/config
    become: bool = False  # run the collector with sudo there

    def arguments(self) -> tuple[str, ...]:
        """Return the options of ssh."""
        own = ("-F", self.config) if self.config else ()
        return ("-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", *own)


def local(
    settings: Mapping[str, str] | None = None, name: str = LOCAL, *, become: bool = False
) -> Host:
    """Return this machine; root needs no sudo, which a container may lack."""
    return Host(name, _shell(become=become and os.geteuid() != 0), settings or {})


def _shell(*, become: bool) -> tuple[str, ...]:
    return ("sudo", "-n", "sh", "-s") if become else ("sh", "-s")


def container(program: str, name: str) -> Host:
    """Return a container of docker or podman, or a pod of Kubernetes."""
    if program == "kubectl" and name.startswith("-"):
        raise InvalidInput(f"--kubectl {name}: a pod's name does not begin with -")
    # `--` before a name that begins with -; kubectl wants it before the program.
    words = (name, "--") if program == "kubectl" else ("--", name)
    return Host(name, (program, "exec", "-i", *words, "sh", "-s"))


def ssh(name: str, options: SshOptions, variables: Mapping[str, str] | None = None) -> Host:
    """Return a host over ssh; `variables` are those of an Ansible inventory.

    With `ansible_connection=local` it is this machine.
    """
    known = variables or {}
    if known.get("ansible_connection") == "local":
        return local(name=name, become=options.become)
    target = known.get("ansible_host", name)
    extra: list[str] = []
    if "ansible_port" in known:
        extra += ["-p", known["ansible_port"]]
    if "ansible_user" in known:
        extra += ["-l", known["ansible_user"]]
    if "ansible_ssh_private_key_file" in known:
        extra += ["-i", known["ansible_ssh_private_key_file"]]
    try:
        extra += shlex.split(known.get("ansible_ssh_common_args", ""))
    except ValueError as wrong:
        raise InvalidInput(f"{name}: ansible_ssh_common_args: {wrong}") from None
    command = (
        "ssh",
        *options.arguments(),
        *extra,
        "--",
        target,
        " ".join(_shell(become=options.become)),
    )
    return Host(name, command)


def collect(hosts: Sequence[Host], timeout_s: float = TIMEOUT_S) -> tuple[Collected, ...]:
    """Run the collector on all hosts at once; a host that fails does not affect the others."""
    return asyncio.run(_all(hosts, timeout_s))


async def _all(hosts: Sequence[Host], timeout_s: float) -> tuple[Collected, ...]:
    room = asyncio.Semaphore(AT_ONCE)
    script = COLLECTOR.read_text()

    async def collect_one(host: Host) -> Collected:
        async with room:
            return await _collect(host, _script(script, host.settings), timeout_s)

    return tuple(await asyncio.gather(*(collect_one(host) for host in hosts)))


def _script(script: str, settings: Mapping[str, str]) -> bytes:
    lines = [f"{name}={shlex.quote(value)}" for name, value in settings.items()]
    return "\n".join([*lines, script]).encode()


async def _collect(host: Host, script: bytes, timeout_s: float) -> Collected:
    try:
        process = await asyncio.create_subprocess_exec(
            *host.command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as problem:
        return Collected(host.name, failure=f"cannot run {host.command[0]}: {problem.strerror}")
    try:
        async with asyncio.timeout(timeout_s):
            output, complaint = await _communicate(process, script)
            code = await process.wait()
    except TimeoutError:
        return Collected(host.name, failure=f"no complete answer within {timeout_s:g} s")
    except UnreadableFacts as unreadable:
        return Collected(host.name, failure=str(unreadable))
    finally:
        await _end(process)
    try:
        return Collected(host.name, parse(output))
    except UnreadableFacts as unreadable:
        exit_message = (
            f"{host.command[0]} ended with {code}: {complaint}" if code and complaint else None
        )
        return Collected(host.name, failure=exit_message or str(unreadable))


async def _communicate(process: asyncio.subprocess.Process, script: bytes) -> tuple[str, str]:
    """Send the script; return stdout and the last line of stderr."""
    if process.stdin is None or process.stdout is None or process.stderr is None:
        raise AssertionError("all three are pipes")
    _, stdout, stderr = await asyncio.gather(
        _send(process.stdin, script), _read_all(process.stdout), _read_tail(process.stderr)
    )
    return stdout.decode(errors="replace"), last_line(stderr)


async def _send(stdin: asyncio.StreamWriter, script: bytes) -> None:
    with suppress(BrokenPipeError, ConnectionResetError):  # the exit code says more
        stdin.write(script)
        await stdin.drain()
    with suppress(BrokenPipeError, ConnectionResetError):
        stdin.close()
        await stdin.wait_closed()


async def _read_all(stream: asyncio.StreamReader) -> bytes:
    data = bytearray()
    while chunk := await stream.read(65536):
        data += chunk
        if len(data) > MOST_BYTES:
            raise UnreadableFacts(f"the answer is longer than {MOST_BYTES // 1_000_000} MB")
    return bytes(data)


async def _read_tail(stream: asyncio.StreamReader) -> str:
    tail = b""
    while chunk := await stream.read(65536):
        tail = (tail + chunk)[-MOST_ERROR_BYTES:]
    return tail.decode(errors="replace")


def last_line(text: str) -> str:
    """Return the last line that is not blank, without control characters; empty without one."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return "".join(c for c in (lines or [""])[-1] if c.isprintable())[:200]


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kill what is left of the command's session, children included."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    except PermissionError:
        await _kill_as_root(process.pid)
    # A killed process may leave unread output in its pipe.
    transport = process._transport  # type: ignore[attr-defined]  # noqa: SLF001  # there is no public way
    with suppress(PermissionError):  # it kills the process, too
        transport.close()
    # sudo may permit the collector only; it then ends by itself, as nobody reads its output.
    with suppress(ProcessLookupError, TimeoutError):
        async with asyncio.timeout(END_S):
            await process.wait()


async def _kill_as_root(group: int) -> None:
    """Kill the processes of a collector that sudo runs as root."""
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(END_S):
            kill = await asyncio.create_subprocess_exec(
                *("sudo", "-n", "kill", "-KILL", "--", f"-{group}"),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
            )
            await kill.wait()
