"""Buffers rows until their iteration has ended, for observers of a running load."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from loadstone.engine.samples import Samples

# Called a few times a second, before OnProgress: all rows of the iterations that have ended since,
# and the names of their actions.
OnSamples = Callable[[Samples, tuple[str, ...]], None]


@dataclass(slots=True)
class IterationBuffer:
    """Keeps the rows of iterations that have not ended yet."""

    _begun: list[Samples] = field(default_factory=list)

    def add(self, fresh: Samples, ended: NDArray[np.uint32]) -> Samples:
        """Add rows; return all rows of the iterations in `ended`."""
        rows = Samples.joined([*self._begun, fresh])
        is_ended = np.isin(rows.iteration, ended)
        self._begun = [rows.picked(~is_ended)]
        return rows.picked(is_ended)
