"""Random services, by the kind of trouble that they have."""

import math
from dataclasses import replace

import numpy as np

from loadstone.search.simulator.service import Bursts, Crowding, Fsync, Service, Stalls

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
QUEUE_LIMIT = 512  # the usual listen backlog, where the family names none


def draw(family: str, index: int, low_rps: float = 20.0, high_rps: float = 180.0) -> Service:
    """Give the `index`-th random service of a family."""
    kind = (FAMILIES | ILL_POSED)[family]
    random = np.random.default_rng([index, *family.encode()])
    return replace(
        kind,
        capacity_rps=float(np.exp(random.uniform(math.log(low_rps), math.log(high_rps)))),
        workers=int(random.choice([2, 4, 8, 16])),
        variation=float(random.uniform(0.05, 0.5)),
        queue_limit=min(kind.queue_limit, QUEUE_LIMIT),
    )
