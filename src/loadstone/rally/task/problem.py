"""Errors in the user's files, with their lines."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from loadstone.errors import InvalidInput

SHOWN = 200  # lines; more mistakes than that have another cause


@dataclass(frozen=True, slots=True)
class Problem:
    """One error; `str(problem)` is the line shown to the user."""

    file: str
    line: int | None  # counted from 1; None: the whole file
    message: str

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place}: {self.message}"


class TaskInvalid(InvalidInput):
    """A task file cannot be run. Holds every problem; its text has one line for each."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        once = dict.fromkeys(problems)
        self.problems = tuple(sorted(once, key=lambda one: (one.file, one.line or 0)))
        lines = [str(problem) for problem in self.problems[:SHOWN]]
        if len(self.problems) > SHOWN:
            lines.append(f"and {len(self.problems) - SHOWN:,} more")
        super().__init__("\n".join(lines))

    def __reduce__(self) -> tuple[type[Self], tuple[tuple[Problem, ...]]]:
        """Keep all problems when pickled between processes."""
        return type(self), (self.problems,)
