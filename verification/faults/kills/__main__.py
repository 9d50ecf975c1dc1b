"""End commands at random moments: is everything found again, undone and removed?

    python -m verification.faults.kills --times 200 --users 40

Starts a real Keystone (cheap password hashes; or, with `--serve`, `loadstone serve`) and, against
it, `run`, `capacity`, `fault` (of the lab, and by a --faults file), `run --fleet`, `study run` and
`lab up` in turn. Each is ended by SIGKILL, SIGTERM, SIGINT or SIGHUP, or loses its terminal or the
reader of its messages, at a random moment: as it starts, while users are created, under load,
during a fault, while users are removed, while a lab starts. After each: exit code and messages must
be right, no process and no fault may be left, every run must be readable with all trials that had
ended, every lab must be listed and be removed by `lab down --purge`, and after `loadstone results
clean` nothing of the run may be left in Keystone. Ends with 1 when something was. The seed is
printed; the same seed chooses the same moments.
"""

import argparse
import os
import secrets
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from loadstone.lab import deployment
from loadstone.lab.keystone import settings
from loadstone.serve.process import reference_process
from loadstone.system import paths
from verification.faults.kills.attempt import Target, attempts, trouble
from verification.faults.kills.commands import KINDS, WITHOUT_LAB

SHARED = ("environments", "templates", "sources")


def main() -> None:
    """End so many commands; print each, and what was left."""
    parser = argparse.ArgumentParser(
        prog="python -m verification.faults.kills",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--times", type=int, default=200)
    parser.add_argument("--users", type=int, default=40)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    parser.add_argument("--only", metavar="KIND,...", help=f"of {', '.join(KINDS)}")
    parser.add_argument(
        "--serve", action="store_true", help="against loadstone serve, without labs"
    )
    options = parser.parse_args()
    kinds = WITHOUT_LAB if options.serve else tuple(KINDS)
    if options.only:
        kinds = tuple(name for name in kinds if name in options.only.split(","))
    print(f"seed {options.seed}", flush=True)
    bad = 0
    endings: Counter[str] = Counter()
    drawn = attempts(options.times, options.users, options.seed, kinds)
    with (reference if options.serve else keystone)() as target:
        for number, attempt in enumerate(drawn, 1):
            began_s = time.monotonic()
            with TemporaryDirectory(prefix="kills-") as folder:
                found = trouble(attempt, target, Path(folder))
            bad += bool(found)
            endings[f"{attempt.ending}"] += 1
            took = f"{time.monotonic() - began_s:6.1f} s"
            print(f"{number:3}  {attempt}  {took}  {'; '.join(found) or 'clean'}", flush=True)
    print(", ".join(f"{count} by {ending}" for ending, count in endings.most_common()))
    print(f"{options.times} commands ended, {bad} of them not clean")
    raise SystemExit(1 if bad else 0)


@contextmanager
def _home() -> Iterator[Path]:
    """Make a home folder that shares what this one has built for labs."""
    kept = paths.labs()
    with TemporaryDirectory(prefix="kills-home-") as folder:
        home = Path(folder)
        (home / "lab").mkdir()
        for name in SHARED:
            (kept / name).mkdir(parents=True, exist_ok=True)
            (home / "lab" / name).symlink_to(kept / name)
        before = os.environ.get("LOADSTONE_HOME")
        os.environ["LOADSTONE_HOME"] = folder
        try:
            yield home
        finally:
            if before is None:
                del os.environ["LOADSTONE_HOME"]
            else:
                os.environ["LOADSTONE_HOME"] = before


@contextmanager
def keystone() -> Iterator[Target]:
    """Start a real one that ends with this process."""
    # SQLite would have its eight writers wait for each other.
    chosen = [("workers", "2"), ("hash-rounds", "4"), ("database", "mariadb")]
    name = "kills"
    with _home() as home:
        try:
            started = deployment.up(name, settings.read(chosen), print, owned=True)
            yield Target(started.environment_variables(), home, name)
        finally:
            deployment.down(name, purge=True)


@contextmanager
def reference() -> Iterator[Target]:
    """Start `loadstone serve`, which ends with this process."""
    with _home() as home, reference_process() as (_, variables):
        yield Target(dict(variables), home)


if __name__ == "__main__":
    main()
