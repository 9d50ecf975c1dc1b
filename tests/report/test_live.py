"""What is shown of a command while it measures: the state, and the page that is made of it."""

from dataclasses import replace

import numpy as np
import pytest
from made_runs import runs
from made_stats import failures

from loadstone.analysis.model import NOT_JUDGED, Trial
from loadstone.analysis.stats import compute_stats
from loadstone.engine.callables.model import PAUSE
from loadstone.engine.progress import (
    BUCKETS,
    HostProgress,
    Progress,
    bucket_end_ms,
    buckets_of,
)
from loadstone.engine.samples import Outcome, Samples
from loadstone.live import now, state
from loadstone.live.feed import Feed, Viewer
from loadstone.live.results import so_far
from loadstone.live.state import MOST_KINDS, MOST_POINTS, LiveState
from loadstone.plan.load import OpenLoad
from loadstone.report import html
from loadstone.report.sections.run import report_of
from loadstone.search.model import Capacity, TrialRequest
from loadstone.system.clock import Clock
from loadstone.system.redaction import Redaction

FOUND = Capacity(60.0, 55.0, 65.0, 0.95)
REQUEST = TrialRequest(OpenLoad(50.0, 600.0), "must hold: a little below", so_far=FOUND)


class _Kept(Viewer):
    """Keeps what it is shown."""

    def __init__(self) -> None:
        self.state = LiveState(0.0, 0.0)
        self.lines: list[str] = []

    def show(self, state: LiveState) -> None:
        self.state = state

    def say(self, line: str) -> None:
        self.lines.append(line)


@pytest.fixture
def kept():
    return _Kept()


@pytest.fixture
def feed(kept):
    at = iter(np.arange(1000.0, 9000.0, 0.01).tolist())
    return Feed([kept], Clock(monotonic_s=lambda: next(at), unix_s=lambda: next(at)))


def progress(at_s: float, rate: float = 50.0, latency_ms: float = 20.0) -> Progress:
    """The counts of a load whose iterations all take the same time."""
    ended = int(rate * at_s)
    counts = [0] * BUCKETS
    counts[int(buckets_of(np.array([int(latency_ms * 1000)]))[0])] = ended
    return Progress(at_s, ended + 3, ended, ended, 0, latency_ms, tuple(counts))


def paused(count: int, work_ms: int, pause_ms: int) -> Samples:
    """The samples of iterations that work and then pause, one after the other."""
    ends_ms = np.tile([work_ms, work_ms + pause_ms], count)
    starts_ms = np.tile([0, work_ms], count)
    iteration = np.repeat(np.arange(count), 2)
    before_ms = iteration * (work_ms + pause_ms)
    zeros = np.zeros(2 * count, np.uint32)
    return Samples(
        due_ns=(before_ms + starts_ms) * 10**6,
        sent_ns=(before_ms + starts_ms) * 10**6,
        done_ns=(before_ms + ends_ms) * 10**6,
        first_byte_us=zeros,
        iteration=iteration.astype(np.uint32),
        connection=zeros,
        status=zeros.astype(np.uint16),
        outcome=np.full(2 * count, Outcome.OK, np.uint8),
        action=np.tile([0, 1], count).astype(np.uint8),
        retried=zeros.astype(np.uint8),
        generator=zeros.astype(np.uint16),
    )


def loaded(feed: Feed, seconds: float, run_id: str = "run") -> None:
    observer = feed.observer(run_id)
    observer.on_trial_begin(REQUEST)
    for tick in range(1, int(seconds * 10) + 1):
        observer.on_progress(progress(tick / 10))


def test_each_latency_belongs_to_the_bucket_whose_end_is_above_it():
    values = np.array([0, 7, 8, 15, 16, 17, 100, 12_345, 2**30 - 1])
    for value, index in zip(values, buckets_of(values), strict=True):
        low = bucket_end_ms(int(index) - 1) if index else 0.0
        assert low <= value / 1000 < bucket_end_ms(int(index))
    assert buckets_of(np.array([-5, 2**40])).tolist() == [0, BUCKETS - 1]


def test_a_point_has_the_rates_and_latencies_of_its_own_half_second(feed, kept):
    loaded(feed, 3.0)
    points = kept.state.loads[0].points
    assert [round(one.at_s, 1) for one in points] == [0.5, 1.0, 1.5, 2.0, 2.5, 3.0]
    assert points[-1].completed_rps == pytest.approx(50.0)
    assert points[-1].backlog == 3
    assert points[-1].quantiles_ms == pytest.approx((20.0, 20.0, 20.0), rel=0.07)


def test_a_load_of_hours_keeps_a_bounded_number_of_points(feed, kept):
    loaded(feed, 600.0)
    [load] = kept.state.loads
    assert MOST_POINTS / 2 <= len(load.points) <= MOST_POINTS
    assert load.points[0].at_s < 10.0
    assert load.points[-1].at_s > 590.0
    assert {round(one.completed_rps) for one in load.points} == {50}


