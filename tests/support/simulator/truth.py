"""The highest rate that a simulated service refuses no more of than is allowed."""

from dataclasses import replace

import numpy as np

from simulator.service import Service, WindowLimiter
from simulator.workers import Workers

REQUESTS = 40_000  # for each rate that is tried
STEPS = 10
SEED = 7
ALLOWED = 0.001


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
        if _refused(service, rate_rps) > ALLOWED:
            high = rate_rps
        else:
            low = rate_rps
    return (low + high) / 2


def _refused(service: Service, rate_rps: float) -> float:
    workers = Workers(replace(service, limiter=None, lockout=None), np.random.default_rng(SEED))
    refused = sum(workers.serve(number / rate_rps) is None for number in range(REQUESTS))
    return refused / REQUESTS
