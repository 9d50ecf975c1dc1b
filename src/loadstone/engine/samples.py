"""The sample table: one row per step, one numpy column per field."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from loadstone.engine.outcome import Outcome

__all__ = ["NO_FIRST_BYTE", "Outcome", "Samples"]

NO_FIRST_BYTE = 2**32 - 1


@dataclass(frozen=True, slots=True)
class Samples:
    """What one run measured, shape (n,) each; times are nanoseconds since the run's start.

    `due_ns` is the intended start of the step: for the first step of an iteration its time in the
    schedule, for a later one the end of the step before. `sent_ns` is when its first byte was
    written to the socket, or -1; `done_ns` when the response was complete or abandoned.
    `first_byte_us` is the time from sending to the first byte of the response in microseconds, or
    NO_FIRST_BYTE. Rows are in the order of completion. A skipped step has no row. A row takes 43
    bytes.

    A pause has a row without a status; `sent_ns` and `done_ns` are its start and end.
    """

    due_ns: NDArray[np.int64]
    sent_ns: NDArray[np.int64]
    done_ns: NDArray[np.int64]
    first_byte_us: NDArray[np.uint32]
    iteration: NDArray[np.uint32]
    connection: NDArray[np.uint32]
    status: NDArray[np.uint16]  # 0 where there was no answer
    outcome: NDArray[np.uint8]
    action: NDArray[np.uint8]  # index of the step in the plan
    # 1 where the request was sent a second time, on a fresh connection; `sent_ns` is of the first.
    # Of a function's action: 1 where it raised an exception that the function caught.
    retried: NDArray[np.uint8]
    generator: NDArray[np.uint16]  # which host of a fleet sent it, from 0 (`Health.parts`)

    @classmethod
    def joined(cls, tables: Sequence[Self]) -> Self:
        """Concatenate tables."""
        if len(tables) == 1:
            return tables[0]
        columns = {name: [getattr(table, name) for table in tables] for name in cls.__slots__}
        return cls(**{name: np.concatenate(column) for name, column in columns.items()})

    def by_completion(self) -> Self:
        """Return the rows in the order of completion."""
        order = np.argsort(self.done_ns, kind="stable")
        return type(self)(**{name: getattr(self, name)[order] for name in self.__slots__})

    def picked(self, rows: NDArray[np.bool_] | slice) -> Self:
        """Return the rows selected by a mask or slice."""
        return type(self)(**{name: getattr(self, name)[rows] for name in self.__slots__})

    def __len__(self) -> int:
        return len(self.status)

    @property
    def is_request(self) -> NDArray[np.bool_]:
        """Mask of the rows of requests (False: pauses)."""
        return np.asarray((self.status > 0) | (self.outcome != Outcome.OK), dtype=np.bool_)

    @property
    def latency_ns(self) -> NDArray[np.int64]:
        """Time from the intended start to the end, so waiting caused by the service counts."""
        return self.done_ns - self.due_ns
