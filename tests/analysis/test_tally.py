from pathlib import Path

import numpy as np
import pytest

from loadstone.analysis.long_run import look, run_through
from loadstone.analysis.summary import summarise
from loadstone.analysis.tally import tally, whole
from loadstone.analysis.ticks import ticks
from loadstone.engine import parquet
from loadstone.engine.parquet import SampleFile
from loadstone.engine.samples import Outcome, Samples
from loadstone.task.model import (
    FailureRate,
    MaxAvgDuration,
    MaxAvgDurationPerAtomic,
    Outliers,
    PerformanceDegradation,
)
from loadstone.task.sla import judge

RATE_RPS, SECONDS = 10_000, 60


def table(steps: int) -> Samples:
    """Iterations of `steps` steps, now and then one that fails, in the order of completion."""
    random = np.random.default_rng(steps)
    count = RATE_RPS * SECONDS // steps
    due = np.repeat((np.arange(count) / count * SECONDS * 1e9).astype(np.int64), steps)
    took = random.lognormal(16, 1, (count, steps)).astype(np.int64)
    done = due + np.cumsum(took, axis=1).ravel()
    action = np.tile(np.arange(steps), count)
    due = np.where(action == 0, due, np.append(0, done[:-1]))
    status = np.where(random.random(len(due)) < 0.001, 503, 200)
    order = np.argsort(done, kind="stable")
    return Samples(
        due_ns=due[order],
        sent_ns=(due + 1000)[order],
        done_ns=done[order],
        first_byte_us=np.ones(len(due), np.uint32),
        iteration=np.repeat(np.arange(count, dtype=np.uint32), steps)[order],
        connection=np.zeros(len(due), np.uint16),
        status=status[order].astype(np.uint16),
        outcome=np.where(status == 200, Outcome.OK, Outcome.HTTP_STATUS)[order].astype(np.uint8),
        action=action[order].astype(np.uint8),
    )


@pytest.mark.parametrize("steps", [1, 3])
def test_the_figures_of_a_file_are_those_of_the_table_in_memory(tmp_path: Path, steps: int) -> None:
    samples = table(steps)
    parquet.write(tmp_path / "run.parquet", samples)
    file = SampleFile(tmp_path / "run.parquet")
    # More than one row group, so that iterations lie across their edges.
    assert len(list(file.groups())) > 1
    counts = ticks(samples, SECONDS)
    exact = summarise(samples, counts, RATE_RPS / steps)
    counted = tally(file)
    again = counted.counts(SECONDS)
    for name in ("due", "ok", "failed", "in_flight"):
        assert (getattr(again, name) == getattr(counts, name)).all()
    summary = counted.summary(again, RATE_RPS / steps)
    assert summary.errors == exact.errors
    for name in ("load_s", "due", "ok", "throughput_rps", "backlog_growth"):
        assert getattr(summary, name) == pytest.approx(getattr(exact, name))
    for kind in ("latency", "service_time"):
        ours, theirs = getattr(summary, kind), getattr(exact, kind)
        assert (ours.mean_ms, ours.max_ms) == pytest.approx((theirs.mean_ms, theirs.max_ms))
        for name in ("p50_ms", "p90_ms", "p95_ms", "p99_ms"):
            assert getattr(ours, name) == pytest.approx(getattr(theirs, name), rel=0.0006)
    assert summary.latency_slope == pytest.approx(exact.latency_slope, abs=1e-4)


def test_a_file_without_rows_has_no_figures(tmp_path: Path) -> None:
    parquet.write(tmp_path / "run.parquet", Samples(*(column[:0] for column in columns())))
    counted = tally(SampleFile(tmp_path / "run.parquet"))
    summary = counted.summary(counted.counts(0.0), None)
    assert (summary.due, summary.ok, summary.errors) == (0, 0, ())
    assert np.isnan(summary.latency.p99_ms)


def columns() -> list[np.ndarray]:
    samples = table(3)
    return [getattr(samples, name) for name in Samples.__slots__]


def test_a_workload_of_many_rows_shows_the_same_from_its_file(tmp_path: Path) -> None:
    samples, actions = table(3), ("create", "use", "use#2")
    parquet.write(tmp_path / "run.parquet", samples)
    file = SampleFile(tmp_path / "run.parquet")
    rules = [Outliers(0), PerformanceDegradation(10), FailureRate(0, 1), MaxAvgDuration(1)]
    rules.append(MaxAvgDurationPerAtomic({"create": 0.001, "use": 60}))
    exact, of_all = look(file, actions, rules)
    ours, of_blocks = run_through(whole(file), actions, rules)
    assert of_all.count == of_blocks.count == ours.total.count
    for one, other in zip(judge(rules, of_blocks), judge(rules, of_all), strict=True):
        assert (one.criterion, one.success) == (other.criterion, other.success)
        # Outliers hang on the order in which iterations end, which a file keeps by and large.
        assert one.detail == other.detail or one.criterion == "outliers"
    pairs = [(ours.total, exact.total), (ours.service, exact.service)]
    pairs += zip(ours.actions, exact.actions, strict=True)
    for mine, theirs in pairs:
        assert (mine.name, mine.count, mine.ok) == (theirs.name, theirs.count, theirs.ok)
        assert mine.repeats == theirs.repeats
        for name in ("min_s", "mean_s", "max_s"):
            assert getattr(mine, name) == pytest.approx(getattr(theirs, name))
        for name in ("median_s", "p90_s", "p95_s", "p99_s"):
            assert getattr(mine, name) == pytest.approx(getattr(theirs, name), rel=2e-3)
    same = [(one.cause, one.count) for one in ours.failures]
    assert sorted(same) == sorted((one.cause, one.count) for one in exact.failures)
    assert (ours.load_s, ours.cut_off) == pytest.approx((exact.load_s, exact.cut_off))
    assert ours.idle is exact.idle is None
