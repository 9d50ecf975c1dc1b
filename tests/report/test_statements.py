import io
from dataclasses import replace

import pytest
from made_stats import with_errors
from made_workloads import steps as made_steps
from made_workloads import workload
from realistic import keystone
from rich.console import Console

from loadstone.analysis.model import Cause, TrialState, Verdict
from loadstone.analysis.sla import Check
from loadstone.report import figures
from loadstone.report.listing import listing
from loadstone.report.section import Answer
from loadstone.report.sections import charts, search, statements, steps, tables, trials
from loadstone.report.sections.run import report_of
from loadstone.result.listing import Entry, MeasurementSummary
from loadstone.result.model import Measurement
from loadstone.search.model import Capacity, CapacityKind

RESULT, SAMPLES = keystone()
ISSUE, VALIDATE = RESULT.measurements


def said(finding) -> str:
    return "\n".join(one.text for one in statements.of(finding))


def test_the_answer_has_its_interval():
    assert search.sentence(ISSUE) == (
        "Token issue: the service sustains N = 7.19 a second (95 % interval 7.11 to 7.27)."
    )


@pytest.mark.parametrize(
    ("capacity", "headline"),
    [
        (None, "No capacity was found for token issue: the search did not finish."),
        (
            Capacity(50.0, 50.0, None, 0.95),
            "Token issue: the service sustains at least 50.0 a second; the upper limit is not "
            "known.",
        ),
        (
            Capacity(None, None, 5.0, 0.0),
            "Token issue: N is below 5.00 a second; no rate was seen to be sustained.",
        ),
        (Capacity(None, 5.0, 7.0, 0.0), "Token issue: N lies somewhere in 5.0 to 7.0 a second."),
        (Capacity(None, None, None, 0.0), "Token issue: N was not found."),
    ],
)
def test_what_is_not_known_is_not_said(capacity, headline):
    unsustained = (ISSUE.trials[0], ISSUE.trials[4])
    assert search.sentence(replace(ISSUE, capacity=capacity, trials=unsustained)) == headline


def test_a_rate_that_was_sustained_is_not_said_to_be_unseen():
    found = replace(ISSUE, capacity=Capacity(None, None, 6.95, 0.0))
    assert search.sentence(found) == "Token issue: N is below 6.95 a second."


@pytest.mark.parametrize(
    ("capacity", "line"),
    [
        (Capacity(33.0, 31.0, 36.0, 0.95), "N = 33"),
        (Capacity(50.0, 50.0, None, 0.95), "N at least 50.0"),
        (Capacity(None, None, 5.0, 0.0), "N below 5.00"),
        (Capacity(None, 5.0, 7.0, 0.0), "N 5.0 to 7.0"),
    ],
)
def test_only_a_number_is_said_to_equal_n(capacity, line):
    measured = replace(ISSUE, capacity=capacity)
    drawn = charts.of(measured, "a", lambda trial: SAMPLES[0, trial.number])
    assert {one.band.label for one in drawn if one.band is not None} == {line}
    assert Answer("N", figures.n(capacity), "", "").line == line


def test_a_range_in_a_list_is_not_given_twice():
    found = MeasurementSummary("issue", "token issue", None, 5.0, 7.0)
    started = "2026-11-21T09:31:07Z"
    entry = Entry("20261121-0931-ab12cd", "capacity", "finished", started, None, (found,), 5)
    file = io.StringIO()
    listing((entry,), Console(file=file, width=100))
    assert "N 5.0 to 7.0  known as a range only" in file.getvalue()


def test_the_headline_of_repeated_searches_is_their_combined_result():
    alone = [
        replace(ISSUE, title=f"token issue, search {number} of 2", is_repeat=True)
        for number in (1, 2)
    ]
    both = replace(ISSUE, title="token issue, 2 searches", trials=())
    titles = [
        report_of(replace(RESULT, measurements=(*alone, *more))).title
        for more in ((both,), (replace(both, capacity=Capacity(None, 5.0, 7.0, 0.0)),), ())
    ]
    assert titles == [
        "Keystone 30.0.0 sustains 7.19 logins a second",
        "Token issue, 2 searches: N between 5.0 and 7.0 per second",
        "Token issue, search 1 of 2: N = 7.19 per second; "
        "token issue, search 2 of 2: N = 7.19 per second",
    ]


def test_the_headline_names_a_scenario_of_several_requests_in_full():
    longer = replace(ISSUE, title="token issue, then revocation")
    assert report_of(replace(RESULT, measurements=(longer,))).title == (
        "Keystone 30.0.0 sustains 7.19 x token issue, then revocation a second"
    )


