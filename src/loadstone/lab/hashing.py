"""Measures the cost of a password check, which only one setting of Keystone changes."""

import re
import subprocess
from pathlib import Path

from loadstone.diagnosis.bounds import ServiceChange, upper_bound
from loadstone.diagnosis.finding import three_digits
from loadstone.errors import EnvironmentUnusable
from loadstone.result.model import Measurement

# Keystone's default for bcrypt: `password_hash_rounds` unset (keystone/conf/identity.py).
DEFAULT_ROUNDS = 12
TIMEOUT_S = 60.0
FACT = "password hash"  # of a deployment
# CPU time of the process, so that other load on the machine does not count.
CODE = """
import sys, time, bcrypt
hashed = bcrypt.hashpw(b"x", bcrypt.gensalt(int(sys.argv[1])))
spent = []
for _ in range(3):
    began = time.process_time()
    bcrypt.checkpw(b"x", hashed)
    spent.append(time.process_time() - began)
print(sorted(spent)[1])
"""


def measure(python: Path, rounds: int) -> float:
    """Return the CPU time of a password check by the bcrypt of Keystone's own environment."""
    # -I: no modules from the working directory or the user's PYTHONPATH.
    command = [str(python), "-I", "-c", CODE, str(rounds)]
    try:
        completed = subprocess.run(
            command, check=True, capture_output=True, text=True, timeout=TIMEOUT_S
        )
        return float(completed.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise EnvironmentUnusable(f"{python} cannot time a password check: {error}") from error


def explain(python: Path, stored: str, measurement: Measurement) -> tuple[str, ...]:
    """Time a password check, and describe its share of a token issue, if the trials show the cost.

    `stored` is the fact about the stored hash; of other hashes than bcrypt nothing is said.
    """
    found = re.match(r"bcrypt, (\d+) rounds", stored)
    cost_s = measurement.cpu_per_request_s
    if found is None or cost_s is None:
        return ()
    try:
        check_s = measure(python, int(found[1]))
    except EnvironmentUnusable:  # the measurement is complete without it
        return ()
    share = min(check_s / cost_s, 1.0)
    watched = measurement.resources
    half_the_check = ServiceChange(cpu_saved_s=check_s / 2)
    half = upper_bound(watched.observation, half_the_check) if watched else None
    most = three_digits(half.rate_rps) if half else ""
    then = f": with half of it at most {most} a second are possible" if half else ""
    return (
        f"The password check alone (bcrypt, cost {found[1]}) takes {check_s * 1000:.0f} ms of CPU "
        f"here, {100 * share:.0f} % of the {cost_s * 1000:.0f} ms that a token costs{then}; "
        "[identity] password_hash_rounds sets it, and lower is easier to break",
    )
