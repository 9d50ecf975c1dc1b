"""What is known of a command while it measures, as one immutable value."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from loadstone.analysis.model import NOT_JUDGED, Trial
from loadstone.engine.histogram import EMPTY, Histogram
from loadstone.engine.progress import HostProgress, Progress, added, bucket_end_ms
from loadstone.plan.load import BandLoad, ClosedLoad
from loadstone.report import trial_figures
from loadstone.search.model import Capacity, TrialRequest

POINT_S = 0.5  # between two points of a load's charts, at first
MOST_POINTS = 240  # of a load: above, two neighbours become one
MOST_TRIALS = 200
MOST_MESSAGES = 12
MOST_KINDS = 20  # of errors; the rest counts as OTHER
OTHER = "other"
QUANTILES = (0.5, 0.95, 0.99)
NO_PROGRESS = Progress(elapsed_s=0.0, due=0, sent=0, ok=0, failed=0, latency_ms=0.0)


@dataclass(frozen=True, slots=True)
class Point:
    """A stretch of a load: rates per second over it, and the state at its end."""

    at_s: float  # its end, since the load's start
    offered_rps: float
    completed_rps: float
    failed_rps: float
    backlog: int
    latency_ms: float | None  # mean of the iterations that ended; None without any
    # Of the successful ones, by QUANTILES; empty without any, or if they are not counted.
    quantiles_ms: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class HostPoint:
    """A host of a fleet over the stretch of a point."""

    name: str
    offered_rps: float
    completed_rps: float
    cpu_cores: float  # that its process used
    failed: int  # since the load's start
    in_flight: int
    lag_p99_ms: float | None  # since the load's start
    lost: str  # why it can no longer send load


@dataclass(frozen=True, slots=True)
class LoadState:
    """A load under way."""

    run_id: str
    request: TrialRequest
    start_s: float  # Unix time
    progress: Progress
    # Mean latency of the last iterations that ended in this load; None before any.
    latency_ms: float | None = None
    points: tuple[Point, ...] = ()
    width_s: float = POINT_S  # of the next point
    at_point: Progress = NO_PROGRESS  # when the last point ended
    latency_sum_ms: float = 0.0  # since then, over the iterations that ended
    hosts: tuple[HostPoint, ...] = ()  # of a fleet, at the last point

    @property
    def count(self) -> int | None:
        """After how many iterations it ends; None: not by their number."""
        load = self.request.load
        return load.iterations if isinstance(load, ClosedLoad) else None

    @property
    def is_paced(self) -> bool:
        """Whether iterations are due at a rate."""
        return not isinstance(self.request.load, ClosedLoad | BandLoad)


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over all loads of the command; they never fall."""

    due: int = 0
    ok: int = 0
    failed: int = 0
    latencies: tuple[int, ...] = ()  # as `Progress.latencies`
    lag: Histogram = EMPTY  # send lag, of the loads that have ended
    errors: tuple[tuple[str, int], ...] = ()  # by kind, of the loads that have ended
    verdicts: tuple[tuple[str, int], ...] = ()

    def plus(self, progress: Progress) -> "Totals":
        """Return the sums with those of a load under way."""
        return replace(
            self,
            due=self.due + progress.due,
            ok=self.ok + progress.ok,
            failed=self.failed + progress.failed,
            latencies=added(self.latencies, progress.latencies),
        )


@dataclass(frozen=True, slots=True)
class FaultSpan:
    """A fault in force, or one of the present load that is undone."""

    sentence: str
    since_s: float  # Unix time
    until_s: float | None = None  # None: still in force


@dataclass(frozen=True, slots=True)
class LiveState:
    """What a command does, and what it has measured so far."""

    began_s: float  # Unix time
    now_s: float  # Unix time of the last change
    run_ids: tuple[str, ...] = ()  # begun so far; the present one is the last
    kind: str = ""  # of the present run
    heading: str = ""  # the present measurement
    loads: tuple[LoadState, ...] = ()  # under way; two in a comparison. The last changed last
    last_load: LoadState | None = None  # that has ended
    trial: Trial | None = None  # the last that has ended
    trials: int = 0
    so_far: tuple[Capacity, ...] = ()  # N of the present search, each time that it changed
    totals: Totals = Totals()
    busiest: tuple[tuple[str, float], ...] = ()  # name and share that is in use
    faults: tuple[FaultSpan, ...] = ()
    messages: tuple[str, ...] = ()
    # Permitted load time that was left when no load was under way; None: there is no limit.
    load_left_s: float | None = None
    stored: int = 0  # how often what is stored has changed
    is_over: bool = False

    @property
    def sides(self) -> tuple[LoadState, ...]:
        """The loads under way, that of side A first; between loads, the one before."""
        loads = self.loads or tuple(filter(None, [self.last_load]))
        began = {run_id: number for number, run_id in enumerate(self.run_ids)}
        return tuple(sorted(loads, key=lambda one: (began.get(one.run_id, 0), one.run_id)))

    @property
    def left_s(self) -> float | None:
        """Seconds of load time that are left; None: there is no limit."""
        if self.load_left_s is None:
            return None
        since_s = min((one.start_s for one in self.loads), default=self.now_s)
        return max(0.0, self.load_left_s - (self.now_s - since_s))

    @property
    def sums(self) -> Totals:
        """Sums over all loads, those under way included."""
        sums = self.totals
        for one in self.loads:
            sums = sums.plus(one.progress)
        return sums


