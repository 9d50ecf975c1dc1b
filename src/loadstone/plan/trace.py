"""W3C Trace Context: which requests carry the header `traceparent`, and the ids in it.

Ids depend only on the key, the step and the iteration, so they are computed from samples. The
engine sends the same ones (rust/engine/src/trace.rs).

Format: https://www.w3.org/TR/trace-context/
"""

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

HEADER = "traceparent"
_STREAMS = 3  # per step: chosen, trace id, span id
_GOLDEN = np.uint64(0x9E37_79B9_7F4A_7C15)  # SplitMix64 (Steele, Lea, Flood 2014)

_Numbers = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Trace:
    """The requests of a load that carry a `traceparent` with the flag `sampled`."""

    share: float  # of the requests, 0 to 1
    key: int  # the first half of all trace ids, 1 to 2**64 - 1

    @classmethod
    def of(cls, share: float, run_id: str, measurement: int, trial: int) -> "Trace | None":
        """Return that of a trial; None if nothing is traced."""
        name = f"{run_id}/{measurement}/{trial}".encode()
        digest = hashlib.blake2b(name, digest_size=8).digest()
        return cls(share, int.from_bytes(digest) or 1) if share > 0 else None

    def is_traced(
        self, steps: NDArray[np.integer], iterations: NDArray[np.integer]
    ) -> NDArray[np.bool_]:
        """Return for each request whether it carries the header."""
        share = (self._bits(steps, 0, iterations) >> np.uint64(11)) / 2.0**53
        return np.asarray(share < self.share, dtype=np.bool_)

    def ids(self, steps: NDArray[np.integer], iterations: NDArray[np.integer]) -> tuple[str, ...]:
        """Return the trace ids of requests."""
        found = self._bits(steps, 1, iterations)
        return tuple(f"{self.key:016x}{low:016x}" for low in found.tolist())

    def _bits(
        self, steps: NDArray[np.integer], stream: int, iterations: NDArray[np.integer]
    ) -> _Numbers:
        streams = steps.astype(np.uint64) * np.uint64(_STREAMS) + np.uint64(stream)
        state = _mixed(np.uint64(self.key) ^ _mixed(streams * _GOLDEN))
        return _mixed(state + (iterations.astype(np.uint64) + np.uint64(1)) * _GOLDEN)


def _mixed(state: _Numbers) -> _Numbers:
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58_476D_1CE4_E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D0_49BB_1331_11EB)
    return state ^ (state >> np.uint64(31))