def test_sums_are_those_of_the_trials_also_after_a_load_without_a_result(feed, kept):
    trial = runs()["search"].measurements[0].trials[0]
    observer = feed.observer("run")
    observer.on_trial_begin(REQUEST)
    observer.on_progress(progress(1.0))
    assert kept.state.sums.ok == 50
    observer.on_trial_end(trial)
    observer.close()
    sums = kept.state.sums
    assert (sums.due, sums.ok, sums.failed) == (
        trial.stats.due,
        trial.stats.ok,
        trial.stats.failed,
    )
    interrupted = feed.observer("run")
    interrupted.on_trial_begin(REQUEST)
    interrupted.on_progress(progress(1.0))
    interrupted.close()
    assert kept.state.sums.ok == trial.stats.ok + 50
    assert kept.state.loads == ()


def test_a_pause_between_loads_takes_none_of_the_load_time(feed, kept):
    trial = runs()["search"].measurements[0].trials[0]
    feed.begin(1000.0)
    loaded(feed, 2.0)
    assert kept.state.left_s == pytest.approx(998.0)
    observer = feed.observer("run")
    observer.on_trial_begin(REQUEST)
    observer.on_trial_end(trial)
    for _ in range(1000):  # 10 s on this clock
        feed.say("a pause")
    assert kept.state.left_s == pytest.approx(1000.0 - trial.spent_s)


def test_sums_do_not_fall_when_a_lost_host_has_sent_fewer_samples_than_counts(feed, kept):
    trial = runs()["search"].measurements[0].trials[0]
    counted = progress(1.0 + trial.stats.due / 50.0)
    observer = feed.observer("run")
    observer.on_trial_begin(REQUEST)
    observer.on_progress(counted)
    observer.on_trial_end(trial)
    sums = kept.state.sums
    assert (sums.due, sums.ok) == (counted.due, counted.ok)
    assert sums.latencies == counted.latencies


def test_latencies_of_a_trial_are_those_of_its_report_without_pauses(feed, kept):
    kept.needs_latencies = True
    actions = ("boot", PAUSE)
    samples = paused(count=20, work_ms=10, pause_ms=2000)
    trial = runs()["task"].measurements[0].trials[0]
    stats = compute_stats(samples, actions).stats
    observer = feed.observer("run")
    observer.on_trial_begin(REQUEST)
    observer.on_load_end(samples)
    observer.on_trial_end(replace(trial, stats=stats, actions=actions))
    latencies = kept.state.sums.latencies
    assert latencies[int(buckets_of(np.array([10_000]))[0])] == sum(latencies) == 20
    assert state.quantiles_ms(latencies)[0] / 1000 == pytest.approx(stats.total.median_s, rel=0.07)


def test_the_kinds_of_errors_are_bounded_and_none_is_lost():
    trial = runs()["search"].measurements[0].trials[0]
    failed = tuple(
        replace(failures([("x", 1)])[0], cause=f"issue: kind {number}", count=number + 1)
        for number in range(3 * MOST_KINDS)
    )
    broken = replace(trial, stats=replace(trial.stats, failures=failed))
    shown = state.ended(LiveState(0.0, 0.0), "run", broken, None)
    shown = state.ended(shown, "run", broken, None)
    kinds = dict(shown.totals.errors)
    assert len(kinds) == MOST_KINDS + 1
    assert sum(kinds.values()) == 2 * sum(one.count for one in failed)


def test_secrets_are_neither_in_messages_nor_in_what_is_done(feed, kept):
    feed.hide(Redaction(frozenset({"sesame-open"})))
    feed.say("the password is sesame-open")
    feed.on_measurement("issue with sesame-open")
    feed.on_fault("kill sesame-open", is_in_force=True)
    feed.observer("run").on_trial_begin(replace(REQUEST, purpose="try sesame-open"))
    assert "sesame-open" not in repr(kept.state)
    assert "sesame-open" not in " ".join(kept.lines)


def test_the_page_shows_the_step_n_and_a_fault_in_force(feed, kept):
    feed.on_measurement("token issue")
    loaded(feed, 2.0)
    feed.on_fault("kill keystone service on one node", is_in_force=True)
    section = now.section(kept.state)
    assert section.title == "Must hold: a little below, 50.0/s"
    assert section.answer.line == "N so far = 60 per second"
    assert section.answer.within == "55 to 65, 95 %"
    text = html.present(section)
    assert "kill keystone service on one node: in force" in text
    assert [chart.id for chart in section.charts] == ["now-rate", "now-latency", "now-backlog"]
    feed.on_fault("kill keystone service on one node", is_in_force=False)
    assert "undone after" in html.present(now.section(kept.state))


def last_trial(trial: Trial) -> dict[str, str]:
    """The facts of a page after a trial."""
    shown = now.section(state.ended(LiveState(0.0, 0.0), "run", trial, None))
    return {one.label: one.text for one in shown.facts}


