"""Prints the slowest tests of the last runs: `python tests/slowest.py [COUNT]`.

It reads target/junit-*.xml, which the stages of `make test` write.
"""

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as Xml

TARGET = Path(__file__).parents[1] / "target"
SHOWN = 40


def outcomes(folder: Path) -> Iterator[tuple[float, str, str, str]]:
    """Yield the seconds, outcome, stage and name of each test."""
    for file in sorted(folder.glob("junit-*.xml")):
        for case in Xml.parse(file).iter("testcase"):
            failures = [part.tag for part in case if part.tag in ("failure", "error", "skipped")]
            name = f"{case.get('classname')}::{case.get('name')}"
            stage = file.stem.removeprefix("junit-")
            yield float(case.get("time") or 0.0), (failures or ["passed"])[0], stage, name


def table(folder: Path, count: int) -> str:
    """Return the slowest tests, and the total of each file of tests below them."""
    tests = sorted(outcomes(folder), reverse=True)
    if not tests:
        return f"no {folder}/junit-*.xml: run make test first"
    lines = [f"{seconds:8.1f} s  {how:7}  {stage:8}  {name}" for seconds, how, stage, name in tests]
    totals: Counter[str] = Counter()
    for seconds, _, _, name in tests:
        totals[name.partition("::")[0]] += seconds
    files = [f"{seconds:8.1f} s  {name}" for name, seconds in totals.most_common(count // 2)]
    return "\n".join([*lines[:count], "", "In all, by file:", *files])


if __name__ == "__main__":
    print(table(TARGET, int(sys.argv[1]) if len(sys.argv) > 1 else SHOWN))
