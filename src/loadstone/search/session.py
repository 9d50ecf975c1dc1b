"""What all strategies do alike: account for their load, and end where nothing can be measured."""

from collections.abc import Generator

from loadstone.analysis.model import State, Trial
from loadstone.plan.load import Load
from loadstone.search.model import Ask
from loadstone.search.outage import is_refused, outage_s
from loadstone.search.settings import Settings

Asking = Generator[Ask, Trial, Trial]
LEAST_PACE = 0.5
UNHURRIED_S = 60.0
RESTART_S = 5.0  # a service that went away may come back
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
        self.has_answered = False
        self.notes: tuple[str, ...] = ()  # what happened, to be said whatever is found
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
        """Ask for a trial, again if the generator was the limit or the service went away."""
        reasons: tuple[str, ...] = ()
        for _ in range(TRIES):
            trial = yield Ask(load, purpose, alarm_s, rise_s, pause_s)
            self.spent_s += trial.summary.load_s
            if trial.summary.failed and not trial.summary.ok:
                pause_s = self._interrupted(trial)
                continue
            gone_s = outage_s(trial)
            if not self.notes and (gone_s or is_refused(trial)):
                pause_s = self._restarted(trial, f"for {gone_s:.1f} s" if gone_s else "for a while")
                continue
            self.has_answered = True
            if trial.verdict.state is not State.INVALID:
                if trial.verdict.state is State.SUSTAINED and trial.rate_rps is not None:
                    self.sustained_rps = max(self.sustained_rps or 0.0, trial.rate_rps)
                return trial
            reasons = trial.verdict.reasons
        raise GeneratorWasLimit(*(reasons or self.notes))

    def _interrupted(self, trial: Trial) -> float:
        """Give how long to wait for a service that answered before; OnlyErrors for others."""
        if not self.has_answered or self.notes:
            raise OnlyErrors(*_errors(trial))
        return self._restarted(trial, "for a while")

    def _restarted(self, trial: Trial, how_long: str) -> float:
        self.has_answered = True
        errors = ", ".join(_errors(trial))
        self.notes = (f"the service was gone {how_long} ({errors}): was it restarted?",)
        return RESTART_S


def _errors(trial: Trial) -> list[str]:
    return [f"{count} x {name}" for name, count in trial.summary.errors]
