"""`loadstone size` beside measured capacity: `python -m verification.diagnosis.sizing`.

Measures what a login and a validation cost on one lab, lets `loadstone size` say at which rate the
machine is full, and measures N of labs and loads that the sizing has not seen; all of it several
times, since what a request costs changes with the machine.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadstone.lab import deployment
from loadstone.lab.keystone import settings

COMMON = ("hash-rounds=10", "database=mariadb", "cache=memcached")
FITTED = ("workers=2", *COMMON)


@dataclass(frozen=True, slots=True)
class HeldBack:
    """A lab and a load on it; `logins` and `validations` are their shares."""

    words: tuple[str, ...]
    scenario: str
    logins: float = 0.0
    validations: float = 0.0


HELD_BACK = {
    "2 workers, one login to nine validations": HeldBack(
        FITTED, "mix:issue=1,validate=9", 0.1, 0.9
    ),
    "4 workers, validation": HeldBack(("workers=4", *COMMON), "validate", validations=1.0),
    "2 nodes of 1 worker, haproxy, token issue": HeldBack(
        ("nodes=2", "workers=1", *COMMON), "issue", logins=1.0
    ),
    "Apache, 4 workers, one login to four validations": HeldBack(
        ("web=apache", "workers=4", *COMMON), "mix:issue=1,validate=4", 0.2, 0.8
    ),
}


def called(words: tuple[str, ...], store: Path, accepted: tuple[int, ...] = (0,)) -> Any:
    """Run `loadstone` and return its JSON."""
    found = store.parent / "found.json"
    command = [
        sys.executable,
        "-m",
        "loadstone",
        *words,
        "--store",
        str(store),
        "--json",
        str(found),
    ]
    ended = subprocess.run(command, check=False, capture_output=True, text=True, timeout=600)
    if ended.returncode not in accepted:
        raise SystemExit(f"{words} ended with {ended.returncode}: {ended.stderr}")
    return json.loads(found.read_text())


def searched(words: tuple[str, ...], scenarios: tuple[str, ...], store: Path, budget_s: int) -> Any:
    """Search N of scenarios on a lab of these settings; return each result."""
    lab = f"verify-{os.getpid()}"
    deployment.up(lab, settings.read(map(settings.split, words)), lambda _: None, owned=True)
    try:
        return [
            called(
                ("capacity", "--lab", lab, "--scenario", one, "--budget", f"{budget_s}s"),
                store,
                (0, 4),
            )
            for one in scenarios
        ]
    finally:
        deployment.down(lab, purge=True)


def full_rps(
    chosen: HeldBack, runs: tuple[str, ...], store: Path
) -> tuple[float, float | None, float | None]:
    """Return the rate at which the machine is full, and its interval; None: not known."""
    words = [f"--run={one}" for one in runs]
    if chosen.logins:
        words.append(f"--logins={chosen.logins}")
    if chosen.validations:
        words.append(f"--validations={chosen.validations}")
    full = called(("size", *words), store)["measured_machine_full_at"]
    return full["value"], full["low"], full["high"]


def measured(chosen: HeldBack, runs: tuple[str, ...], store: Path, budget_s: int) -> float | None:
    """Print a sizing beside N; return N divided by it, None where there is no N."""
    sized_rps, low_rps, high_rps = full_rps(chosen, runs, store)
    sized = f"{sized_rps:.3g} ({_shown(low_rps)} to {_shown(high_rps)})"
    (found,) = searched(chosen.words, (chosen.scenario,), store, budget_s)
    capacity = found["measurements"][0]["capacity"]
    if capacity["rate_rps"] is None:
        print(
            f"  {chosen.scenario}: {sized}, no N: {capacity['words']}", file=sys.stderr, flush=True
        )
        return None
    within = f"{_shown(capacity['low_rps'])} to {_shown(capacity['high_rps'])}"
    n = f"{capacity['rate_rps']:.3g} ({within})"
    print(f"  {chosen.scenario}: {sized}, N {n}", file=sys.stderr, flush=True)
    return float(capacity["rate_rps"]) / sized_rps


def _shown(rate_rps: float | None) -> str:
    return "-" if rate_rps is None else f"{rate_rps:.3g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budget", type=int, default=60, help="seconds of load of each search")
    parser.add_argument("--load", choices=list(HELD_BACK), action="append", help="may be repeated")
    parser.add_argument("--repeats", type=int, default=3, help="of all searches, in turn")
    options = parser.parse_args()
    ratios: dict[str, list[float]] = {name: [] for name in options.load or HELD_BACK}
    for _ in range(options.repeats):
        with tempfile.TemporaryDirectory() as folder:
            store = Path(folder) / "store"
            fitted = searched(FITTED, ("issue", "validate"), store, options.budget)
            runs = tuple(one["run_id"] for one in fitted)
            for name, found in ratios.items():
                ratio = measured(HELD_BACK[name], runs, store, options.budget)
                if ratio is not None:
                    found.append(ratio)
    print("| lab and load | measured / sized: median | each |\n|---|---|---|")
    for name, found in ratios.items():
        each = ", ".join(f"{one:.2f}" for one in found)
        print(
            f"| {name} | {statistics.median(found):.2f} | {each} |" if found else f"| {name} | | |"
        )


if __name__ == "__main__":
    main()
