"""Lose hosts, schedulers, clients and clocks of a fleet, several times each.

    python -m verification.fleet.losses --times 5

Repeats the tests of losses (tests/engine/fleet/test_losses.py, and those of tests/cli/test_fleet.py
that cut hosts off), each in a process of its own, and prints how many of them held and how long
they took. Ends with 1 when one did not. Hosts with networks of their own need root.
"""

import argparse
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = ("tests/engine/fleet/test_losses.py", "tests/cli/test_fleet.py")
CHOSEN = "lost or cut_off or killed or ctrl_c or jump or second_client or disk"


def pytest(*words: str) -> "subprocess.CompletedProcess[str]":
    command = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words)
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


def names() -> list[str]:
    """Return the tests."""
    told = pytest("--collect-only", "-k", CHOSEN, *TESTS).stdout
    return [line for line in told.splitlines() if re.match(r"tests/\S+::", line)]


def carried_out(found: Sequence[str], times: int) -> int:
    """Print a row for each test; return how many runs failed."""
    failures = 0
    print("| what is lost | held | seconds, longest |\n| --- | --- | --- |")
    for name in found:
        held, longest_s = 0, 0.0
        for _ in range(times):
            began_s = time.monotonic()
            done = pytest(name)
            longest_s = max(longest_s, time.monotonic() - began_s)
            if done.returncode == 0 and "1 passed" in done.stdout:
                held += 1
            else:
                print(done.stdout[-3000:], file=sys.stderr)
        failures += times - held
        words = name.partition("::test_")[2].replace("_", " ")
        print(f"| {words} | {held} of {times} | {longest_s:.0f} |", flush=True)
    return failures


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--times", type=int, default=5)
    options = parser.parse_args()
    found = names()
    if not found:
        raise SystemExit("verify: no test was found")
    raise SystemExit(1 if carried_out(found, options.times) else 0)


if __name__ == "__main__":
    main()
