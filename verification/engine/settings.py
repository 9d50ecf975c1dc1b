"""How often, how long and where an engine is measured."""

from dataclasses import dataclass
from pathlib import Path

from loadstone.engine.gate import Allowance


@dataclass(frozen=True, slots=True)
class Settings:
    """How often, how long, where."""

    rounds: int
    seconds: int  # of each run
    target_core: int
    core: int  # the generator's
    rally: Path | None  # a virtual environment with Rally in it


# What may be loaded: its own target on loopback, as fast as the generator goes.
ALLOWED = Allowance(max_rate_rps=1e9, load_s=86_400.0)
