"""The files of /proc, as the kernel writes them."""

import os

import pytest

from loadstone.monitor.sources.machine import TICKS, readings

# user nice system idle iowait irq softirq steal guest guest_nice, in ticks (man 5 proc)
STAT = """cpu  22000 100 6000 70000 300 50 150 400 1000 0
cpu0 11000 50 3000 35000 150 25 75 200 500 0
cpu1 11000 50 3000 35000 150 25 75 200 500 0
"""


def test_the_seconds_of_each_core_are_its_ticks() -> None:
    found = {(one.source, one.metric): one.value for one in readings({"stat": STAT})}
    for core in ("machine/cpu0", "machine/cpu1"):
        assert found[core, "cpu_user_seconds_total"] == pytest.approx(110.5)
        assert found[core, "cpu_system_seconds_total"] == pytest.approx(31.0)
        assert found[core, "cpu_busy_seconds_total"] == pytest.approx(141.5)
        assert found[core, "cpu_steal_seconds_total"] == pytest.approx(2.0)
        assert found[core, "cpu_idle_seconds_total"] == pytest.approx(350.0)


def test_a_tick_is_that_of_this_machine() -> None:
    assert os.sysconf("SC_CLK_TCK") == TICKS
