"""Applies and reverts the settings of a `loadstone serve`, for `verification.tuning.real`.

    python switch.py FOLDER apply|revert

`truth.json` in the folder says how fast the service is with each level of each setting. The service
is started anew if its capacity changes, as a Keystone would be. It imports the standard library
only, because it runs twice for each trial.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from math import exp
from pathlib import Path

LISTENS_WITHIN_S = 30.0


def main() -> None:
    """Start the service with the capacity of what is in the environment, or of the default."""
    folder, action = Path(sys.argv[1]), sys.argv[2]
    truth = json.loads((folder / "truth.json").read_text())
    chosen = {name: os.environ.get(name, "0") for name in truth["names"]}
    if action == "revert":
        chosen = dict.fromkeys(chosen, "0")
    levels = {f"{name}={level}" for name, level in chosen.items()}
    speed = sum(value for level, value in truth["effects"].items() if level in levels)
    speed += sum(value for *two, value in truth["interactions"] if levels.issuperset(two))
    capacity = f"{truth['capacity_rps'] * exp(speed):.3f}"
    known = folder / "running"
    running = known.read_text().split() if known.exists() else []
    if running[1:] == [capacity]:
        return
    if running:
        end(int(running[0]))
    known.write_text(f"{start(folder, truth['port'], capacity)} {capacity}")


def start(folder: Path, port: int, capacity: str) -> int:
    """Start the service; return its process id when it listens."""
    words = ("serve", "--port", str(port), "--capacity", capacity, "--workers", "2")
    # With one seed, every trial of a combination would draw the same service times: an error that
    # all pairs have, and no interval shows.
    seed = str(time.time_ns())
    law = ("--law", "exponential", "--even-over", "20", "--seed", seed)
    with (folder / "serve.log").open("ab") as log:
        process = subprocess.Popen(
            (sys.executable, "-m", "loadstone", *words, *law),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    until_s = time.monotonic() + LISTENS_WITHIN_S
    while time.monotonic() < until_s:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1.0):
            return process.pid
        time.sleep(0.05)
    sys.exit(f"nothing listens on port {port}")


def end(pid: int) -> None:
    """End the service, and wait until it is gone."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    until_s = time.monotonic() + LISTENS_WITHIN_S
    while time.monotonic() < until_s:
        state = Path(f"/proc/{pid}/stat")
        if not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z":
            return
        time.sleep(0.02)
    sys.exit(f"the service (pid {pid}) does not end")


if __name__ == "__main__":
    main()
