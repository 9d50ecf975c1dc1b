"""What a workload of a task showed: its iterations, actions and failures."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from loadstone.analysis.iterations import iterations
from loadstone.analysis.percentile import percentile
from loadstone.analysis.summary import in_words
from loadstone.engine.callables.model import ITERATION, PAUSE
from loadstone.engine.samples import Outcome, Samples
from loadstone.task.sums import Iterations

# Names in parentheses are no actions of the scenario's. Where there are rows of the whole iteration
# (engine/callables), the row of an action covers those inside it, too; else each row is a request,
# and an action is all that lies in it (keystone/scenarios/atomics).
WHOLE = ITERATION


@dataclass(frozen=True, slots=True)
class Figures:
    """One row of the table that operators know; seconds, of what ended well; NaN where nothing did.

    What an iteration does several times under one name counts once, with the sum of its times.
    """

    name: str
    count: int  # iterations in which it was made
    ok: int  # iterations in which it went well
    min_s: float
    median_s: float
    p90_s: float
    p95_s: float
    p99_s: float
    max_s: float
    mean_s: float
    repeats: int = 1  # how often at most in one iteration

    @property
    def success(self) -> float:
        """The share that went well, 0 to 1."""
        return self.ok / self.count if self.count else 0.0


@dataclass(frozen=True, slots=True)
class Failure:
    """Iterations that failed for one reason."""

    cause: str  # "authenticate.keystone: 503 Service Unavailable"
    count: int
    message: str  # in full, of the first of them
    iteration: int  # the first of them, from 1
    action: str
    outcome: int
    status: int


@dataclass(frozen=True, slots=True)
class Showing:
    """The figures of one workload."""

    total: Figures  # from the intended start to the end, pauses left out
    service: Figures  # from the actual send to the end, pauses left out
    # In the order in which an iteration makes them; "a/b" is b inside a, whose time is in a's.
    actions: tuple[Figures, ...]
    load_s: float  # from the first intended start to the last end
    throughput_rps: float  # iterations that ended well per second of load
    failures: tuple[Failure, ...]  # most frequent first
    cut_off: int = 0  # iterations that were begun and not ended
    idle: Figures | None = None  # pauses; None: the scenario has none


@dataclass(frozen=True, slots=True)
class Ended:
    """The iterations that ended, in that order, one row each; times in s since the start."""

    number: NDArray[np.int64]
    start_s: NDArray[np.float64]  # intended
    duration_s: NDArray[np.float64]
    service_s: NDArray[np.float64]
    idle_s: NDArray[np.float64]  # pauses, in none of the above
    failed: NDArray[np.bool_]
    cut_off: int


def ended(samples: Samples, actions: Sequence[str]) -> Ended:
    """Give the iterations that ended, in that order; `actions` names the samples' actions."""
    rows = iterations(samples)
    order = np.argsort(rows.done_ns, kind="stable")
    order = order[rows.has_ended[order]]
    due, sent, done = rows.due_ns[order], rows.sent_ns[order], rows.done_ns[order]
    number = rows.number[order].astype(np.int64)
    at, chosen = _places(samples, _named(actions, PAUSE), number)
    paused = samples.done_ns[chosen] - samples.sent_ns[chosen]
    idle_s = np.bincount(at, paused, len(number)).astype(np.float64) / 1e9
    return Ended(
        number=number,
        start_s=due / 1e9,
        duration_s=(done - due) / 1e9 - idle_s,
        # What was never sent (a refused connection) has only its latency.
        service_s=(done - np.where(sent < 0, due, sent)) / 1e9 - idle_s,
        idle_s=idle_s,
        failed=rows.is_failed[order],
        cut_off=int((~rows.has_ended).sum()),
    )


def _named(actions: Sequence[str], name: str) -> list[int]:
    return [index for index, other in enumerate(actions) if other == name]


