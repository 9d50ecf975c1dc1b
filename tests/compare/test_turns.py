"""Throughput and requests in flight of loads that take turns."""

import numpy as np
import pytest

from loadstone.compare.turns import Turns, rate, turns_of
from loadstone.engine.samples import Outcome, Samples

pytestmark = pytest.mark.pure

REQUEST_S = 0.05
TURNS = 6


def turns(workers: int, length: int, cut_off: int = 0) -> Turns:
    """Return turns on a service whose workers each serve one request after the other.

    The end of the load cut off the last `cut_off` iterations.
    """
    number = np.tile(np.arange(length), TURNS)
    began_s = np.repeat(np.arange(TURNS), length)
    done_s = began_s + REQUEST_S * (1 + number // workers)
    began_ns, done_ns = ((1e9 * one).astype(np.int64) for one in (began_s, done_s))
    others = {name: np.zeros(len(number), dtype=np.int64) for name in Samples.__slots__}
    known = {"iteration": np.arange(len(number)), "due_ns": began_ns, "done_ns": done_ns}
    known["outcome"] = np.repeat([Outcome.OK, Outcome.NOT_SENT], [len(number) - cut_off, cut_off])
    return turns_of(Samples(**others | known), length)


@pytest.mark.parametrize(("workers", "length"), [(1, 8), (2, 8), (3, 8), (4, 10), (8, 8)])
def test_workers_that_are_idle_at_the_end_of_a_turn_do_not_count(workers: int, length: int) -> None:
    found = turns(workers, length)
    alone_s = (REQUEST_S, REQUEST_S)
    assert rate(found, found, length, alone_s)[0] == pytest.approx(workers / REQUEST_S, rel=0.01)


def test_the_requests_in_flight_are_those_that_begin_before_one_ends() -> None:
    assert turns(2, 8).in_flight == 8


def test_one_worker_is_never_idle() -> None:
    found = turns(1, 8)
    assert rate(found, found, 8, (REQUEST_S, REQUEST_S)) == rate(found, found, 8)


def test_a_turn_whose_iterations_were_cut_off_is_not_complete() -> None:
    assert len(turns(2, 8, cut_off=1)) == TURNS - 1
