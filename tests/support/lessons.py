"""The lessons of the docs as steps: commands with their exit code, and files."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from simulator.service import Limiter, Service

FOLDER = Path(__file__).parents[2] / "docs" / "lessons"
NAMES = ("first", "latency", "limits", "faster", "task", "keystone")
FENCE = re.compile(r"(?ms)^```(sh|yaml)(?: (\S+))?\n(.*?)^```$")
UNLIMITED = Service(workers=4, capacity_rps=20_000.0)  # `loadstone serve` without --capacity
VARIATION = {"exponential": 1.0, "fixed": 0.0}


@dataclass(frozen=True, slots=True)
class Commands:
    """Lines for a shell; the last one ends with one of `codes`."""

    lines: tuple[str, ...]
    codes: tuple[int, ...]

    @property
    def loadstone(self) -> Iterator[tuple[tuple[str, ...], tuple[int, ...]]]:
        """The arguments of each `loadstone` command, with its possible exit codes."""
        for line in self.lines:
            words = shlex.split(line.partition(" > ")[0].removesuffix("&"))
            if words[:1] == ["loadstone"]:
                yield tuple(words[1:]), self.codes if line == self.lines[-1] else (0,)


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file that the reader writes."""

    name: str
    text: str


Step = Commands | WrittenFile


def steps(name: str) -> tuple[Step, ...]:
    """Return what the reader of a lesson does, in order."""
    page = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
    found: list[Step] = []
    for language, more, text in FENCE.findall(page):
        if language == "yaml":
            found.append(WrittenFile(more, text))
        else:
            whole = text.replace("\\\n", " ")
            codes = tuple(int(code) for code in (more.removeprefix("exit=") or "0").split(","))
            found.append(Commands(tuple(whole.splitlines()), codes))
    return tuple(found)


def commands(name: str) -> tuple[tuple[tuple[str, ...], tuple[int, ...]], ...]:
    """Return the arguments of every `loadstone` command of a lesson, with its exit codes."""
    return tuple(
        one for step in steps(name) if isinstance(step, Commands) for one in step.loadstone
    )


def script(name: str) -> str:
    """Return a lesson as a program for bash that ends at the first wrong exit code."""
    lines = ["set -m", "trap 'kill $(jobs -rp) 2>/dev/null' EXIT"]
    for number, step in enumerate(steps(name), 1):
        if isinstance(step, WrittenFile):
            lines += [f"cat > {step.name} <<'END'", step.text.rstrip("\n"), "END"]
            continue
        lines += step.lines
        is_expected = " || ".join(f"[ $c = {code} ]" for code in step.codes)
        lines.append(f'c=$?; {is_expected} || {{ echo "block {number}: exit $c"; exit 99; }}')
    return "\n".join([*lines, ""])


def served(words: tuple[str, ...]) -> Service:
    """Return the simulated service of a `loadstone serve` command."""
    options = dict(zip(words[1::2], words[2::2], strict=True))
    if "--capacity" not in options:
        return UNLIMITED
    limit = options.get("--limit")
    burst_s = float(options.get("--burst", "1000ms").removesuffix("ms")) / 1000
    return Service(
        workers=int(options["--workers"]),
        capacity_rps=float(options["--capacity"]),
        variation=VARIATION[options.get("--law", "fixed")],
        limiter=Limiter(float(limit), burst_s) if limit else None,
        refuses_with="status" if limit else "reset",
    )