def _places(
    samples: Samples, actions: Sequence[int], number: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Give the samples of these actions in these iterations: row of the iteration, and index."""
    chosen = np.flatnonzero(np.isin(samples.action, actions) & np.isin(samples.iteration, number))
    order = np.argsort(number)
    found = np.searchsorted(number[order], samples.iteration[chosen])
    return order[found].astype(np.int64), chosen.astype(np.int64)


@dataclass(frozen=True, slots=True)
class Made:
    """How long one action took in each ended iteration, in the order of `Ended`."""

    name: str
    seconds: NDArray[np.float64]
    count: NDArray[np.float64]  # how often it was made
    failed: NDArray[np.bool_]


def made(samples: Samples, actions: Sequence[str], rows: Ended) -> tuple[Made, ...]:
    """Give each action's times; actions of one name are one."""
    return tuple(_made(samples, actions, rows, path) for path in _paths(actions))


def _paths(actions: Sequence[str]) -> tuple[str, ...]:
    """Give the scenario's actions, each behind those that it lies in."""
    return tuple(dict.fromkeys(path for name in actions for _, path in _levels(name)))


def _levels(name: str) -> list[tuple[str, str]]:
    """Give the name as far as each level, as it stands and without the marks of repeats (#2)."""
    if name.startswith("("):
        return []
    raw = name.split("/")
    bare = [part.partition("#")[0] for part in raw]
    return [("/".join(raw[:n]), "/".join(bare[:n])) for n in range(1, len(raw) + 1)]


def _made(samples: Samples, actions: Sequence[str], rows: Ended, path: str) -> Made:
    size = len(rows.number)
    count = np.zeros(size)
    if WHOLE in actions:
        chosen = _named(actions, path)
        row, _ = _places(samples, chosen, rows.number)
        count += np.bincount(row, minlength=size)
    else:
        # Each repeat has its own mark, and is one action however many requests it takes.
        repeats: dict[str, list[int]] = {}
        for index, name in enumerate(actions):
            for raw, bare in _levels(name):
                if bare == path:
                    repeats.setdefault(raw, []).append(index)
        for own in repeats.values():
            row, _ = _places(samples, own, rows.number)
            count += np.bincount(row, minlength=size) > 0
        chosen = [index for own in repeats.values() for index in own]
    row, found = _places(samples, chosen, rows.number)
    bad = samples.outcome[found] != Outcome.OK
    return Made(
        path,
        np.bincount(row, samples.latency_ns[found] / 1e9, size).astype(np.float64),
        count,
        np.bincount(row, bad, size) > 0,
    )


def look(samples: Samples, actions: Sequence[str]) -> tuple[Showing, Iterations]:
    """Give a workload's figures and what SLA rules judge; `actions` names the samples' actions."""
    rows = ended(samples, actions)
    own = made(samples, actions, rows)
    good = ~rows.failed
    load_s = _load_s(rows)
    showing = Showing(
        total=figures("total", rows.duration_s[good], len(good)),
        service=figures("service time", rows.service_s[good], len(good)),
        actions=tuple(_action(one) for one in own if one.count.any()),
        load_s=load_s,
        throughput_rps=float(good.sum() / load_s) if load_s > 0 else 0.0,
        failures=failures(samples, actions, rows),
        cut_off=rows.cut_off,
        idle=figures("idle", rows.idle_s[good], len(good)) if rows.idle_s.any() else None,
    )
    return showing, Iterations(
        duration_s=rows.duration_s,
        failed=rows.failed,
        action_s={one.name: one.seconds for one in own},
        action_count={one.name: one.count for one in own},
        load_s=load_s,
    )


def show(samples: Samples, actions: Sequence[str]) -> Showing:
    """Give the figures of a workload; `actions` names the samples' actions."""
    return look(samples, actions)[0]


def iterations_of(samples: Samples, actions: Sequence[str]) -> Iterations:
    """Give what SLA rules judge."""
    return look(samples, actions)[1]


def _load_s(rows: Ended) -> float:
    ends_s = rows.start_s + rows.duration_s + rows.idle_s
    return float(ends_s.max() - rows.start_s.min()) if len(ends_s) else 0.0


def figures(name: str, seconds: NDArray[np.float64], count: int, repeats: int = 1) -> Figures:
    """Give a row of the times of what went well, out of `count`; their order is lost."""
    ok = len(seconds)
    if not ok:
        nan = float("nan")
        return Figures(name, count, 0, nan, nan, nan, nan, nan, nan, nan, repeats)
    mean_s = float(seconds.mean())
    low, p50, p90, p95, p99, high = percentile(seconds, [0, 50, 90, 95, 99, 100])
    return Figures(name, count, ok, low, p50, p90, p95, p99, high, mean_s, repeats)


def _action(one: Made) -> Figures:
    there = one.count > 0
    good = there & ~one.failed
    return figures(one.name, one.seconds[good], int(there.sum()), int(one.count.max()))


def failures(samples: Samples, actions: Sequence[str], rows: Ended) -> tuple[Failure, ...]:
    """Group the iterations that failed by what ended them, the most frequent first."""
    failing = rows.number[rows.failed]
    bad = np.flatnonzero(
        np.isin(samples.iteration, failing)
        & (samples.outcome != Outcome.OK)
        & (samples.outcome != Outcome.NOT_SENT)
    )
    kinds = np.stack([samples.action[bad], samples.outcome[bad], samples.status[bad]]).astype(int)
    found, first, counts = np.unique(kinds, axis=1, return_index=True, return_counts=True)
    grouped = []
    for kind, at, count in zip(found.T.tolist(), first.tolist(), counts.tolist(), strict=True):
        action, outcome, status = kind
        row = int(bad[at])
        words = in_words(Outcome(outcome), status)
        name = actions[action]
        cause = f"{name}: {words}"
        number = int(samples.iteration[row]) + 1
        took_s = (samples.done_ns[row] - samples.due_ns[row]) / 1e9
        message = (
            f"{name}: {words}; first in iteration {number}, due {samples.due_ns[row] / 1e9:.3f} s "
            f"after the load began, given up {took_s:.3f} s later, on connection "
            f"{samples.connection[row]}"
        )
        grouped.append(Failure(cause, count, message, number, name, outcome, status))
    return tuple(sorted(grouped, key=lambda failure: -failure.count))
