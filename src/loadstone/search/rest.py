"""Distinguishes a service that became slower from a limiter whose bucket is empty."""

from collections.abc import Generator

import numpy as np

from loadstone.analysis.model import Trial
from loadstone.plan.load import ClosedLoad
from loadstone.search.change import LevelChange
from loadstone.search.model import TrialRequest
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


def is_bucket(
    session: Session, knee: Knee, step: LevelChange
) -> Generator[TrialRequest, Trial, bool]:
    """Saturate the service after a pause; return whether it is as fast again as before the step.

    Only a step at the start is considered, because a bucket empties as soon as there is load.
    """
    pause = pause_s(step)
    if not step.is_at_first or pause > LONGEST_PAUSE_S or session.left_s < SECONDS:
        return False
    load = ClosedLoad(knee.in_flight, max(SECONDS, RESPONSES * knee.response_s))
    trial = yield from session.run_trial(
        load, f"as fast again after a pause of {pause:.0f} s?", pause_s=pause
    )
    rate_rps = throughput(trial, knee.response_s).rate_rps
    return rate_rps > (step.before_rps + step.after_rps) / 2


def emptied(pool: Pool, bucket: LevelChange) -> Pool:
    """Return the part of a pool after the bucket, which fills at less load, became empty."""
    blocks = pool.blocks(BLOCK_S)
    if not blocks:
        return Pool()
    is_fast = np.concatenate(blocks) > (bucket.before_rps + bucket.after_rps) / 2
    fast = len(is_fast) if is_fast.all() else int(is_fast.argmin())
    return pool.after((fast + 1) * BLOCK_S)  # and the block in which it became empty
