"""Random services, by the kind of trouble that they have."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from simulator.paces import (
    Collapse,
    Contention,
    Decline,
    Filling,
    Idle,
    Job,
    Pace,
    Pauses,
    Scaling,
    Swing,
)
from simulator.service import (
    Bursts,
    Change,
    Crowding,
    Fsync,
    Law,
    Limiter,
    Lockout,
    Service,
    Stalls,
    WindowLimiter,
)
from simulator.unknown import UNKNOWN
from simulator.unseen import UNSEEN

FAMILIES = {
    "deterministic": Service(),  # evenly spaced arrivals, nothing disturbs
    "poisson": Service(is_poisson=True),
    "leak": Service(leak_per_minute=0.001),
    "bursts": Service(bursts=Bursts(gap_s=60.0)),
    "gc": Service(stalls=Stalls(gap_s=5.0)),
    "overflow": Service(queue_limit=64),
    "fsync": Service(fsync=Fsync(share=0.3, variation=2.0)),
    "mix": Service(
        bursts=Bursts(gap_s=90.0),
        stalls=Stalls(gap_s=8.0),
        fsync=Fsync(share=0.2, variation=1.5),
        leak_per_minute=0.0005,
        cold=0.3,
    ),
}
# Without one true capacity: it depends on the backlog.
ILL_POSED = {
    "thrash": Service(crowding=Crowding(0.08)),
    "batching": Service(crowding=Crowding(-0.08)),
    "split": Service(is_split=True),
}
# Something refuses, or slows, before or when the service saturates.
LIMITED = {
    "limiter": Service(limiter=Limiter(1.0)),
    "large-bucket": Service(limiter=Limiter(1.0)),  # holds what it accepts in 1 to 20 s
    "limiter-per-user": Service(limiter=Limiter(1.0, users=2)),
    "slowing-limiter": Service(limiter=Limiter(1.0, delays=True)),
    "short-queue": Service(queue_limit=1),
    "queue-timeout": Service(queue_timeout_s=1.0),
    "fixed-window": Service(limiter=WindowLimiter(1.0, 1.0, Law.FIXED), refuses_with="status"),
    "sliding-window": Service(limiter=WindowLimiter(1.0, 1.0, Law.SLIDING), refuses_with="status"),
    "counting-window": Service(
        limiter=WindowLimiter(1.0, 1.0, Law.COUNTING), refuses_with="status"
    ),
    "lockout": Service(limiter=Limiter(1.0), lockout=Lockout(5, 10.0), refuses_with="status"),
    "connection-limit": Service(connections=1),
}
# The capacity changes during the search: what counts is the one at its end.
CHANGING = {"step": Service(), "step-back": Service()}
# What the search says by name, or what speeds up or slows down in the course of a search.
REGIMES = (
    "decline",
    "weak-decline",
    "collapse",
    "contention",
    "swing",
    "job",
    "filling",
    "idle",
    "scaling",
    "growing-pauses",
    "uneven",
    "latency-only",
    "errors",
)
BURSTS_S = {"large-bucket": (1.0, 20.0), "lockout": (0.02, 0.2)}  # of limiters
CHANGE_S = 240.0  # within the first so many seconds
QUEUE_LIMIT = 512  # the usual listen backlog, where the family names none


def draw(family: str, index: int, low_rps: float = 20.0, high_rps: float = 180.0) -> Service:
    """Return the `index`-th random service of a family."""
    kind = (FAMILIES | ILL_POSED | LIMITED | CHANGING).get(family, Service())
    random = np.random.default_rng([index, *family.encode()])
    service = replace(
        kind,
        capacity_rps=float(np.exp(random.uniform(math.log(low_rps), math.log(high_rps)))),
        workers=int(random.choice([2, 4, 8, 16])),
        variation=float(random.uniform(0.05, 0.5)),
        queue_limit=min(kind.queue_limit, QUEUE_LIMIT),
    )
    if family in REGIMES:
        return _of_regime(service, family, random)
    if family in UNKNOWN:
        return UNKNOWN[family](service, random)
    if family in UNSEEN:  # with a short queue, one that stops for seconds would refuse below N
        return UNSEEN[family](replace(service, queue_limit=math.inf), random)
    if family in CHANGING:
        return replace(service, change=_change(family, random))
    return _limited(service, family, random) if family in LIMITED else service


def _limited(service: Service, family: str, random: np.random.Generator) -> Service:
    """Return a service with a limit of its family, drawn at random."""
    if family == "short-queue":  # 0 to 200 places; so does a limit on connections
        return replace(service, queue_limit=int(np.exp(random.uniform(0, math.log(201)))) - 1)
    if family == "queue-timeout":
        return replace(service, queue_timeout_s=_geometric(random, 0.1, 3.0))
    if family == "connection-limit":  # fewer than the workers, or a few times as many
        most = max(1, round(service.workers * _geometric(random, 0.5, 8.0)))
        refuses_with = str(random.choice(["refused", "reset"]))
        return replace(service, connections=most, refuses_with=refuses_with)
    rate_rps = service.capacity_rps * float(random.uniform(0.2, 0.9))
    if isinstance(service.limiter, WindowLimiter):
        return replace(service, limiter=_window(service.limiter, rate_rps, random))
    if service.lockout is not None:
        lasting_s = _geometric(random, 5.0, 60.0)
        service = replace(service, lockout=Lockout(int(random.integers(3, 30)), lasting_s))
    if service.limiter is None:
        return service
    least_s, most_s = BURSTS_S.get(family, (0.02, 2.0))
    limiter = replace(
        service.limiter,
        rate_rps=rate_rps,
        burst_s=_geometric(random, least_s, most_s),
        users=int(random.choice([2, 5, 10])) if family == "limiter-per-user" else 1,
    )
    return replace(service, limiter=limiter)


def _of_regime(service: Service, family: str, random: np.random.Generator) -> Service:
    """Return a service of a regime, with what makes it drawn at random."""
    if family == "uneven":  # two servers: the faster one has up to four times the other's speed
        slow = float(random.uniform(0.2, 0.45))
        return replace(service, uneven=(slow, 1 - slow))
    if family == "latency-only":  # every request takes its time, however many there are
        return replace(service, workers=100_000, capacity_rps=100_000 / _geometric(random, 0.5, 2))
    if family == "errors":
        return replace(service, error_share=_geometric(random, 0.002, 0.02))
    return replace(service, pace=PACES[family](service.capacity_rps, random))


def _decline(capacity_rps: float, random: np.random.Generator) -> Pace:
    # By 15 to 80 % of the service time in a minute at capacity.
    return Decline(per_request=_geometric(random, 0.15, 0.8) / 60 / capacity_rps)


def _weak_decline(capacity_rps: float, random: np.random.Generator) -> Pace:
    return Decline(per_request=_geometric(random, 0.04, 0.15) / 60 / capacity_rps)


def _collapse(capacity_rps: float, random: np.random.Generator) -> Pace:
    most = 16 + round(capacity_rps * _geometric(random, 0.05, 0.5))
    return Collapse(most, float(random.uniform(1.3, 3.0)), bool(random.integers(2)))


def _contention(capacity_rps: float, random: np.random.Generator) -> Pace:  # noqa: ARG001
    return Contention(_geometric(random, 0.001, 0.01))


def _swing(capacity_rps: float, random: np.random.Generator) -> Pace:  # noqa: ARG001
    phase = float(random.uniform(0, 1))
    return Swing(_geometric(random, 8.0, 120.0), _geometric(random, 0.1, 0.8), phase)


def _job(capacity_rps: float, random: np.random.Generator) -> Pace:  # noqa: ARG001
    every_s = _geometric(random, 10.0, 120.0)
    for_s = every_s * float(random.uniform(0.1, 0.5))
    return Job(every_s, for_s, float(random.uniform(1.2, 2.5)), float(random.uniform(0, 1)))


def _filling(capacity_rps: float, random: np.random.Generator) -> Pace:
    requests = capacity_rps * _geometric(random, 5.0, 60.0)
    return Filling(_geometric(random, 0.2, 2.0), requests)


def _idle(capacity_rps: float, random: np.random.Generator) -> Pace:
    after_s, requests = _geometric(random, 0.05, 2.0), capacity_rps * _geometric(random, 1.0, 10.0)
    return Idle(after_s, requests, float(random.uniform(0.3, 2.0)))


def _scaling(capacity_rps: float, random: np.random.Generator) -> Pace:
    every = round(capacity_rps * _geometric(random, 10.0, 40.0))
    return Scaling(every, int(random.integers(2, 5)))


def _growing_pauses(capacity_rps: float, random: np.random.Generator) -> Pace:
    every = max(2, round(capacity_rps * _geometric(random, 0.5, 5.0)))
    return Pauses(every, _geometric(random, 0.01, 0.1))


PACES: dict[str, Callable[[float, np.random.Generator], Pace]] = {
    "decline": _decline,
    "weak-decline": _weak_decline,
    "collapse": _collapse,
    "contention": _contention,
    "swing": _swing,
    "job": _job,
    "filling": _filling,
    "idle": _idle,
    "scaling": _scaling,
    "growing-pauses": _growing_pauses,
}


def _window(limiter: WindowLimiter, rate_rps: float, random: np.random.Generator) -> WindowLimiter:
    """Return a window of 1, 3 or 10 s that accepts a whole number of requests."""
    window_s = float(random.choice([1.0, 3.0, 10.0]))
    most = max(1, round(rate_rps * window_s))
    begun = float(random.uniform(0, 1))
    return replace(limiter, rate_rps=most / window_s, window_s=window_s, begun=begun)


def _geometric(random: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(random.uniform(math.log(low), math.log(high))))


def _change(family: str, random: np.random.Generator) -> Change:
    """Return a step of 5 to 50 % up or down at a random instant; back again at a later one."""
    factor = 1 + float(random.uniform(0.05, 0.5)) * float(random.choice([-1, 1]))
    at_s, back_at_s = sorted(float(random.uniform(0, CHANGE_S)) for _ in range(2))
    return Change(at_s, 1 / factor, back_at_s if family == "step-back" else math.inf)
