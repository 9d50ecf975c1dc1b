"""What gave way, in each form in which a result is shown."""

from dataclasses import replace

import pytest
import result_schema
from made_workloads import workload
from realistic import keystone
from rendered import data_of, in_full, measured, page_of, summary_of

from loadstone.analysis.model import NOT_JUDGED
from loadstone.diagnosis.bottleneck import Case, name_bottleneck
from loadstone.diagnosis.cpu_profile import CpuProfile, flame, parts, read_folded
from loadstone.diagnosis.demand import MACHINE, BottleneckKind, Observation, ResourceUse, Setup
from loadstone.diagnosis.limit import named_limit
from loadstone.diagnosis.resources import Resources, Timeline
from loadstone.monitor.roles import Role
from loadstone.report import prediction, trial_figures
from loadstone.report.sections import charts, statements
from loadstone.report.sections.run import report_of
from loadstone.report.sections.search import facts as search_facts
from loadstone.result.model import Run
from loadstone.search.low_load import ALONE, PURPOSE
from loadstone.search.model import Capacity
from loadstone.store import codec

SENTENCE = "Keystone's CPU: 1.96 of 2 cores busy; a request costs 272 ms."
RUN, SAMPLES = keystone()


def resources(demand_s=0.272):
    use = ResourceUse(
        "Keystone's CPU", BottleneckKind.CPU, Role.KEYSTONE, 1.96, 2, "cores", demand_s
    )
    seen = Observation(30.0, 216, (use,), (("worker_cpu", 0.98), ("workers", 2.0)))
    verdict = name_bottleneck(Case(seen, Setup(workers=2, threads=1)))
    timeline = Timeline("Keystone's CPU", ((0.5, 0.9), (1.5, 1.0)))
    missing = ("mariadb is not watched: Access denied",)
    return Resources(seen, verdict.bottleneck, verdict.findings, (timeline,), missing)


def watched() -> Run:
    """A search of which every trial was watched; the third one has the highest valid rate."""
    search = RUN.measurements[0]
    trials = tuple(replace(one, resources=resources()) for one in search.trials)
    return replace(RUN, kind="capacity", measurements=(replace(search, trials=trials),))


def test_json_names_the_bottleneck_ranks_resources_and_gives_findings():
    result_schema.check(data_of(watched()))
    data = measured(watched())
    assert data["limit"] == "Keystone's CPU: 98 % of 2 cores, 272 ms of CPU a request"
    assert data["bottleneck"]["kind"] == "cpu"
    assert data["bottleneck"]["role"] == "keystone"
    assert data["bottleneck"]["utilisation"] == pytest.approx(0.98)
    assert data["bottleneck"]["demand_ms"] == pytest.approx(272)
    assert data["bottleneck"]["sentence"] == SENTENCE
    assert data["resources"][0]["bound_rps"] == pytest.approx(2 / 0.272)
    assert data["findings"][0]["id"] == "keystone-cpu"
    assert data["findings"][0]["evidence"]["demand_ms"] == "272"
    assert data["not_watched"] == ["mariadb is not watched: Access denied"]


def test_a_limit_that_is_a_sentence_goes_on_after_limited_by():
    seen = Observation(
        30.0, 216, (ResourceUse("generator", BottleneckKind.CPU, Role.GENERATOR, 1.9, 2, "cores"),)
    )
    verdict = name_bottleneck(Case(seen, Setup(), is_generator_valid=False))
    limited = Resources(seen, verdict.bottleneck, verdict.findings, ())
    assert verdict.bottleneck.sentence.startswith("The load generator was the limit")
    assert named_limit(limited).startswith("the load generator was the limit")


def test_without_a_monitor_they_are_null():
    data = measured(replace(RUN, measurements=RUN.measurements[:1]))
    assert data["bottleneck"] is None
    assert data["resources"] == []


def test_the_terminal_says_first_what_gives_way():
    shown = summary_of(watched())
    assert "limited by  Keystone's CPU: 98 % of 2 cores, 272 ms of CPU a request" in shown
    full = in_full(watched())
    assert SENTENCE in full
    assert "[red]" not in full
    assert "The CPU is the limit" not in full  # of the machine: its sentence says more


def test_the_page_has_the_resources_below_the_latency_over_time():
    page = page_of(watched(), lambda trial: SAMPLES[0, trial.number])
    assert "Mariadb is not watched: Access denied" in page
    latency, used = page.index("Latency over time"), page.index("Resources over time")
    assert latency < used < page.index("Backlog over time")


def test_a_task_shows_it_with_each_workload():
    one = workload(SAMPLES[0, 3])
    trial = replace(one.trials[0], resources=resources())
    run = replace(RUN, kind="task", measurements=(replace(one, trials=(trial,)),))
    assert measured(run)["bottleneck"]["sentence"] == SENTENCE
    assert "limited by  Keystone's CPU: 98 %" in summary_of(run)
    assert SENTENCE in in_full(run)


