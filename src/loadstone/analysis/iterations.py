"""From requests to iterations: what the schedule asked for, and how it ended."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from loadstone.engine.samples import Outcome, Samples


@dataclass(frozen=True, slots=True)
class Iterations:
    """One row per iteration, ordered by iteration, shape (n,) each; times in ns since the start.

    An iteration ends with its last step or with its first failed one. One that was cut off by the
    end of the run (not sent, or a later step never came) was due but has not ended.
    """

    due_ns: NDArray[np.int64]
    sent_ns: NDArray[np.int64]  # of its first step; -1 where nothing was sent
    done_ns: NDArray[np.int64]
    outcome: NDArray[np.uint8]  # of the step that ended it
    status: NDArray[np.uint16]
    has_ended: NDArray[np.bool_]

    @property
    def is_ok(self) -> NDArray[np.bool_]:
        """Whether every step went well."""
        return np.asarray(self.has_ended & (self.outcome == Outcome.OK), dtype=np.bool_)

    @property
    def is_failed(self) -> NDArray[np.bool_]:
        """Whether a step failed."""
        return np.asarray(self.has_ended & (self.outcome != Outcome.OK), dtype=np.bool_)


def iterations(samples: Samples, steps: int) -> Iterations:
    """Join the samples of each iteration of `steps` steps."""
    order = np.lexsort((samples.action, samples.iteration))
    iteration = samples.iteration[order]
    first = np.flatnonzero(np.diff(iteration, prepend=np.uint32(0)) != 0)
    if len(iteration) and (len(first) == 0 or first[0] != 0):
        first = np.concatenate([[0], first])
    last = np.append(first[1:], len(iteration)) - 1 if len(iteration) else first
    opening, closing = order[first], order[last]
    outcome = samples.outcome[closing]
    went_through = (samples.action[closing] == steps - 1) | (outcome != Outcome.OK)
    return Iterations(
        due_ns=samples.due_ns[opening],
        sent_ns=samples.sent_ns[opening],
        done_ns=samples.done_ns[closing],
        outcome=outcome,
        status=samples.status[closing],
        has_ended=went_through & (outcome != Outcome.NOT_SENT),
    )
