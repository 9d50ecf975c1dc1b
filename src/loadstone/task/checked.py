"""What comes of a task file that was read and checked."""

from dataclasses import dataclass

from loadstone.task.model import Task
from loadstone.task.problem import Problem


@dataclass(frozen=True, slots=True)
class Checked:
    """A task that can be carried out, and what its author should know."""

    task: Task
    warnings: tuple[Problem, ...]
