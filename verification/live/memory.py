"""Memory of two hours with a live page open: `python -m verification.live.memory --turns 3`.

`loadstone study run --live` sends a constant rate to a Keystone of the lab, 40 minutes in each
turn, while Chromium shows the page. Prints the memory of the command (proportional set size) and of
the page (JavaScript heap and number of DOM nodes, after a garbage collection) every few minutes.
Ends with 1 if the page did not become the report.
"""

import argparse
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "tests/support"))
import psutil
from command_line import CommandLine

QUIET = ("--no-sandbox", "--disable-background-networking", "--no-first-run")
STUDY = """
title: A long study
settings: {{cache: memcached, hash-rounds: 4}}
factors: {{workers: [1]}}
repeats: {turns}
measurement:
  kind: task
  task:
    version: 2
    title: A long load
    subtasks:
      - title: Logins
        scenario: {{Authenticate.keystone: {{}}}}
        runner: {{rps: {{rps: {rate:g}, times: {times}}}}}
"""
START_S = 60.0  # of the first turn: the service's environment is made
END_S = 300.0  # for the report after the load
NOWHERE = "http://127.0.0.1:9/v3"
MB = 1e6


def main() -> None:
    """Print a row every few minutes, then what the page says at the end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--minutes", type=float, default=40.0, help="of each turn, at most 45")
    parser.add_argument("--rate", type=float, default=10.0, help="iterations per second")
    parser.add_argument("--every", type=float, default=5.0, help="minutes between rows")
    given = parser.parse_args()
    from playwright.sync_api import sync_playwright

    load_s = 60 * given.minutes
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        home = Path(name)
        times = int(given.rate * load_s)
        study = STUDY.format(turns=given.turns, rate=given.rate, times=times)
        (home / "study.yaml").write_text(study)
        # Nobody reads what it prints: two hours of progress would fill the pipe, and block it.
        words = ("study", "run", "study.yaml", "--live", "--store=store", "--progress=none")
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium") or "/usr/bin/chromium", args=QUIET
        )
        with CommandLine(home).begun(*words, url=NOWHERE) as process:
            said = process.stderr.readline() if process.stderr else ""
            if (found := re.match(r"live page: (\S+)", said)) is None:
                raise SystemExit(said)
            page = browser.new_page()
            page.goto(found[1])
            watch(process.pid, page, given.turns * load_s, 60 * given.every)
            page.locator("main#content").wait_for(timeout=1000 * (START_S + END_S))
            print(f"at the end: {page.locator('h1').first.inner_text()}")
            process.communicate(timeout=END_S)
        if process.returncode:
            raise SystemExit(f"the study ended with {process.returncode}")
        browser.close()


def watch(pid: int, page: Any, load_s: float, every_s: float) -> None:
    """Print memory until shortly before the load ends."""
    devtools = page.context.new_cdp_session(page)
    devtools.send("Performance.enable")
    print("| minutes | command, MB | page's heap, MB | page's nodes |\n| --- | --- | --- | --- |")
    started_s = time.monotonic()
    while (passed_s := time.monotonic() - started_s) < load_s - 5:
        devtools.send("HeapProfiler.collectGarbage")
        metrics = {
            m["name"]: m["value"] for m in devtools.send("Performance.getMetrics")["metrics"]
        }
        heap_mb, nodes = metrics["JSHeapUsedSize"] / MB, metrics["Nodes"]
        row = f"{passed_s / 60:.0f} | {command_mb(pid):.0f} | {heap_mb:.1f} | {nodes:.0f}"
        print(f"| {row} |", flush=True)
        page.wait_for_timeout(1000 * min(every_s, max(load_s - 4 - passed_s, 1.0)))


def command_mb(pid: int) -> float:
    """Return the memory of the command, without the deployment that it started."""
    return float(psutil.Process(pid).memory_full_info().pss) / MB


if __name__ == "__main__":
    main()
