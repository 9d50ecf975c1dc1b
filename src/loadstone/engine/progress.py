"""Progress of a run."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """Counts since the start of the run."""

    elapsed_s: float
    due: int  # iterations whose intended start has passed
    sent: int  # requests
    ok: int  # successful iterations
    failed: int  # iterations that did not
    latency_ms: float  # mean over the iterations that ended since the last call; 0 without any

    @property
    def in_flight(self) -> int:
        """Iterations that are due and have not ended: the backlog."""
        return self.due - self.ok - self.failed


# Called a few times a second from the calling thread; False stops the run.
OnProgress = Callable[[Progress], bool]