def test_the_store_gives_back_what_it_kept():
    kept = resources()
    assert codec.loads(Resources, codec.dumps(kept)) == kept


def test_a_trial_that_the_generator_spoiled_does_not_name_the_bottleneck():
    search = watched().measurements[0]
    fast = max(search.trials, key=lambda one: one.stats.throughput_rps)
    spoiled = replace(fast.health, limits=("sends were late",))
    trials = tuple(
        replace(one, health=spoiled, resources=replace(resources(9.0))) if one is fast else one
        for one in search.trials
    )
    found = replace(search, trials=trials).resources
    assert found.observation.uses[0].demand_s == 0.272


def profile():
    stacks = read_folded(
        [
            "main (flask/app.py:1);verify (keystone/common/password_hashers/bcrypt.py:1) 600\n"
            "main (flask/app.py:1);execute (sqlalchemy/orm/session.py:1) 400\n"
        ]
    )
    file = "profiles/1-005.folded"
    return CpuProfile(12.0, 50, 2, 1000, parts(stacks), flame(stacks), 1.2, file, 1)


def profiled() -> Run:
    """A search after which the workers were profiled."""
    search = RUN.measurements[0]
    beside = replace(search.trials[-1], number=6, purpose="the same without the profiler")
    seen = replace(search.trials[-1], number=7, purpose="profile", profile=profile())
    return replace(RUN, measurements=(replace(search, trials=(*search.trials, beside, seen)),))


def test_a_profile_says_where_the_time_goes_and_what_it_cost():
    result_schema.check(data_of(profiled()))
    data = measured(profiled())
    assert data["profile"]["parts"] == {"password hashing": 0.6, "SQL ORM": 0.4}
    assert data["profile"]["profiler_cores"] == pytest.approx(0.1)
    shown = in_full(profiled(), 200)
    assert "password hashing 60 %, SQL ORM 40 %" in shown
    assert "The profiler took 0.10 of a core; a request cost" in shown
    page = page_of(profiled(), lambda trial: SAMPLES[0, min(trial.number, 5)])
    assert "Where the workers' time goes" in page.replace("&#39;", "'")
    assert "profiles/1-005.folded" in page


def test_the_store_gives_back_the_flame_graph():
    assert codec.loads(CpuProfile, codec.dumps(profile())) == profile()


def predicted_and_measured():
    """A search that began with a low load."""
    search = watched().measurements[0]
    machine = ResourceUse("the machine's CPU", BottleneckKind.CPU, MACHINE, 0.3, 2, "cores", 0.3)
    first, *others = search.trials
    seen = first.resources.observation
    seen = replace(seen, uses=(*seen.uses, machine))
    low = replace(first, purpose=PURPOSE, resources=replace(first.resources, observation=seen))
    return replace(search, trials=(low, *others))


def test_the_page_shows_utilisation_by_rate_with_the_predicted_n():
    search = predicted_and_measured()
    (chart,) = [
        one
        for one in charts.of(search, "a", lambda trial: SAMPLES[0, trial.number])
        if one.id.endswith("resources-by-rate")
    ]
    points = {line.name: line.data for line in chart.series}
    assert {share for _, share in points["Keystone's CPU"]} == {98.0}
    assert len({rate_rps for rate_rps, _ in points["Keystone's CPU"]}) > 1
    assert [share for _, share in points["the machine's CPU"]] == [15.0]
    predicted = search.prediction
    assert [(span.low, span.high) for span in chart.spans] == [
        (predicted.low_rps, predicted.high_rps)
    ]
    assert chart.band is not None  # the measured N


def test_a_measured_n_is_within_the_predicted_interval_only_if_it_lies_there():
    search = predicted_and_measured()
    predicted = search.prediction
    above, below = 1.1 * predicted.high_rps, 0.9 * predicted.low_rps
    overlapping = "and their intervals overlap"
    for n_rps, ends, said in (
        (predicted.rate_rps, (below, above), "within its interval"),
        (above, (predicted.rate_rps, 2 * above), overlapping),
        (below, (below / 2, predicted.rate_rps), overlapping),
    ):
        measured = replace(search, capacity=Capacity(n_rps, *ends, 0.95))
        assert list(prediction.sentences(measured))[-1].endswith(f" the prediction, {said}")


def test_a_lower_n_does_not_contradict_an_upper_bound_that_was_predicted(monkeypatch):
    search = predicted_and_measured()
    high_rps = search.prediction.high_rps
    monkeypatch.setattr(prediction, "unwatched", lambda _: "what it waits for was not watched")
    (shown,) = [one.text for one in search_facts(search) if one.label == "predicted"]
    assert shown == f"at most {prediction.rate(search.prediction)}, from a low load"
    lower, higher = (
        replace(search, capacity=Capacity(n_rps, 0.99 * n_rps, 1.01 * n_rps, 0.95))
        for n_rps in (high_rps / 3, 2 * high_rps)
    )
    assert len(list(prediction.sentences(lower))) == 1
    assert "higher than predicted" in list(prediction.sentences(higher))[-1]
    assert not any(
        chart.spans
        for chart in charts.of(search, "a", lambda trial: SAMPLES[0, trial.number])
        if chart.id.endswith("resources-by-rate")
    )


