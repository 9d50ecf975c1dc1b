"""What all strategies do alike: account for their load, and end where nothing can be measured."""

from collections.abc import Generator

from loadstone.analysis.model import State, Trial
from loadstone.plan.load import Load
from loadstone.search.model import Ask
from loadstone.search.settings import Settings

Asking = Generator[Ask, Trial, Trial]
LEAST_PACE = 0.5
UNHURRIED_S = 60.0
TRIES = 2  # a generator that is late once may have been disturbed; twice, it is too weak


class GeneratorWasLimit(Exception):
    """Trials came out invalid; carries the reasons."""


class OnlyErrors(Exception):
    """Nothing ends well: the service fails, or is gone; carries the reasons."""


class Session:
    """One search's budget."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.spent_s = 0.0
        self.sustained_rps: float | None = None  # the highest rate seen to hold

    @property
    def pace(self) -> float:
        """How much of their usual length the parts may last: less when the budget is tiny."""
        return min(1.0, max(LEAST_PACE, self.settings.budget_s / UNHURRIED_S))

    @property
    def left_s(self) -> float:
        """Seconds of load that may still be spent."""
        return self.settings.budget_s - self.spent_s

    def ask(
        self,
        load: Load,
        purpose: str,
        alarm_s: float | None = None,
        rise_s: float | None = None,
        pause_s: float = 0.0,
    ) -> Asking:
        """Ask for a trial, again if the generator was the limit."""
        reasons: tuple[str, ...] = ()
        for _ in range(TRIES):
            trial = yield Ask(load, purpose, alarm_s, rise_s, pause_s)
            self.spent_s += trial.summary.load_s
            if trial.summary.failed and not trial.summary.ok:
                raise OnlyErrors(*(f"{count} x {name}" for name, count in trial.summary.errors))
            if trial.verdict.state is not State.INVALID:
                if trial.verdict.state is State.SUSTAINED and trial.rate_rps is not None:
                    self.sustained_rps = max(self.sustained_rps or 0.0, trial.rate_rps)
                return trial
            reasons = trial.verdict.reasons
        raise GeneratorWasLimit(*reasons)
