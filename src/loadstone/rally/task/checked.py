"""Result of reading and checking a task file."""

from dataclasses import dataclass, field

from loadstone.rally.task.model import Task
from loadstone.rally.task.problem import Problem


@dataclass(frozen=True, slots=True)
class Checked:
    """A valid task, with warnings for its author."""

    task: Task
    warnings: tuple[Problem, ...]
    # Of the task and of its template's arguments; never stored or shown.
    secrets: frozenset[str] = field(default=frozenset(), repr=False)

    @property
    def warning_lines(self) -> tuple[str, ...]:
        """The warnings as they are shown."""
        return tuple(f"{one.file}:{one.line}: warning: {one.message}" for one in self.warnings)
