"""What a password check alone costs: the part of a token issue that no setting but one lifts."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

from loadstone.errors import EnvironmentUnusable
from loadstone.keystone.scenarios import SCENARIOS, Scenario
from loadstone.result import Finding

# Keystone's own default for bcrypt: `password_hash_rounds` unset (keystone/conf/identity.py).
DEFAULT_ROUNDS = 12
TIMEOUT_S = 60.0
# Process time, so that it is the check's own cost whatever else the machine does.
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


@dataclass(frozen=True, slots=True)
class Hashing:
    """One bcrypt check."""

    rounds: int
    cpu_s: float


def measure(python: Path, rounds: int) -> Hashing:
    """Check a password with the bcrypt that Keystone itself uses, in its environment."""
    asked = [str(python), "-c", CODE, str(rounds)]
    try:
        answer = subprocess.run(
            asked, check=True, capture_output=True, text=True, timeout=TIMEOUT_S
        )
        return Hashing(rounds, float(answer.stdout))
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise EnvironmentUnusable(f"{python} cannot time a password check: {error}") from error


def in_words(hashing: Hashing, finding: Finding) -> tuple[str, ...]:
    """Say what share of a token issue is the password check, where the trials show the cost."""
    cost_s = finding.cpu_per_request_s
    if cost_s is None:
        return ()
    share = min(hashing.cpu_s / cost_s, 1.0)
    return (
        f"The password check alone (bcrypt, cost {hashing.rounds}) takes "
        f"{hashing.cpu_s * 1000:.0f} ms of CPU here, {share:.0%} of the {cost_s * 1000:.0f} ms "
        "that a token costs; [identity] password_hash_rounds sets it, and lower is easier to break",
    )


def explain(python: Path, rounds: int, scenario: Scenario, finding: Finding) -> tuple[str, ...]:
    """Time a password check where the scenario makes one, and say its share."""
    if scenario is not SCENARIOS["issue"]:
        return ()
    return in_words(measure(python, rounds), finding)
