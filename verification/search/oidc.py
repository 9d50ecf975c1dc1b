"""N of OpenID Connect flows on real sockets: `python -m verification.search.oidc --runs 2`.

Starts `loadstone serve --oidc`, which sustains exactly so many flows of each kind per second, runs
`loadstone capacity --oidc` for each scenario, and prints how far off N was.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tests/support"))
from oidc_service import CLIENT_ID, SECRET, OidcService, oidc_service

from loadstone.oidc.scenarios import SCENARIOS

NEAR = 0.02  # share of the truth
MIX = "mix:oidc-login=1,oidc-refresh=4,oidc-introspect=5"


def found(service: OidcService, scenario: str, budget_s: int, home: Path) -> dict[str, float]:
    """Return the capacity that the command prints."""
    words = ("capacity", "--oidc", service.issuer, "--client-id", CLIENT_ID, "--scenario", scenario)
    users = ("--oidc-users", str(service.users), "--budget", f"{budget_s}s", "--json", "-")
    done = subprocess.run(
        [sys.executable, "-m", "loadstone", *words, *users],
        env=os.environ | {"LOADSTONE_HOME": str(home), "LOADSTONE_OIDC_CLIENT_SECRET": SECRET},
        check=False,
        capture_output=True,
        text=True,
    )
    if not done.stdout:
        sys.exit(f"{scenario}: {done.stderr.splitlines()[-1]}")
    [measured] = json.loads(done.stdout)["measurements"]
    capacity: dict[str, float] = measured["capacity"]
    return capacity


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=float, default=100.0, help="capacity, flows per second")
    parser.add_argument("--budget", type=int, default=60, help="seconds of load")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--scenario", action="append", help="default: all, and a mix")
    options = parser.parse_args()
    print("| scenario | N | low | high | error % |")
    print("|---|---|---|---|---|", flush=True)
    near = held = count = 0
    for scenario in options.scenario or (*SCENARIOS, MIX):
        for run in range(options.runs):
            with tempfile.TemporaryDirectory() as folder:
                home = Path(folder)
                law = ("--law=exponential", "--even-over=50", f"--seed={run}", "--workers=4")
                with oidc_service(home, f"--capacity={options.rate}", *law) as service:
                    n = found(service, scenario, options.budget, home)
            rate, low, high = n.get("rate_rps"), n.get("low_rps"), n.get("high_rps")
            count += 1
            if rate and low and high:
                near += abs(rate / options.rate - 1) <= NEAR
                held += low <= options.rate <= high
            error = f"{100 * (rate / options.rate - 1):+.2f}" if rate else "-"
            cells = [f"{figure:.2f}" if figure else "-" for figure in (rate, low, high)]
            print(f"| {scenario} | {' | '.join(cells)} | {error} |", flush=True)
    print(f"{near} of {count} within {NEAR:.0%}; {held} of {count} intervals held the truth")


if __name__ == "__main__":
    main()