def test_a_prediction_without_known_workers_is_an_upper_bound_if_requests_mostly_wait():
    search = watched().measurements[0]
    first, *_ = search.trials
    cost = replace(first.resources.observation.uses[0], demand_s=0.0003)
    machine = ResourceUse("the machine's CPU", BottleneckKind.CPU, MACHINE, 0.3, 2, "cores", 0.3)
    seen = replace(first.resources.observation, uses=(cost, machine), figures=())
    trials = tuple(
        replace(first, number=number, purpose=purpose, rate_rps=None, resources=resources)
        for number, (purpose, resources) in enumerate(
            [(ALONE, None), (PURPOSE, replace(first.resources, observation=seen))], 1
        )
    )
    one = replace(search, policy="prediction", capacity=None, trials=trials)
    shown = " ".join(summary_of(replace(watched(), measurements=(one,))).split())
    assert "predicted N at most" in shown
    assert "0.30 ms of CPU, and what it waits for was not watched" in shown


@pytest.mark.parametrize(
    ("requests", "why"),
    [
        (1, "1 request ended at low load, and 20 are needed to know what one costs"),
        (13, "13 requests ended at low load, and 20 are needed to know what one costs"),
        (216, "the service's processes were not watched"),
    ],
)
def test_without_a_prediction_the_reason_and_a_remedy_are_named(requests, why):
    search = watched().measurements[0]
    first, *_ = search.trials
    seen = replace(first.resources.observation, requests=requests, uses=())
    low = replace(first, purpose=PURPOSE, resources=replace(first.resources, observation=seen))
    one = replace(search, policy="prediction", capacity=None, trials=(low,))
    shown = " ".join(summary_of(replace(watched(), measurements=(one,))).split())
    expected = f"nothing is predicted: {why}. Search for N, without --predict"
    assert f"not decided (exit 4): {expected}" in shown


def test_a_trial_at_low_load_is_not_said_to_be_saturated_nor_drawn_next_to_n():
    search = watched().measurements[0]
    first, *_ = search.trials
    stats = replace(first.stats, load_s=28.0)
    low = replace(first, purpose=PURPOSE, rate_rps=None, verdict=NOT_JUDGED, stats=stats)
    other = replace(low, number=2, purpose="meter", stats=replace(first.stats, load_s=8.0))
    search = replace(search, trials=(low, other))
    assert trial_figures.verdict(low) == "low load"
    assert trial_figures.verdict(other) == "saturated"
    assert any("1 of them had a low load" in line for line in statements.method(search))
    drawn = []

    def samples_of(trial):
        drawn.append(trial.number)
        return SAMPLES[0, 3]

    (chart,) = [one for one in charts.of(search, "a", samples_of) if one.id.endswith("-resources")]
    assert chart.title == "Resources over time"
    assert low.number not in drawn
    assert "low load" in in_full(replace(watched(), measurements=(search,)))


def test_what_one_more_core_or_worker_would_allow_is_said_to_be_a_bound():
    search = watched().measurements[0]
    machine = ResourceUse("the machine's CPU", BottleneckKind.CPU, MACHINE, 1.98, 2, "cores", 0.28)
    found = search.resources
    seen = replace(
        found.observation,
        uses=(*found.observation.uses, machine),
        figures=(("workers", 4.0), ("threads_per_worker", 1.0)),
    )
    trials = tuple(
        replace(one, resources=replace(one.resources, observation=seen)) for one in search.trials
    )
    run = replace(watched(), measurements=(replace(search, trials=trials),))
    found = [one.text for one in statements.of(run.measurements[0])]
    (line,) = [one for one in found if "bounds, no forecasts" in one]
    assert "no more than 7.14/s" in line
    assert "10.7 with one more core" in line
    assert "7.14 with one more worker" in line
    assert "one core and one worker more: at most 10.7/s" in " ".join(summary_of(run).split())
    result_schema.check(data_of(run))
    data = measured(run)
    assert data["bounds"]["limit"] == "the machine's CPU"
    assert [one["change"] for one in data["bounds"]["changes"]] == [
        "one more core",
        "one more worker",
        "one more of both",
    ]


def test_the_same_advice_of_two_measurements_stands_once():
    run = watched()
    (one,) = run.measurements
    other = replace(one, trials=tuple(replace(t, resources=resources(0.1)) for t in one.trials))
    alone, twice = (
        [step.text for step in report_of(replace(run, measurements=made)).steps]
        for made in ((one,), (one, other))
    )
    assert alone
    assert twice == alone
