"""A process that injected a fault and was killed."""

import subprocess
import sys

from loadstone.faults.journal import Owner
from loadstone.lab import processes


def dead_owner(run: str = "20260101-0000-abcdef") -> Owner:
    with subprocess.Popen((sys.executable, "-c", "input()"), stdin=subprocess.PIPE) as process:
        ticks = processes.identify(process.pid).started_ticks
        process.kill()
    return Owner(process.pid, ticks, processes.boot_id(), run)
