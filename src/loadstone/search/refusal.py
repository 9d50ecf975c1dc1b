"""Finds N of a service that refuses requests before it saturates: a limiter, a short queue.

1 flood    a constant rate well above the accepted rate, which then is a limiter's rate
2 above    slightly above it requests must be refused, at once, while the limiter's bucket is empty
3 below    slightly below it none must be refused
4 narrow   if they disagree (a short queue refuses by chance), try rates in between

A limiter that counts refused requests, or locks everyone out, accepts nothing while it is flooded.
Then every trial after a refusal begins with a pause that is long enough for the limiter to reset.
"""

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from loadstone.analysis.alarm import chance_of
from loadstone.analysis.interval import CONFIDENCE
from loadstone.analysis.model import TICK_S, Cause, Trial, TrialState
from loadstone.plan.load import OpenLoad
from loadstone.search import fit
from loadstone.search.evidence import NO_LOWER
from loadstone.search.guard import no_more_than
from loadstone.search.model import Capacity, CapacityKind, Part, Strategy
from loadstone.search.outage import is_deliberate
from loadstone.search.per_user import NOT_KNOWN, ONE_USER, PURPOSE, FewerUsers
from loadstone.search.ramp import FIRST_RPS, Knee
from loadstone.search.session import OnlyErrors, Refusals, Session
from loadstone.search.sprt import Decision, Sprt
from loadstone.search.tried import Bucket, Fill, Tried, bucket, fill, leading, refusals, tried

SERVED_WELL = 3.0  # response time over the unloaded one above which requests must have queued
WAITED = 1.5  # response time over the unloaded one: accepted requests wait in a queue
REFUSED_SHARE = 0.02  # of a trial; fewer refusals may be single bad requests
FLOOD = 1.3  # times the accepted rate
FLOOD_S = 4.0  # of refusals
FLOOD_REQUESTS = 100.0  # accepted
LONGEST_FLOOD_S = 30.0
FLOOD_LEFT = 0.35  # of the time that is left, for a long flood: the rest is for rates below
LEAST_FLOODED = 0.05  # refused share from which the accepted rate is the limiter's
RAISE = 1.5
ABOVE, BELOW = 0.02, 0.01
# Allowed share from which a rate slightly above N refuses little more than is allowed: then a rate
# is good or bad only if enough of its requests were counted.
MANY = 0.005
ABOVE_MANY = 0.04  # a limiter refuses twice as much more there as a test can tell apart
EMPTIED = 1.2  # times what a bucket held before its first refusal
FILLED = 0.2  # share of what a limiter accepts that a bucket of unknown size may add to it
LONGEST_S = 60.0
SHORTEST_S = 2.0
RESERVE_S = 3.0
LEAST_RPS = 0.25  # accepted before the first flood, at least
FORGETS_S = 10.0  # pause before the first flood, in which most limiters reset
MOST_FLOODS = 12
MOST_FLOODED = 0.5  # of a flood: if less is accepted, a lower rate must confirm it
MORE_PASSED = 1.15
MUCH_MORE = 5.0
LEAST_SILENT_RPS = 4.0  # rate above which a second without any is not chance
AGAIN = 3.0  # times as long, if a flood was refused only at its end
LEAST_ACCEPTED = 0.02  # of a flood
CONTRADICTED = 0.9  # of a lower rate that held
UNEVEN_REQUESTS = 3  # between two ticks
UNEVEN = 0.15  # of the mean
FIRST_REST_S = 1.0
REST_GROWTH = 3.0
LONGEST_REST_S = 60.0
MORE = 2.1  # times as many requests as filled a limiter, to include a whole window
ENOUGH = 1.9
CHANCE = 0.1  # probability of so many refusals at the allowed share
LEAST_RESTED = 8.0  # requests
SURE_RESTED = 3.0  # windows, to detect one request more than a window accepts
SURE_AT_LOW = 200.0  # requests
SHORTEST_WINDOW_S = 0.9  # limiters that count requests in windows do so in whole seconds
ROOMS = 10.0  # times as many as filled a limiter
LEAST_FLOW = 0.9  # of the highest sustained rate
MOST_WIDTH = 0.05
LONGEST_EMPTY_S = 40.0  # a bucket may take to empty
IDLE_S = 0.2  # pause between trials, in which a limiter's bucket fills
PROOF_SHARE = 0.2  # of the budget
USERS_SPARE = 1.3  # times its length is kept for it: a bucket may prove larger than it seemed
USERS_SHARE = 0.15  # of the budget, at most, for the trial with half of the users
WIDTH = 0.01  # half an interval over N
WIDEST = 0.08  # a bound's distance from N, over N: with more, there is an interval and no number
LEAST_HALF_WIDTH = 0.005
NARROW = 0.03  # between the highest good and the lowest bad rate
SURE = 15.0  # refusals at a rate above a hard limit by the gap
MOST_SHARE = 0.02  # refused; with more, the odds no longer rise as near N
HARD_SHARE = 0.05  # refused slightly above N, as by a limiter
MOST_COUNT = 200
FARTHEST = 0.4  # of the lowest rate refused: the first step down
GRID = 400
STEEPNESS = np.geomspace(5.0, 1000.0, 28)  # of the odds of a refusal, per logarithm of the rate


