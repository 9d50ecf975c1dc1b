"""Kill `loadstone fault` at random moments: is everything undone?

    python -m verification.faults.undo --times 30

Starts a lab of two nodes behind haproxy, with TLS, MariaDB and memcached, and breaks it in all ways
in turn; each command is ended by SIGKILL, SIGTERM or SIGINT at a random moment: before its fault,
while it is carried out or held, or after it. Afterwards no part may be dead, stopped, out
of haproxy or read-only, no busy loop or proxy may be left, no full disk, no expired certificate, no
changed keystone.conf, and no step in the undo journal; an upgrade is finished, or has not begun.
Ends with 1 when something was left. The seed is printed; the same one chooses the same moments.
A full disk needs a small file system of its own, which root mounts for the lab's data.
"""

import argparse
import os
import secrets
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from urllib.parse import urlsplit

import psutil

from loadstone.errors import EnvironmentUnusable
from loadstone.faults import balancer, database, filling
from loadstone.faults.journal import of_lab
from loadstone.faults.parts import FAULT
from loadstone.lab import deployment
from loadstone.lab.deployment import Deployment
from loadstone.lab.keystone import settings

SENTENCES = (
    "kill keystone service on one node",
    "restart keystone service on one node",
    "freeze keystone service",
    "take one node out",
    "reload haproxy",
    "freeze haproxy service",
    "kill memcached service",
    "kill mysql service",
    "make database read-only",
    "expire certificate",
    "rotate fernet keys",
    "steal cpu",
    "reboot one node",
    "terminate keystone service on node 2",
    "disconnect network on one node",
    "delay network on one node by 100 ms",
    "lose 20% of packets on one node",
    "rolling restart of keystone",
    "rolling restart of keystone with token.expiration=7200",
    "flush memcached",
    "overload 2x for 4 seconds",
)
FILL = "fill disk of database"
UPGRADE = "upgrade keystone to 30.0.0"
ROLLING = ("rolling", "upgrade")
# What lasts until somebody undoes it, also across restarts, is always ended while it is held.
HELD = ("make database read-only", "expire certificate", FILL, UPGRADE)
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
BEFORE, DURING, AFTER = "before", "during", "after"  # the fault
MOMENTS = (BEFORE, DURING, DURING, AFTER)  # during is most: what is broken then must be undone
LONGEST_BEFORE_S = 4.0  # from the command's start; on a busy machine the load begins later
# From the fault's begin, and from its end, for one that holds 5 s, and for a rolling change.
LONGEST_DURING_S, LONGEST_ROLLING_S = 4.0, 15.0
LONGEST_AFTER_S = 2.0
BEGINS_S = 120.0  # until a fault begins
DISK_MB = 700  # a MariaDB with Keystone's tables takes 200
PATIENCE_S = 120.0
LAB = (
    *(("release", "29.1.0"), ("nodes", "2"), ("workers", "1"), ("tls", "on")),
    *(("database", "mariadb"), ("cache", "memcached"), ("hash-rounds", "4")),
)


@dataclass(frozen=True)
class Kill:
    """The signal that ends a command, and the moment at which it is sent."""

    signal: signal.Signals
    moment: str
    after_s: float  # from the command's start, the fault's begin, or its end

    @classmethod
    def drawn(cls, draw: Random, sentence: str) -> "Kill":
        """Draw one for a sentence."""
        moment = DURING if sentence in HELD else draw.choice(MOMENTS)
        during_s = LONGEST_ROLLING_S if sentence.startswith(ROLLING) else LONGEST_DURING_S
        longest_s = {BEFORE: LONGEST_BEFORE_S, DURING: during_s, AFTER: LONGEST_AFTER_S}[moment]
        return cls(draw.choice(SIGNALS), moment, draw.uniform(0.0, longest_s))


def ended(lab: Deployment, sentence: str, kill: Kill, to: Path) -> str:
    """Begin a command, and end it; return when that was."""
    words = (
        *(sys.executable, "-m", "loadstone", "fault", "--lab", lab.name, "--do", sentence),
        *("--rate", "20", "--users", "0", "--repeats", "1", "--baseline", "3s"),
        *("--observe", "40s" if sentence.startswith(ROLLING) else "7s"),
        *("--timeout", "3s", "--store", str(to)),
    )
    # In the background of a shell SIGINT is ignored, and what is started would ignore it, too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    said = to.with_suffix(".said")
    with (
        said.open("wb") as log,
        subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=log) as process,
    ):

        def has_begun() -> bool:
            # The line that says so comes just before; what is undone is in the journal before it.
            return f" s  {sentence}" in said.read_text() or process.poll() is not None

        journal = of_lab(lab.folder).path
        if kill.moment != BEFORE:
            until(has_begun, BEGINS_S)
        if kill.moment == AFTER:
            time.sleep(1.0)  # until what is done is in the journal
            until(lambda: not journal.exists() or process.poll() is not None, PATIENCE_S)
        try:
            process.wait(kill.after_s)
        except subprocess.TimeoutExpired:
            was = _moment(journal.exists(), has_begun())
            process.send_signal(kill.signal)
            return was
    return f"it had ended with {process.returncode}"


def _moment(is_in_journal: bool, has_begun: bool) -> str:
    if is_in_journal:
        return "while something was to undo"
    return "with nothing to undo" if has_begun else "before the fault"


