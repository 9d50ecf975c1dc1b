"""Processes that are bound to some of their cores, and get all of them back."""

import json
from dataclasses import asdict, dataclass
from typing import Self

from loadstone.lab.processes import Process, bind


@dataclass(frozen=True, slots=True)
class BoundProcesses:
    """Processes, and the cores that they may use when they are not bound."""

    cores: tuple[int, ...]
    processes: tuple[Process, ...]

    def unbind(self) -> None:
        """Let the processes that still run use all their cores."""
        for process in self.processes:
            bind(process, self.cores)

    def to_json(self) -> str:
        """Return it as JSON, for an undo journal."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote."""
        data = json.loads(text)
        return cls(tuple(data["cores"]), tuple(Process(**one) for one in data["processes"]))
