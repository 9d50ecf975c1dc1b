"""Wald's sequential probability ratio test of a share of failures (Wald 1945).

A. Wald, "Sequential tests of statistical hypotheses", Annals of Mathematical Statistics 16 (1945).
"""

import math
from dataclasses import dataclass
from enum import StrEnum

LEVEL = 0.05  # of either error
LEAST_BAD = 0.005  # a smaller share of failures is not distinguished from the allowed one
BAD = 3.0  # times the allowed share
# Above the allowed share. A limiter refuses that many more at about 2 % above N, where three times
# a large share would come far above N.
MORE_BAD = 0.02
# Shares that a test can tell apart from none, and from all.
LEAST, MOST = 1e-6, 0.99


class Decision(StrEnum):
    """Decision from the requests so far."""

    GOOD = "good"
    BAD = "bad"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class Sprt:
    """Tests the allowed share of failures against the bad share."""

    objective: float  # 0..1

    @property
    def allowed(self) -> float:
        """The allowed share, within what a test can judge."""
        return min(max(LEAST, self.objective), MOST)

    @property
    def bad(self) -> float:
        """The share that must be distinguished from the allowed one."""
        # Where that is nearly all: half way to all.
        most = min(BAD * self.allowed, self.allowed + MORE_BAD, (1 + self.allowed) / 2)
        return max(LEAST_BAD, most)

    @property
    def least_requests(self) -> int:
        """Number of requests without a failure after which a rate is good."""
        return math.ceil(_BOUND / -self._of_success)

    def decide(self, requests: int, failed: int) -> Decision:
        """Decide by the likelihood ratio of the counts so far."""
        ratio = failed * self._of_failure + (requests - failed) * self._of_success
        if ratio >= _BOUND:
            return Decision.BAD
        return Decision.GOOD if ratio <= -_BOUND else Decision.OPEN

    @property
    def _of_failure(self) -> float:
        return math.log(self.bad / self.allowed)

    @property
    def _of_success(self) -> float:
        return math.log((1 - self.bad) / (1 - self.allowed))


_BOUND = math.log((1 - LEVEL) / LEVEL)
