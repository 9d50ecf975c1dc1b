"""Predicted and measured capacity of real Keystones: `python -m bench.prediction`.

Starts labs in several configurations, predicts the capacity of each from a low load
(`loadstone capacity --predict first`), then measures it. Prints both, and what a request costs of
each role's CPU in the trials at low and at full load.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from loadstone.keystone import deployment
from loadstone.keystone.deploy import settings

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


def row(name: str, budget_s: int, folder: Path) -> str:
    """Predict and measure one lab; return its line of the table."""
    words, scenario = LABS[name]
    lab, found, store = f"bench-{os.getpid()}", folder / "found.json", folder / "store"
    deployment.up(lab, settings.read(map(settings.split, words)), lambda _: None, owned=True)
    try:
        command = [sys.executable, "-m", "loadstone", "capacity", "--lab", lab, "--predict"]
        command += ["first", "--scenario", scenario, "--budget", f"{budget_s}s"]
        ended = subprocess.run(
            [*command, "--store", store, "--json", found],
            check=False,
            capture_output=True,
            text=True,
            timeout=600,
        )
    finally:
        deployment.down(lab, purge=True)
    if not found.exists():
        raise SystemExit(ended.stderr)
    data = json.loads(found.read_text())
    predicted, capacity = data["predicted"], data["capacity"]
    for trial in data["trials"]:
        if trial["resources"]:
            said = f"{trial['purpose']}: {trial['throughput_rps']:.4g}/s"
            print(f"  {said}; ms: {costs(trial)}", file=sys.stderr)
    rate_rps = capacity["rate_rps"]
    span = f"{predicted['low_rps']:.3g} to {predicted['high_rps']:.3g}"
    if rate_rps is None:
        return f"| {name} | {predicted['rate_rps']:.3g} ({span}) | none: {capacity['words']} | |"
    return (
        f"| {name} | {predicted['rate_rps']:.3g} ({span}) | {rate_rps:.3g} "
        f"({capacity['low_rps']:.3g} to {capacity['high_rps']:.3g}) | "
        f"{rate_rps / predicted['rate_rps']:.2f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budget", type=int, default=75, help="seconds of load of each search")
    parser.add_argument("--lab", choices=list(LABS), action="append", help="may be repeated")
    options = parser.parse_args()
    print("| lab | predicted, per second | measured | measured / predicted |")
    print("|---|---|---|---|")
    for name in options.lab or LABS:
        with tempfile.TemporaryDirectory() as folder:
            print(row(name, options.budget, Path(folder)), flush=True)


if __name__ == "__main__":
    main()
