"""Two stored runs that were not measured as a pair."""

from dataclasses import replace

import pytest
from realistic import keystone

from loadstone.compare.answer import Answer, Criteria
from loadstone.compare.stored import compare_runs
from loadstone.errors import InvalidInput
from loadstone.result.model import Run
from loadstone.search.model import Capacity

RESULT, _ = keystone()


def run(number: int, capacity: Capacity, **parameters: str) -> Run:
    search = replace(
        RESULT.measurements[0],
        capacity=capacity,
        parameters=tuple(parameters.items()),
        trials=(),
    )
    return replace(RESULT, run_id=f"2026110{number}-0300-ab12cd", measurements=(search,))


def compared(a: Run, b: Run):
    return compare_runs(a, b, Criteria(), lambda _run_id, _trial: None)


def test_n_with_different_objectives_is_not_compared() -> None:
    found = Capacity(100.0, 98.0, 102.0, 0.95)
    loose = run(1, found, objectives="no growing backlog, no errors")
    strict = run(2, found, objectives="p95<100ms")
    with pytest.raises(InvalidInput, match=r"different objectives \(no growing .*; p95<100ms\)"):
        compared(loose, strict)
    assert compared(loose, loose)
    same = run(3, found, objectives="errors<0.1%")
    assert compared(loose, same).notes == ()


def test_what_differs_in_the_load_is_named_beside_the_answer() -> None:
    a = run(1, Capacity(100.0, 98.0, 102.0, 0.95), users="10", HTTP="1.1")
    b = run(2, Capacity(140.0, 138.0, 142.0, 0.95), users="50", HTTP="1.1")
    found = compared(a, b)
    [(title, (metric, *_))] = found.metrics
    assert metric.answer is Answer.FASTER
    [setting] = [one for one in found.settings if one.name.endswith("users")]
    assert (setting.name, setting.values) == (f"{title}: users", ("10", "50"))


def test_the_wide_side_of_an_interval_counts() -> None:
    """A is at least 80: B, at 84, may be faster."""
    found = compared(
        run(1, Capacity(100.0, 80.0, 102.0, 0.95)), run(2, Capacity(84.0, 83.0, 85.0, 0.95))
    )
    assert found.metrics[0][1][0].answer is Answer.UNKNOWN
