"""What a service must hold to count as sustained."""

import re
from dataclasses import dataclass
from typing import Literal

from loadstone.errors import InvalidInput

Figure = Literal["mean", "p50", "p90", "p95", "p99", "max"]
FIGURES: tuple[Figure, ...] = ("mean", "p50", "p90", "p95", "p99", "max")
MS = {"ms": 1.0, "s": 1000.0}
LATENCY = r"\s*(mean|p50|p90|p95|p99|max)\s*<\s*([\d.]+)\s*(ms|s)\s*"


@dataclass(frozen=True, slots=True)
class Objective:
    """A latency figure that must stay below a limit."""

    figure: Figure
    limit_ms: float

    def __str__(self) -> str:
        return f"{self.figure}<{self.limit_ms:g}ms"


@dataclass(frozen=True, slots=True)
class Goal:
    """Allowed share of failed iterations, and latency objectives; never a growing backlog."""

    error_share: float = 0.001
    objectives: tuple[Objective, ...] = ()


def goal(words: tuple[str, ...]) -> Goal:
    """Read objectives such as p99<500ms and errors<0.1%."""
    error_share = Goal().error_share
    objectives: list[Objective] = []
    for word in words:
        if match := re.fullmatch(r"\s*errors\s*<\s*([\d.]+)\s*%\s*", word):
            error_share = _number(match[1], word) / 100
        elif match := re.fullmatch(LATENCY, word):
            figure = FIGURES[FIGURES.index(match[1])]
            objectives.append(Objective(figure, _number(match[2], word) * MS[match[3]]))
        else:
            raise InvalidInput(
                f"objective {word!r} is not understood; write it like p99<500ms, mean<0.3s or "
                f"errors<0.1% (latency figures: {', '.join(FIGURES)})"
            )
    return Goal(error_share, tuple(objectives))


def _number(digits: str, word: str) -> float:
    try:
        number = float(digits)
    except ValueError:
        raise InvalidInput(f"objective {word!r}: {digits} is not a number") from None
    if not number > 0:
        raise InvalidInput(f"objective {word!r}: the limit must be above zero")
    return number