def began(state: LiveState, run_id: str, request: TrialRequest) -> LiveState:
    """Return the state with a load that begins now."""
    load = LoadState(run_id, request, state.now_s, NO_PROGRESS)
    so_far = _narrowed(state.so_far, request.so_far)
    in_force = tuple(one for one in state.faults if one.until_s is None)
    return replace(state, loads=(*_others(state, run_id), load), so_far=so_far, faults=in_force)


def progressed(state: LiveState, run_id: str, progress: Progress) -> LiveState:
    """Return the state with the counts of a load under way."""
    load = next((one for one in state.loads if one.run_id == run_id), None)
    if load is None:
        return state
    return replace(state, loads=(*_others(state, run_id), _advanced(load, progress, state.now_s)))


def ended(
    state: LiveState, run_id: str, trial: Trial, latencies: Sequence[int] | None
) -> LiveState:
    """Return the state with a trial that has ended and is stored.

    Its latencies are those of its samples; None: those that were counted last. Of a host that was
    lost, more may have been counted than has arrived; what was shown stays, as counters never fall.
    """
    load = next((one for one in state.loads if one.run_id == run_id), None)
    seen = load.progress if load else NO_PROGRESS
    stats = trial.stats
    exact = replace(
        seen,
        due=max(seen.due, stats.due),
        ok=max(seen.ok, stats.ok),
        failed=max(seen.failed, stats.failed),
        latencies=_most(seen.latencies, latencies or ()),
    )
    totals = state.totals.plus(exact)
    verdict = "not judged" if trial.verdict is NOT_JUDGED else trial_figures.verdict(trial)
    totals = replace(
        totals,
        errors=_bounded(_counted(totals.errors, stats.errors), dict(totals.errors)),
        verdicts=_counted(totals.verdicts, ((verdict, 1),)),
        lag=totals.lag
        if trial.health is None
        else Histogram.merged((totals.lag, trial.health.lag)),
    )
    return replace(
        _without(state, load, trial.spent_s),
        last_load=load or state.last_load,
        trial=trial,
        trials=state.trials + 1,
        totals=totals,
        stored=state.stored + 1,
    )


def abandoned(state: LiveState, run_id: str) -> LiveState:
    """Return the state after a load that has no result; its counts stay in the sums."""
    load = next((one for one in state.loads if one.run_id == run_id), None)
    if load is None:
        return state
    return replace(
        _without(state, load, state.now_s - load.start_s),
        last_load=load,
        totals=state.totals.plus(load.progress),
        stored=state.stored + 1,
    )


def measured(state: LiveState, capacity: Capacity | None) -> LiveState:
    """Return the state after a measurement, which is stored; with its N if it has one."""
    return replace(state, so_far=_narrowed(state.so_far, capacity), stored=state.stored + 1)


def faulted(state: LiveState, sentence: str, *, is_in_force: bool) -> LiveState:
    """Return the state with a fault that begins or is undone now."""
    if is_in_force:
        return replace(state, faults=(*state.faults, FaultSpan(sentence, state.now_s)))
    done = [
        replace(one, until_s=state.now_s)
        if one.sentence == sentence and one.until_s is None
        else one
        for one in state.faults
    ]
    return replace(state, faults=tuple(done))


def quantiles_ms(counts: Sequence[int]) -> tuple[float, ...]:
    """Return the QUANTILES of latencies in buckets, linear within a bucket; empty without any."""
    sums = np.cumsum(counts)
    if not len(sums) or not sums[-1]:
        return ()
    found = []
    for share in QUANTILES:
        rank = share * float(sums[-1])
        index = int(np.searchsorted(sums, rank))
        before = float(sums[index - 1]) if index else 0.0
        low = bucket_end_ms(index - 1) if index else 0.0
        inside = (rank - before) / max(float(counts[index]), 1.0)
        found.append(low + inside * (bucket_end_ms(index) - low))
    return tuple(found)


def _narrowed(so_far: tuple[Capacity, ...], found: Capacity | None) -> tuple[Capacity, ...]:
    if found is None or (found.low_rps, found.high_rps) == (None, None):
        return so_far
    return so_far if so_far[-1:] == (found,) else (*so_far, found)[-MOST_TRIALS:]