def is_refusal(trial: Trial, response_s: float) -> bool:
    """Return whether requests are refused while accepted ones are served normally."""
    stats = trial.stats
    if stats.failed < REFUSED_SHARE * stats.due:
        return False
    if is_deliberate(trial):
        return True
    return stats.ok > 0 and stats.service.median_s <= SERVED_WELL * response_s


class Refusal:
    """Finds the highest rate with no more than the allowed share of refusals."""

    def __init__(self, session: Session, refused: Trial, knee: Knee) -> None:
        self._session = session
        self._knee = knee
        self._sprt = Sprt(session.settings.error_share)
        self._refused = refused  # a trial with refusals
        # The first rate of the ramp was accepted, unless it is the refused one.
        self._first_rps = 0.0 if refused.rate_rps else FIRST_RPS
        self._tried: list[Tried] = []
        self._limiter_rps: float | None = None
        self._fill_s = IDLE_S  # seconds of work that queue before requests are refused
        self._grain = 0.0  # half-width of the limiter's rate, as a share
        self._is_even = False
        self._waits = False  # accepted requests wait in a queue during a flood
        self._burst = 0.0  # requests that pass before the first refusal
        # Over the limit, by which a rate must be refused.
        self._above = ABOVE_MANY if self._allows_many else ABOVE
        self._fills: list[Fill] = []  # of a limiter with memory
        self._rest_s = 0.0  # pause after which a limiter has reset
        self._is_rest_known = False
        self._was_refused = True  # in the last trial
        self._has_paused = False  # before the last trial
        self._overall_rps = 0.0  # accepted in the last flood, including its beginning
        if not refused.stats.ok:
            self._rest_s = FIRST_REST_S
        session.so_far = self._state

    @property
    def _remembers(self) -> bool:
        """Whether a limiter's refusals depend on the load before a trial."""
        return self._rest_s > 0

    @property
    def _allows_many(self) -> bool:
        return self._sprt.allowed > MANY

    @property
    def _limit_rps(self) -> float | None:
        """The rate of which a limiter refuses the allowed share; None: no limiter is known."""
        if self._limiter_rps is None or not self._allows_many:
            return self._limiter_rps  # a small share is within the interval
        return self._limiter_rps / (1 - self._sprt.allowed)

    def run(self) -> Strategy:
        """Flood, confirm on both sides, and narrow down if they disagree."""
        yield from self._flood(self._accepted_rps())
        if self._remembers:
            yield from self._fill_up()
        elif self._limit_rps is not None:
            below_s = PROOF_SHARE * self._session.settings.budget_s
            # At most half of the time: if it is not refused, rates up to the flood are tried next.
            above_s = min(max(1.0 / ABOVE, below_s), self._left_s / 2)
            # So far above that a bucket that has filled again is emptied in that time.
            self._above = max(self._above, EMPTIED * self._burst / (self._limit_rps * above_s))
            above_rps = self._limit_rps * (1 + self._above)
            yield from self._try(above_rps, "must be refused", above_s, is_short=True)
            below_rps = self._limit_rps * (1 - BELOW)
            if (self._bracket()[0] or 0.0) < below_rps:  # else a higher rate was accepted
                yield from self._try(below_rps, "must not be refused", below_s)
            if self._tried[-1].is_hopeless:
                yield from self._repeat(self._tried[-1])
        while self._left_s > SHORTEST_S + RESERVE_S and not self._is_done():
            rate_rps, requests = self._next()
            low, _, high = self._bracket()
            # The queue must have had the time to fill, or the bucket to become empty.
            fill_s = self._fill_s / max(WIDTH, high / low - 1) if low else 0.0
            seconds = max(requests / rate_rps, fill_s, self._emptied_s(rate_rps))
            yield from self._try(rate_rps, "refusals", seconds, is_short=True)
        return (yield from self._by_users(self._state()))

    def _by_users(self, found: Capacity) -> Strategy:
        """Add what the limit is for, by a trial with half of the users."""
        is_limit = found.kind is CapacityKind.REFUSAL and is_deliberate(self._refused)
        users = self._session.settings.users
        if found.rate_rps is None or not is_limit or users is None:
            return found
        told = ONE_USER if users == 1 else NOT_KNOWN
        fewer = self._fewer_users(found.rate_rps)
        if fewer is not None and fewer.seconds < self._session.left_s:
            load = OpenLoad(fewer.rate_rps, fewer.seconds)
            purpose = f"{PURPOSE}: {fewer.few} of {fewer.users}"
            trial, is_rested = yield from self._offer_rate(load, purpose, users_share=fewer.share)
            one = tried(trial, fewer.rate_rps, is_rested=is_rested)
            told = fewer.told(one.requests, one.refused, is_refused=self._is_bad(one))
        return replace(found, words=(told, *found.words))

    def _fewer_users(self, limit_rps: float) -> FewerUsers | None:
        """Return a trial with half of the users; None: it cannot be made, or would take long."""
        users = self._session.settings.users
        if users is None or users < 2 or not is_deliberate(self._refused):
            return None
        fewer = FewerUsers(limit_rps, users, max(self._burst, self._room))
        return fewer if fewer.seconds <= USERS_SHARE * self._session.settings.budget_s else None

    @property
    def _left_s(self) -> float:
        """Seconds of load that are left without those for the trial with half of the users."""
        limit_rps = self._limiter_rps or self._bracket()[0]
        fewer = self._fewer_users(limit_rps) if limit_rps else None
        return self._session.left_s - (USERS_SPARE * fewer.seconds if fewer else 0.0)

    def _accepted_rps(self) -> float:
        """Return the accepted rate, as estimated before the first flood."""
        stats = self._refused.stats
        # A trial that was stopped at once has no throughput, because its first ticks are skipped.
        return stats.throughput_rps or stats.completed_rps or self._knee.throughput_rps

    def _flood(self, accepted_rps: float) -> Part[None]:
        """Measure the accepted rate while requests are refused all the time."""
        ceiling_rps = self._session.settings.ceiling_rps
        rate_rps = min(max(accepted_rps * FLOOD, self._first_rps, LEAST_RPS), ceiling_rps)
        wanted_s = 2 * FLOOD_S
        for _ in range(MOST_FLOODS):
            if self._session.left_s < FLOOD_S:
                return
            seconds = min(self._longest_flood_s, wanted_s)
            load = OpenLoad(rate_rps, seconds)
            trial, is_rested = yield from self._offer_rate(load, "flood", tolerates=True)
            one = self._take(trial, rate_rps, is_rested=is_rested)
            wanted_s = 2 * FLOOD_S
            if one.refused <= LEAST_FLOODED * one.requests:
                if rate_rps >= ceiling_rps:
                    return
                rate_rps = min(RAISE * rate_rps, ceiling_rps)
                continue
            self._refused = trial
            found = self._flooded(trial, rate_rps, is_rested=is_rested)
            if found is None and not self._remembers:
                # It was refused only at its end.
                wanted_s = AGAIN * len(trial.timeline.ok) * TICK_S
            elif found is not None and AGAIN / 2 * seconds < min(
                self._longest_flood_s, FLOOD_REQUESTS / found
            ):
                wanted_s = 1.5 * FLOOD_REQUESTS / found
            elif found is not None and found < MOST_FLOODED * rate_rps:
                rate_rps = FLOOD * found  # it should be the same at a lower rate
            else:
                return

    @property
    def _longest_flood_s(self) -> float:
        return min(LONGEST_FLOOD_S, max(2 * FLOOD_S, FLOOD_LEFT * self._session.left_s))

    def _flooded(self, trial: Trial, rate_rps: float, *, is_rested: bool) -> float | None:
        """Return the rate that a limiter accepts while it is flooded; None if inconclusive."""
        service = trial.stats.service
        self._fill_s = max(IDLE_S, service.p99_s - self._knee.response_s)
        self._overall_rps = trial.stats.throughput_rps
        counts = trial.timeline
        begin = 0 if is_rested else leading(trial)
        first = begin + int((counts.failed[begin:] > 0).argmax()) + 1
        # What is accepted waits at first; it is answered later.
        ok = (counts.ok + np.diff(counts.in_flight, prepend=0))[first:]
        self._limiter_rps = None
        if len(ok) * TICK_S < FLOOD_S / 2:
            return None
        accepted_rps = _accepted_rps(ok)
        # A bucket lets through the same in every tick; a window, much at first and then nothing.
        spread = int(ok.max() - ok.min())
        is_even = bool(spread <= UNEVEN_REQUESTS + UNEVEN * ok.mean())
        # A lower rate that passed contradicts it, unless that passed out of a full bucket.
        good = 0.0 if is_even else (self._bracket()[0] or 0.0) * (1 - self._sprt.allowed)
        is_silent = bool(((ok[1:] == 0) & (ok[:-1] == 0)).any()) and accepted_rps > LEAST_SILENT_RPS
        if is_silent or accepted_rps < max(LEAST_ACCEPTED * rate_rps, CONTRADICTED * good):
            # It accepts nothing for a second, or less than at a lower rate: it counts refusals.
            self._rest_s = max(self._rest_s, FIRST_REST_S)
            return None
        self._limiter_rps, self._is_even = accepted_rps, is_even
        # A queue that is full refuses by chance, a limiter does not.
        self._waits = service.median_s > WAITED * self._knee.response_s
        least = WIDTH if self._waits else LEAST_HALF_WIDTH
        self._grain = max(least, (2 if self._is_even else spread) / float(ok.sum()))
        passed = (first - 0.5) * TICK_S * (rate_rps - accepted_rps)
        self._burst = max(self._burst, passed)
        return accepted_rps

    def _repeat(self, hot: Tried) -> Part[None]:
        """Offer a rate again after a pause, when a limiter with memory accepts much more."""
        self._rest_s = FORGETS_S
        load = OpenLoad(hot.rate_rps, LONGEST_FLOOD_S)
        trial, _ = yield from self._offer_rate(load, "again")
        accepted = hot.requests - hot.refused
        # The pause has filled a bucket, which lets through more than a limiter's rate.
        of_rate = (self._limiter_rps or 0.0) * trial.stats.load_s
        of_bucket = of_rate + max(EMPTIED * self._burst, FILLED * of_rate)
        most = max(MUCH_MORE * max(accepted, MUCH_MORE), of_bucket)
        if self._rest_s == FORGETS_S and trial.stats.ok <= most:
            self._rest_s = 0.0
            self._take(trial, hot.rate_rps, is_rested=True)
            return
        highest = max(one.rate_rps for one in self._tried)
        self._tried = self._at(highest)
        yield from self._fill_up()

    def _fill_up(self) -> Part[None]:
        """Flood the limiter from rest to find how many requests it accepts, and after which pause.

        The pause is long enough if more requests are not accepted after a longer one.
        """
        # At a rate only just refused, almost all would pass after any rest.
        rate_rps = min(FLOOD * self._bracket()[2], self._session.settings.ceiling_rps)
        self._limiter_rps, self._fills, enough_s = None, [], 0.0
        self._rest_s = FIRST_REST_S
        while self._session.left_s > FLOOD_S:
            before = self._room
            load = OpenLoad(rate_rps, LONGEST_FLOOD_S)
            trial, _ = yield from self._offer_rate(load, "from rest")
            self._fills = []
            self._take(trial, rate_rps, is_rested=True)
            is_enough = before > 0 and self._room <= MORE_PASSED * before
            if is_enough or not self._fills or self._rest_s >= LONGEST_REST_S:
                self._rest_s = enough_s if is_enough else self._rest_s
                self._is_rest_known = True
                return
            enough_s = self._rest_s
            self._rest_s = min(LONGEST_REST_S, REST_GROWTH * self._rest_s)

    def _offer_rate(
        self, load: OpenLoad, purpose: str, *, tolerates: bool = False, users_share: float = 1.0
    ) -> Part[tuple[Trial, bool]]:
        """Offer a rate, with longer pauses until something is accepted.

        Return the trial, and whether the service was at rest before it.
        """
        refusals = Refusals(self._error(), tolerates, users_share)
        while True:
            pause_s = self._rest_s if self._was_refused else 0.0
            if not self._tried:
                pause_s = max(pause_s, FORGETS_S)
            after = f" after a pause of {pause_s:.0f} s" if pause_s else ""
            trial = yield from self._session.run_trial(
                load, purpose + after, pause_s=pause_s, refusals=refusals
            )
            self._has_paused = pause_s > 0
            is_rested = not self._was_refused or (pause_s > 0 and self._is_rest_known)
            self._was_refused = trial.stats.failed > 0
            if trial.stats.ok or not trial.stats.failed:
                return trial, is_rested
            if self._rest_s >= LONGEST_REST_S:
                raise OnlyErrors(*trial.stats.error_texts)
            # A pause that is known to be long enough stays: this trial began without one.
            longer_s = max(FIRST_REST_S, self._rest_s, REST_GROWTH * pause_s)
            self._rest_s = min(LONGEST_REST_S, longer_s)

    def _try(
        self, rate_rps: float, purpose: str, least_s: float, *, is_short: bool = False
    ) -> Part[None]:
        """Offer a rate until it is decided whether too much of it is refused."""
        rate_rps = min(rate_rps, self._session.settings.ceiling_rps)
        requests = refused = 0
        while self._left_s > SHORTEST_S:
            enough_s = self._sprt.least_requests / rate_rps
            wanted_s = max(SHORTEST_S, least_s if is_short else max(least_s, enough_s))
            seconds = min(LONGEST_S, wanted_s, self._left_s)
            trial, is_rested = yield from self._offer_rate(OpenLoad(rate_rps, seconds), purpose)
            one = self._take(trial, rate_rps, is_rested=is_rested)
            requests += one.requests
            refused += one.refused
            is_clear = self._sprt.decide(requests, refused) is not Decision.OPEN
            if (
                is_short
                or is_clear
                or trial.verdict.state is TrialState.DEGRADED
                or seconds >= LONGEST_S
            ):
                return

    def _take(self, trial: Trial, rate_rps: float, *, is_rested: bool) -> Tried:
        one = tried(trial, rate_rps, is_rested=is_rested, is_full=self._allows_many)
        self._tried.append(one)
        # The judge calls a trial sustained that may by chance have been refused more than allowed.
        most = self._sprt.allowed * one.requests if self._allows_many else 0
        is_good = one.refused <= most and self._is_enough(one)
        if self._allows_many:
            is_shown = is_good or trial.verdict.state is TrialState.DEGRADED
        else:
            is_shown = one.refused > 0 or one.is_overloaded or (is_good and not trial.stats.failed)
        if is_shown:
            self._session.evidence.take(trial)
        filled = fill(trial, rate_rps)
        if is_rested and filled is not None:
            self._fills.append(replace(filled, is_full=self._has_paused))
        return one

    @property
    def _is_limiter(self) -> bool:
        """Whether slightly below the limit was sustained, and slightly above was not."""
        low, bad, _ = self._bracket()
        known = self._limit_rps
        if known is None or low is None or bad is None:
            return False
        if not self._is_even and self._grain > WIDTH:
            return False
        return known * (1 - 2 * BELOW) <= low <= known <= bad <= known * (1 + 2 * self._above)

    @property
    def _is_hard(self) -> bool:
        """Whether far too much is refused slightly above N, as by a limiter."""
        if self._allows_many:
            return False
        at_bad = self._at(self._bracket()[1])
        return any(
            one.is_overloaded or chance_of(one.refused, HARD_SHARE * one.requests) < CHANCE
            for one in at_bad
        )

    def _is_done(self) -> bool:
        if self._is_limiter:
            return True
        flows = self._bucket() if self._remembers else None
        if flows is not None:  # a short trial from rest is good at too high a rate
            return flows.half_width_rps <= LEAST_HALF_WIDTH * flows.rate_rps
        if self._is_hard or self._remembers:
            low, _, high = self._bracket()
            is_narrow = low is not None and high <= (1 + WIDTH) * low
            return is_narrow and (not self._remembers or self._count_at(low) >= self._sure_at(low))
        if self._allows_many and None in self._bracket():
            return False
        below, middle, above = self._interval()
        return above - below <= 2 * WIDTH * middle

    def _next(self) -> tuple[float, float]:
        """Return a rate to try, and with how many requests."""
        low, _, high = self._bracket()
        enough = float(self._sprt.least_requests)
        if self._remembers:
            return self._next_rested(low, high, MORE * self._room)
        if low is None:
            return high * (1 - FARTHEST), enough / 4
        gap = high / low - 1
        if self._allows_many:
            enough = self._requests_for(gap)
        middle = math.sqrt(low * high)
        if gap > NARROW and not self._at(middle):  # expected to be clearly good or bad
            return middle, (enough if self._allows_many else min(enough, SURE / gap))
        below, middle, above = self._interval()
        # In turn on either side of the middle: both sides are wanted.
        is_low = len(self._tried) % 2 == 0
        return ((below + middle) / 2 if is_low else (middle + above) / 2), enough / 2

    def _requests_for(self, gap: float) -> float:
        """Return how many requests tell half the gap from N apart, where many may fail.

        A limiter's refused share rises by as much as the rate does.
        """
        allowed = self._sprt.allowed
        wanted = SURE * allowed * (1 - allowed) / max(NARROW, gap) ** 2
        return max(self._sprt.least_requests, wanted)

    def _next_rested(self, low: float | None, high: float, most: float) -> tuple[float, float]:
        """Return a rate to try from rest, and with how many requests, so that a limiter fills."""
        flows = self._bucket()
        if flows is not None and flows.half_width_rps > LEAST_HALF_WIDTH * flows.rate_rps:
            seconds = min(LONGEST_EMPTY_S, self._session.left_s / 2)
            rate_rps = flows.filled_by(seconds)
            if rate_rps < high:
                return rate_rps, 2 * seconds * rate_rps
        if low is None:
            farthest = high * (1 - FARTHEST)
            likely = max(self._overall_rps, min(self._first_rps, farthest))
            rate_rps = likely if self._overall_rps > 0 and likely < high else farthest
            self._overall_rps = 0.0
            return rate_rps, max(most, LEAST_RESTED)
        gap = high / low - 1
        if gap <= WIDTH:
            return low, max(most, self._sure_at(low) - self._count_at(low))
        return math.sqrt(low * high), max(most, SURE_RESTED / gap, LEAST_RESTED)

    def _sure_at(self, rate_rps: float | None) -> float:
        """Return how many requests show that a rate is good in spite of a full bucket."""
        most = LONGEST_S * (rate_rps or 0.0)
        return max(SURE_AT_LOW, min(ROOMS * self._room, most))

    def _unsure_at(self, rate_rps: float) -> float:
        """Return by how much of a rate that held from rest N may be lower."""
        count = self._count_at(rate_rps)
        is_bucket = self._room < SHORTEST_WINDOW_S * rate_rps
        if is_bucket and count < self._sure_at(rate_rps):
            return max(1.0, self._room) / count  # so many may have been in it
        return 1.0 / count

    def _at(self, rate_rps: float | None) -> list[Tried]:
        return [one for one in self._tried if one.rate_rps == rate_rps]

    def _count_at(self, rate_rps: float | None) -> int:
        return sum(one.requests for one in self._at(rate_rps))

    def _bucket(self) -> Bucket | None:
        """Return the bucket that empties at rates above N, if it is the limit."""
        low, bad, _ = self._bracket()
        if bad is None:
            return None
        held = [one for one in self._tried if not one.refused and not self._is_bad(one)]
        found = bucket(self._fills, held, bad)
        if found is None or found.rate_rps + found.half_width_rps < LEAST_FLOW * (low or 0.0):
            return None
        return found

    def _bracket(self) -> tuple[float | None, float | None, float]:
        """Return the highest good rate below all bad ones, the lowest bad one, and a bound."""
        bad = [one.rate_rps for one in self._tried if self._is_bad(one)]
        lowest = min(bad, default=None)
        good = [one.rate_rps for one in self._tried if self._is_good(one)]
        below = [rate for rate in good if lowest is None or rate < lowest]
        bound = lowest if lowest is not None else self._untried_rps
        return max(below, default=None), lowest, bound

    @property
    def _untried_rps(self) -> float:
        """A rate above all that were tried, but not so far above that it would be a flood."""
        ceiling_rps = self._session.settings.ceiling_rps
        highest = max((one.rate_rps for one in self._tried), default=ceiling_rps)
        return min(RAISE * highest, ceiling_rps)

    @property
    def _room(self) -> float:
        """Requests that a limiter at rest accepts before its first refusal."""
        if not self._remembers or not self._fills:
            return 0.0
        return max(self._fills, key=lambda one: one.rate_rps).most

    def _is_enough(self, one: Tried) -> bool:
        """Return whether a trial had enough requests to fill a limiter in any window."""
        if self._remembers or self._limiter_rps is None:
            return one.requests >= ENOUGH * self._room
        if one.rate_rps <= self._limiter_rps or (self._waits and one.in_flight < self._burst / 2):
            return True  # what is left in a bucket is not seen, the length of a queue is
        return one.requests * (1 - self._limiter_rps / one.rate_rps) >= self._burst

    def _emptied_s(self, rate_rps: float) -> float:
        """Return how long a rate must be offered until a full bucket or an empty queue ends."""
        excess_rps = rate_rps - (self._limiter_rps or rate_rps)
        return EMPTIED * self._burst / excess_rps if excess_rps > 0 else 0.0

    def _is_bad(self, one: Tried) -> bool:
        if self._remembers and chance_of(one.refused, one.requests * self._sprt.allowed) < CHANCE:
            return True
        if one.is_hopeless or one.is_overloaded:
            return True
        return self._decide(one) is Decision.BAD

    def _is_good(self, one: Tried) -> bool:
        if self._is_bad(one) or not self._is_enough(one):
            return False
        if not self._allows_many:  # too few requests to call it bad, and too many refusals for N
            return chance_of(one.refused, one.requests * self._sprt.allowed) >= CHANCE
        requests, refused = _counts(self._at(one.rate_rps))
        is_kept = refused <= self._sprt.allowed * requests
        return is_kept and self._decide(one) is Decision.GOOD

    def _decide(self, one: Tried) -> Decision:
        """Decide by a trial, or by all at its rate where that takes many requests."""
        every = self._at(one.rate_rps) if self._allows_many else [one]
        return self._sprt.decide(*_counts(every))

    def _interval(self) -> tuple[float, float, float]:
        """Return the rate at which as much is refused as is allowed, with a 95 % interval.

        The odds of a refusal rise as a power of the rate: two unknowns, on a grid, with an even
        prior for their logarithms.
        """
        rates = np.array([one.rate_rps for one in self._tried])
        # As far above the bad share as that is above the allowed one; and as far below.
        most = max(MOST_SHARE, 2 * self._sprt.bad - self._sprt.allowed)
        least = 2 * self._sprt.allowed - most if self._allows_many else 0.0
        counts = np.array([_limited(one, least, most) for one in self._tried])
        n, f = counts[:, 0], counts[:, 1]
        allowed = self._sprt.allowed
        low, _, high = self._bracket()
        at = np.geomspace(FARTHEST * (low or high), (1 + ABOVE) * high, GRID)
        logit = _logit(allowed) + STEEPNESS[:, None, None] * np.log(
            rates[None, None, :] / at[None, :, None]
        )
        # Rates that are far too high or too low only count as such.
        logit = np.where(f >= most * n, np.minimum(logit, _logit(most)), logit)
        if least > 0:
            logit = np.where(f <= least * n, np.maximum(logit, _logit(least)), logit)
        # log(1 + exp(x)), without overflow.
        likelihood = (f * logit - n * np.logaddexp(0.0, logit)).sum(axis=2)
        weight = np.exp(likelihood - likelihood.max()).sum(axis=0)
        return _quantiles(at, weight)

    def _unbounded(self, low: float | None) -> Capacity:
        low = self._limiter_rps if self._is_grouped else low
        if self._tried and low is not None:
            words = (f"at least {low:.4g}/s",)
            return Capacity(low, low, None, CONFIDENCE, words, None)
        words = (f"it refuses with {self._error()}; no time was left to find from which rate on",)
        return Capacity(None, low, None, 0.0, words, CapacityKind.REFUSAL)

    def _state(self) -> Capacity:
        low, bad, bound = self._bracket()
        if not self._tried or bad is None:
            return self._unbounded(low)
        if low is None:
            cause = Cause.OBJECTIVE if self._is_slow_at(bad) else Cause.ERRORS
            return no_more_than(bound, (self._at_bad(bad), NO_LOWER), (cause,))
        below, middle, above = self._around(low, bad)
        if self._is_grouped:
            known, limit = self._limiter_rps or below, self._limit_rps or above
            return self._range(min(below, known), max(above, limit))
        notes = (self._summary(low, bad), *self._burst_notes(), *self._rest_notes())
        found = Capacity(middle, below, above, CONFIDENCE, notes, self._kind_at(bad))
        if self._is_rate_known(low, bad):
            return found
        stated = fit.number((), found, 0.0, WIDEST)
        return replace(stated, kind=found.kind)

    def _is_rate_known(self, low: float, bad: float) -> bool:
        """Whether N is known better than its interval says, as the rate of a limiter is."""
        if self._remembers:
            flows = self._bucket()
            return flows is not None and flows.half_width_rps <= MOST_WIDTH * flows.rate_rps
        if self._is_slow_at(bad) or (self._is_hard and bad <= (1 + NARROW) * low):
            return True
        known = self._limit_rps
        # Of a full queue, more is accepted than just below the rate from which on it refuses.
        if known is None or known > bad:
            return False
        return low <= (1 + WIDTH + 2 * self._grain) * known

    def _at_bad(self, bad: float) -> str:
        """Say what is wrong at the lowest bad rate."""
        if self._is_slow_at(bad):
            return f"an objective is missed at {bad:.4g}/s"
        if self._saturates_at(bad):
            return f"work queues at {bad:.4g}/s"
        known = self._limiter_rps
        accepted = f", of which {known:.3g}/s are accepted" if known and known < bad else ""
        return f"refuses with {self._error()} at {bad:.4g}/s{accepted}"

    def _around(self, low: float, bad: float) -> tuple[float, float, float]:
        """Return N between its bounds, from the highest good and the lowest bad rate."""
        below, middle, above = self._interval()
        # The odds of a refusal do not rise exactly as a power of the rate.
        below, above = below - WIDTH * middle, above + WIDTH * middle
        if self._is_limiter and self._limit_rps is not None:
            middle = self._limit_rps
            below, above = low - self._grain * middle, bad
            if self._is_even:
                above = min(bad, middle * (1 + self._grain))
        elif self._remembers:
            below, above = low * (1 - max(WIDTH, self._unsure_at(low))), bad
            middle = (low + above) / 2
            flows = self._bucket()
            if flows is not None:  # which may have held `low` for a while
                below = min(below, flows.rate_rps - flows.half_width_rps)
            if flows is not None and flows.half_width_rps <= MOST_WIDTH * flows.rate_rps:
                middle = flows.rate_rps
                below = middle - flows.half_width_rps
                above = min(bad, middle + flows.half_width_rps)
        elif self._limit_rps is not None and low <= (1 + WIDTH) * self._limit_rps < bad:
            # No rate contradicts what was accepted while more was refused.
            middle = self._limit_rps
            below, above = min(below, low), max(above, min(bad, middle * (1 + self._grain)))
        elif bad <= (1 + NARROW) * low:
            below, above = min(below, low), max(above, bad)
            middle = math.sqrt(low * bad) if self._is_hard else middle
        if not self._remembers and self._sprt.decide(*_counts(self._at(low))) is Decision.GOOD:
            middle = max(middle, low)
        return min(below, middle), middle, max(above, middle)

    @property
    def _is_grouped(self) -> bool:
        """Whether refusals come many at a time, so that a trial's share is no estimate."""
        is_wide = self._sprt.allowed > NARROW  # N is that much above the accepted rate
        return is_wide and (self._remembers or not (self._is_even or self._waits))

    def _range(self, low: float, high: float) -> Capacity:
        words = (
            f"between {low:.4g}/s and {high:.4g}/s: it refuses with {self._error()}, many requests "
            f"at a time, so the share of a trial does not tell more",
        )
        return Capacity(None, low, high, CONFIDENCE, words, CapacityKind.REFUSAL)

    def _saturates_at(self, rate_rps: float) -> bool:
        return all(one.is_saturated for one in self._at(rate_rps))

    def _is_slow_at(self, rate_rps: float) -> bool:
        return all(one.is_slow for one in self._at(rate_rps))

    def _kind_at(self, rate_rps: float) -> CapacityKind:
        if self._is_slow_at(rate_rps):
            return CapacityKind.OBJECTIVE
        is_full = self._saturates_at(rate_rps)
        return CapacityKind.SATURATION if is_full else CapacityKind.REFUSAL

    def _summary(self, low: float, bad: float) -> str:
        if self._is_slow_at(bad):
            return (
                f"the objective is the limit: it is missed at {bad:.4g}/s; with more load the "
                f"service refuses with {self._error()}"
            )
        if self._saturates_at(bad):
            return f"work queues from {bad:.4g}/s on, and with a long queue {self._error()} begins"
        of_low, of_bad = (_share(self._at(rate)) for rate in (low, bad))
        if self._allows_many:
            return (
                f"refuses with {self._error()} before it saturates: at {low:.4g}/s "
                f"{100 * of_low:.1f} % and at {bad:.4g}/s {100 * of_bad:.1f} % of the requests "
                "that come after the first refusal"
            )
        return (
            f"refuses with {self._error()} before it saturates: at {low:.4g}/s "
            f"{refusals(self._at(low))}, at {bad:.4g}/s {100 * of_bad:.1f} %"
        )

    def _error(self) -> str:
        errors = self._refused.stats.errors
        return errors[0][0] if errors else "an error"

    def _rest_notes(self) -> tuple[str, ...]:
        if not self._remembers:
            return ()
        return (
            f"what it refuses depends on the load before: after a refusal, trials began with a "
            f"pause of {self._rest_s:.0f} s",
        )

    def _burst_notes(self) -> tuple[str, ...]:
        if self._limiter_rps is None or self._burst < max(5.0, 0.1 * self._limiter_rps):
            return ()
        what = "a queue" if self._waits else "a bucket"
        return (f"about {self._burst:.0f} requests pass at once before it refuses ({what})",)


