"""Runs `loadstone compare --fail-if-slower` for a merge request, and says what came out.

    python3 ci/guard.py --out FOLDER -- --release A --release B --fail-if-slower 5%

Needs the standard library alone. FOLDER/guard.md begins with what came out, also where the guard
did not run: that must not look like a guard that held. FOLDER/state holds one word: same, changed,
undecided or failed. All but `same` are worth a comment. Ends with the exit code of Loadstone.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

MARK = "<!-- loadstone guard -->"  # finds the comment again
LEADING = ("throughput", "request time")  # as in compare/metrics.py
HEADS = {
    "same": "Not slower.",
    "faster": "This change makes it faster.",
    "slower, no limit": "This change makes it slower; no limit was set (`--fail-if-slower`).",
    "slightly slower": "This change makes it slower, by less than the guard allows.",
    "slower": "**This change makes it slower** than the guard allows.",
    "left": "Not slower, but **something that the measurement created is left** in the cloud.",
    "undecided": "**Undecided**: the measurement cannot tell whether this change is slower.",
    "failed": "**The guard did not run**: nothing is known about this change.",
}


def main() -> int:
    """Compare, write the summary and the state, and return Loadstone's exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--loadstone", default="loadstone", help="the command")
    parser.add_argument("--out", type=Path, required=True, help="folder for what is written")
    parser.add_argument("words", nargs="+", help="options of `loadstone compare`")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    table, data, junit = (given.out / f"compare.{end}" for end in ("md", "json", "xml"))
    for old in (table, data, junit):
        old.unlink(missing_ok=True)
    wanted = ["--markdown", table, "--json", data, "--junit", junit]
    code, stderr = compare([given.loadstone, "compare", *given.words, *map(str, wanted)])
    answer = answer_of(code, data)
    state = answer if answer in ("same", "undecided", "failed") else "changed"
    (given.out / "state").write_text(f"{state}\n")
    (given.out / "guard.md").write_text(summary(answer, code, table, stderr))
    if output := os.environ.get("GITHUB_OUTPUT"):
        with Path(output).open("a", encoding="utf-8") as file:
            file.write(f"state={state}\n")
    return code


def compare(command: list[str]) -> tuple[int, str]:
    """Run the command; return its exit code and what it wrote to stderr, which is shown too."""
    try:
        ended = subprocess.run(command, check=False, stderr=subprocess.PIPE, text=True)
    except OSError as problem:
        return 3, str(problem)
    sys.stderr.write(ended.stderr)
    return ended.returncode, ended.stderr


def answer_of(code: int, data: Path) -> str:
    """Return what came out: a key of HEADS."""
    if code == 4:
        return "undecided"
    if code not in (0, 1) or not data.exists():
        return "failed"
    found = json.loads(data.read_text())
    if code == 1:
        # Without being slower, it ends so if something in the cloud could not be removed.
        outcome = (found.get("guard") or {}).get("outcome", "slower")
        return "slower" if outcome == "slower" else "left"
    measurements = found["measurements"]
    answers = [answer for one in measurements for answer in leading(one["metrics"])]
    if "slower" in answers:
        return "slightly slower" if found.get("guard") else "slower, no limit"
    return "faster" if "faster" in answers else "same"


def leading(metrics: dict[str, dict[str, str]]) -> list[str]:
    """Return the answers of the metrics that can say which is faster: all of these, or the first.

    A change may raise throughput and make a single request slower.
    """
    found = [row["answer"] for name, row in metrics.items() if name in LEADING]
    return found or [row["answer"] for row in metrics.values()][:1]


def summary(answer: str, code: int, table: Path, stderr: str) -> str:
    """Return the Markdown: what came out first, then Loadstone's table or its message."""
    parts = [MARK, f"{HEADS[answer]} (`loadstone compare` ended with {code})"]
    if table.exists() and table.read_text().strip():
        parts.append(table.read_text().strip())
    elif stderr.strip():
        last = "\n".join(stderr.strip().splitlines()[-5:])
        parts.append(f"```\n{last}\n```")
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    sys.exit(main())