def test_the_headline_latency_is_from_a_rate_up_to_n_that_never_failed():
    known = [t for t in trials.paced(ISSUE) if t.verdict.state is TrialState.SUSTAINED][-1]
    low, above = (replace(known, rate_rps=rate) for rate in (30.4, 35.7))
    failed = replace(above, verdict=Verdict(TrialState.DEGRADED, ("grew",), Cause.OVERLOAD))
    n = Capacity(33.0, 31.0, 36.0, 0.95)
    for made in ((low, above), (low, above, failed), (above, failed, low)):
        shown = trials.last_sustained(replace(ISSUE, capacity=n, trials=made))
        assert shown is not None
        assert shown.rate_rps == 30.4
    sustained_above = replace(ISSUE, capacity=n, trials=(above,))
    assert "p95 below N" not in [one.label for one in search.facts(sustained_above)]
    assert "p95 below N" in [
        one.label for one in search.facts(replace(sustained_above, trials=(low, above)))
    ]
    only = trials.last_sustained(replace(ISSUE, capacity=n, trials=(above, failed)))
    assert only is not None
    assert only.rate_rps == 35.7


def test_the_cost_of_a_request_and_the_limit_are_named_where_the_figures_show_them():
    assert (
        "One token issue costs 250 ms of CPU in the service's processes, over the valid trials "
        "without a failed request." in said(ISSUE)
    )
    assert "2 cores were 97 % busy at N: the CPU is the limit." in said(ISSUE)


@pytest.mark.parametrize(
    ("ended", "ok", "cut_off", "sentence"),
    [
        (1, 1, 0, "The only request succeeded."),
        (1, 0, 0, "1 of 1 request failed."),
        (0, 0, 1, "The only request was not answered in the time given."),
        (2, 2, 0, "None of the 2 requests failed."),
        (0, 0, 2, "None of the 2 requests was answered in the time given."),
    ],
)
def test_failures_are_counted_also_of_a_single_request(ended, ok, cut_off, sentence):
    [trial, *_] = ISSUE.trials
    total = replace(trial.stats.total, count=ended, ok=ok)
    stats = replace(trial.stats, total=total, cut_off=cut_off)
    only = replace(ISSUE, trials=(replace(trial, stats=stats, health=None),))
    assert list(statements.errors(only)) == [sentence]


@pytest.mark.parametrize(
    ("ok", "sentence"),
    [(414, "None of the 414 requests failed."), (410, "4 of 414 requests failed.")],
)
def test_failures_are_of_the_same_requests_in_the_summary_and_in_the_sentence(ok, sentence):
    known = ISSUE.trials[2]
    stats = replace(known.stats, total=replace(known.stats.total, ok=ok), cut_off=5)
    cut = replace(ISSUE, policy="fixed", capacity=None, trials=(replace(known, stats=stats),))
    [section] = report_of(replace(RESULT, measurements=(cut,))).sections
    [failures] = [fact.text for fact in section.facts if fact.label == "failures"]
    assert failures == f"{414 - ok} of 414"
    texts = [one.text for one in section.statements]
    assert sentence in texts
    assert (
        "Cut off when the load ended, counted neither as succeeded nor as failed: 5 requests."
        in texts
    )


def test_a_machine_that_is_not_busy_is_not_blamed():
    made = tuple(
        replace(trial, usage=replace(trial.usage, machine_busy=0.4)) for trial in ISSUE.trials
    )
    text = said(replace(ISSUE, trials=made))
    assert "40 % busy at N: the machine had CPU to spare" in text
    assert "the CPU is the limit" not in text


@pytest.mark.parametrize(
    "kind",
    [
        CapacityKind.CEILING,
        CapacityKind.REFUSAL,
        CapacityKind.OBJECTIVE,
        CapacityKind.COLLAPSE,
    ],
)
def test_the_cores_are_not_the_limit_where_something_else_limits_n(kind):
    found = replace(ISSUE, capacity=replace(ISSUE.capacity, kind=kind))
    text = said(found)
    assert "2 cores were 97 % busy at N." in text
    assert "the CPU is the limit" not in text
    idle = (replace(t, usage=replace(t.usage, machine_busy=0.4)) for t in found.trials)
    assert "is the limit" not in said(replace(found, trials=tuple(idle)))
    assert "that is its capacity" not in " ".join(statements.method(found))


