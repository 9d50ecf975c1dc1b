"""The claims of the docs (claims.yaml), and what was found of each last (results.json)."""

import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path

import yaml

FOLDER = Path(__file__).parent
CLAIMS = FOLDER / "claims.yaml"
RESULTS = FOLDER / "results.json"


@dataclass(frozen=True, slots=True)
class Claim:
    """A measured statement of the docs, and what measures it."""

    id: str
    claim: str  # as the docs state it, word for word; cells of a table with bars between them
    since: str  # date and commit at which the docs began to state it
    part: str = ""  # of `make verify`
    figure: str = ""  # regular expression of the lines of the part's output that answer the claim
    by_hand: str = ""  # how it was measured, where no part does

    def __post_init__(self) -> None:
        if bool(self.part) == bool(self.by_hand):
            raise ValueError(f"claims.yaml: {self.id}: give one of part and by_hand")
        if self.part and not self.figure:
            raise ValueError(f"claims.yaml: {self.id}: give the figure of its part's output")

    def found_in(self, output: str) -> str:
        """Return the figure that a part's output states; empty if it states none."""
        matches = re.finditer(self.figure, output, re.MULTILINE)
        words = (" ".join(group for group in m.groups() if group) or m[0] for m in matches)
        return "; ".join(re.sub(r"\s+", " ", word).strip(" |") for word in words)


@dataclass(frozen=True, slots=True)
class Machine:
    """What a figure was measured on."""

    cores: int
    processor: str
    load_before: float  # processes that ran or waited for a core just before

    def __str__(self) -> str:
        busy = f", busy: load {self.load_before:.1f}" if self.load_before > self.cores / 4 else ""
        return f"{self.cores} cores, {self.processor}{busy}"


@dataclass(frozen=True, slots=True)
class Result:
    """What a part of `make verify` found of a claim."""

    figure: str  # empty if the part failed before it stated one
    passed: bool
    date: str
    commit: str
    machine: Machine


@dataclass(frozen=True, slots=True)
class Results:
    """The last result of each claim, and how many seconds each part took."""

    claims: dict[str, Result]
    seconds: dict[str, float]


def claims(path: Path = CLAIMS) -> dict[str, Claim]:
    """Return the claims by id, in the order of the file."""
    rows = yaml.safe_load(path.read_text())
    return {name: Claim(id=name, **row) for name, row in rows.items()}


def results(path: Path = RESULTS) -> Results:
    """Read what was found."""
    tree = json.loads(path.read_text())
    found = {
        name: Result(**{**row, "machine": Machine(**row["machine"])})
        for name, row in tree["claims"].items()
    }
    return Results(found, tree["seconds"])


def keep(kept: Results, path: Path = RESULTS) -> None:
    """Write what was found, in the order of the ids."""
    tree = {
        "claims": {name: asdict(row) for name, row in sorted(kept.claims.items())},
        "seconds": dict(sorted(kept.seconds.items())),
    }
    path.write_text(json.dumps(tree, indent=2, ensure_ascii=False) + "\n")
