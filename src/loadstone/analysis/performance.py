"""What a workload of a task showed: its iterations, actions and failures."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from loadstone.analysis.iterations import iterations
from loadstone.analysis.summary import in_words
from loadstone.engine.samples import Outcome, Samples
from loadstone.task import sla

# What a sample is called that belongs to an iteration and to none of its actions: time that
# another tool spent between them. It counts in the total and is no row of a table.
BETWEEN = ""


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

    total: Figures  # from the intended start to the end
    service: Figures  # from the actual send to the end
    actions: tuple[Figures, ...]  # in the order in which an iteration makes them
    load_s: float  # from the first intended start to the last end
    throughput_rps: float  # iterations that ended well per second of load
    failures: tuple[Failure, ...]  # most frequent first
    cut_off: int = 0  # iterations that were begun and not ended


@dataclass(frozen=True, slots=True)
class Ended:
    """The iterations that ended, in that order, one row each; times in s since the start."""

    number: NDArray[np.int64]
    start_s: NDArray[np.float64]  # intended
    duration_s: NDArray[np.float64]
    service_s: NDArray[np.float64]
    failed: NDArray[np.bool_]
    cut_off: int


def ended(samples: Samples) -> Ended:
    """Give the iterations that ended, in that order."""
    rows = iterations(samples)
    numbers = np.unique(samples.iteration).astype(np.int64)
    order = np.argsort(rows.done_ns, kind="stable")
    order = order[rows.has_ended[order]]
    due, sent, done = rows.due_ns[order], rows.sent_ns[order], rows.done_ns[order]
    return Ended(
        number=numbers[order],
        start_s=due / 1e9,
        duration_s=(done - due) / 1e9,
        # What was never sent (a refused connection) has only its latency.
        service_s=(done - np.where(sent < 0, due, sent)) / 1e9,
        failed=rows.is_failed[order],
        cut_off=int((~rows.has_ended).sum()),
    )


@dataclass(frozen=True, slots=True)
class Made:
    """How long one action took in each ended iteration, in the order of `Ended`."""

    name: str
    seconds: NDArray[np.float64]
    count: NDArray[np.float64]  # how often it was made
    failed: NDArray[np.bool_]


def made(samples: Samples, actions: Sequence[str], rows: Ended) -> tuple[Made, ...]:
    """Give each action's times; actions of one name are one."""
    names = tuple(dict.fromkeys(name for name in actions if name != BETWEEN))
    place = np.full(int(rows.number.max(initial=0)) + 1, -1)
    place[rows.number] = np.arange(len(rows.number))
    number = samples.iteration.astype(np.int64)
    row = np.where(number < len(place), place[np.minimum(number, len(place) - 1)], -1)
    seconds = samples.latency_ns / 1e9
    found = []
    for name in names:
        own = [index for index, other in enumerate(actions) if other == name]
        chosen = np.isin(samples.action, own) & (row >= 0)
        at, size = row[chosen], len(rows.number)
        bad = samples.outcome[chosen] != Outcome.OK
        found.append(
            Made(
                name,
                np.bincount(at, seconds[chosen], size).astype(np.float64),
                np.bincount(at, minlength=size).astype(np.float64),
                np.bincount(at, bad, size) > 0,
            )
        )
    return tuple(found)


def show(samples: Samples, actions: Sequence[str]) -> Showing:
    """Give the figures of a workload; `actions` names the samples' actions."""
    rows = ended(samples)
    good = ~rows.failed
    load_s = float((rows.start_s + rows.duration_s).max() - rows.start_s.min()) if len(good) else 0
    return Showing(
        total=_figures("total", rows.duration_s, good),
        service=_figures("service time", rows.service_s, good),
        actions=tuple(_action(one) for one in made(samples, actions, rows) if one.count.any()),
        load_s=float(load_s),
        throughput_rps=float(good.sum() / load_s) if load_s > 0 else 0.0,
        failures=_failures(samples, actions, rows),
        cut_off=rows.cut_off,
    )


def for_sla(samples: Samples, actions: Sequence[str]) -> sla.Iterations:
    """Give what SLA rules judge."""
    rows = ended(samples)
    own = made(samples, actions, rows)
    return sla.Iterations(
        duration_s=rows.duration_s,
        failed=rows.failed,
        action_s={one.name: one.seconds for one in own},
        action_count={one.name: one.count for one in own},
        load_s=show(samples, actions).load_s,
    )


def figures(name: str, seconds: NDArray[np.float64], count: int, repeats: int = 1) -> Figures:
    """Give a row of the times of what went well, out of `count`."""
    ok = len(seconds)
    if not ok:
        nan = float("nan")
        return Figures(name, count, 0, nan, nan, nan, nan, nan, nan, nan, repeats)
    low, p50, p90, p95, p99, high = np.percentile(seconds, [0, 50, 90, 95, 99, 100]).tolist()
    mean_s = float(seconds.mean())
    return Figures(name, count, ok, low, p50, p90, p95, p99, high, mean_s, repeats)


def _figures(name: str, seconds: NDArray[np.float64], good: NDArray[np.bool_]) -> Figures:
    return figures(name, seconds[good], len(good))


def _action(one: Made) -> Figures:
    there = one.count > 0
    good = there & ~one.failed
    return figures(one.name, one.seconds[good], int(there.sum()), int(one.count.max()))


def _failures(samples: Samples, actions: Sequence[str], rows: Ended) -> tuple[Failure, ...]:
    failing = rows.number[rows.failed]
    bad = np.flatnonzero(
        np.isin(samples.iteration, failing)
        & (samples.outcome != Outcome.OK)
        & (samples.outcome != Outcome.NOT_SENT)
    )
    kinds = np.stack([samples.action[bad], samples.outcome[bad], samples.status[bad]]).astype(int)
    found, first, counts = np.unique(kinds, axis=1, return_index=True, return_counts=True)
    failures = []
    for kind, at, count in zip(found.T.tolist(), first.tolist(), counts.tolist(), strict=True):
        action, outcome, status = kind
        row = int(bad[at])
        words = in_words(Outcome(outcome), status)
        name = actions[action] or "between actions"
        cause = f"{name}: {words}"
        number = int(samples.iteration[row]) + 1
        took_s = (samples.done_ns[row] - samples.due_ns[row]) / 1e9
        message = (
            f"{name}: {words}; first in iteration {number}, due {samples.due_ns[row] / 1e9:.3f} s "
            f"after the load began, given up {took_s:.3f} s later, on connection "
            f"{samples.connection[row]}"
        )
        failures.append(Failure(cause, count, message, number, name, outcome, status))
    return tuple(sorted(failures, key=lambda failure: -failure.count))