def test_a_search_without_n_does_not_name_a_capacity():
    assert "that is its capacity." in " ".join(statements.method(ISSUE))
    only = replace(ISSUE, capacity=None, trials=ISSUE.trials[:1])
    assert list(statements.method(only))[1:] == [
        "It saturated the service and counted what it completed."
    ]


def test_of_a_service_elsewhere_nothing_is_said_about_its_cpu():
    made = tuple(
        replace(trial, usage=replace(trial.usage, service_cpu_s=None)) for trial in ISSUE.trials
    )
    assert "costs" not in said(replace(ISSUE, trials=made))
    assert "busy at N" not in said(replace(ISSUE, trials=made))
    assert "busy at N" not in said(
        replace(ISSUE, trials=tuple(replace(t, usage=None) for t in ISSUE.trials))
    )


def test_stolen_cpu_is_named():
    made = tuple(
        replace(trial, usage=replace(trial.usage, machine_steal=0.06)) for trial in ISSUE.trials
    )
    assert "6.0 % of the CPU time was taken by other guests" in said(replace(ISSUE, trials=made))


def test_a_noisy_neighbour_on_the_same_machine_is_named():
    made = tuple(
        replace(trial, usage=replace(trial.usage, service_cpu_s=trial.usage.service_cpu_s / 3))
        for trial in ISSUE.trials
    )
    text = said(replace(ISSUE, trials=made))
    assert "Other work on this machine took" in text
    assert "on a quiet machine N may be higher" in text
    assert "Other work" not in said(ISSUE)


def test_a_short_look_is_not_taken_for_a_rate_that_was_sustained():
    look = replace(ISSUE.trials[2], planned_s=2.0)
    assert "keeps up" not in said(replace(ISSUE, trials=(look,)))


def test_how_the_service_gives_way_is_said_with_figures():
    assert "At 8.40 a second only 7.17 complete: the backlog grows by 0.14 s of work" in said(ISSUE)
    errors = Verdict(TrialState.DEGRADED, ("9 of 1000 failed",), Cause.ERRORS)
    known = ISSUE.trials[4].stats
    known = replace(known, total=replace(known.total, ok=known.ok - 9))
    stats = with_errors(known, ("503", 7), ("no answer in time", 2))
    failing = replace(ISSUE.trials[4], verdict=errors, stats=stats)
    text = said(replace(ISSUE, trials=(*ISSUE.trials[:4], failing)))
    assert "At 8.40 a second requests fail: 9 (503 7, ...)." in text
    assert "9 of 1,106 requests failed." in text


@pytest.mark.parametrize(
    ("completed_rps", "sentence", "fact"),
    [
        (99.96, "only 99.96 complete: the backlog", "falls behind: 99.96/s completed"),
        (100.0, "the backlog", "falls behind"),
        (99.2, "only 99.2 complete: the backlog", "falls behind: 99.2/s completed"),
    ],
)
def test_what_falls_behind_is_not_shown_as_all_that_was_offered(completed_rps, sentence, fact):
    failed = ISSUE.trials[4]
    stats = replace(failed.stats, throughput_rps=completed_rps, backlog_growth=0.002)
    found = replace(ISSUE, trials=(replace(failed, rate_rps=100.0, stats=stats),))
    assert next(statements.above(found)).startswith(
        f"At 100 a second {sentence} grows by 0.00200 s of work every second"
    )
    assert fact in [one.text for one in search.facts(found)]


def test_the_generator_is_cleared_or_named():
    assert "The load generator was the limit in trial 4: it says nothing" in said(ISSUE)
    assert "The load generator was not the limit: it sent 99 % of the requests" in said(VALIDATE)


def test_the_cpu_of_a_generator_with_several_threads_is_of_as_many_cores():
    assert "4.0 % of a core." in said(VALIDATE)
    healths = (replace(trial.health, threads=2) for trial in VALIDATE.trials if trial.health)
    pairs = zip(VALIDATE.trials, healths, strict=True)
    two = replace(VALIDATE, trials=tuple(replace(trial, health=one) for trial, one in pairs))
    assert "2.0 % of 2 cores." in said(two)
    assert "CPU of 2 cores" in [column.name for column in tables.generator(two).columns]


def test_a_search_that_ended_at_once_still_has_words():
    empty = replace(ISSUE, capacity=None, trials=(), notes=())
    assert statements.of(empty) == ()
    assert "did not finish" in search.sentence(empty)


@pytest.mark.parametrize(
    ("value", "shown"),
    [(7.194, "7.19"), (46.28, "46.3"), (526.4, "526"), (12345.6, "12,346"), (None, "–")],  # noqa: RUF001
)
def test_rates_have_three_figures(value, shown):
    assert figures.rate(value) == shown


