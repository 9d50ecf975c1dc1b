"""Says why a service is slower than at first: a change, an empty bucket, or its own queue."""

from enum import StrEnum

import numpy as np

from loadstone.plan.load import ClosedLoad
from loadstone.search.change import LevelChange
from loadstone.search.model import Part
from loadstone.search.pool import BLOCK_S, Pool
from loadstone.search.ramp import RESPONSES, Knee, throughput
from loadstone.search.session import Session

SECONDS = 2.0
MARGIN_S = 1.0
LONGEST_PAUSE_S = 60.0


def pause_s(step: LevelChange) -> float:
    """Return how long a bucket that became empty at the step takes to fill again.

    It lost `before - after` per second under load, and gains `after` per second.
    """
    return (step.before_rps / step.after_rps - 1) * step.last_s + MARGIN_S


class Slowing(StrEnum):
    """Why less completes than at first."""

    CHANGE = "change"  # the service itself became slower
    BUCKET = "bucket"  # a limiter let a full bucket of requests pass
    QUEUE = "queue"  # it is as fast as before with few requests inside


def why_slower(session: Session, knee: Knee, step: LevelChange) -> Part[Slowing]:
    """Saturate the service with few requests, at once and after a pause, and compare the rates.

    Where it is fast with few, it is asked with as many as before, too: it may have been slower for
    a while. A bucket is only considered at the start, because it empties as soon as there is load.
    """
    if step.after_rps > step.before_rps or session.left_s < SECONDS:
        return Slowing.CHANGE
    load = ClosedLoad(knee.in_flight, max(SECONDS, RESPONSES * knee.response_s))
    middle_rps = (step.before_rps + step.after_rps) / 2
    in_flight = session.trials[-1].timeline.in_flight
    trial = yield from session.run_trial(load, "as fast again with few inside?")
    if throughput(trial, knee.response_s).rate_rps > middle_rps:
        many = min(round(float(in_flight[len(in_flight) // 2 :].mean())), session.connections)
        response_s = many / step.after_rps
        again = ClosedLoad(many, max(SECONDS, RESPONSES * response_s))
        if many <= knee.in_flight or session.left_s < (again.duration_s or 0.0):
            return Slowing.QUEUE
        trial = yield from session.run_trial(again, "as slow again with as many inside?")
        is_fast = throughput(trial, response_s).rate_rps > middle_rps
        return Slowing.CHANGE if is_fast else Slowing.QUEUE
    pause = pause_s(step)
    if not step.is_at_first or pause > LONGEST_PAUSE_S or session.left_s < SECONDS:
        return Slowing.CHANGE
    trial = yield from session.run_trial(
        load, f"as fast again after a pause of {pause:.0f} s?", pause_s=pause
    )
    is_fast = throughput(trial, knee.response_s).rate_rps > middle_rps
    return Slowing.BUCKET if is_fast else Slowing.CHANGE


def emptied(pool: Pool, bucket: LevelChange) -> Pool:
    """Return the part of a pool after the bucket, which fills at less load, became empty."""
    blocks = pool.blocks(BLOCK_S)
    if not blocks:
        return Pool()
    is_fast = np.concatenate(blocks) > (bucket.before_rps + bucket.after_rps) / 2
    fast = len(is_fast) if is_fast.all() else int(is_fast.argmin())
    return pool.after((fast + 1) * BLOCK_S)  # and the block in which it became empty
