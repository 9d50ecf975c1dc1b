"""The Universal Scalability Law recovers known parameters and refuses what does not carry a fit."""

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from study_files import result_of

from loadstone.errors import InvalidInput
from loadstone.report import html
from loadstone.study import journal, raw
from loadstone.study.model import Cell
from loadstone.study.order import turns
from loadstone.study.read import StudySource
from loadstone.study.scaling import fit, sentences
from loadstone.study.section import report_of
from loadstone.study.table import TableRow, TurnOutcome

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


@pytest.mark.long
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


@pytest.mark.parametrize("rates", [(100, 80, 72, 66), (100, 30, 14, 8)])
def test_capacity_that_falls_from_the_first_on_is_highest_at_1(rates: tuple[int, ...]) -> None:
    points = [(float(count), float(rate)) for count, rate in enumerate(rates, 1)] * 2
    assert fit(points).peak == 1


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
    found = sum(value is not None for value in values)
    return TableRow(cell, None, None, found, len(values), True, None, (), (), figures=values)


def test_a_study_over_workers_states_the_law_for_each_other_level() -> None:
    rows = [row(n, "off", capacity(n), capacity(n)) for n in (1, 2, 4, 8)]
    rows += [row(n, "memcached", 50.0 * n, None) for n in (1, 2)]
    [sentence] = sentences(rows)
    assert sentence.startswith("workers (off): Universal Scalability Law: 20.0/s of one")
    assert "contention 0.060 (0.060 to 0.060)" in sentence
    assert f"the next after 8 brings {100 * (capacity(9) / capacity(8) - 1):+.1f} %" in sentence
    assert sentence.endswith("highest at 15")


def test_a_lower_bound_is_no_point_of_the_law() -> None:
    """Four and eight workers reached the highest rate that was allowed."""
    rows = [row(n, "off", min(capacity(n), 50.0)) for n in (1, 2, 3, 4, 8)]
    rows = [replace(one, figures=(None,)) if one.figures == (50.0,) else one for one in rows]
    assert list(sentences(rows)) == []


def test_what_the_load_generator_limited_is_no_point_of_the_law() -> None:
    rows = [row(n, "off", capacity(n), capacity(n)) for n in (1, 2, 4, 8)]
    assert list(sentences(rows))
    assert list(sentences([*rows[:3], replace(rows[3], is_valid=False)])) == []


def test_more_than_linear_growth_is_told_and_forecasts_nothing() -> None:
    """One worker leaves a core idle, and two do more than twice what it does."""
    rates = {1: (6.4, 6.5), 2: (17.1, 17.3), 3: (17.2, 17.1), 4: (13.6, 13.8)}
    rows = [row(n, "off", *found) for n, found in rates.items()]
    [sentence] = sentences(rows)
    assert "capacity grows more than in proportion" in sentence
    assert "the next after" not in sentence


SCALING = """\
title: Workers
factors: {workers: [1, 2, 4, 8]}
repeats: 2
measurement: {budget_s: 60}
"""


def test_the_page_draws_the_points_the_fitted_law_and_the_ideal_line(tmp_path: Path) -> None:
    begun = journal.begin(tmp_path, StudySource("mine.yaml", SCALING), quick=False, seed=1)
    outcomes = [
        TurnOutcome(turn, result_of(f"run-{turn.number}", capacity(int(turn.cell.levels[0][1]))))
        for turn in turns(begun.begun.study(), 1)
    ]
    report = report_of(begun, outcomes)
    [chart] = [one for one in report.charts if one.id == "scaling-1"]
    assert chart.title == "Scaling over workers"
    lines = {one.name: one.data for one in chart.series}
    assert len(lines["measured"]) == 8
    assert lines["fitted law"][0] == pytest.approx([1, capacity(1)], rel=1e-3)
    assert lines["fitted law"][-1] == pytest.approx([8, capacity(8)], rel=1e-3)
    # What one more would bring if nothing were shared, as far as the chart reaches.
    count, rate = lines["ideal"][-1]
    assert rate == pytest.approx(count * RATE, rel=1e-3)
    assert "Universal Scalability Law" in html.render(report)


def test_raw_results_are_a_line_for_each_repeat(tmp_path: Path) -> None:
    begun = journal.begin(tmp_path, StudySource("mine.yaml", SCALING), quick=False, seed=1)
    first, second, *_ = turns(begun.begun.study(), 1)
    found = [TurnOutcome(first, result_of("run-1", 20.0)), TurnOutcome(second, None, "no, broken")]
    head, one, other = csv.reader(raw.render(begun, found).splitlines())
    assert head[:4] == ["turn", "workers", "step", "repeat"]
    known = dict(zip(head, one, strict=True))
    assert (known["run"], float(known["value"]), known["unit"]) == ("run-1", 20.0, "per s")
    assert dict(zip(head, other, strict=True))["failure"] == "no, broken"


@pytest.mark.parametrize("seed", range(5))
def test_the_fit_is_that_of_scipy(seed: int) -> None:
    from scipy import optimize

    random = np.random.default_rng(seed)
    counts = np.repeat(np.array([1.0, 2.0, 4.0, 6.0, 8.0]), 3)
    noise = np.exp(random.normal(0.0, 0.05, len(counts)))
    rates = 30.0 * counts / (1 + 0.1 * seed * (counts - 1)) * noise  # a bound where seed is 0

    def residuals(values: np.ndarray) -> np.ndarray:
        rate, contention, coherence = values
        slowdown = 1 + contention * (counts - 1) + coherence * counts * (counts - 1)
        return np.log(rate * counts / slowdown / rates)

    expected = optimize.least_squares(
        residuals, (30.0, 0.05, 0.0), bounds=((1e-9, -0.9, 0.0), (np.inf, 1.5, 1.0)), x_scale="jac"
    )
    law = fit(list(zip(counts.tolist(), rates.tolist(), strict=True)))
    fitted = (law.rate_rps.value, law.contention.value, law.coherence.value)
    assert fitted == pytest.approx(expected.x.tolist(), rel=1e-4, abs=1e-4)
