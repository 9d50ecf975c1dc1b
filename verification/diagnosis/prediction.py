"""Predicted and measured capacity of real Keystones: `python -m verification.diagnosis.prediction`.

Starts labs in several configurations, predicts the capacity of each from a low load
(`loadstone capacity --predict first`), then measures it, several times. Prints the medians,
and what a request costs of each role's CPU in the trials at low and at full load.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from loadstone.lab import deployment
from loadstone.lab.keystone import settings

LABS = {
    "2 workers, MariaDB, memcached": (
        ("workers=2", "hash-rounds=12", "database=mariadb", "cache=memcached"),
        "issue",
    ),
    "1 worker, SQLite": (("workers=1", "hash-rounds=10"), "issue"),
    "2 workers, Apache, PostgreSQL": (
        ("workers=2", "web=apache", "hash-rounds=10", "database=postgres"),
        "issue",
    ),
    "2 nodes of 1 worker, haproxy, MariaDB": (
        ("nodes=2", "workers=1", "hash-rounds=8", "database=mariadb"),
        "issue",
    ),
    "4 workers, validation, MariaDB, memcached": (
        ("workers=4", "database=mariadb", "cache=memcached"),
        "validate",
    ),
}


def costs(trial: dict[str, Any]) -> str:
    """Return the CPU of a request by role, in milliseconds, and how long it held a worker."""
    return ", ".join(
        f"{one['name']} {one['demand_ms']:.3g}"
        for one in trial["resources"]
        if one["demand_ms"] and (one["unit"] == "cores" or one["kind"] == "workers")
    )


def row(name: str, budget_s: int, repeats: int, folder: Path) -> str:
    """Predict and measure one lab, each time anew; return its line of the table."""
    words, scenario = LABS[name]
    lab = f"verify-{os.getpid()}"
    deployment.up(lab, settings.read(map(settings.split, words)), lambda _: None, owned=True)
    try:
        command = ["capacity", "--lab", lab, "--predict", "first", "--scenario", scenario]
        command += ["--budget", f"{budget_s}s", "--store", str(folder / "store")]
        pairs = [found for _ in range(repeats) if (found := pair(command, folder / "found.json"))]
    finally:
        deployment.down(lab, purge=True)
    if not pairs:
        return f"| {name} | | none | |"
    ratios = [measured / predicted for predicted, measured in pairs]
    predicted_rps, measured_rps = (statistics.median(column) for column in zip(*pairs, strict=True))
    each = ", ".join(f"{ratio:.2f}" for ratio in ratios)
    middle = statistics.median(ratios)
    return f"| {name} | {predicted_rps:.3g} | {measured_rps:.3g} | {middle:.2f} ({each}) |"


def pair(command: list[str], found: Path) -> tuple[float, float] | None:
    """Predict, then measure; None: no N was found."""
    words = [sys.executable, "-m", "loadstone", *command, "--json", str(found)]
    ended = subprocess.run(words, check=False, capture_output=True, text=True, timeout=600)
    if not found.exists():
        raise SystemExit(ended.stderr)
    [data] = json.loads(found.read_text())["measurements"]
    found.unlink()
    for trial in data["trials"]:
        if trial["resources"]:
            said = f"{trial['purpose']}: {trial['throughput_rps']:.4g}/s"
            print(f"  {said}; ms: {costs(trial)}", file=sys.stderr, flush=True)
    predicted, measured_rps = data["predicted"], (data["capacity"] or {}).get("rate_rps")
    print(f"  predicted {predicted}, measured {measured_rps}", file=sys.stderr, flush=True)
    if measured_rps is None or predicted is None:
        return None
    return predicted["rate_rps"], measured_rps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budget", type=int, default=75, help="seconds of load of each search")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--lab", choices=list(LABS), action="append", help="may be repeated")
    options = parser.parse_args()
    print("| lab | predicted, per second | measured | measured / predicted |")
    print("|---|---|---|---|")
    for name in options.lab or LABS:
        with tempfile.TemporaryDirectory() as folder:
            print(row(name, options.budget, options.repeats, Path(folder)), flush=True)


if __name__ == "__main__":
    main()
