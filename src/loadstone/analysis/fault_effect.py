"""Computes the effect of a fault on clients: downtime, recovery, degradation, backlog, errors.

Everything is computed from the iterations of one load with a fault at a known instant. The figures
need an open loop: a closed loop stops sending while the service does not respond.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from loadstone.analysis.arrays import Bools, Floats
from loadstone.analysis.fault import (
    FIGURES,
    ErrorKind,
    FaultEffect,
    FaultPhase,
    FaultSummary,
    Injection,
    PhaseEffect,
    UnmeasuredFault,
    recoveries,
)
from loadstone.analysis.interval import Interval, of_values
from loadstone.analysis.iterations import Iterations
from loadstone.analysis.recovery import LEAST_COMPARED, Recovery, Remainder, judge
from loadstone.analysis.stats import in_words
from loadstone.engine.outcome import Outcome

LEAST_BASELINE = 20  # iterations before the fault; fewer do not define a baseline
UNAVAILABLE_SHARE = 0.5  # the service is unavailable where more than this share of requests fails
MOST_STEPS = 20  # a share of a millionth is doubled as often before it is half
LEAST_FAILURES = 3  # consecutive failures in unavailable time; a single one is no outage
# The definitions of OpenStack's reliability test plan, version 2 (performance-docs), with the
# constants of its only implementation (rally-runners, analytics.py).
PLAN_WARM_UP = 10  # iterations at the beginning that are not part of the baseline
PLAN_GAP = 6  # successes that a cluster of errors may contain in a row
PLAN_WINDOW = 21  # iterations in the moving mean
PLAN_SIGMAS = 4.0
PLAN_WIDTH = 3  # means that must lie above the limit for a period to count
# Degraded periods: periods in which iterations are slow more often than before the fault.
SLOW_QUANTILE = 0.95  # of the baseline: a longer iteration is slow ...
LEAST_RISE = 1.2  # ... if it also takes this many times the baseline's median
# Minimum mean of a degraded period, in baseline's means. Without it, hiccups of a busy machine were
# reported (verification/faults, beside other work): 1.18 to 1.19 times as slow, half a second long.
LEAST_DEGRADATION = 1.25
SLOW_SHARE = 0.5  # minimum share of slow iterations in a degraded period
FALSE_ALARM = 0.001  # probability of a false degraded period with independent arrivals
BASELINE_FACTOR = 1.5  # minimum ratio of a period's score to the highest score in the baseline
# Slope of the latency before a fault, in s per s, from which it hides any effect. In an open loop
# it is the share by which the load exceeds N, which a load of N as measured does by a few percent.
PLAIN_OVERLOAD = 0.2
# Where some failed before, failures have ended if what follows their last period is this many times
# likelier with the share before the fault than with that of a period.
LEAST_ODDS = 20.0
MOST_FAILING = 0.999  # share in such a period: a single failure after an outage is no other outage
LEAST_DEGRADED_S = 0.3  # shorter periods are hiccups of the machine
LEAST_HELD_S = 0.5  # shortest fault for which goodput is computed
P99 = 0.99
SHORTEST_BLOCK_S = 1.0  # bursts of errors are no shorter, or as if independent
LEAST_BLOCKS = 8  # of one length, to estimate a variance
BATCHES = 10  # of latencies; 10 to 30 are advised (Schmeiser, Operations Research 30, 1982)
LEAST_LATENCY_S = 1e-6  # resolution of the engine's clock: a pause may take a whole iteration
CHAIN_S = 5.0  # effects that begin later after the last one are not attributed to the fault


@dataclass(frozen=True, slots=True)
class _Rows:
    """Iterations in the order of their due times, shape (n,) each; seconds after the start."""

    due_s: Floats
    done_s: Floats
    is_ok: Bools
    kind: NDArray[np.str_]
    latency_s: Floats  # without pauses

    def edges_s(self, at_s: float) -> Floats:
        """Midpoints between arrivals after a fault, shape (n + 1,): i stands for [i, i + 1)."""
        middles_s = (self.due_s[1:] + self.due_s[:-1]) / 2
        edges_s = np.concatenate([self.due_s[:1], middles_s, self.due_s[-1:]])
        return np.asarray(np.maximum(edges_s, at_s))

    def picked(self, rows: Bools) -> "_Rows":
        return _Rows(*(getattr(self, one.name)[rows] for one in fields(self)))

    def __len__(self) -> int:
        return len(self.due_s)


def effect(
    iterations: Iterations,
    injection: Injection,
    end_s: float = math.inf,
    usual_until_s: float = math.inf,
    pauses_s: Floats | None = None,
) -> FaultEffect:
    """Compute the effect of a fault from the iterations that ended before `end_s`.

    `pauses_s`, shape (n,), is how long each iteration paused, which is no part of its latency.

    Those that ended before the fault are the baseline; of a load with an earlier fault, those that
    ended before `usual_until_s`. Raises ValueError for fewer than LEAST_BASELINE and for a load
    that was more than the service bears.
    """
    usual_until_s = min(usual_until_s, injection.at_s)
    rows = _rows(iterations, end_s, pauses_s)
    rows = rows.picked((rows.done_s <= usual_until_s) | (rows.done_s > injection.at_s))
    before = rows.picked(rows.done_s <= usual_until_s)
    usual = before.picked(before.is_ok)
    if len(usual) < LEAST_BASELINE:
        raise ValueError(
            f"only {len(usual)} iterations succeeded before the fault at {injection.at_s:.1f} s; "
            f"{LEAST_BASELINE} are needed to say what is normal"
        )
    after = rows.picked(rows.done_s > injection.at_s)
    if not len(after):
        raise ValueError(
            f"no iteration ended after the fault at {injection.at_s:.1f} s, so that nothing is "
            "known of its effect"
        )
    observed_until_s = float(rows.due_s[-1])
    clusters = _downtime(after, injection.at_s)
    failing, has_ended = clusters, True
    if len(usual) < len(before):
        failing = _failing(before, after, injection.at_s)
        has_ended = _has_ended(failing, before, after)
    stretches = _degraded(usual, after, injection, failing)
    good = after.picked(after.is_ok)
    slow = good.picked(_inside(good.due_s, stretches))
    _refuse_overload(before, usual, slow)
    slow_s = slow.latency_s
    usual_s = float(usual.latency_s.mean())
    mean_s = float(slow_s.mean()) if len(slow_s) else usual_s
    backlog, drained_s = _backlog(rows, injection.at_s)
    mttr_s = _mttr_s(failing, stretches, injection.at_s, after) if has_ended else None
    effects = (*failing, *stretches)
    remainder = _remainder(before, after, injection, effects, is_open=mttr_s is None)
    recovery = judge(remainder)
    return FaultEffect(
        action=injection.action,
        at_s=injection.at_s,
        undone_s=injection.undone_s,
        detected_s=injection.detected_s,
        due=len(after),
        failed=int((~after.is_ok).sum()),
        downtime_s=math.fsum(end - begin for begin, end in clusters),
        unavailable_s=_unavailable_s(after, injection.at_s),
        mttr_s=None if recovery is Recovery.NOT_RECOVERED else mttr_s,
        plan_mttr_s=_plan_mttr_s(usual, good),
        absolute_s=mean_s - usual_s,
        relative=mean_s / usual_s if usual_s > 0 else 1.0,
        backlog=backlog,
        drained_s=drained_s,
        goodput_rps=_goodput_rps(rows, injection),
        baseline_s=usual_s,
        baseline_failed=int((~before.is_ok).sum()),
        observed_s=observed_until_s - injection.at_s,
        errors=_errors(after),
        degraded=stretches,
        targets=injection.targets,
        steps=injection.steps,
        phases=tuple(_phase(rows, stretches, one) for one in injection.phases),
        baseline_p99_s=float(np.quantile(usual.latency_s, P99)),
        baseline_due=len(before),
        failing_s=_covered_s(failing),
        recovery=recovery,
        remainder=remainder,
    )


def summarize(
    effects: Iterable[FaultEffect], unmeasured: Iterable[UnmeasuredFault] = ()
) -> tuple[FaultSummary, ...]:
    """Average the figures of each action over its repeats with figures."""
    without_figures = Counter(one.action for one in unmeasured)
    by_action: dict[str, list[FaultEffect]] = defaultdict(list)
    for one in effects:
        by_action[one.action].append(one)
    return tuple(
        _summary(action, found, without_figures[action]) for action, found in by_action.items()
    )


def _summary(action: str, found: Sequence[FaultEffect], unmeasured: int) -> FaultSummary:
    states = recoveries(found)
    known = [
        replace(one, mttr_s=None) if state is Recovery.NOT_RECOVERED else one
        for one, state in zip(found, states, strict=True)
    ]
    return FaultSummary(
        action=action,
        repeats=len(found),
        recovered=states.count(Recovery.RECOVERED),
        figures=tuple(_estimates(known)),
        unmeasured=unmeasured,
        not_recovered=states.count(Recovery.NOT_RECOVERED),
    )


def _estimates(found: Sequence[FaultEffect]) -> Iterator[tuple[str, Interval]]:
    for name in FIGURES:
        values = [float(value) for one in found if (value := getattr(one, name)) is not None]
        if values:
            mean = of_values(values)
            # Only the degradation can be negative.
            if mean.low is not None and name != "absolute_s":
                mean = replace(mean, low=max(0.0, mean.low))
            if mean.high is not None and name.endswith("failed_share"):
                mean = replace(mean, high=min(1.0, mean.high))
            yield name, mean


def _rows(iterations: Iterations, end_s: float, pauses_s: Floats | None) -> _Rows:
    due_s = iterations.due_ns / 1e9
    done_s = iterations.done_ns / 1e9
    kept = np.flatnonzero(iterations.has_ended & (done_s < end_s))
    kept = kept[np.argsort(iterations.due_ns[kept], kind="stable")]
    return _Rows(
        due_s=due_s[kept],
        done_s=done_s[kept],
        is_ok=iterations.is_ok[kept],
        kind=kinds(iterations.outcome[kept], iterations.status[kept]),
        latency_s=(done_s - due_s - (0.0 if pauses_s is None else pauses_s))[kept],
    )


def kinds(outcome: NDArray[np.uint8], status: NDArray[np.uint16]) -> NDArray[np.str_]:
    """Return the kind of failure of each iteration; empty if it succeeded."""
    pairs = np.stack([outcome.astype(np.int64), status.astype(np.int64)], axis=1)
    each, where = np.unique(pairs, axis=0, return_inverse=True)
    names = np.array(
        [in_words(Outcome(one), code) if one != Outcome.OK else "" for one, code in each.tolist()]
        or [""]
    )
    named: NDArray[np.str_] = names[where.reshape(-1)]
    return named


def _clusters(flags: Bools, gap: int) -> list[tuple[int, int]]:
    """Return the first and last index of each run of True with at most `gap` False in a row."""
    at = np.flatnonzero(flags)
    if not len(at):
        return []
    cuts = np.flatnonzero(np.diff(at) > gap + 1)
    firsts, lasts = at[np.append(0, cuts + 1)], at[np.append(cuts, len(at) - 1)]
    return list(zip(firsts.tolist(), lasts.tolist(), strict=True))


def _downtime(after: _Rows, at_s: float) -> list[tuple[float, float]]:
    """Return clusters of errors as periods, extended by half the gaps to their neighbours."""
    edges_s = after.edges_s(at_s)
    return [
        (float(edges_s[first]), float(edges_s[last + 1]))
        for first, last in _clusters(~after.is_ok, PLAN_GAP)
    ]


def _failing(before: _Rows, after: _Rows, at_s: float) -> list[tuple[float, float]]:
    """Return the periods in which more failed than the share that failed before explains.

    As for degraded periods, each iteration scores the log likelihood ratio of failing with a higher
    share: half, for a short outage, and the baseline's square root, for some errors over long; then
    lower ones, for errors to the end, which must be seen outside of the periods found so far.
    """
    usual_share = _usual_share(before)
    edges_s = after.edges_s(at_s)
    found: list[tuple[float, float]] = []
    is_explained = np.zeros(len(after), dtype=bool)  # by a period with a higher share
    middle = math.sqrt(usual_share)
    lower = (2**power * usual_share for power in range(MOST_STEPS, 0, -1))
    for share in (UNAVAILABLE_SHARE, middle, *(one for one in lower if one < middle)):
        if share <= usual_share:
            continue
        least = _least_score(len(after), _scores(~before.is_ok, share, usual_share))
        scores = _scores(~after.is_ok, share, usual_share)
        if share < middle:
            scores = np.where(is_explained, 0.0, scores)
        for first, last, score in _maximal(scores):
            if score >= least:
                found.append((float(edges_s[first]), float(edges_s[last + 1])))
                is_explained[first : last + 1] = True
    return found


def _usual_share(before: _Rows) -> float:
    """Return the share that failed before, with one failure more: few do not say it exactly."""
    return (int((~before.is_ok).sum()) + 1) / (len(before) + 1)


def _has_ended(failing: Sequence[tuple[float, float]], before: _Rows, after: _Rows) -> bool:
    """Return whether what follows the last failing period is as before, not as in a period.

    A period ends with a failure, after which some succeed by chance while more still fail.
    """
    if not failing:
        return True
    # Within a period of requests that were in flight at the fault, none was due.
    within = (~after.is_ok[_inside(after.due_s, [one])] for one in failing)
    shares = [float(one.mean()) for one in within if len(one)]
    rest = ~after.is_ok[after.due_s >= max(end_s for _, end_s in failing)]
    scores = _scores(rest, min((*shares, MOST_FAILING)), _usual_share(before))
    return float(scores.sum()) <= -math.log(LEAST_ODDS)


def _remainder(
    before: _Rows,
    after: _Rows,
    injection: Injection,
    effects: Iterable[tuple[float, float]],
    *,
    is_open: bool,
) -> Remainder:
    """Return what was due after the fault was undone and its effects ended.

    Effects that begin later than CHAIN_S after the last one are errors as any others: they may come
    back. Of an effect that lasts to the end, all since the fault was undone; without any effect and
    failure, all since the fault.
    """
    ends_s = [injection.undone_s or 0.0, *(one.end_s for one in injection.phases)]
    # A fault may be undone only after the load.
    begin_s = max((one for one in ends_s if one < after.due_s[-1]), default=0.0)
    found = () if is_open else sorted(effects)
    begin_s = max(injection.at_s, begin_s if found or is_open or not after.is_ok.all() else 0.0)
    for first_s, last_s in found:
        if first_s - begin_s > CHAIN_S:
            break
        begin_s = max(begin_s, last_s)
    rest = after.picked(after.due_s >= begin_s)
    log_ratio, log_error, degrees = _latency_change(before, rest)
    return Remainder(
        before_due=len(before),
        before_failed=int((~before.is_ok).sum()),
        after_due=len(rest),
        after_failed=int((~rest.is_ok).sum()),
        clustering=_clustering(before, rest),
        log_ratio=log_ratio,
        log_error=log_error,
        degrees=degrees,
        is_open=is_open,
    )


def _clustering(before: _Rows, rest: _Rows) -> float:
    """Return the design effect of failures that come in bursts; at least 1.

    Pearson's statistic per degree of freedom (McCullagh and Nelder, Generalized Linear Models, 4.5)
    of the failures in blocks. The length of bursts is not known, so the blocks' lengths are doubled
    as long as there are enough, and the highest counts.
    """
    highest, length_s = 1.0, SHORTEST_BLOCK_S
    while True:
        square, degrees = 0.0, 0
        for rows in (before, rest):
            one, count = _pearson(rows, length_s)
            square, degrees = square + one, degrees + count
        if not degrees:
            return highest
        highest, length_s = max(highest, square / degrees), 2 * length_s


def _pearson(rows: _Rows, length_s: float) -> tuple[float, int]:
    """Return Pearson's statistic of the failures in blocks, and its degrees of freedom."""
    share = float((~rows.is_ok).mean()) if len(rows) else 0.0
    if not 0 < share < 1:
        return 0.0, 0
    block = ((rows.due_s - rows.due_s[0]) // length_s).astype(np.int64)
    due = np.bincount(block)
    failed, due = np.bincount(block, ~rows.is_ok)[due > 0], due[due > 0]
    if len(due) < LEAST_BLOCKS:
        return 0.0, 0
    square = (failed - due * share) ** 2 / (due * share * (1 - share))
    return float(square.sum()), len(due) - 1


def _latency_change(before: _Rows, rest: _Rows) -> tuple[float | None, float, float]:
    """Return the logarithm of the latency's ratio, its standard error and degrees of freedom.

    From means of consecutive iterations, which depend on each other less than single ones; the
    error is Welch's (Biometrika 34, 1947).
    """
    means, errors, degrees = [], [], 0.0
    for rows in (rest, before):
        good_s = rows.latency_s[rows.is_ok]
        if len(good_s) < LEAST_COMPARED:
            return None, 0.0, math.inf
        batches = np.array_split(np.log(np.maximum(good_s, LEAST_LATENCY_S)), BATCHES)
        of_batches = np.array([one.mean() for one in batches])
        means.append(float(of_batches.mean()))
        errors.append(float(of_batches.var(ddof=1)) / BATCHES)
    square = sum(errors)
    if square > 0:
        degrees = square**2 / sum(one**2 / (BATCHES - 1) for one in errors)
    return means[0] - means[1], math.sqrt(square), degrees or math.inf


def _covered_s(periods: Sequence[tuple[float, float]]) -> float:
    """Return the time that periods cover, which may overlap."""
    covered: list[tuple[float, float]] = []
    for begin_s, end_s in sorted(periods):
        if covered and begin_s <= covered[-1][1]:
            covered[-1] = (covered[-1][0], max(covered[-1][1], end_s))
        else:
            covered.append((begin_s, end_s))
    return math.fsum(end_s - begin_s for begin_s, end_s in covered)


def _unavailable_s(after: _Rows, at_s: float) -> float:
    edges_s = after.edges_s(at_s)
    scores = np.where(after.is_ok, -UNAVAILABLE_SHARE, 1 - UNAVAILABLE_SHARE)
    return math.fsum(
        float(edges_s[last + 1] - edges_s[first])
        for first, last, _ in _maximal(scores)
        if int((~after.is_ok[first : last + 1]).sum()) >= LEAST_FAILURES
    )


def _maximal(scores: Floats) -> list[tuple[int, int, float]]:
    """Return all maximal scoring segments: first index, last index, score.

    Ruzzo and Tompa, "A linear time algorithm for finding all maximal scoring subsequences",
    ISMB 1999: disjoint segments none of which gains by being longer or shorter.
    """
    # Each candidate has: first, last, sum before it, sum up to its end.
    found: list[tuple[int, int, float, float]] = []
    total, settled = 0.0, 0  # candidates before `settled` cannot grow any more
    for index, score in enumerate(scores.tolist()):
        below, total = total, total + score
        if score <= 0:
            continue
        first = index
        while True:
            places = range(len(found) - 1, settled - 1, -1)
            place = next((i for i in places if found[i][2] < below), None)
            if place is None:
                settled = len(found)
                break
            if found[place][3] >= total:
                break
            first, below = found[place][0], found[place][2]
            del found[place:]
        found.append((first, index, below, total))
    return [(first, last, high - low) for first, last, low, high in found]


def _degraded(
    usual: _Rows, after: _Rows, injection: Injection, failing: Sequence[tuple[float, float]]
) -> tuple[tuple[float, float], ...]:
    """Return the periods in which successful iterations were slower than before.

    An epidemic change-point test (Levin and Kline, Statistics in Medicine 4, 1985): each iteration
    scores the log likelihood ratio of being slow with SLOW_SHARE instead of with the baseline's
    share; maximal segments that chance does not explain are degraded.
    """
    good = after.picked(after.is_ok)
    if not len(good):
        return ()
    limit_s = max(
        float(np.quantile(usual.latency_s, SLOW_QUANTILE)),
        LEAST_RISE * float(np.median(usual.latency_s)),
    )
    least = _least_score(len(good), _slowness(usual, limit_s))
    edges_s, usual_s = good.edges_s(injection.at_s), usual.latency_s.mean()
    chain: list[tuple[float, float]] = []
    last_s = max(injection.at_s, injection.undone_s or 0.0)
    failed_s = after.due_s[~after.is_ok]
    failed_s = failed_s[_inside(failed_s, failing)]
    for first, last, score in _maximal(_slowness(good, limit_s)):
        begin_s, end_s = float(edges_s[first]), float(edges_s[last + 1])
        if score < least or end_s - begin_s < LEAST_DEGRADED_S:
            continue
        if float(good.latency_s[first : last + 1].mean()) < LEAST_DEGRADATION * usual_s:
            continue
        earlier_s = failed_s[failed_s <= begin_s]
        if begin_s - max(last_s, float(earlier_s.max(initial=0.0))) > CHAIN_S:
            break
        chain.append((begin_s, end_s))
        last_s = max(last_s, end_s)
    return tuple(chain)


def _refuse_overload(before: _Rows, usual: _Rows, slow: _Rows) -> None:
    """Raise ValueError if latency rose throughout the baseline, and fast or no faster afterwards.

    It rises if the load is more than the service bears. The straight line through the first and the
    last third of the baseline is the latency that would have come without the fault.
    """
    # Iterations due before the first answer still fill the service.
    settled = usual.picked(usual.due_s >= before.done_s.min())
    if len(settled) < LEAST_BASELINE:
        return
    thirds = np.array_split(np.arange(len(settled)), 3)
    first_s, middle_s, last_s = (float(np.median(settled.latency_s[one])) for one in thirds)
    if middle_s < LEAST_DEGRADATION * first_s or last_s < LEAST_DEGRADATION * middle_s:
        return
    begin_s, end_s = (float(settled.due_s[one].mean()) for one in (thirds[0], thirds[-1]))
    slope = (last_s - first_s) / (end_s - begin_s)
    expected_s = first_s + slope * (slow.due_s - begin_s)
    is_faster = not len(slow) or slow.latency_s.mean() > LEAST_DEGRADATION * expected_s.mean()
    if slope >= PLAIN_OVERLOAD or not is_faster:
        raise ValueError(
            "latency rose before the fault, too, as under a load that is more than the service "
            "bears; a lower rate is needed to say what the fault does"
        )


def _slowness(rows: _Rows, limit_s: float) -> Floats:
    return _scores(rows.latency_s > limit_s, SLOW_SHARE, 1 - SLOW_QUANTILE)


def _scores(is_hit: Bools, share: float, usual_share: float) -> Floats:
    """Return log likelihood ratios of being hit with one share instead of the usual one."""
    hit, missed = math.log(share / usual_share), math.log((1 - share) / (1 - usual_share))
    return np.where(is_hit, hit, missed)


def _least_score(count: int, in_baseline: Floats) -> float:
    """Return the score of a period that chance does not explain in so many iterations."""
    highest = max((score for *_, score in _maximal(in_baseline)), default=0.0)
    return max(math.log(max(count, 2) / FALSE_ALARM), BASELINE_FACTOR * highest)


def _inside(due_s: Floats, stretches: Sequence[tuple[float, float]]) -> Bools:
    inside = np.zeros(len(due_s), dtype=np.bool_)
    for begin_s, end_s in stretches:
        inside |= (due_s >= begin_s) & (due_s < end_s)
    return inside


def _mttr_s(
    failing: Sequence[tuple[float, float]],
    stretches: Sequence[tuple[float, float]],
    at_s: float,
    after: _Rows,
) -> float | None:
    """Return the time from the fault to the end of its last effect; None: it lasts to the end."""
    for periods, most in ((failing, _most_between(failing, after)), (stretches, PLAN_GAP)):
        end_s = max((end_s for _, end_s in periods), default=at_s)
        if end_s > at_s and int((after.due_s > end_s).sum()) <= most:
            return None
    return max((end_s for _, end_s in (*failing, *stretches)), default=at_s) - at_s


def _most_between(failing: Sequence[tuple[float, float]], after: _Rows) -> int:
    """Return the most iterations in a row that do not show that failures have ended.

    They are as many as a cluster may contain, or as there were between failures that came back
    more than once.
    """
    places = np.flatnonzero(~after.is_ok & _inside(after.due_s, failing))
    between = np.diff(places) - 1
    longer = between[between > PLAN_GAP]
    return int(longer.max()) if len(longer) > 1 else PLAN_GAP


def _plan_mttr_s(usual: _Rows, good: _Rows) -> float:
    """Return the plan's MTTR: the length of periods in which a moving mean is too high."""
    # The plan's moving mean covers all iterations in order, so it starts within the baseline.
    latency_s = np.concatenate([usual.latency_s, good.latency_s])
    due_s = np.concatenate([usual.due_s, good.due_s])
    if len(latency_s) <= PLAN_WINDOW:
        return 0.0
    order = np.argsort(due_s, kind="stable")  # at the fault, some were in flight for longer
    latency_s, due_s = latency_s[order], due_s[order]
    window = np.full(PLAN_WINDOW, 1 / PLAN_WINDOW)
    means_s = np.convolve(latency_s, window, mode="valid")
    times_s = np.convolve(due_s, window, mode="valid")
    normal_s = usual.latency_s[PLAN_WARM_UP:]
    limit_s = float(normal_s.mean()) + PLAN_SIGMAS * float(normal_s.std())
    periods = _clusters(means_s >= limit_s, PLAN_GAP)
    return math.fsum(
        float(times_s[last] - times_s[first])
        for first, last in periods
        if last - first >= PLAN_WIDTH
    )


def _backlog(rows: _Rows, at_s: float) -> tuple[int, float | None]:
    """Return the peak in flight above the usual number, and the time until it is usual again."""
    times_s = np.concatenate([rows.due_s, rows.done_s])
    steps = np.concatenate([np.ones(len(rows), np.int64), -np.ones(len(rows), np.int64)])
    # An iteration that ends at the instant of an arrival counts as ended before it.
    order = np.lexsort((steps, times_s))
    times_s, in_flight = times_s[order], np.cumsum(steps[order])
    is_before = times_s <= at_s
    highest = int(in_flight[is_before].max(initial=0))
    usual = int(np.median(in_flight[is_before])) if is_before.any() else 0
    later, later_s = in_flight[~is_before], times_s[~is_before]
    peak = int(np.argmax(later)) if len(later) else 0
    if not len(later) or later[peak] <= highest:
        return 0, 0.0
    is_low = np.flatnonzero(later[peak:] <= highest)
    # At the very end all iterations have ended, which is not a recovery of the service.
    drained = peak + int(is_low[0]) if len(is_low) else len(later)
    if drained >= len(later) or later_s[drained] > rows.due_s[-1]:
        return int(later[peak]) - usual, None
    return int(later[peak]) - usual, float(later_s[drained] - later_s[peak])


def _phase(rows: _Rows, slow: Sequence[tuple[float, float]], phase: FaultPhase) -> PhaseEffect:
    own = rows.picked((rows.due_s >= phase.begin_s) & (rows.due_s < phase.end_s))
    good_s = own.latency_s[own.is_ok]
    overlaps = (min(end, phase.end_s) - max(begin, phase.begin_s) for begin, end in slow)
    return PhaseEffect(
        words=phase.words,
        begin_s=phase.begin_s,
        end_s=phase.end_s,
        due=len(own),
        failed=int((~own.is_ok).sum()),
        p99_s=float(np.quantile(good_s, P99)) if len(good_s) else None,
        slow_s=math.fsum(max(0.0, one) for one in overlaps),
    )


def _goodput_rps(rows: _Rows, injection: Injection) -> float | None:
    """Return successful iterations per second from the fault until it was undone.

    A fault that lasts to the end is undone after the load, when nothing is asked any more.
    """
    if injection.undone_s is None:
        return None
    end_s = min(injection.undone_s, float(rows.due_s[-1]))
    held_s = end_s - injection.at_s
    if held_s < LEAST_HELD_S:
        return None
    inside = (rows.done_s > injection.at_s) & (rows.done_s <= end_s)
    return float((rows.is_ok & inside).sum()) / held_s


def _errors(after: _Rows) -> tuple[ErrorKind, ...]:
    found = []
    for kind in np.unique(after.kind[~after.is_ok]).tolist():
        told_s = after.latency_s[(after.kind == kind) & ~after.is_ok]
        found.append(
            ErrorKind(str(kind), len(told_s), float(np.median(told_s)), float(told_s.max()))
        )
    return tuple(sorted(found, key=lambda one: -one.count))
