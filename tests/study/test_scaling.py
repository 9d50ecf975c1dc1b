"""The Universal Scalability Law recovers known parameters and refuses what does not carry a fit."""

import numpy as np
import pytest

from loadstone.errors import InvalidInput
from loadstone.study.model import Cell
from loadstone.study.scaling import fit, sentences
from loadstone.study.table import TableRow

RATE, CONTENTION, COHERENCE = 20.0, 0.06, 0.004


def capacity(count: float) -> float:
    slowdown = 1 + CONTENTION * (count - 1) + COHERENCE * count * (count - 1)
    return RATE * count / slowdown


def test_exact_points_give_the_exact_law() -> None:
    law = fit([(n, capacity(n)) for n in (1, 2, 4, 8, 16)])
    assert law.rate_rps.value == pytest.approx(RATE, rel=1e-4)
    assert law.contention.value == pytest.approx(CONTENTION, rel=1e-3)
    assert law.coherence.value == pytest.approx(COHERENCE, rel=1e-3)
    assert law.peak == pytest.approx(((1 - CONTENTION) / COHERENCE) ** 0.5, rel=1e-3)
    assert law.at(3) == pytest.approx(capacity(3), rel=1e-4)


def test_intervals_hold_the_truth_in_95_percent() -> None:
    random = np.random.default_rng(23)
    levels = np.repeat([1, 2, 3, 4, 6, 8, 12, 16], 3)
    held = {"rate": 0, "contention": 0, "coherence": 0}
    count = 400
    for _ in range(count):
        noise = np.exp(random.normal(0.0, 0.02, len(levels)))
        law = fit([(float(n), capacity(float(n)) * e) for n, e in zip(levels, noise, strict=True)])
        held["rate"] += law.rate_rps.low <= RATE <= law.rate_rps.high
        held["contention"] += law.contention.low <= CONTENTION <= law.contention.high
        held["coherence"] += law.coherence.low <= COHERENCE <= law.coherence.high
    # 95 % less three standard deviations of 400 draws.
    assert min(held.values()) / count >= 0.917


def test_linear_growth_has_no_peak() -> None:
    law = fit([(n, 10.0 * n) for n in (1, 2, 3, 4, 5)])
    assert law.at(10) == pytest.approx(100.0, rel=1e-3)
    assert law.coherence.value == pytest.approx(0.0, abs=1e-4)


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ([(1, 10.0), (2, 19.0), (4, 30.0)], "measure at least 4 counts"),
        ([(1, 10.0)] * 3 + [(2, 19.0)] * 3, "measure at least 4 counts"),
        ([(1, 10.0), (2, 19.0), (3, 0.0), (4, 30.0), (5, 31.0)], "a capacity of 0"),
    ],
)
def test_points_that_do_not_carry_a_fit_are_refused(
    points: list[tuple[float, float]], message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        fit(points)


def row(workers: int, cache: str, *values: float | None) -> TableRow:
    cell = Cell(levels=(("workers", str(workers)), ("cache", cache)), settings=(), scenario="issue")
    return TableRow(cell, None, None, values, len(values), True, None, (), ())


def test_a_study_over_workers_states_the_law_for_each_other_level() -> None:
    rows = [row(n, "off", capacity(n), capacity(n)) for n in (1, 2, 4, 8)]
    rows += [row(n, "memcached", 50.0 * n, None) for n in (1, 2)]
    [sentence] = sentences(rows)
    assert sentence.startswith("workers (off): Universal Scalability Law: 20.0/s of one")
    assert "contention 0.060 (0.060 to 0.060)" in sentence
    assert f"the next after 8 brings {capacity(9) / capacity(8) - 1:+.1%}" in sentence
    assert sentence.endswith("highest at 15")
