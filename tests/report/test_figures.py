"""Numbers for people."""

import pytest

from loadstone.diagnosis.demand import BottleneckKind, ResourceUse
from loadstone.report import figures
from loadstone.search.model import Capacity


@pytest.mark.parametrize(
    ("value_rps", "text"),
    [
        (12345.6, "12,346"), (123.4, "123"), (12.34, "12.3"), (1.234, "1.23"), (0.096, "0.0960"),
        (0.104, "0.104"), (0.004, "0.00400"), (1 / 86400, "0.00001"), (0.0, "0.00"),
        (999.6, "1,000"), (99.96, "100"), (9.996, "10.0"), (0.9996, "1.00"), (1e-9, "0.00000"),
    ],
)  # fmt: skip
def test_a_rate_has_three_digits(value_rps: float, text: str) -> None:
    assert figures.rate(value_rps) == text


@pytest.mark.parametrize(
    ("value_s", "text"),
    [
        (12.3456, "12.346"), (0.0995, "0.100"), (0.0994, "0.0994"), (0.0001, "0.0001"),
        (0.0000261, "0.000026"), (0.0, "0.0000"),
    ],
)  # fmt: skip
def test_a_time_in_seconds_has_rallys_digits_unless_they_are_zeros(value_s, text):
    assert figures.plain_s(value_s) == text


@pytest.mark.parametrize(
    ("value_ms", "text", "plain"),
    [
        (9_999.6, "10.0 s", "10,000"), (9_999.4, "9999 ms", "9,999"), (99.96, "100 ms", "100"),
        (9.996, "10.0 ms", "10.0"), (1.234, "1.23 ms", "1.2"), (0.04, "0.04 ms", "0.04"),
        (0.0, "0.00 ms", "0.0"),
    ],
)  # fmt: skip
def test_a_time_in_milliseconds_has_the_digits_of_its_rounded_value(value_ms, text, plain):
    assert figures.milliseconds(value_ms) == text
    assert figures.plain_ms(value_ms) == plain


def test_n_of_a_slow_service_keeps_its_digits() -> None:
    assert figures.n(Capacity(0.0042, 0.0039, 0.0046, 0.95)) == "0.0042"


@pytest.mark.parametrize(
    ("limit", "text"),
    [(1.0, "1 connection"), (1.5, "1.5 connections"), (151.0, "151 connections"),
     (16384.0, "16,384 connections"), (100_000.0, "100,000 connections")],
)  # fmt: skip
def test_a_capacity_has_all_digits_before_the_point(limit: float, text: str) -> None:
    kind = BottleneckKind.CONNECTIONS
    use = ResourceUse("connections to the database", kind, "database", 1.0, limit, "connections")
    assert figures.capacity(use) == text


def test_what_failed_once_is_not_100_percent():
    assert figures.success(10_000, 10_000) == "100 %"
    assert figures.success(9_999, 10_000) == "99.9 %"
    assert figures.success(0, 10) == "0.0 %"
    assert figures.success(0, 0) == figures.MISSING
