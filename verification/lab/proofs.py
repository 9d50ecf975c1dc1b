"""Gains of audit rules' fixes, as `loadstone audit prove` measures them.

    python -m verification.lab.proofs WEB-01 KS-01

Starts a small lab whose settings both sides of each proof share.
"""

import argparse
import os
import subprocess
import sys
import tempfile

from loadstone.lab import deployment
from loadstone.lab.keystone import settings

SHARED = (("workers", "1"),)


def main() -> int:
    """Return the highest exit code of the proofs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rules", nargs="+")
    parser.add_argument("--seconds", type=float, default=6.0, help="of each trial")
    options = parser.parse_args()
    name, worst = f"verify-{os.getpid()}", 0
    deployment.up(name, settings.read(SHARED), lambda _: None, owned=True)
    try:
        with tempfile.TemporaryDirectory() as store:
            for rule in options.rules:
                words = (sys.executable, "-m", "loadstone", "audit", "prove", rule, "--lab", name)
                more = (f"--seconds={options.seconds}", "--store", store)
                done = subprocess.run((*words, *more), check=False)
                worst = max(worst, done.returncode)
    finally:
        deployment.down(name, purge=True)
    return worst


if __name__ == "__main__":
    sys.exit(main())
