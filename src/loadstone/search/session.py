"""What all strategies do alike: keep within their limits, and end where nothing can be measured."""

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace

from loadstone.analysis.alarm import SETTLED_S
from loadstone.analysis.model import TICK_S, Cause, Trial, TrialState
from loadstone.plan.load import ClosedLoad, Load, ReplayLoad, StagedLoad
from loadstone.search.evidence import TrialEvidence
from loadstone.search.model import Capacity, TrialRequest
from loadstone.search.outage import is_deliberate, is_refused, outage_s
from loadstone.search.settings import SearchSettings

Asking = Generator[TrialRequest, Trial, Trial]
LEAST_PACE = 0.5
UNHURRIED_S = 60.0
RESTART_S = 5.0  # a service that went away may come back
TRIES = 2  # a generator that is late once may have been disturbed; twice, it is too weak
LEAST_LOAD_S = 0.5  # less load than this shows nothing
CONNECTIONS = 256  # at the beginning; more are opened when these are the limit
MORE_CONNECTIONS = 4  # times as many, when they are
SLOW_S = 0.5  # unloaded response time from which on trials wait for the first answers
SLOW_SHARE = 1.2  # of the unloaded response time


class GeneratorWasLimit(Exception):
    """Trials came out invalid; carries the reasons."""


class ConnectionsWereLimit(Exception):
    """As many connections as are allowed were in use, and the service had no queue."""

    def __init__(self, trial: Trial, connections: int) -> None:
        super().__init__(*trial.verdict.reasons)
        ok = trial.timeline.ok[len(trial.timeline.ok) // 2 :]  # the first answers had come by then
        self.throughput_rps = float(ok.mean()) / TICK_S if len(ok) else 0.0
        self.connections = connections


class OnlyErrors(Exception):
    """Nothing ends well: the service fails, or is gone; carries the reasons."""


class BudgetSpent(Exception):
    """No load may be made any more."""


@dataclass(frozen=True, slots=True)
class Refusals:
    """A service that is known to refuse: a trial in which it refused everything is one too."""

    error: str  # by which it refuses
    are_tolerated: bool = False  # the trial goes on however many there are


class Session:
    """One search's budget, its connections, and what its trials have shown."""

    def __init__(self, settings: SearchSettings) -> None:
        self.settings = settings
        self.spent_s = 0.0
        self.connections = min(CONNECTIONS, settings.max_connections)
        self.response_s = 0.0  # unloaded, where answers are slow though nothing queues
        self.has_answered = False
        self.notes: tuple[str, ...] = ()  # what happened, to be said whatever is found
        self.changes: tuple[str, ...] = ()  # of the service's capacity, in words
        self.evidence = TrialEvidence()
        # What would be stated if the search ended here.
        self.so_far: Callable[[], Capacity | None] = lambda: None

    @property
    def pace(self) -> float:
        """How much of their usual length the parts may last: less when the budget is tiny."""
        return min(1.0, max(LEAST_PACE, self.settings.budget_s / UNHURRIED_S))

    @property
    def left_s(self) -> float:
        """Seconds of load that may still be spent."""
        return self.settings.budget_s - self.spent_s

    @property
    def sustained_rps(self) -> float | None:
        """The highest rate seen to hold."""
        return self.evidence.sustained_rps

    @property
    def settle_s(self) -> float:
        """Seconds until a trial has its first answers, and the number in flight is settled."""
        if self.response_s < SLOW_S:
            return SETTLED_S
        return SETTLED_S + SLOW_SHARE * self.response_s

    @property
    def wait_s(self) -> float:
        """What a trial costs beyond the seconds in which it is judged: 0 unless answers are slow.

        It is the time until the first answers, and the time until the last ones.
        """
        return 2 * (self.settle_s - SETTLED_S)

    def raise_connections(self, wanted: int) -> None:
        """Open as many connections as are wanted and allowed."""
        allowed = min(wanted, self.settings.max_connections)
        self.connections = max(self.connections, allowed)

    def ask(
        self,
        load: Load,
        purpose: str,
        alarm_s: float | None = None,
        rise_s: float | None = None,
        pause_s: float = 0.0,
        *,
        refusals: Refusals | None = None,
    ) -> Asking:
        """Ask for a trial, again if the generator was the limit or the service went away.

        With `refusals` it is the caller who takes the trial as evidence.
        """
        reasons: tuple[str, ...] = ()
        tries = 0
        while tries < TRIES:
            ask = TrialRequest(self._fitting(load), purpose, alarm_s, rise_s, pause_s)
            if refusals is not None:
                ask = replace(ask, tolerates_errors=refusals.are_tolerated)
            trial = yield self._completed(ask)
            self.spent_s += trial.stats.load_s
            if trial.verdict.cause is Cause.CONNECTIONS:
                self._raise_further(trial)
                continue
            tries += 1
            gone_s = self._gone(trial, refusals)
            if gone_s is not None:
                pause_s = gone_s
                continue
            self.has_answered = True
            if trial.verdict.state is not TrialState.INVALID:
                if refusals is None:
                    self.evidence.take(trial)
                return trial
            reasons = trial.verdict.reasons
        raise GeneratorWasLimit(*(reasons or self.notes))

    def _completed(self, ask: TrialRequest) -> TrialRequest:
        if isinstance(ask.load, ClosedLoad):
            self.raise_connections(ask.load.workers)
        return replace(
            ask,
            max_connections=self.connections,
            settle_s=self.settle_s,
            so_far=self.so_far(),
        )

    def _fitting(self, load: Load) -> Load:
        """Return the load as long as it takes to settle, and no longer than the budget allows."""
        if self.left_s < LEAST_LOAD_S:
            raise BudgetSpent
        if isinstance(load, StagedLoad | ReplayLoad):  # no search asks for these
            return load
        wanted_s = load.duration_s or self.left_s
        if not isinstance(load, ClosedLoad):
            wanted_s += self.settle_s - SETTLED_S
        seconds = min(wanted_s, self.left_s)
        return load if seconds == load.duration_s else replace(load, duration_s=seconds)

    def _raise_further(self, trial: Trial) -> None:
        if self.connections >= self.settings.max_connections:
            raise ConnectionsWereLimit(trial, self.connections)
        self.raise_connections(MORE_CONNECTIONS * self.connections)

    def _gone(self, trial: Trial, refusals: Refusals | None) -> float | None:
        """Return how long to wait for a service that was gone; None: it was there."""
        error = refusals.error if refusals else ""
        if all(name == error for name, _ in trial.stats.errors):
            return None
        if self.has_answered and is_deliberate(trial):
            return None
        if trial.stats.failed and not trial.stats.ok:
            return self._interrupted(trial)
        gone_s = outage_s(trial)
        if not self.notes and (gone_s or is_refused(trial)):
            return self._restarted(trial, f"for {gone_s:.1f} s" if gone_s else "for a while")
        return None

    def _interrupted(self, trial: Trial) -> float:
        """Return how long to wait for a service that answered before, or raise OnlyErrors."""
        if not self.has_answered or self.notes:
            raise OnlyErrors(*_errors(trial))
        return self._restarted(trial, "for a while")

    def _restarted(self, trial: Trial, how_long: str) -> float:
        self.has_answered = True
        errors = ", ".join(_errors(trial))
        self.notes = (f"the service was gone {how_long} ({errors}): was it restarted?",)
        return RESTART_S


def _errors(trial: Trial) -> list[str]:
    return [f"{count} x {name}" for name, count in trial.stats.errors]
