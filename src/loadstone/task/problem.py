"""What is wrong in a file of the user's, and on which line."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from loadstone.errors import InvalidInput

SHOWN = 200  # lines; who has made more mistakes than that has made one of another kind


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong: `str(problem)` is the line that the user sees."""

    file: str
    line: int | None  # counted from 1; None: the file as a whole
    words: str

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place}: {self.words}"


class TaskInvalid(InvalidInput):
    """A task file cannot be carried out; holds every problem, its text one line for each."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        once = dict.fromkeys(problems)
        self.problems = tuple(sorted(once, key=lambda one: (one.file, one.line or 0)))
        lines = [str(problem) for problem in self.problems[:SHOWN]]
        if len(self.problems) > SHOWN:
            lines.append(f"and {len(self.problems) - SHOWN:,} more")
        super().__init__("\n".join(lines))

    def __reduce__(self) -> tuple[type[Self], tuple[tuple[Problem, ...]]]:
        """Go from process to process with all problems."""
        return type(self), (self.problems,)