def test_a_trial_without_a_verdict_is_not_called_saturated():
    metered = runs()["search"].measurements[0].trials[0]
    assert last_trial(metered)["last trial"].startswith("saturated: no constant rate was offered")
    facts = last_trial(replace(metered, verdict=NOT_JUDGED))
    assert "last trial" not in facts
    assert facts["trials so far"] == "1 not judged"


@pytest.mark.parametrize(("threads", "of"), [(1, "a core"), (4, "4 cores")])
def test_the_cpu_of_the_generator_is_of_as_many_cores_as_it_has_threads(threads, of):
    trial = runs()["search"].measurements[0].trials[0]
    assert trial.health is not None
    cpu_s = 0.5 * threads * trial.health.wall_s
    facts = last_trial(replace(trial, health=replace(trial.health, threads=threads, cpu_s=cpu_s)))
    assert facts["generator"].endswith(f", 50 % of {of}")


def test_the_interval_is_drawn_once_it_has_changed(feed, kept):
    for low in (50.0, 55.0, 55.0):
        observer = feed.observer("run")
        observer.on_trial_begin(replace(REQUEST, so_far=replace(FOUND, low_rps=low)))
        observer.on_progress(progress(1.0))
    assert len(kept.state.so_far) == 2
    assert now.section(kept.state).charts[-1].id == "now-n"


def test_the_n_of_a_search_that_has_ended_is_shown(feed, kept):
    feed.on_measurement("token issue")
    before = kept.state.stored
    feed.on_measured(FOUND)
    assert kept.state.so_far == (FOUND,)
    assert kept.state.stored == before + 1
    feed.on_measurement("token validate")
    assert kept.state.so_far == ()


def test_both_sides_of_a_comparison_are_shown(feed, kept):
    for run_id in ("a", "b"):
        loaded(feed, 2.0, run_id)
    rates = now.section(kept.state).charts[0]
    assert [one.name for one in rates.series] == [
        "A, offered",
        "A, completed",
        "B, offered",
        "B, completed",
    ]


def test_the_figures_of_both_sides_are_told_apart(feed, kept):
    # Runs that begin in the same minute have ids in any order; A is the one that began first.
    a, b = (replace(runs()["search"], run_id=one) for one in ("20260101-0000-f", "20260101-0000-a"))
    for run, seconds in ((a, 2.0), (b, 1.0)):
        feed.on_run(run)
        loaded(feed, seconds, run.run_id)
    shown = now.section(kept.state)
    labels = [one.label for one in shown.figures]
    assert labels[0] == "A: completed"
    assert "B: completed" in labels
    lasts = [float(one.rows[0].cells[0]) for one in shown.tables]
    assert lasts == pytest.approx([2.0, 1.0], abs=0.5)


def test_each_host_of_a_fleet_is_shown(feed, kept):
    observer = feed.observer("run")
    observer.on_trial_begin(REQUEST)
    for at_s in (1.0, 2.0):
        hosts = (
            HostProgress("north", int(40 * at_s), int(30 * at_s), 2, 0.5 * at_s, 1.25),
            HostProgress("south", int(10 * at_s), int(10 * at_s), 0, 0.1 * at_s, 0.5, "was lost"),
        )
        observer.on_progress(replace(progress(at_s), lag_p99_ms=1.25, hosts=hosts))
    section = now.section(kept.state)
    [table] = [one for one in section.tables if one.title == "Hosts of the fleet"]
    assert [one.name for one in table.columns][:5] == [
        *("host", "offered /s", "completed /s", "failed", "in flight"),
    ]
    assert [row.cells for row in table.rows] == [
        ("north", "40.0", "30.0", "2", "18", "0.50", "1.2"),
        ("south (lost)", "10.0", "10.0", "0", "0", "0.10", "0.50"),
    ]
    facts = {one.label: one.text for one in section.facts}
    assert facts["fleet"] == "south was lost"
    assert facts["generator now"] == "send lag p99 1.25 ms in the present load"
    assert "south (lost)" in html.present(section)


def test_without_a_fleet_there_are_no_hosts(feed, kept):
    loaded(feed, 2.0)
    assert "Hosts of the fleet" not in [one.title for one in now.section(kept.state).tables]


def test_texts_of_a_target_are_no_markup(feed, kept):
    feed.say("<script>alert(1)</script>")
    feed.on_measurement("<img src=x>")
    loaded(feed, 1.0)
    text = html.present(now.section(kept.state))
    assert "<script>" not in text
    assert "<img" not in text


def test_a_measurement_under_way_claims_no_result():
    run = runs()["search"]
    running = replace(
        run, status="running", measurements=(replace(run.measurements[0], status="running"),)
    )
    report = so_far(running, report_of(running))
    [section] = report.sections
    assert section.answer.text == "under way"
    assert section.tables[0].is_primary or any(one.is_primary for one in section.tables)
    assert "sustains" not in html.results((report,))
    assert so_far(run, report_of(run)) == report_of(run)
