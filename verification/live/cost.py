"""N with and without the live page, in pairs: `python -m verification.live.cost --pairs 20`.

Each pair is two searches of `loadstone serve`, one with `--live` and its page open in Chromium, in
an order that alternates. Prints N of each, and the ratio with its 95 % interval (Student's t on the
logarithms). Ends with 1 if the interval is not within 1 %.
"""

import argparse
import json
import math
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "tests/support"))
from command_line import CommandLine
from known_service import Known, known_service

from loadstone.analysis.interval import of_logs

QUIET = ("--no-sandbox", "--disable-background-networking", "--no-first-run")
CAPACITY_RPS = 200.0
SAME = 0.01


def main() -> None:
    """Print a row for each pair, then the ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--budget", default="30s", help="of each search")
    given = parser.parse_args()
    from playwright.sync_api import sync_playwright

    logs = []
    print("| pair | N with the page | N without |\n| --- | --- | --- |")
    with (
        tempfile.TemporaryDirectory() as name,
        known_service(2, 2 / CAPACITY_RPS) as known,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium") or "/usr/bin/chromium", args=QUIET
        )
        for pair in range(given.pairs):
            found = {}
            for has_page in (pair % 2 == 0, pair % 2 == 1):
                shown_in = browser if has_page else None
                found[has_page] = searched(Path(name), known, given.budget, shown_in)
            n_with, n_without = found[True], found[False]
            print(f"| {pair + 1} | {shown(n_with)} | {shown(n_without)} |", flush=True)
            if n_with and n_without:
                logs.append(math.log(n_with / n_without))
        browser.close()
    if len(logs) < given.pairs / 2:
        raise SystemExit(f"N was found in both searches of {len(logs)} pairs only")
    ratio = of_logs(logs)
    low, high = ratio.low or 0.0, ratio.high or math.inf
    print(f"with / without = {ratio.mean:.4f} ({low:.4f} to {high:.4f}), {ratio.count} pairs")
    sys.exit(0 if low >= 1 - SAME and high <= 1 + SAME else 1)


def shown(n_rps: float | None) -> str:
    """Return N in a cell."""
    return "not found" if n_rps is None else f"{n_rps:.2f}"


def searched(home: Path, known: Known, budget: str, browser: Any) -> float | None:
    """Return N of one search; the middle if it is a range, None without one."""
    live = ("--live",) if browser else ()
    words = ("capacity", "--users=0", f"--budget={budget}", "--json=n.json", "--store=store", *live)
    with CommandLine(home).begun(*words, url=known.url) as process:
        if browser:
            said = process.stderr.readline() if process.stderr else ""
            if (found := re.match(r"live page: (\S+)", said)) is None:
                raise SystemExit(said)
            page = browser.new_page()
            page.goto(found[1])
            page.locator("main#content").wait_for(timeout=600_000)
            page.close()
        process.communicate(timeout=600)
    [measured] = json.loads((home / "n.json").read_text())["measurements"]
    capacity = measured["capacity"] or {}
    low, high = capacity.get("low_rps"), capacity.get("high_rps")
    middle = (low + high) / 2 if low and high else None
    return capacity.get("rate_rps") or middle


if __name__ == "__main__":
    main()
