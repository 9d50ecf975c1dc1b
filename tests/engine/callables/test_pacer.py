"""When iterations of Python functions are due and may start, in time that is made up."""

from loadstone.engine.callables.pacer import Limited, pacer
from loadstone.plan.load import OpenLoad

MS = 1_000_000


def due_ms(limited: Limited, looks_ms: range) -> list[int]:
    found = []
    for at_ms in looks_ms:
        while (arrival := limited.take(at_ms * MS)) is not None:
            found.append(arrival.due_ns // MS)
    return found


def limited(rate_rps: float, max_rate_rps: float) -> Limited:
    return Limited(pacer(OpenLoad(rate_rps, 1.0)), 1e9 / max_rate_rps, None)


def test_a_late_generator_does_not_move_due_times_below_the_ceiling() -> None:
    one = limited(50.0, 5000.0)
    assert due_ms(one, range(200, 1000)) == list(range(0, 1000, 20))
    assert (one.throttled, one.throttled_ns) == (0, 0)


def test_a_delayed_iteration_is_due_when_the_ceiling_permits_it() -> None:
    one = limited(100.0, 50.0)
    assert due_ms(one, range(1000))[:4] == [0, 20, 40, 60]
    assert one.throttled == 49


def test_a_late_generator_catches_up_on_ten_milliseconds_at_most() -> None:
    one = limited(50.0, 50.0)
    for at_ms in range(0, 1000, 100):  # without a limit, 5 would begin at each look
        assert len(due_ms(one, range(at_ms, at_ms + 1))) <= 1