@pytest.mark.parametrize(
    ("capacity", "shown"),
    [
        (Capacity(278.63, 277.2, 280.1, 0.95), "278.6 (277.2 to 280.1)"),
        (Capacity(281.2, 276.2, 286.1, 0.95), "281 (276 to 286)"),
        (Capacity(98.06, 97.98, 98.14, 0.95), "98.06 (97.98 to 98.14)"),
        (Capacity(5.0, 4.0, 6.0, 0.95), "5.0 (4.0 to 6.0)"),
        (Capacity(5.0, 5.0, 5.0, 0.95), "5.00 (5.00 to 5.00)"),
    ],
)
def test_n_shows_no_digit_that_its_interval_does_not_carry(capacity, shown):
    assert f"{figures.n(capacity)} ({figures.interval(capacity)})" == shown


def test_a_load_over_http_2_says_so():
    assert "HTTP/2" not in said(ISSUE)
    spoken = [replace(one, health=replace(one.health, http="2")) for one in ISSUE.trials]
    assert "Requests went over HTTP/2, one connection a thread" in said(
        replace(ISSUE, trials=tuple(spoken))
    )


def test_requests_that_were_sent_a_second_time_are_counted():
    assert "second time" not in said(ISSUE)
    first, *rest = ISSUE.trials
    made = (replace(first, health=replace(first.health, retries=3)), *rest)
    assert (
        "3 requests were sent a second time: the service had closed the kept connection before it "
        "read the first."
    ) in said(replace(ISSUE, trials=made))


@pytest.mark.parametrize(
    ("resumed", "sentence"),
    [
        (True, "New connections resumed the TLS session of an earlier one"),
        (False, "Each new connection made a full TLS handshake"),
    ],
)
def test_over_tls_it_is_said_what_new_connections_began_with(resumed, sentence):
    assert "TLS" not in said(ISSUE)
    made = tuple(
        replace(trial, health=replace(trial.health, tls_resumption=resumed))
        for trial in ISSUE.trials
    )
    assert sentence in said(replace(ISSUE, trials=made))


def with_rates(*outcomes):
    """A search with N = 33 and a trial of each rate: sustained or not."""
    known = [t for t in trials.paced(ISSUE) if t.verdict.state is TrialState.SUSTAINED][-1]
    failed = Verdict(TrialState.DEGRADED, ("grew",), Cause.OVERLOAD)
    made = tuple(
        replace(known, number=number, rate_rps=rate, **({} if held else {"verdict": failed}))
        for number, (rate, held) in enumerate(outcomes, 1)
    )
    return replace(ISSUE, capacity=Capacity(33.0, 31.0, 36.0, 0.95), trials=made)


def test_trials_of_one_rate_that_disagree_are_one_sentence():
    text = said(with_rates((30.4, True), (35.66, True), (35.7, False)))
    assert "At 35.7 a second it kept up once and fell behind once: that is the upper edge" in text
    assert text.count("35.7") == 1
    assert "complete: the backlog" not in text
    assert "At 30.4 a second it keeps up" in text


def test_a_rate_that_failed_below_the_interval_of_n_is_not_its_edge():
    made = with_rates((28.0, False), (28.0, True), (36.5, False))
    assert trials.edge(made).rate_rps == 36.5
    text = said(made)
    assert "upper edge" not in text
    assert "At 28" not in text


@pytest.mark.parametrize(
    ("cause", "how"),
    [(Cause.ERRORS, "had too many errors"), (Cause.OBJECTIVE, "was slower than wanted")],
)
def test_the_upper_edge_says_how_a_trial_failed(cause, how):
    made = with_rates((35.66, True), (35.7, False))
    held, failed = made.trials
    failed = replace(failed, verdict=replace(failed.verdict, cause=cause))
    text = said(replace(made, trials=(held, failed)))
    assert f"At 35.7 a second it kept up once and {how} once: that is the upper edge" in text


RATES = [(30.4, True), (33.0, False), (35.7, True), (35.7, False)]


@pytest.mark.parametrize(
    "outcomes",
    [
        RATES,
        RATES[::-1],
        [(35.7, False), (35.7, True), (35.7, True)],
        [(30.0, False), (30.0, True), (36.0, False)],
    ],
)
def test_no_rate_is_said_both_to_keep_up_and_to_fall_behind(outcomes):
    found = with_rates(*outcomes)
    shown = [fact.label for fact in search.facts(found) if fact.is_line]
    assert len(shown) == len(set(shown))


