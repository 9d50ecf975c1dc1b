"""Iterations as they end, for who judges them while the load goes on."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from loadstone.engine.samples import Samples

# Called a few times a second, before the watch: all rows of the iterations that have ended since,
# and the names of their actions.
Look = Callable[[Samples, tuple[str, ...]], None]


@dataclass(slots=True)
class Ending:
    """Keeps the rows of iterations until they have ended."""

    _begun: list[Samples] = field(default_factory=list)

    def whole(self, fresh: Samples, ended: NDArray[np.uint32]) -> Samples:
        """Return all rows of the iterations that have ended."""
        rows = Samples.joined([*self._begun, fresh])
        has_ended = np.isin(rows.iteration, ended)
        self._begun = [rows.picked(~has_ended)]
        return rows.picked(has_ended)
