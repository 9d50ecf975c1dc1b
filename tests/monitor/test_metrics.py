"""Readings as columns, in memory and as Parquet."""

import numpy as np
import pytest

from loadstone.engine import readings
from loadstone.errors import EnvironmentUnusable
from loadstone.monitor.metrics import Reading, Recorder, mean_over_time


def recorded(*rows, most_rows=1000):
    """Rows of (time, source, metric, value)."""
    recorder = Recorder(most_rows)
    for time_s, source, metric, value in rows:
        recorder.add(time_s, [Reading(source, metric, value)])
    return recorder


def test_the_increase_of_a_counter_survives_its_reset():
    rows = [(0, "db", "commits_total", 90), (1, "db", "commits_total", 100)]
    rows += [(2, "db", "commits_total", 4), (3, "db", "commits_total", 9)]  # restarted at 2 s
    metrics = recorded(*rows).metrics()
    assert metrics.increase("db", "commits_total") == 10 + 4 + 5


def test_times_that_are_summed_in_another_order_are_no_reset():
    before, after = 0.1 + 0.2 + 0.3, 0.1 + (0.2 + 0.3)
    assert after < before
    rows = [(0, "db", "cpu_seconds_total", before), (1, "db", "cpu_seconds_total", after)]
    assert recorded(*rows).metrics().increase("db", "cpu_seconds_total") == 0.0


def test_a_series_that_was_read_once_has_no_increase():
    metrics = recorded((0, "db", "commits_total", 90)).metrics()
    assert metrics.increase("db", "commits_total") is None
    assert metrics.increase("db", "absent_total") is None


def test_readings_of_a_slow_source_are_put_in_order():
    recorder = recorded((5, "fast", "a", 1), (6, "fast", "a", 2), (5.5, "slow", "a", 3))
    assert recorder.metrics().time_s.tolist() == [5, 5.5, 6]
    assert recorder.metrics(5.2).value.tolist() == [3, 2]


def test_memory_is_bounded_and_counters_lose_nothing():
    recorder = Recorder(most_rows=100)
    for second in range(1000):
        recorder.add(second, [Reading("db", "commits_total", second * 3)])
    metrics = recorder.metrics()
    assert len(metrics) <= 100
    first, last = metrics.value[0], metrics.value[-1]
    assert metrics.increase("db", "commits_total") == last - first
    assert first == 0
    assert last == 999 * 3
    # A trial that has just ended has all of its own.
    assert metrics.time_s[-25:].tolist() == [*range(975, 1000)]


def test_a_source_that_is_read_between_the_others_keeps_its_older_readings():
    recorder = Recorder(most_rows=100)
    for second in range(60):
        recorder.add(second, [Reading("db", "commits_total", second)])
        recorder.add(second + 0.5, [Reading("db@far", "commits_total", second)])
    metrics = recorder.metrics()
    assert len(metrics) <= 100
    for source in ("db", "db@far"):
        times, _ = metrics.of(source, "commits_total")
        assert times[0] < 1
        assert np.diff(times).max() <= 3


def test_a_file_of_readings_gives_back_what_was_written(tmp_path):
    columns = readings.ReadingColumns(
        time_us=np.array([1_700_000_000_000_000, 1_700_000_001_000_000], np.int64),
        series=np.array([1, 0], np.uint32),
        value=np.array([0.25, -3.5]),
        names=(("machine/cpu0", "cpu_busy_seconds_total", "s"), ("db", "queue", "1")),
    )
    readings.write(tmp_path / "readings.parquet", columns)
    back = readings.read(tmp_path / "readings.parquet")
    assert back.time_us.tolist() == columns.time_us.tolist()
    assert back.value.tolist() == columns.value.tolist()
    assert [back.names[i] for i in back.series] == [columns.names[i] for i in columns.series]
    assert [path.name for path in tmp_path.iterdir()] == ["readings.parquet"]


def test_a_file_that_holds_no_readings_is_refused(tmp_path):
    (tmp_path / "other.parquet").write_bytes(b"PAR1 this is none PAR1")
    with pytest.raises(EnvironmentUnusable, match=r"other\.parquet: cannot be read"):
        readings.read(tmp_path / "other.parquet")


def test_a_file_in_a_folder_that_is_not_there_is_refused(tmp_path):
    empty = readings.ReadingColumns(np.empty(0, np.int64), np.empty(0, np.uint32), np.empty(0), ())
    with pytest.raises(EnvironmentUnusable, match=r"cannot be written.*; free space"):
        readings.write(tmp_path / "absent" / "readings.parquet", empty)


def test_a_long_load_is_averaged_over_its_whole_time():
    recorder = Recorder(most_rows=1000)
    for second in range(8000):
        busy = 8.0 if second < 6400 else 1.0
        recorder.add(second, [Reading("uwsgi", "slots_busy", busy)])
    metrics = recorder.metrics()
    assert len(metrics) <= 1000
    times, values = metrics.of("uwsgi", "slots_busy")
    assert mean_over_time(times, values) == pytest.approx(6.6, abs=0.05)
    assert np.diff(times).max() < 100  # no part of it is lost
