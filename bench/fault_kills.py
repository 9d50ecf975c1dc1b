"""Kill `loadstone fault` at random moments: is everything undone?

    python -m bench.fault_kills --times 30

Starts a lab of two nodes behind haproxy, with MariaDB and memcached, and breaks it in all ways in
turn; each command is ended by SIGKILL, SIGTERM or SIGINT at a random moment. Afterwards no part may
be dead, stopped, out of haproxy or read-only, no busy loop may be left, and no step in the undo
journal. Ends with 1 when something was. The seed is printed; the same one chooses the same moments.
"""

import argparse
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import psutil

from loadstone.errors import EnvironmentUnusable
from loadstone.faults import balancer
from loadstone.faults.journal import FILE
from loadstone.faults.undo import FAULT
from loadstone.keystone import deployment
from loadstone.keystone.deploy import settings
from loadstone.keystone.deployment import Deployment

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
    "rotate fernet keys",
    "steal cpu",
    "reboot one node",
)
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
LONGEST_S = 16.0  # of a command that is not ended: start, baseline, fault, undoing
PATIENCE_S = 120.0
LAB = (("nodes", "2"), ("workers", "1"), ("database", "mariadb"), ("cache", "memcached"))


def ended(lab: Deployment, sentence: str, number: signal.Signals, after_s: float, to: Path) -> None:
    """Begin a command, and end it."""
    words = (
        *(sys.executable, "-m", "loadstone", "fault", "--lab", lab.name, "--do", sentence),
        *("--rate", "20", "--users", "0", "--repeats", "1", "--baseline", "3s"),
        *("--observe", "7s", "--timeout", "3s", "--store", str(to)),
    )
    # In the background of a shell SIGINT is ignored, and what is started would ignore it, too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            process.wait(after_s)
        except subprocess.TimeoutExpired:
            process.send_signal(number)


def left(lab: Deployment) -> list[str]:
    """Return what is not as it should be, once all that undoes something has had its time."""
    deadline = time.monotonic() + PATIENCE_S
    while found := list(_left(lab)):
        if time.monotonic() > deadline:
            return found
        time.sleep(0.5)
    return []


def _left(lab: Deployment) -> Iterator[str]:
    if (lab.folder / FILE).exists():
        yield f"journal: {(lab.folder / FILE).read_text()}"
    now = deployment.known(lab.name)
    if why := now.failure():
        yield why
    for process in psutil.process_iter(["environ", "status"]):
        if process.pid in now.pids() and process.info["status"] == psutil.STATUS_STOPPED:
            yield f"process {process.pid} is stopped"
        if FAULT in (process.info["environ"] or {}):
            yield f"busy loop {process.pid}"
    down = _down(lab)
    yield from (f"not served: {name}" for name in down)
    if list((lab.folder / "keys").glob("*.before")):
        yield "a copy of the keys"
    if not down and _is_read_only(lab):
        yield "the database is read-only"


def _down(lab: Deployment) -> list[str]:
    try:
        return [name for name in ("node-1", "node-2") if not balancer.is_up(lab.folder, name)]
    except EnvironmentUnusable as problem:
        return [str(problem)]


def _is_read_only(lab: Deployment) -> bool:
    [tables] = lab.folder.glob("data/*/mysql-data")
    words = ("mariadb", "--no-defaults", "--socket=mariadb.sock", "-Nse", "SELECT @@read_only")
    done = subprocess.run(words, cwd=tables, capture_output=True, text=True, check=False)
    return done.stdout.strip() != "0"


def main() -> int:
    """Do it so many times; print each attempt and what was left."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=30)
    parser.add_argument("--seed", type=int, default=secrets.randbits(32))
    given = parser.parse_args()
    print(f"seed {given.seed}", flush=True)
    draw = Random(given.seed)
    name = f"bench-{os.getpid()}"
    lab = deployment.up(name, settings.read((*LAB, ("hash-rounds", "4"))), print)
    bad = 0
    try:
        for number in range(given.times):
            sentence = SENTENCES[number % len(SENTENCES)]
            how, after_s = draw.choice(SIGNALS), draw.uniform(1.0, LONGEST_S)
            ended(lab, sentence, how, after_s, lab.folder / "results")
            found = left(lab)
            bad += bool(found)
            words = "; ".join(found) or "nothing left"
            print(
                f"{number + 1:3} {sentence}, {how.name} after {after_s:.1f} s: {words}", flush=True
            )
    finally:
        deployment.down(name, purge=True)
    print(f"{bad} of {given.times} left something")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
