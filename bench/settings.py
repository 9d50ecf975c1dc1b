"""What `make bench` was asked for."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Settings:
    """How often, how long, where."""

    rounds: int
    seconds: int  # of each run
    target_core: int
    core: int  # the generator's
    rally: Path | None  # a virtual environment with Rally in it