def test_what_the_machine_s_clocks_show_names_the_limit_where_nothing_was_watched():
    assert search.limit(ISSUE) == "the machine's CPU: its 2 cores were 97 % busy at N"
    single = tuple(replace(t, usage=replace(t.usage, cores=1)) for t in VALIDATE.trials)
    assert search.limit(replace(VALIDATE, trials=single)).startswith(
        "the machine's CPU: its core was "
    )
    quiet = tuple(replace(t, usage=replace(t.usage, machine_busy=0.4)) for t in ISSUE.trials)
    kind = replace(ISSUE.capacity, kind=CapacityKind.SATURATION)
    assert search.limit(replace(ISSUE, capacity=kind, trials=quiet)) == search.UNWATCHED
    late = replace(ISSUE.capacity, kind=CapacityKind.OBJECTIVE)
    assert "responses become too slow" in search.limit(replace(ISSUE, capacity=late))


HOSTS = "1,000 ask 10.9/s, idle ones a third"


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        ((20.6, 19.5, 21.7), "bears about 1,900 compute hosts in use (1,800 to 2,000); " + HOSTS),
        ((None, 19.5, 21.7), "bears 1,800 to 2,000 compute hosts in use; " + HOSTS),
        ((None, 19.5, None), "bears at least 1,800 compute hosts in use; " + HOSTS),
        ((20.6, 20.6, None), "bears at least 1,900 compute hosts in use; " + HOSTS),
        ((None, None, 21.7), "bears at most 2,000 compute hosts in use; " + HOSTS),
    ],
)
def test_n_of_what_compute_hosts_ask_is_stated_in_hosts(
    bounds: tuple[float | None, float | None, float | None], words: str
) -> None:
    found = Measurement("mix:cloud-1000", "what 1,000 compute hosts in use ask")
    found = replace(found, capacity=Capacity(*bounds, 0.95, kind=CapacityKind.SATURATION))
    assert {fact.label: fact.text for fact in search.facts(found)}["hosts"] == words
    other = replace(found, scenario="mix:issue=1,validate=9")
    assert "hosts" not in {fact.label for fact in search.facts(other)}


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        ((0.0109, 0.0108, 0.011), "bears about 1 compute host in use (0.99 to 1)"),
        ((0.005, 0.0048, 0.0052), "bears about 0.46 compute hosts in use (0.44 to 0.48)"),
        ((None, 0.0109, None), "bears at least 1 compute host in use"),
        ((None, 0.0054, 0.0109), "bears 0.5 to 1 compute host in use"),
    ],
)
def test_one_compute_host_is_singular_and_less_than_one_is_not_0(
    bounds: tuple[float | None, float | None, float | None], words: str
) -> None:
    found = Capacity(*bounds, 0.95, kind=CapacityKind.SATURATION)
    search_of_one = Measurement("mix:cloud-1", "what 1 compute host in use asks", capacity=found)
    hosts = {fact.label: fact.text for fact in search.facts(search_of_one)}["hosts"]
    assert hosts == f"{words}; 1 asks 0.0109/s, an idle one a third"


@pytest.mark.parametrize(
    ("held", "verdict"),
    [
        ((True, True, True), "SLA held"),
        ((True, False, False), "SLA broken from concurrency 4 on"),
        ((True, False, True), "SLA broken at concurrency 4"),
        ((False, True, False), "SLA broken at concurrency 2, 8"),
    ],
)
def test_an_sla_is_broken_from_a_load_on_only_if_no_higher_load_holds_it(held, verdict):
    runners = [{"constant": {"times": 9, "concurrency": count}} for count in (2, 4, 8)]
    checks = [(Check("failure_rate", one, ""),) for one in held]
    curve = steps.curve_of(made_steps(workload(SAMPLES[0, 3]), runners, checks=checks))
    assert steps.sla(curve).text == verdict


@pytest.mark.parametrize(
    ("capacity", "verdict"),
    [
        (Capacity(None, 5.0, 9.0, 0.95), "N known as a range only"),
        (Capacity(None, 5.0, None, 0.0), "N not bounded on both sides"),
        (Capacity(None, 5.0, None, 0.0, causes=(Cause.GENERATOR,)), "load generator was the limit"),
        (Capacity(None, None, None, 0.0), "load generator was the limit"),
    ],
)
def test_one_trial_that_the_generator_limited_does_not_void_what_others_show(capacity, verdict):
    [invalid] = (one.number for one in ISSUE.trials if not one.is_valid)
    assert invalid == 4
    assert search.certainty(replace(ISSUE, capacity=capacity)).text == verdict