def _others(state: LiveState, run_id: str) -> tuple[LoadState, ...]:
    return tuple(one for one in state.loads if one.run_id != run_id)


def _without(state: LiveState, load: LoadState | None, spent_s: float) -> LiveState:
    """Return the state without a load; its time is spent once no other is under way."""
    if load is None:
        return state
    loads, left_s = _others(state, load.run_id), state.load_left_s
    if left_s is not None and not loads:
        left_s -= spent_s
    return replace(state, loads=loads, load_left_s=left_s)


def _advanced(load: LoadState, progress: Progress, now_s: float) -> LoadState:
    before = load.progress
    fresh = progress.ok + progress.failed - before.ok - before.failed
    load = replace(
        load,
        progress=progress,
        # The load may have waited for its workers; a late call must not move its start.
        start_s=min(load.start_s, now_s - progress.elapsed_s)
        if load.points
        else now_s - progress.elapsed_s,
        latency_ms=progress.latency_ms or load.latency_ms,
        latency_sum_ms=load.latency_sum_ms + progress.latency_ms * fresh,
    )
    if progress.elapsed_s - load.at_point.elapsed_s < load.width_s:
        return load
    points = (*load.points, _point(load))
    width_s = load.width_s
    if len(points) > MOST_POINTS:
        points, width_s = _halved(points), 2 * width_s
    return replace(
        load,
        points=points,
        width_s=width_s,
        at_point=progress,
        latency_sum_ms=0.0,
        hosts=tuple(_hosts(load.at_point, progress)),
    )


def _hosts(then: Progress, now: Progress) -> Iterator[HostPoint]:
    before = {one.name: one for one in then.hosts}
    took_s = now.elapsed_s - then.elapsed_s
    for one in now.hosts:
        was = before.get(one.name, HostProgress(one.name))
        yield HostPoint(
            one.name,
            (one.due - was.due) / took_s,
            (one.ok - was.ok) / took_s,
            (one.cpu_s - was.cpu_s) / took_s,
            one.failed,
            one.in_flight,
            one.lag_p99_ms,
            one.lost,
        )


def _point(load: LoadState) -> Point:
    now, then = load.progress, load.at_point
    took_s = now.elapsed_s - then.elapsed_s
    ended = now.ok + now.failed - then.ok - then.failed
    counts: Sequence[int] = now.latencies
    if counts and then.latencies:
        counts = [more - less for more, less in zip(now.latencies, then.latencies, strict=True)]
    return Point(
        now.elapsed_s,
        (now.due - then.due) / took_s,
        (now.ok - then.ok) / took_s,
        (now.failed - then.failed) / took_s,
        now.in_flight,
        load.latency_sum_ms / ended if ended else None,
        quantiles_ms(counts),
    )


def _halved(points: Sequence[Point]) -> tuple[Point, ...]:
    """Return one point for each two; of latencies the higher, so that no peak is lost."""
    pairs = zip(points[::2], points[1::2], strict=False)
    halved = [_joined(one, other) for one, other in pairs]
    return tuple(halved + list(points[len(halved) * 2 :]))


def _joined(one: Point, other: Point) -> Point:
    latencies = [each for each in (one.latency_ms, other.latency_ms) if each is not None]
    quantiles = one.quantiles_ms or other.quantiles_ms
    if one.quantiles_ms and other.quantiles_ms:
        quantiles = tuple(map(max, one.quantiles_ms, other.quantiles_ms))
    return Point(
        other.at_s,
        (one.offered_rps + other.offered_rps) / 2,
        (one.completed_rps + other.completed_rps) / 2,
        (one.failed_rps + other.failed_rps) / 2,
        other.backlog,
        max(latencies, default=None),
        quantiles,
    )


_Counts = Iterable[tuple[str, int]]


def _counted(some: _Counts, more: _Counts) -> tuple[tuple[str, int], ...]:
    counts: Counter[str] = Counter()
    for kind, count in (*some, *more):
        counts[kind] += count
    return tuple(counts.most_common())


def _most(some: Sequence[int], more: Sequence[int]) -> tuple[int, ...]:
    """Return the greater count of each bucket; empty ones are all 0."""
    if not some or not more:
        return tuple(some or more)
    return tuple(map(max, some, more))


def _bounded(
    kinds: Sequence[tuple[str, int]], known: Mapping[str, int]
) -> tuple[tuple[str, int], ...]:
    """Return the kinds known before, the most frequent of the others, and the sum of the rest.

    A kind that is named once stays so: a counter never falls.
    """
    named = sorted((one for one in kinds if one[0] != OTHER), key=lambda one: one[0] not in known)
    rest = sum(count for _, count in named[MOST_KINDS:])
    rest += sum(count for kind, count in kinds if kind == OTHER)
    kept = sorted(named[:MOST_KINDS], key=lambda one: -one[1])
    return (*kept, *(((OTHER, rest),) if rest else ()))
