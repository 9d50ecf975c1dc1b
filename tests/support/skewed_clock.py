"""A wrong clock for a host of a fleet on this machine."""

import time
from dataclasses import dataclass
from pathlib import Path

from loadstone.engine.fleet.clock import HostClock


@dataclass(frozen=True, slots=True)
class SkewedClock(HostClock):
    """A clock that is wrong by an offset and a drift."""

    offset_ns: int = 0
    drift: float = 0.0  # seconds per second, since `since_ns`
    since_ns: int = 0
    jump_ns: int = 0  # by how much it is set when the file `jumps_with` appears
    jumps_with: Path | None = None

    def now_ns(self) -> int:
        """Return what this clock shows."""
        real_ns = time.time_ns()
        drifted_ns = round(self.drift * (real_ns - self.since_ns))
        return real_ns + self._set_by_ns() + drifted_ns

    def real_ns(self, shown_ns: int) -> int:
        """Return the real time at which this clock shows `shown_ns`."""
        passed_ns = (shown_ns - self._set_by_ns() - self.since_ns) / (1 + self.drift)
        return round(self.since_ns + passed_ns)

    def _set_by_ns(self) -> int:
        has_jumped = self.jumps_with is not None and self.jumps_with.exists()
        return self.offset_ns + (self.jump_ns if has_jumped else 0)
