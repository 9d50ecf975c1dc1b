"""Which SLA rules are seen to be broken while the load goes on."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from loadstone.analysis.long_run import Counted
from loadstone.engine.samples import Samples
from loadstone.task.model import MaxPercentiles, MinIterations, MinThroughput, Outliers, SlaRule
from loadstone.task.sla import judge
from loadstone.task.sums import OutlierWatch

# Ours, which say something only of a load that is over.
_AT_THE_END = (MaxPercentiles, MinThroughput, MinIterations)


@dataclass(slots=True)
class LiveSla:
    """Judges all iterations that have ended, a few times a second, as Rally does after each."""

    rules: Sequence[SlaRule]
    is_broken: bool = field(default=False, init=False)  # and stays so
    _counted: Counted = field(init=False)

    def __post_init__(self) -> None:
        self.rules = [rule for rule in self.rules if not isinstance(rule, _AT_THE_END)]
        watched = [OutlierWatch(rule) for rule in self.rules if isinstance(rule, Outliers)]
        self._counted = Counted(watched)

    def __call__(self, samples: Samples, actions: Sequence[str]) -> None:
        """Take in the iterations that have ended since."""
        if len(samples):
            self._counted.add(samples, actions)
            verdicts = judge(self.rules, self._counted.sums())
            self.is_broken = self.is_broken or not all(row.success for row in verdicts)
