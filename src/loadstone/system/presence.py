"""Marks that all users of this machine can see, and that end with the process which set them.

A mark is a bound Unix socket in the abstract namespace. The kernel lists these names to everybody
in /proc/net/unix and removes a name when its process ends. There is no file that could be left,
linked or write-protected. Anyone can bind any name: a mark can make a command refuse, nothing else.
"""

import os
import pwd
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

_TABLE = Path("/proc/net/unix")
_PREFIX = "loadstone/"
_NAME = re.compile(
    rf"@{_PREFIX}(?P<subject>[0-9a-f]{{32}})/(?P<uid>\d{{1,9}})/(?P<pid>\d{{1,9}})-(?P<token>[0-9a-f]{{8}})"
)


@dataclass(frozen=True, slots=True)
class Mark:
    """A mark of a process, as it describes itself."""

    uid: int
    pid: int
    token: str

    @property
    def owner(self) -> str:
        """The process and, if it is another one, the user: "pid 4711 of alice"."""
        if self.uid == os.getuid():
            return f"pid {self.pid}"
        user = f"user {self.uid}"
        with suppress(KeyError, OverflowError):
            user = pwd.getpwuid(self.uid).pw_name
        return f"pid {self.pid} of {user}"


@contextmanager
def marked(subject: str, token: str) -> Iterator[None]:
    """Show that this process is at work on a subject; `token` has eight hexadecimal digits."""
    name = f"\0{_PREFIX}{_digest(subject)}/{os.getuid()}/{os.getpid()}-{token}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as mark:
        # Without it (a sandbox, another program at the name) others only do not see this process.
        with suppress(OSError):
            mark.bind(name)
        yield


def marks(subject: str) -> tuple[Mark, ...]:
    """Return the marks of all users for a subject."""
    try:
        table = _TABLE.read_text("ascii", errors="replace")
    except OSError:
        return ()
    wanted = _digest(subject)
    names = (_NAME.fullmatch(line.rpartition(" ")[2]) for line in table.splitlines())
    found = {
        Mark(int(name["uid"]), int(name["pid"]), name["token"])
        for name in names
        if name is not None and name["subject"] == wanted
    }
    return tuple(sorted(found, key=lambda one: (one.uid, one.pid, one.token)))


def _digest(subject: str) -> str:
    return sha256(subject.encode()).hexdigest()[:32]
