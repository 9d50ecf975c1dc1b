"""The table of first and later starts in docs/lab.md: `python -m verification.lab.starts`.

First starts are those of an empty home of its own (LOADSTONE_HOME counts for nothing here), in the
order of the table: what one line has made (an environment, a database), the next ones find. Takes
about ten minutes on a quiet machine. CPU is that of preparing and of the servers until they serve.
"""

import os
import resource
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from loadstone.lab import deployment
from loadstone.lab.keystone import settings

NAME = "starts"
CONFIGURATIONS = (
    ("the very first of a release (100 packages, `db_sync`)", ()),
    ("`web=uwsgi`", ()),
    ("`web=nginx-uwsgi`", ("web=nginx-uwsgi",)),
    ("`web=gunicorn`", ("web=gunicorn",)),
    ("`web=granian`", ("web=granian",)),
    ("`web=single`", ("web=single",)),
    ("`web=apache`", ("web=apache",)),
    ("`database=mariadb`", ("database=mariadb",)),
    ("`database=postgres`", ("database=postgres",)),
    ("`storage=tmpfs`", ("storage=tmpfs",)),
    ("`token=jws`", ("token=jws",)),
    ("`cache=memcached`", ("cache=memcached",)),
    ("`cache=memcached-pool`", ("cache=memcached-pool",)),
    ("`nodes=2`, `workers=1`", ("nodes=2", "workers=1")),
    ("`identity=ldap`", ("identity=ldap",)),
    ("`release=25.0.0`", ("release=25.0.0",)),
)


@dataclass(frozen=True, slots=True)
class Start:
    """What one start took."""

    wall_s: float
    cpu_s: float
    memory_mb: float


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as home:
        os.environ["LOADSTONE_HOME"] = home
        print("| configuration | first start: s, CPU s | later starts: s, CPU s | memory, MB |")
        print("| --- | --- | --- | --- |")
        for title, words in CONFIGURATIONS:
            first, later = start(words), start(words)
            deployment.down(NAME, purge=True)
            print(f"| {title} | {_shown(first)} | {_shown(later)} | {later.memory_mb:.0f} |")


def start(words: tuple[str, ...]) -> Start:
    """Start a deployment and stop it again."""
    given = (("hash-rounds", "4"), *map(settings.split, words))
    if not {"web=single", "workers=1"} & set(words):
        given = (("workers", "2"), *given)
    before_s, began_s = _children_s(), time.monotonic()
    started = deployment.up(NAME, settings.read(given), lambda _: None)
    wall_s = time.monotonic() - began_s
    memory_mb = started.summary().memory_mb or 0.0
    serving_s = sum(_cpu_s(pid) for pid in started.pids())
    prepared_s = _children_s() - before_s
    deployment.down(NAME)
    return Start(wall_s, prepared_s + serving_s, memory_mb)


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _cpu_s(pid: int) -> float:
    # utime and stime, in clock ticks: proc(5).
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _shown(one: Start) -> str:
    return f"{one.wall_s:.0f}, {one.cpu_s:.0f}"


if __name__ == "__main__":
    main()
