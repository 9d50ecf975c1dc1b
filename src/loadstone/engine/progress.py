"""Progress of a run."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# Buckets of latencies in microseconds, as in rust/engine/src/progress.rs: values below 8 have one
# each, then each is 1/8 of its values wide; the last one holds all from 2^30 on.
_SUB_BITS = 3
BUCKETS = (30 - _SUB_BITS + 2) << _SUB_BITS


@dataclass(frozen=True, slots=True)
class HostProgress:
    """Counts of a host of a fleet since the start of the run."""

    name: str
    due: int = 0
    ok: int = 0
    failed: int = 0
    cpu_s: float = 0.0  # user + system CPU of its process
    lag_p99_ms: float | None = None  # as `Progress.lag_p99_ms`
    lost: str = ""  # why it can no longer send load
    cut_off: int = 0  # as `Progress.cut_off`

    @property
    def in_flight(self) -> int:
        """Iterations that are due and have not ended."""
        return self.due - self.ok - self.failed - self.cut_off


@dataclass(frozen=True, slots=True)
class Progress:
    """Counts since the start of the run."""

    elapsed_s: float
    due: int  # iterations whose intended start has passed
    sent: int  # requests
    ok: int  # successful iterations
    failed: int  # iterations that did not
    latency_ms: float  # mean over the iterations that ended since the last call; 0 without any
    # Successful iterations by latency, per bucket (`bucket_end_ms`); empty if they are not counted.
    latencies: tuple[int, ...] = ()
    # Send lag within which 99 % of the iterations that ended were taken up, rounded up by an
    # eighth at most; of a fleet, that of its latest host. None: not measured meanwhile.
    lag_p99_ms: float | None = None
    hosts: tuple[HostProgress, ...] = ()  # of a fleet that send the load
    cut_off: int = 0  # iterations that the end of the run cut off; they have not failed

    @property
    def in_flight(self) -> int:
        """Iterations that are due and have not ended: the backlog."""
        return self.due - self.ok - self.failed - self.cut_off


# Called a few times a second from the calling thread; False stops the run.
OnProgress = Callable[[Progress], bool]


def bucket_end_ms(index: int) -> float:
    """Return the latency below which all values of a bucket of `Progress.latencies` lie."""
    shift = max((index >> _SUB_BITS) - 1, 0)
    return ((index - (shift << _SUB_BITS) + 1) << shift) / 1000


def added(some: Sequence[int], more: Sequence[int]) -> tuple[int, ...]:
    """Return the sums of counts per bucket; empty ones are all 0."""
    if not some or not more:
        return tuple(some or more)
    return tuple(map(sum, zip(some, more, strict=True)))


def buckets_of(latencies_us: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the bucket of each latency; negative ones count as 0."""
    values = np.maximum(latencies_us, 0)
    _, bits = np.frexp(values.astype(np.float64))
    shift = np.maximum(bits.astype(np.int64) - 1 - _SUB_BITS, 0)
    buckets: NDArray[np.int64] = np.minimum((shift << _SUB_BITS) + (values >> shift), BUCKETS - 1)
    return buckets
