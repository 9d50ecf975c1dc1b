"""Joins samples (steps) to iterations."""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from loadstone.engine.samples import Outcome, Samples

T = TypeVar("T", bound=np.generic)


@dataclass(frozen=True, slots=True)
class Iterations:
    """One row per iteration, ordered by iteration, shape (n,) each; times in ns since the start.

    An iteration failed if one of its steps failed, even if later steps succeeded; it ends with its
    last step. An iteration that was cut off by the end of the run was due, but has not ended.
    """

    number: NDArray[np.uint32]
    due_ns: NDArray[np.int64]
    sent_ns: NDArray[np.int64]  # of its first step; -1 where nothing was sent
    done_ns: NDArray[np.int64]
    outcome: NDArray[np.uint8]  # of its first failed step, else OK
    status: NDArray[np.uint16]  # of the same step, else of the last one
    has_ended: NDArray[np.bool_]
    failing: NDArray[np.int64]  # for each failed iteration, the sample of its first failed step

    @property
    def is_ok(self) -> NDArray[np.bool_]:
        """Mask of the iterations whose steps all succeeded."""
        return np.asarray(self.has_ended & (self.outcome == Outcome.OK), dtype=np.bool_)

    @property
    def is_failed(self) -> NDArray[np.bool_]:
        """Mask of the iterations with a failed step."""
        return np.asarray(self.has_ended & (self.outcome != Outcome.OK), dtype=np.bool_)


def iterations(samples: Samples) -> Iterations:
    """Join the samples of each iteration."""
    if (places := _one_row_each(samples.iteration)) is not None:
        outcome = _placed(samples.outcome, places)
        return Iterations(
            number=_placed(samples.iteration, places),
            due_ns=_placed(samples.due_ns, places),
            sent_ns=_placed(samples.sent_ns, places),
            done_ns=_placed(samples.done_ns, places),
            outcome=outcome,
            status=_placed(samples.status, places),
            has_ended=outcome != Outcome.NOT_SENT,
            failing=_failing(samples.outcome),
        )
    # Stable: the rows of one iteration stay in the order of completion.
    order = np.argsort(samples.iteration, kind="stable")
    iteration = samples.iteration[order]
    is_first = np.ones(len(order), dtype=np.bool_)
    is_first[1:] = iteration[1:] != iteration[:-1]
    first = np.flatnonzero(is_first)
    last = np.append(first[1:], len(order))[: len(first)] - 1
    outcome = samples.outcome[order]
    # For each iteration the first failed row, else the last row.
    candidates = np.where(outcome != Outcome.OK, np.arange(len(order)), len(order))
    failed = np.minimum.reduceat(candidates, first) if len(first) else first
    telling = np.minimum(failed, last)
    opening, closing = order[first], order[last]
    return Iterations(
        number=iteration[first],
        due_ns=samples.due_ns[opening],
        sent_ns=samples.sent_ns[opening],
        done_ns=samples.done_ns[closing],
        outcome=outcome[telling],
        status=samples.status[order[telling]],
        has_ended=outcome[telling] != Outcome.NOT_SENT,
        failing=order[telling[_failing(outcome[telling])]],
    )


def _failing(outcome: NDArray[np.uint8]) -> NDArray[np.int64]:
    return np.flatnonzero((outcome != Outcome.OK) & (outcome != Outcome.NOT_SENT))


def _one_row_each(iteration: NDArray[np.uint32]) -> NDArray[np.int64] | None:
    """Return each row's position in the order of the iterations, if each has exactly one row.

    This is the case with a single step, and avoids sorting ten million rows.
    """
    if not len(iteration):
        return None
    places = iteration.astype(np.int64)
    places -= places.min()
    if places.max() != len(places) - 1:
        return None
    is_taken = np.zeros(len(places), dtype=np.bool_)
    is_taken[places] = True
    return places if is_taken.all() else None


def _placed(column: NDArray[T], places: NDArray[np.int64]) -> NDArray[T]:
    placed = np.empty_like(column)
    placed[places] = column
    return placed
