"""Comparisons of real Keystones whose difference is known.

    python -m verification.comparison.real

Each comparison is `loadstone compare` of two labs, or of two `loadstone serve`, from the command
line. Prints how often which answer came: two equal Keystones differ in none, the others have the
sign that is known. Run it on a machine with nothing else to do.
"""

import argparse
import collections
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from loadstone.lab import deployment
from loadstone.lab.keystone import settings

sys.path.insert(0, str(Path(__file__).parents[2] / "tests/support"))
from command_line import PASSWORD
from known_service import NAME, known_service

SMALL = ("workers=1", "hash-rounds=4", "database=mariadb", "cache=memcached")


@dataclass(frozen=True, slots=True)
class Difference:
    """Two services, and the right answer."""

    right: str  # of throughput
    a: tuple[str, ...] = ()  # settings of labs; none: a service of known capacity
    b: tuple[str, ...] = ()
    scenario: str = "issue"
    capacities_rps: tuple[float, float] = (0.0, 0.0)


DIFFERENCES = {
    "equal": Difference("same", SMALL, SMALL, "validate"),
    "1 and 2 workers": Difference("faster", SMALL, (*SMALL, "workers=2"), "validate"),
    "hash rounds 12 and 11": Difference(
        "faster", (*SMALL, "hash-rounds=12"), (*SMALL, "hash-rounds=11")
    ),
    "cache off and on": Difference("faster", (*SMALL, "cache=off"), SMALL, "validate"),
    "capacity 200 and 200": Difference("same", capacities_rps=(200.0, 200.0)),
    "capacity 200 and 206": Difference("faster", capacities_rps=(200.0, 206.0)),
}


@contextlib.contextmanager
def sides(chosen: Difference, folder: Path) -> Iterator[tuple[str, ...]]:
    """Start both; yield the options that name them."""
    with contextlib.ExitStack() as stack:
        if not chosen.a:
            clouds = {}
            for name, rate_rps in zip("ab", chosen.capacities_rps, strict=True):
                url = stack.enter_context(known_service(4, 4 / rate_rps)).url
                auth = {"auth_url": url, "username": NAME, "password": PASSWORD}
                auth |= {"project_name": NAME, "user_domain_id": "default"}
                auth |= {"project_domain_id": "default"}
                clouds[name] = {"auth": auth, "identity_api_version": 3}
            (folder / "clouds.yaml").write_text(json.dumps({"clouds": clouds}))
            yield "--cloud=a", "--cloud=b"
            return
        names = [f"verify-{os.getpid()}-{side}" for side in "ab"]
        for name, words in zip(names, (chosen.a, chosen.b), strict=True):
            stack.callback(deployment.down, name, purge=True)
            pairs = map(settings.split, words)
            deployment.up(name, settings.read(pairs), lambda _: None, owned=True)
        yield tuple(f"--lab={name}" for name in names)


def compared(words: tuple[str, ...], folder: Path) -> tuple[str, float, int]:
    """Compare once; return the answer about throughput, its ratio, and the pairs it took."""
    found = folder / "found.json"
    command = [sys.executable, "-m", "loadstone", "compare", *words]
    command += ["--store", str(folder / "store"), "--json", str(found)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=folder)
    if done.returncode not in (0, 4):
        raise SystemExit(done.stderr)
    (metrics,) = json.loads(found.read_text())["metrics"].values()
    row = metrics["throughput"]
    return row["answer"], row["ratio"], row["pairs"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=4.0, help="of each trial")
    parser.add_argument("--pairs", type=int, default=40, help="at most")
    parser.add_argument("--difference", choices=list(DIFFERENCES), action="append")
    options = parser.parse_args()
    print("| A and B | right | answers | ratio | pairs, median |")
    print("|---|---|---|---|---|")
    for name in options.difference or DIFFERENCES:
        chosen, began_s = DIFFERENCES[name], time.monotonic()
        words = (f"--seconds={options.seconds}", f"--pairs={options.pairs}", "--users=2")
        rows = []
        with tempfile.TemporaryDirectory() as folder, sides(chosen, Path(folder)) as two:
            for _ in range(options.times):
                more = (f"--scenario={chosen.scenario}", "--concurrency=4")
                rows.append(compared((*two, *words, *more), Path(folder)))
                print(f"  {name}: {rows[-1]}", file=sys.stderr, flush=True)
        answers = collections.Counter(answer for answer, _, _ in rows)
        shown = ", ".join(f"{answer} {count}" for answer, count in answers.most_common())
        ratios = [ratio for _, ratio, _ in rows]
        middle = sorted(pairs for _, _, pairs in rows)[len(rows) // 2]
        span = f"{min(ratios):.3f} to {max(ratios):.3f}"
        print(
            f"| {name} | {chosen.right}: {answers[chosen.right]} of {options.times} | {shown} | "
            f"{span} | {middle} |",
            flush=True,
        )
        print(f"  {time.monotonic() - began_s:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