def until(held: Callable[[], bool], patience_s: float) -> None:
    """Wait until it holds, but not for ever."""
    deadline = time.monotonic() + patience_s
    while not held() and time.monotonic() < deadline:
        time.sleep(0.02)


def left(lab: Deployment) -> list[str]:
    """Return what is not as it should be, once all that undoes something has had its time."""
    deadline = time.monotonic() + PATIENCE_S
    while found := list(_left(lab)):
        if time.monotonic() > deadline:
            return found
        time.sleep(0.5)
    return []


def _left(lab: Deployment) -> Iterator[str]:
    if (of_lab(lab.folder).path).exists():
        yield f"journal: {(of_lab(lab.folder).path).read_text()}"
    now = deployment.load(lab.name)
    if why := now.failure():
        yield why
    for process in psutil.process_iter(["environ", "status"]):
        if process.pid in now.pids() and process.info["status"] == psutil.STATUS_STOPPED:
            yield f"process {process.pid} is stopped"
        if FAULT in (process.info["environ"] or {}):
            yield f"busy loop {process.pid}"
    down = _down(lab)
    yield from (f"not served: {name}" for name in down)
    yield from _files(lab)
    if len(set(_releases(now))) != 1:
        yield f"nodes of {_releases(now)}"
    if not down and _is_read_only(lab):
        yield "the database is read-only"
    if not down and (why := _untrusted(lab)):
        yield f"certificate: {why}"


def _files(lab: Deployment) -> Iterator[str]:
    if list((lab.folder / "keys").glob("*.before")):
        yield "a copy of the keys"
    if (lab.folder / "keystone.before").exists():
        yield "a changed keystone.conf"
    if filling.file(database.folder(lab.folder)).exists():
        yield "a full disk"


def _releases(lab: Deployment) -> list[str]:
    """Return the environment of each node."""
    servers = (one for one in lab.state.records if one.part.startswith("uwsgi"))
    programs = (_program(one.process.pid) for one in servers if one.process is not None)
    return [Path(program).parent.parent.name for program in programs if program]


def _program(pid: int) -> str:
    """Return what a process runs; nothing where it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")[0]
    except OSError:
        return ""


def _down(lab: Deployment) -> list[str]:
    try:
        return [name for name in ("node-1", "node-2") if not balancer.is_up(lab.folder, name)]
    except EnvironmentUnusable as problem:
        return [str(problem)]


def _is_read_only(lab: Deployment) -> bool:
    tables = database.folder(lab.folder)
    words = ("mariadb", "--no-defaults", "--socket=mariadb.sock", "-Nse", "SELECT @@read_only")
    done = subprocess.run(words, cwd=tables, capture_output=True, text=True, check=False)
    return done.stdout.strip() != "0"


def _untrusted(lab: Deployment) -> str:
    """Return what a client has against the certificate."""
    variables = lab.environment_variables()
    context = ssl.create_default_context(cafile=variables["OS_CACERT"])
    where = urlsplit(variables["OS_AUTH_URL"])
    try:
        with socket.create_connection((where.hostname, where.port), timeout=10) as link:
            context.wrap_socket(link, server_hostname=where.hostname).close()
    except OSError as problem:
        return str(problem)
    return ""


@contextmanager
def small_disk() -> Iterator[Path | None]:
    """Mount a small file system; None for others than root."""
    if os.geteuid() != 0:
        print(f"not root: without {FILL!r}", flush=True)
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="loadstone-disk-") as folder:
        words = ("mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m,mode=700", "tmpfs", folder)
        subprocess.run(words, check=True)
        try:
            yield Path(folder)
        finally:
            subprocess.run(("umount", folder), check=True)


def main() -> int:
    """Do it so many times; print each attempt and what was left."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=30)
    parser.add_argument("--first", type=int, default=1, help="number of the first fault")
    parser.add_argument("--seed", type=int, default=secrets.randbits(32))
    given = parser.parse_args()
    print(f"seed {given.seed}", flush=True)
    draw = Random(given.seed)
    with small_disk() as disk:
        bad = all_of(range(given.first - 1, given.first - 1 + given.times), draw, disk)
    print(f"{bad} of {given.times} left something")
    return 1 if bad else 0


def all_of(numbers: range, draw: Random, disk: Path | None) -> int:
    """Break a lab with the faults of these numbers; return how often something was left."""
    name = f"verify-{os.getpid()}"
    storage = () if disk is None else (("storage", str(disk)),)
    sentences = (*SENTENCES, *((FILL,) if disk else ()))
    lab = deployment.up(name, settings.read((*LAB, *storage)), print)
    bad = 0
    try:
        for number in numbers:
            # The last ones upgrade, until it has come to its end: there is no way back.
            is_old = "30.0.0" not in "".join(_releases(deployment.load(name)))
            is_upgrade = number >= numbers.stop - 3 and is_old
            sentence = UPGRADE if is_upgrade else sentences[number % len(sentences)]
            kill = Kill.drawn(draw, sentence)
            was = ended(lab, sentence, kill, lab.folder / "results")
            found = left(lab)
            bad += bool(found)
            words = "; ".join(found) or "nothing left"
            print(
                f"{number + 1:3} {sentence}, {kill.signal.name} {kill.moment} "
                f"({kill.after_s:.1f} s), {was}: {words}",
                flush=True,
            )
    finally:
        deployment.down(name, purge=True)
    return bad


if __name__ == "__main__":
    sys.exit(main())
