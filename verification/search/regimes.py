"""Services without one plain N, on real sockets: `python -m verification.search.regimes --runs 10`.

Runs `loadstone capacity` against `loadstone serve` with the options that make it such a service,
and prints for each how often what was said is right, how often a number was refused, and how often
what was said is wrong: a number that is off by more than 3 %, the wrong cause, or a sentence that a
trial contradicts.
"""

import argparse
import json
import re
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "tests/support"))
from command_line import CommandLine
from known_service import NAME, serving

NEAR = 0.03  # share of the truth
NONE_REFUSED = re.compile(r"none of [\d,]+ was refused at ([\d.]+)/s")


class Verdict(StrEnum):
    """What a search said of a service that is known."""

    RIGHT = "right"
    REFUSED = "refused"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Said:
    """What the command printed and stored."""

    code: int
    rate_rps: float | None
    kind: str | None
    words: tuple[str, ...]
    shown: str  # on the terminal
    refused_rps: frozenset[str]  # rates of trials with failures, as sentences state them

    def is_near(self, truth_rps: float) -> bool:
        """Whether N was stated, and is right."""
        return self.rate_rps is not None and abs(self.rate_rps / truth_rps - 1) <= NEAR

    def has(self, text: str) -> bool:
        """Whether a sentence says so."""
        return any(text in words for words in self.words)

    @property
    def is_contradicted(self) -> bool:
        """Whether a trial contradicts a sentence, or one rate both keeps up and falls behind."""
        stated = {rate for words in self.words for rate in NONE_REFUSED.findall(words)}
        up = set(re.findall(r"at ([\d.]+)/s\s+keeps up:", self.shown))
        behind = set(re.findall(r"at ([\d.]+)/s\s+(?:falls behind|requests fail)", self.shown))
        return bool(stated & self.refused_rps or up & behind)

    def judged(self, is_right: bool) -> Verdict:
        """Return the verdict: a number that is not right is wrong, and no number is refused."""
        if self.is_contradicted:
            return Verdict.WRONG
        if is_right:
            return Verdict.RIGHT
        return Verdict.REFUSED if self.rate_rps is None and self.code else Verdict.WRONG


@dataclass(frozen=True, slots=True)
class Row:
    """A service, how it is searched, and what is right to say of it."""

    service: tuple[str, ...]
    is_right: Callable[[Said], bool]
    search: tuple[str, ...] = ()


ROWS = {
    "each 1,000 requests make it 2 % slower": Row(
        ("--capacity=400", "--decline=0.02"),
        lambda said: said.rate_rps is None and said.has("declines"),
    ),
    "400/s, 200/s with 40 inside": Row(
        ("--capacity=400", "--workers=4", "--collapse-above=40"),
        lambda said: said.kind == "collapse" and said.is_near(200.0),
    ),
    # 600 connections at once complete 667 a second, which is no limit of the service.
    "answers after 0.9 s": Row(
        ("--capacity=10000", "--workers=9000"),
        lambda said: said.kind == "ceiling" and (said.rate_rps or 0.0) <= (1 + NEAR) * 600 / 0.9,
        ("--max-connections=600",),
    ),
    "0.2 % of requests fail": Row(
        ("--capacity=200", "--error-share=0.002"),
        lambda said: (
            said.rate_rps is None
            and said.has("errors that ")
            and said.has("without these errors, N is ")
        ),
    ),
    "5/s for each of 10 users": Row(
        ("--capacity=400", "--limit=5", "--limit-per=user"),
        lambda said: said.is_near(50.0) and said.has("/s for each user"),
    ),
    "5/s for each user, validation by one": Row(
        ("--capacity=400", "--limit=5", "--limit-per=user"),
        lambda said: said.is_near(5.0) and said.has("may be for each user"),
        ("--scenario=validate",),
    ),
    "50/s for all users": Row(
        ("--capacity=400", "--limit=50"),
        lambda said: said.is_near(50.0) and said.has("not for each user"),
    ),
    "33/s, uneven requests, validation": Row(
        ("--capacity=33", "--law=exponential"),
        lambda said: said.kind == "saturation" and said.is_near(33.0),
        ("--scenario=validate",),
    ),
}


def say(row: Row, run: int, budget_s: int) -> Said:
    """Search a service of its own and return what was said of it."""
    own = (f"--user={NAME}", f"--project={NAME}", f"--seed={run}")
    with tempfile.TemporaryDirectory() as folder, serving(*own, *row.service) as (port, _):
        loadstone, url = CommandLine(Path(folder)), f"http://127.0.0.1:{port}/v3"
        words = ("capacity", f"--budget={budget_s}s", "--quiet", *row.search)
        done = loadstone(*words, url=url, before=("env",))
        stored = loadstone("results", "show", "latest", "--json=-", before=("env",))
    [measured] = json.loads(stored.stdout)["measurements"]
    none: dict[str, Any] = {"rate_rps": None, "kind": "", "words": []}
    capacity = measured["capacity"] or none
    return Said(
        done.returncode,
        capacity["rate_rps"],
        capacity["kind"],
        tuple(capacity["words"]),
        done.stdout,
        frozenset(
            f"{trial['rate_rps']:.4g}"
            for trial in measured["trials"]
            if trial["rate_rps"] and trial["errors"]
        ),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10, help="searches of each service")
    parser.add_argument("--budget", type=int, default=60, help="seconds of load")
    parser.add_argument("--row", choices=list(ROWS), action="append", help="may be repeated")
    options = parser.parse_args()
    print("| service | right | refused | wrong |")
    print("|---|---|---|---|", flush=True)
    total = dict.fromkeys(Verdict, 0)
    for name in options.row or ROWS:
        row, counts = ROWS[name], dict.fromkeys(Verdict, 0)
        for run in range(1, options.runs + 1):
            said = say(row, run, options.budget)
            verdict = said.judged(row.is_right(said))
            counts[verdict] += 1
            total[verdict] += 1
            if verdict is not Verdict.RIGHT:
                print(f"{name}, run {run}: {verdict}\n{said.shown}", file=sys.stderr, flush=True)
                print(*said.words, sep="\n", file=sys.stderr, flush=True)
        print(f"| {name} | {' | '.join(str(count) for count in counts.values())} |", flush=True)
    print(f"of {sum(total.values())}: {', '.join(f'{n} {what}' for what, n in total.items())}")


if __name__ == "__main__":
    main()
