"""When iterations of an open loop are due."""

import numpy as np
import pytest
from loopback import OK, Serve, answering

from loadstone.engine.local import run
from loadstone.errors import InvalidInput
from loadstone.plan.arrivals import due_s
from loadstone.plan.load import OpenLoad, OpenLoop, ReplayLoad, Stage, StagedLoad
from loadstone.plan.model import Placement, Plan
from loadstone.plan.script import Step, text

STAIRS = (Stage(0.2, 50, 50), Stage(0.1, 0, 0), Stage(0.2, 100, 500), Stage(0.1, 500, 0))


@pytest.mark.parametrize(
    "load",
    [
        OpenLoad(300, 0.5),
        OpenLoad(300, 0.5, "poisson", seed=9),
        OpenLoad(500, 3600.0, iterations=70),
        OpenLoad(500, 3600.0, "poisson", seed=9, iterations=70),
        StagedLoad(STAIRS),
        StagedLoad(STAIRS, "poisson", seed=4),
        StagedLoad(STAIRS, iterations=33),
        ReplayLoad((0.0, 0.01, 0.01, 0.2, 0.35)),
    ],
    ids=repr,
)
@pytest.mark.parametrize("threads", [1, 3])
def test_the_engine_keeps_the_schedule_as_computed(
    serve: Serve, load: OpenLoop, threads: int
) -> None:
    plan = Plan(
        serve(answering(OK)).origin,
        (Step("get", "GET", text("/")),),
        load,
        placement=Placement(threads=threads),
    )
    samples = run(plan).samples
    due_ns = samples.due_ns[np.argsort(samples.iteration)]
    expected = np.round(np.array(list(due_s(load))) * 1e9).astype(np.int64)
    assert np.array_equal(np.sort(samples.iteration), np.arange(len(expected)))
    # The logarithm of two libraries may differ in the last bit.
    assert np.abs(due_ns - expected).max() <= 1


@pytest.mark.parametrize(
    ("load", "words"),
    [
        (StagedLoad(()), "load.stages must have at least one with a rate above 0"),
        (StagedLoad((Stage(1, 0, 0),)), "load.stages must have at least one"),
        (StagedLoad((Stage(1, 1, -1),)), r"load.stages\[0\].to_rps must be zero or more"),
        (StagedLoad((Stage(0, 1, 1),)), r"load.stages\[0\].duration_s must be positive"),
        (ReplayLoad(()), "load.offsets_s must not be empty"),
        (ReplayLoad((1.0, 0.5)), r"load.offsets_s\[1\] must not be before the one before it"),
        (ReplayLoad((0.0, 1e9)), "load.offsets_s must be at most a year"),
        (OpenLoad(1.0, 1.0, iterations=0), "load.iterations must be at least 1"),
    ],
)
def test_a_schedule_that_cannot_be_is_refused(serve: Serve, load: OpenLoop, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        run(serve(answering(OK)).plan(load))
