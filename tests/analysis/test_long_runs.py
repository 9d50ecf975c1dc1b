from pathlib import Path

import numpy as np
import pytest

from loadstone.analysis.criteria import (
    FailureRate,
    MaxAvgDuration,
    MaxAvgDurationPerAtomic,
    Outliers,
    PerformanceDegradation,
)
from loadstone.analysis.sla import judge_criteria
from loadstone.analysis.stats import compute_stats, stats_of_blocks, whole
from loadstone.engine import parquet
from loadstone.engine.parquet import SampleFile
from loadstone.engine.samples import Outcome, Samples

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
        connection=np.zeros(len(due), np.uint32),
        status=status[order].astype(np.uint16),
        outcome=np.where(status == 200, Outcome.OK, Outcome.HTTP_STATUS)[order].astype(np.uint8),
        action=action[order].astype(np.uint8),
        retried=np.zeros(len(due), np.uint8),
        generator=np.zeros(len(due), np.uint16),
    )


@pytest.mark.parametrize("steps", [1, 3])
def test_the_figures_of_a_file_are_those_of_the_table_in_memory(tmp_path: Path, steps: int) -> None:
    samples = table(steps)
    parquet.write(tmp_path / "run.parquet", samples)
    file = SampleFile(tmp_path / "run.parquet")
    # More than one row group, so that iterations lie across their edges.
    assert len(list(file.groups())) > 1
    actions = ("create", "use", "drop")[:steps]
    rate = RATE_RPS / steps
    exact = compute_stats(samples, actions, (), rate, SECONDS)
    counted = stats_of_blocks(whole(file), actions, (), rate, SECONDS)
    for name in ("due", "ok", "failed", "in_flight"):
        assert (getattr(counted.timeline, name) == getattr(exact.timeline, name)).all()
    ours, theirs = counted.stats, exact.stats
    assert ours.errors == theirs.errors
    for name in ("load_s", "due", "ok", "throughput_rps", "backlog_growth"):
        assert getattr(ours, name) == pytest.approx(getattr(theirs, name))
    for kind in ("total", "service"):
        mine, other = getattr(ours, kind), getattr(theirs, kind)
        assert (mine.mean_s, mine.max_s) == pytest.approx((other.mean_s, other.max_s))
        for name in ("median_s", "p90_s", "p95_s", "p99_s"):
            assert getattr(mine, name) == pytest.approx(getattr(other, name), rel=0.0006)
    assert ours.latency_slope == pytest.approx(theirs.latency_slope, abs=1e-4)


def test_a_file_without_rows_has_no_figures(tmp_path: Path) -> None:
    parquet.write(tmp_path / "run.parquet", Samples(*(column[:0] for column in columns())))
    blocks = whole(SampleFile(tmp_path / "run.parquet"))
    stats = stats_of_blocks(blocks, ("create",), (), None, 0.0).stats
    assert (stats.due, stats.ok, stats.errors) == (0, 0, ())
    assert np.isnan(stats.total.p99_s)


def columns() -> list[np.ndarray]:
    samples = table(3)
    return [getattr(samples, name) for name in Samples.__slots__]


def test_a_workload_of_many_rows_shows_the_same_from_its_file(tmp_path: Path) -> None:
    samples, actions = table(3), ("create", "use", "use#2")
    parquet.write(tmp_path / "run.parquet", samples)
    file = SampleFile(tmp_path / "run.parquet")
    rules = [Outliers(0), PerformanceDegradation(10), FailureRate(0, 1), MaxAvgDuration(1)]
    rules.append(MaxAvgDurationPerAtomic({"create": 0.001, "use": 60}))
    of_all = compute_stats(file, actions, rules)
    of_blocks = stats_of_blocks(whole(file), actions, rules)
    exact, ours = of_all.stats, of_blocks.stats
    assert of_all.sums.count == of_blocks.sums.count == ours.total.count
    for one, other in zip(
        judge_criteria(rules, of_blocks.sums), judge_criteria(rules, of_all.sums), strict=True
    ):
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