def _accepted_rps(ok: NDArray[np.int64]) -> float:
    """Return the accepted rate, over whole windows if a limiter counts in windows."""
    begins = np.flatnonzero((ok[1:] > 0) & (ok[:-1] == 0)) + 1
    whole = ok[begins[0] : begins[-1]] if len(begins) > 1 else ok
    return float(whole.mean()) / TICK_S


def _limited(one: Tried, least: float, most: float) -> tuple[float, float]:
    """Return requests and refusals, limited to what shows that a share is far from the allowed one.

    A growing backlog counts as far too much, because it leads to refusals; so does a missed
    objective.
    """
    is_most = one.is_overloaded or one.refused > most * one.requests
    if not is_most and one.refused >= least * one.requests:
        return float(one.requests), float(one.refused)
    requests = min(one.requests, MOST_COUNT)
    return float(requests), (most if is_most else least) * requests


def _logit(share: float) -> float:
    return math.log(share / (1 - share))


def _counts(trials: list[Tried]) -> tuple[int, int]:
    """Return requests and refusals."""
    return sum(one.requests for one in trials), sum(one.refused for one in trials)


def _share(trials: list[Tried]) -> float:
    requests, refused = _counts(trials)
    return refused / max(1, requests)


def _quantiles(at: NDArray[np.float64], weight: NDArray[np.float64]) -> tuple[float, float, float]:
    share = np.cumsum(weight) / weight.sum()
    low, middle, high = np.interp([0.025, 0.5, 0.975], share, at)
    return float(low), float(middle), float(high)
