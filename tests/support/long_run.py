"""A run to a file in a process of its own, so that its memory can be seen and it can be killed.

Prints what it recorded and the most memory that it took, as JSON.

    python tests/long_run.py PORT PATH ITERATIONS
"""

import json
import re
import sys
from pathlib import Path

from known_service import ISSUE

from loadstone.engine.local import run_to_file
from loadstone.plan.load import ClosedLoad
from loadstone.plan.model import Origin, Plan


def peak_rss_mb() -> float:
    """Of this process alone: getrusage would count what its parent took before it began."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) / 1024


def main() -> None:
    port, path, iterations = sys.argv[1:]
    load = ClosedLoad(16, iterations=int(iterations))
    plan = Plan(Origin("http", "127.0.0.1", int(port)), (ISSUE,), load)
    spilled = run_to_file(plan, Path(path))
    print(json.dumps({"recorded": spilled.file.rows, "peak_rss_mb": peak_rss_mb()}))


if __name__ == "__main__":
    main()
