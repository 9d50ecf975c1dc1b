"""The highest rate that a simulated service refuses no more of than is allowed."""

import math
from dataclasses import replace

import numpy as np

from simulator.paces import (
    Collapse,
    Contention,
    Decline,
    Filling,
    Job,
    Pace,
    Pauses,
    Scaling,
    Swing,
)
from simulator.service import Service, WindowLimiter
from simulator.simulator import Simulator
from simulator.unknown import Checkpoint, Credits, Levelling, Neighbour, Retries, Wandering
from simulator.workers import Workers

REQUESTS = 40_000  # for each rate that is tried
STEPS = 10
SEED = 7
ALLOWED = 0.001
# Paces that change a service for good, and those that depend on how many requests are inside.
FOR_GOOD = (Decline, Filling, Scaling, Pauses, Levelling)
BY_QUEUE = (Collapse, Contention, Retries)
DEEP_S = 2.0  # seconds of work in flight that count as a long queue
INSTANTS = 1000  # of a period


def sustained_rps(service: Service) -> float:
    """Return N of a service, found with many requests where no formula gives it."""
    limiter = service.limiter
    if isinstance(limiter, WindowLimiter):
        return min(limiter.most / limiter.window_s, service.long_run_rps)
    if limiter is not None:
        return min(limiter.rate_rps, service.long_run_rps)
    is_open = service.connections >= 512
    if is_open and min(service.queue_limit, service.queue_timeout_s * service.capacity_rps) >= 512:
        return service.long_run_rps
    low, high = 0.0, service.long_run_rps
    for _ in range(STEPS):
        rate_rps = (low + high) / 2
        if _refuses_more(service, rate_rps):
            high = rate_rps
        else:
            low = rate_rps
    return (low + high) / 2


def _refuses_more(service: Service, rate_rps: float) -> bool:
    """Return whether more than the allowed share is refused; end as soon as that is known."""
    workers = Workers(replace(service, limiter=None, lockout=None), np.random.default_rng(SEED))
    left = ALLOWED * REQUESTS
    for number in range(REQUESTS):
        left -= workers.serve(number / rate_rps) is None
        if left < 0:
            return True
    return False


def lasting_rps(service: Service, simulator: Simulator) -> tuple[float, float]:
    """Return the capacity that lasts, as a range where it depends on the queue.

    A service that changes for good has the capacity that it has at the end of the search, one that
    changes to and fro has its mean over a long time.
    """
    rate_rps = service.capacity_rps
    if service.uneven:  # they take turns, so the slowest one is full first
        return (rate_rps * len(service.uneven) * min(service.uneven),) * 2
    if service.exclusive:
        return (_completed_rps(service),) * 2
    pace = service.pace
    if isinstance(pace, FOR_GOOD):
        return (rate_rps / simulator.slower,) * 2
    if isinstance(pace, BY_QUEUE):
        slowest = pace.slower(0.0, round(DEEP_S * rate_rps), 0)
        return rate_rps / slowest, rate_rps
    return (_to_and_fro_rps(pace, rate_rps),) * 2


def _to_and_fro_rps(pace: Pace | None, rate_rps: float) -> float:
    """Return the mean capacity of a service that is slower and faster in turn."""
    match pace:
        case Swing(period_s=every_s) | Job(every_s=every_s):
            return rate_rps * _mean_speed(pace, every_s)
        case Credits(per_s=per_s, factor=factor):
            return rate_rps / factor + per_s * (1 - 1 / factor)
        case Neighbour(factor=factor):
            return rate_rps * (1 + 1 / factor) / 2
        case Checkpoint(every_s=every_s, stops_s=stops_s):
            return rate_rps * every_s / (every_s + stops_s)
        case Wandering(spread=spread):
            return rate_rps * math.exp(spread**2 / 2)
        case _:  # Idle, Governor: slower only while it is not full
            return rate_rps


def _mean_speed(pace: Pace, period_s: float) -> float:
    return float(
        np.mean([1 / pace.slower(period_s * at / INSTANTS, 1, 0) for at in range(INSTANTS)])
    )


def _completed_rps(service: Service) -> float:
    workers = Workers(replace(service, queue_limit=math.inf), np.random.default_rng(SEED))
    return REQUESTS / max(workers.serve(0.0) or 0.0 for _ in range(REQUESTS))
