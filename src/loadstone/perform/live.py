"""Which SLA rules are seen to be broken while the load goes on."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from loadstone.engine.progress import Progress
from loadstone.task.model import FailureRate, MaxAvgDuration, MaxSecondsPerIteration, SlaRule


@dataclass(slots=True)
class LiveSla:
    """Judges sums a few times a second; what it says is broken is broken.

    It sees failure rates exactly, means as long as nothing failed, and an iteration that took too
    long unless shorter ones that ended in the same tenth of a second hide it. All else is judged
    at the end only.
    """

    rules: Sequence[SlaRule]
    _latency_s: float = field(default=0.0)  # sum over the iterations that ended
    _ended: int = 0

    def is_broken(self, progress: Progress) -> bool:
        """Say whether a rule does not hold any more."""
        count = progress.ok + progress.failed
        self._latency_s += progress.latency_ms / 1000.0 * (count - self._ended)
        self._ended = count
        return count > 0 and any(self._breaks(rule, progress) for rule in self.rules)

    def _breaks(self, rule: SlaRule, progress: Progress) -> bool:
        match rule:
            case FailureRate():
                percent = 100.0 * progress.failed / self._ended
                return not rule.min_percent <= percent <= rule.max_percent
            case MaxAvgDuration():
                return not progress.failed and self._latency_s / self._ended > rule.max_s
            case MaxSecondsPerIteration():
                return progress.latency_ms / 1000.0 > rule.max_s
            case _:
                return False
