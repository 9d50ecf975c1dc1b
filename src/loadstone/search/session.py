"""Common part of all strategies: budget, connections, retries and evidence of a search."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from loadstone.analysis.alarm import SETTLED_S, TimeLeft
from loadstone.analysis.model import TICK_S, Cause, Trial, TrialState
from loadstone.plan.load import BandLoad, ClosedLoad, Load, ReplayLoad, StagedLoad
from loadstone.search.evidence import TrialEvidence
from loadstone.search.model import Capacity, Part, TrialRequest
from loadstone.search.outage import (
    TIMEOUT_S,
    has_overflowed,
    is_deliberate,
    is_refused,
    lost_all,
    outage_s,
)
from loadstone.search.pool import LEAST_STRETCH_S
from loadstone.search.settings import SearchSettings

LEAST_PACE = 0.5
UNHURRIED_S = 60.0
NOT_MET = "no rate was seen to meet the objectives: a longer budget would tell"
RESTART_S = 5.0  # pause for a service that may be restarting
DRAIN_S = 4.0
DRAIN_SHARE = 0.04  # of a small budget
TRIES = 2  # a generator that is late once may have been disturbed; twice, it is too weak
LEAST_LOAD_S = 0.5  # a shorter load is useless
MORE_CONNECTIONS = 4  # factor by which they are raised
SLOW_S = 0.5  # unloaded response time from which trials wait for the first responses
SLOW_SHARE = 1.2  # of the unloaded response time
# Shares of the budget, after its end: answers that would come later than the first end the load,
# and those that have not come by the second are abandoned.
ANSWERED = 0.04
ABANDONED = 0.08
# Longest wait in a queue that a load may cause: below it, no request runs into the time-out.
LONGEST_WAIT_S = 2 / 3 * TIMEOUT_S


class GeneratorWasLimit(Exception):
    """Trials were invalid because of the load generator; carries the reasons."""


class ConnectionsWereLimit(Exception):
    """All allowed connections were in use, and the service had no queue."""

    def __init__(self, trial: Trial, connections: int) -> None:
        super().__init__(*trial.verdict.reasons)
        ok = trial.timeline.ok[len(trial.timeline.ok) // 2 :]  # after the first responses
        completed_rps = float(ok.mean()) / TICK_S if len(ok) else 0.0
        # A short load may end before its first response.
        completed_rps = completed_rps or trial.stats.completed_rps
        # Responses that come in groups do not make it faster than so many connections can be.
        self.throughput_rps = min(
            completed_rps, connections / max(trial.stats.service.median_s, 1e-9)
        )
        self.connections = connections


class OnlyErrors(Exception):
    """No request succeeds: the service fails or is unavailable; carries the reasons."""


class WaitWasLimit(Exception):
    """More requests at once may take so long that they run into the time-out."""


class BudgetSpent(Exception):
    """No load time is left in the budget."""


@dataclass(frozen=True, slots=True)
class Refusals:
    """A service that is known to refuse requests: a trial with refusals only is valid, too."""

    error: str  # of a refusal
    tolerates_errors: bool = False  # the trial continues however many there are
    users_share: float = 1.0  # of the users, who send it


class Session:
    """Budget, connections and evidence of one search."""

    def __init__(self, settings: SearchSettings, *, doubts_errors: bool = False) -> None:
        self.settings = settings
        self._doubts_errors = doubts_errors  # repeats a trial that an outage may have ended
        self.spent_s = 0.0
        self.connections = min(settings.first_connections, settings.max_connections)
        self.response_s = 0.0  # unloaded, if responses are slow although nothing queues
        self.has_answered = False
        self._is_repeated = False  # the first trial that failed by errors
        self._suspected: tuple[str, ...] = ()  # note: an outage, unless errors come again
        self.notes: tuple[str, ...] = ()  # added to the result in any case
        self.changes: tuple[str, ...] = ()  # notes on changes of the service's capacity
        self.estimate: tuple[str, ...] = ()  # note on N, if the search ends before it is found
        self.ended_rps = 0.0  # highest rate at which requests ended, successfully or not
        self.evidence = TrialEvidence()
        self.trials: list[Trial] = []
        self._disturbed: list[Trial] = []  # by an outage, and repeated
        self._set_aside: list[Trial] = []
        self.since_s = 0.0  # of load, when the service's last change of capacity came
        self.is_slowed_by_queue = False  # a trial has shown it
        self.is_metered = False  # N is the rate of the saturated service
        self.tolerates_errors = False  # a trial has shown that they do not depend on the load
        # Returns the result if the search ended here.
        self.so_far: Callable[[], Capacity | None] = lambda: None

    @property
    def undisturbed(self) -> list[Trial]:
        """The trials whose errors are the load's: without an outage's, and those set aside."""
        left_out = (*self._disturbed, *self._set_aside)
        return [one for one in self.trials if not any(one is other for other in left_out)]

    @property
    def left_out(self) -> tuple[Trial, ...]:
        """The trials that are set aside."""
        return tuple(self._set_aside)

    def set_aside(self, trials: Sequence[Trial]) -> None:
        """Leave out these trials wherever errors are counted."""
        self._set_aside += trials

    @property
    def pace(self) -> float:
        """Factor for the length of the parts, below 1 for a tiny budget."""
        return min(1.0, max(LEAST_PACE, self.settings.budget_s / UNHURRIED_S))

    @property
    def left_s(self) -> float:
        """Seconds of load that may still be spent."""
        return self.settings.budget_s - self.spent_s

    @property
    def drain_s(self) -> float:
        """Seconds kept after a trial for outstanding requests."""
        return min(DRAIN_S, DRAIN_SHARE * self.settings.budget_s)

    @property
    def settle_s(self) -> float:
        """Seconds until a trial has its first responses and the number in flight is settled."""
        if self.response_s < SLOW_S:
            return SETTLED_S
        return SETTLED_S + SLOW_SHARE * self.response_s

    @property
    def wait_s(self) -> float:
        """Seconds of a trial outside its judged part: 0 unless responses are slow.

        These are the time until the first responses, and the time until the last ones.
        """
        return 2 * (self.settle_s - SETTLED_S)

    def most_in_flight(self, seconds: float) -> float:
        """Return how many requests may be in flight at the end of so many seconds of load.

        More would not be answered within the budget, or not before their time-out.
        """
        if not self.ended_rps:
            return math.inf
        return self.ended_rps * min(self.left_s - seconds, LONGEST_WAIT_S)

    def raise_connections(self, wanted: int) -> None:
        """Raise the number of connections to `wanted`, within the user's limit."""
        allowed = min(wanted, self.settings.max_connections)
        self.connections = max(self.connections, allowed)

    def run_trial(
        self,
        load: Load,
        purpose: str,
        alarm_s: float | None = None,
        rise_s: float | None = None,
        pause_s: float = 0.0,
        *,
        refusals: Refusals | None = None,
    ) -> Part[Trial]:
        """Run a trial; repeat it if the generator was the limit or the service was unavailable.

        With `refusals` the caller records the trial as evidence.
        """
        reasons: tuple[str, ...] = ()
        tries = 0
        while tries < TRIES:
            fitting = self._fitting(load)
            if isinstance(fitting, ClosedLoad):
                self.raise_connections(fitting.workers)
            trial = yield TrialRequest(
                fitting,
                purpose,
                alarm_s,
                rise_s,
                pause_s,
                max_connections=self.connections,
                settle_s=self.settle_s,
                users_share=refusals.users_share if refusals else 1.0,
                tolerates_errors=refusals.tolerates_errors if refusals else self.tolerates_errors,
                time_left=self._time_left(),
                so_far=self.so_far(),
            )
            self.spent_s += trial.spent_s
            self.trials.append(trial)
            self.ended_rps = max(self.ended_rps, trial.stats.ended_rps)
            if trial.verdict.cause is Cause.CONNECTIONS:
                if self.connections >= self.settings.max_connections:
                    raise ConnectionsWereLimit(trial, self.connections)
                self.raise_connections(MORE_CONNECTIONS * self.connections)
                continue
            tries += 1
            gone_s = None
            if not has_overflowed(trial, self.ended_rps):
                gone_s = self._gone(trial, refusals)
                if gone_s is None and refusals is None:
                    gone_s = self._unexpected(trial)
                tries -= gone_s is not None  # what the service did is not a fault of the generator
            if gone_s is not None:
                self._disturbed.append(trial)
                pause_s = gone_s
                continue
            self._confirm_outage(trial)
            self.has_answered = True
            if trial.verdict.state is not TrialState.INVALID:
                if refusals is None:
                    self.evidence.take(trial)
                return trial
            reasons = trial.verdict.reasons
        raise GeneratorWasLimit(*(reasons or self.notes))

    def _time_left(self) -> TimeLeft:
        budget_s = self.settings.budget_s
        return TimeLeft(
            self.left_s + ANSWERED * budget_s, self.left_s + ABANDONED * budget_s, self.ended_rps
        )

    def _fitting(self, load: Load) -> Load:
        """Return the load, extended by the settling time and limited to budget and connections.

        What it keeps in flight must be answered within the budget as well.
        """
        if isinstance(load, StagedLoad | ReplayLoad):  # no search asks for these
            return load
        if isinstance(load, ClosedLoad) and load.workers > self.settings.max_connections:
            load = replace(load, workers=self.settings.max_connections)
        most_s = self.left_s - self._drain_s(load)
        wanted_s = load.duration_s or self.left_s
        # A shorter band would not be metered.
        least_s = min(wanted_s, self.settle_s + LEAST_STRETCH_S)
        if most_s < (least_s if isinstance(load, BandLoad) else LEAST_LOAD_S):
            raise BudgetSpent
        if not isinstance(load, ClosedLoad):
            wanted_s += self.settle_s - SETTLED_S
        seconds = min(wanted_s, most_s)
        return load if seconds == load.duration_s else replace(load, duration_s=seconds)

    def _drain_s(self, load: Load) -> float:
        """Return how long the answers take to what a load keeps in flight; 0: not known."""
        match load:
            case ClosedLoad():
                in_flight = load.workers
            case BandLoad():
                in_flight = load.high
            case _:
                in_flight = 0
        return in_flight / self.ended_rps if self.ended_rps else 0.0

    def _gone(self, trial: Trial, refusals: Refusals | None) -> float | None:
        """Return how long to wait for a service that was unavailable; None: it was available."""
        error = refusals.error if refusals else ""
        if all(name == error for name, _ in trial.stats.errors):
            return None
        if self.has_answered and is_deliberate(trial):
            return None
        if trial.stats.failed and not trial.stats.ok:
            if not self.has_answered or self.notes:
                raise OnlyErrors(*trial.stats.error_texts)
            return self._restarted(trial, "for a while")
        gone_s = outage_s(trial)
        if not self.notes and (gone_s or is_refused(trial)):
            return self._restarted(trial, f"for {gone_s:.1f} s" if gone_s else "for a while")
        return None

    def _unexpected(self, trial: Trial) -> float | None:
        """Return how long to wait before a trial is repeated; None: its errors are accepted.

        An alarm may stop a trial before an outage has lasted for a tick. The load is only taken for
        the cause of the first errors if they come again.
        """
        if not self._doubts_errors or self._is_repeated or not self.has_answered:
            return None
        if trial.verdict.cause is not Cause.ERRORS or is_deliberate(trial) or not lost_all(trial):
            return None
        self._is_repeated = True
        if not self.notes:
            self._suspected = (_outage_note(trial, "for a while"),)
        return RESTART_S

    def _confirm_outage(self, trial: Trial) -> None:
        if self._suspected:
            is_again = trial.verdict.cause is Cause.ERRORS
            self.notes = () if is_again else self._suspected
            self._disturbed = [] if is_again else self._disturbed
            self._suspected = () if is_again else self._suspected

    def _restarted(self, trial: Trial, how_long: str) -> float:
        self.has_answered = True
        self.notes = (_outage_note(trial, how_long),)
        return RESTART_S


def _outage_note(trial: Trial, how_long: str) -> str:
    errors = ", ".join(trial.stats.error_texts)
    return f"the service was gone {how_long} ({errors}): was it restarted?"
