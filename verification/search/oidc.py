"""N of OpenID Connect flows on real sockets: `python -m verification.search.oidc --runs 10`.

Starts `loadstone serve --oidc`, which sustains exactly so many flows of each kind per second, runs
`loadstone capacity --oidc` for each scenario, and prints how far off N was.
"""

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tests/support"))
from oidc_service import CLIENT_ID, SECRET, OidcService, oidc_service

from loadstone.oidc.scenarios import SCENARIOS

NEAR = 0.02  # share of the truth
MIX = "mix:oidc-login=1,oidc-refresh=4,oidc-introspect=5"


@dataclass(frozen=True, slots=True)
class Job:
    """One search."""

    scenario: str
    run: int
    rate_rps: float
    budget_s: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """N and its interval as one search stated them; None: not stated."""

    job: Job
    n_rps: float | None
    low_rps: float | None
    high_rps: float | None

    @property
    def error(self) -> float | None:
        """Relative error of N; None without N."""
        return None if self.n_rps is None else self.n_rps / self.job.rate_rps - 1

    @property
    def holds(self) -> bool:
        """Whether the interval holds the truth."""
        if self.low_rps is None or self.high_rps is None:
            return False
        return self.low_rps <= self.job.rate_rps <= self.high_rps

    @property
    def row(self) -> str:
        """A row of the table of all searches."""
        figures = (self.n_rps, self.low_rps, self.high_rps)
        cells = [f"{figure:.2f}" if figure else "-" for figure in figures]
        error = "-" if self.error is None else f"{100 * self.error:+.2f}"
        return f"| {self.job.scenario} | {' | '.join(cells)} | {error} |"


def play(job: Job) -> Outcome:
    """Start a service and search its capacity."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        law = ("--law=exponential", "--even-over=50", f"--seed={job.run}", "--workers=4")
        with oidc_service(home, f"--capacity={job.rate_rps}", *law) as service:
            capacity = found(service, job, home)
    rate, low, high = (capacity.get(f"{name}_rps") for name in ("rate", "low", "high"))
    return Outcome(job, rate, low, high)


def found(service: OidcService, job: Job, home: Path) -> dict[str, float]:
    """Return the capacity that the command prints; empty if it prints none."""
    words = ("capacity", "--oidc", service.issuer, "--client-id", CLIENT_ID)
    of_job = ("--scenario", job.scenario, "--budget", f"{job.budget_s}s")
    users = ("--oidc-users", str(service.users), "--json", "-")
    done = subprocess.run(
        [sys.executable, "-m", "loadstone", *words, *of_job, *users],
        env=os.environ | {"LOADSTONE_HOME": str(home), "LOADSTONE_OIDC_CLIENT_SECRET": SECRET},
        check=False,
        capture_output=True,
        text=True,
    )
    if not done.stdout:
        print(f"{job.scenario}: {done.stderr.splitlines()[-1]}", file=sys.stderr)
        return {}
    [measured] = json.loads(done.stdout)["measurements"]
    capacity: dict[str, float] = measured["capacity"] or {}
    return capacity


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=float, default=100.0, help="capacity, flows per second")
    parser.add_argument("--budget", type=int, default=60, help="seconds of load")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--at-once", type=int, default=1, help="searches; for low rates only")
    parser.add_argument("--scenario", action="append", help="default: all, and a mix")
    options = parser.parse_args()
    names = options.scenario or (*SCENARIOS, MIX)
    jobs = [
        Job(name, run, options.rate, options.budget)
        for name in names
        for run in range(options.runs)
    ]
    print("| scenario | N | low | high | error % |", file=sys.stderr)
    outcomes = []
    # Each in a process of its own, because a service is given its secret in the environment.
    with multiprocessing.get_context("spawn").Pool(options.at_once) as pool:
        for outcome in pool.imap(play, jobs):
            outcomes.append(outcome)
            print(outcome.row, file=sys.stderr, flush=True)
    print("| scenario | within 2 % | worst error % | interval holds N |")
    print("| --- | --- | ---: | --- |")
    for name in (*names, "all"):
        of_name = [one for one in outcomes if name in (one.job.scenario, "all")]
        count, errors = len(of_name), [one.error for one in of_name if one.error is not None]
        near = sum(abs(error) <= NEAR for error in errors)
        worst = f"{100 * max(errors, key=abs):+.2f}" if errors else "-"
        holding = sum(one.holds for one in of_name)
        print(f"| {name} | {near} of {count} | {worst} | {holding} of {count} |")


if __name__ == "__main__":
    main()
