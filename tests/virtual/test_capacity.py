"""`loadstone capacity` on simulated services: how near N is to the truth, and what ends a search.

Each claim is about many searches, with a bound on how many may miss it. Seeds are fixed, so that a
test has one outcome.
"""

import json
import re
import signal
from dataclasses import replace
from math import log, prod
from typing import Any
from xml.etree import ElementTree as Xml

import pytest
import requests
from binomial import most_failures
from documents import only
from fake_keystone import PASSWORD
from simulator.families import draw
from simulator.paces import Collapse, Decline
from simulator.service import Change, Limiter, Outage, Service
from virtual import Ended, VirtualCommandLine

from loadstone.keystone.resources import User

SEARCH = ("capacity", "--users=0", "--budget=60s", "--json=-")
STEADY = Service(capacity_rps=50.0)
MISSED = 0.05  # share of the searches whose 95 % interval does not cover the truth


def n_of(ended: Ended) -> float | None:
    return only(ended.data)["capacity"]["rate_rps"]


def searches(
    loadstone: VirtualCommandLine, services: list[Service], *words: str
) -> list[tuple[Service, Ended]]:
    return [
        (service, loadstone(*SEARCH, *words, service=service, seed=seed))
        for seed, service in enumerate(services)
    ]


def numbers(ended: list[tuple[Service, Ended]]) -> list[tuple[Service, Ended]]:
    """Return the searches with a number; most have one, and the others say a range."""
    known = [(service, one) for service, one in ended if one.code == 0]
    for _, one in ended:
        if one.code != 0:
            assert one.code == 4
            assert "which is too wide for a number" in " ".join(only(one.data)["words"])
    assert len(known) >= len(ended) / 2
    return known


def missed(capacity: dict[str, float], truth_rps: float) -> bool:
    return not capacity["low_rps"] <= truth_rps <= capacity["high_rps"]


@pytest.mark.parametrize(
    ("family", "count", "beyond"), [("deterministic", 20, 0.05), ("poisson", 10, 0.1)]
)
def test_n_is_near_the_truth_and_its_interval_covers_it(
    loadstone: VirtualCommandLine, family: str, count: int, beyond: float
) -> None:
    ended = searches(loadstone, [draw(family, index) for index in range(count)])
    failed = sum(missed(only(one.data)["capacity"], service.capacity_rps) for service, one in ended)
    assert failed <= most_failures(count, MISSED)
    ended = numbers(ended)
    ratios = [n_of(one) / service.capacity_rps for service, one in ended]
    assert sum(abs(log(ratio)) > beyond for ratio in ratios) <= most_failures(count, 0.05)
    # A bias shows in the mean long before it shows in a single search.
    assert abs(sum(map(log, ratios))) / len(ratios) < 0.015


def test_n_of_a_noisy_service_is_that_of_its_long_run(loadstone: VirtualCommandLine) -> None:
    ended = numbers(searches(loadstone, [draw("gc", index) for index in range(10)]))
    ratios = [n_of(one) / service.long_run_rps for service, one in ended]
    assert sum(abs(log(ratio)) > 0.1 for ratio in ratios) <= most_failures(10, 0.05)


def test_a_search_ends_within_its_budget_and_keeps_what_it_measured(
    loadstone: VirtualCommandLine,
) -> None:
    ended = loadstone(*SEARCH, service=STEADY)
    found = only(ended.data)
    assert 0 < found["load_seconds"] <= 60.0
    assert found["load_seconds"] <= found["wall_seconds"] <= ended.seconds
    assert "sustained" in {trial["verdict"] for trial in found["trials"]}
    assert len(found["trials"]) == len(ended.engine.plans)
    assert 0 < found["capacity"]["confidence"] <= 1
    assert found["generator"]["valid"] is True
    assert json.loads(loadstone("results", "show", "latest", "--json=-").stdout) == ended.data


def test_an_iteration_of_two_requests_has_half_the_capacity(loadstone: VirtualCommandLine) -> None:
    name = "--scenario=KeystoneBasic.authenticate_user_and_validate_token"
    ended = searches(loadstone, [Service(capacity_rps=80.0)] * 3, name)
    for _, one in ended:
        assert n_of(one) == pytest.approx(40.0, rel=0.05)


@pytest.mark.parametrize(
    ("least_rps", "code", "outcome"), [(35.0, 0, "reached"), (65.0, 1, "missed")]
)
def test_the_exit_code_says_whether_n_reaches_the_rate_that_is_needed(
    loadstone: VirtualCommandLine, least_rps: float, code: int, outcome: str
) -> None:
    words = (f"--fail-below={least_rps}", "--junit=n.xml")
    for _, one in searches(loadstone, [STEADY] * 3, *words):
        assert one.code == code
        assert only(one.data)["floor"] == {"least_rps": least_rps, "outcome": outcome}
        suite = Xml.parse(loadstone.home / "n.xml").getroot()
        failures = [one.get("type") for one in suite.iter("failure")]
        assert failures == (["exit code 1"] if code else [])


def test_a_rate_within_the_interval_of_n_is_undecided(loadstone: VirtualCommandLine) -> None:
    ended = searches(loadstone, [STEADY] * 6, "--fail-below=50")
    decided = [one for _, one in ended if one.code != 4]
    assert len(decided) <= most_failures(6, MISSED)


def test_repeated_searches_are_each_kept_and_shown_again_without_a_password(
    loadstone: VirtualCommandLine,
) -> None:
    words = ("capacity", "--users=0", "--budget=20s", "--repeat=2", "--fail-below=50", "--json=-")
    ended = loadstone(*words, service=Service(workers=2, capacity_rps=100.0))
    found = ended.data["measurements"]
    assert [one["title"] for one in found] == [
        "token issue, search 1 of 2",
        "token issue, search 2 of 2",
        "token issue, 2 searches",
    ]
    assert loadstone("results", "show", "latest", "--json=-").data["measurements"] == found
    assert all(one["trials"] for one in found[:2])
    assert [one["floor"] for one in found[:2]] == [None, None]
    assert PASSWORD not in ended.stdout + ended.stderr
    files = [path for path in loadstone.home.rglob("*") if path.is_file()]
    assert files
    for path in files:
        assert PASSWORD.encode() not in path.read_bytes(), path


def test_repeated_searches_are_combined_and_agree_better(loadstone: VirtualCommandLine) -> None:
    failed = numbers = 0
    for _, one in searches(loadstone, [STEADY] * 3, "--repeat=3"):
        *single, combined = (found["capacity"] for found in one.data["measurements"])
        assert one.code == 0
        rates = [capacity["rate_rps"] for capacity in single]
        if None not in rates:  # a single search may be too wide for a number
            assert combined["rate_rps"] == pytest.approx(prod(rates) ** (1 / 3))
            numbers += 1
        assert combined["rate_rps"] == pytest.approx(50.0, rel=0.03)
        failed += missed(combined, 50.0)
    assert failed <= most_failures(3, MISSED)
    assert numbers >= 2


@pytest.mark.parametrize("word", ["--objective=p99<1ms", "--objective=errors<0.5%"])
def test_repeated_searches_fall_short_where_each_would(
    loadstone: VirtualCommandLine, word: str
) -> None:
    service = replace(STEADY, error_share=0.02)
    words = ("--budget=4m", word)
    alone, repeated = (
        loadstone(*SEARCH, *words, *more, service=service) for more in ((), ("--repeat=2",))
    )
    assert (alone.code, repeated.code) == (1, 1)


def test_repeated_searches_are_judged_as_combined(loadstone: VirtualCommandLine) -> None:
    words = ("--repeat=3", "--budget=20s", "--fail-below=20", "--junit=n.xml")
    ended = loadstone(*SEARCH, *words, service=STEADY)
    *single, combined = ended.data["measurements"]
    assert all(one["capacity"]["rate_rps"] is None for one in single)  # ranges, after 20 s
    assert combined["floor"]["outcome"] == "reached"
    assert (ended.code, ended.data["exit_code"]) == (0, 0)
    suite = Xml.parse(loadstone.home / "n.xml").getroot()
    assert not [*suite.iter("error"), *suite.iter("failure")]


@pytest.mark.parametrize(
    ("service", "reason"),
    [
        (replace(STEADY, outage=Outage(120.0)), "the service stopped answering in mid-search"),
        (replace(STEADY, change=Change(100.0, 2.0)), "the capacity changed during the search: "),
    ],
)
def test_a_service_that_dies_or_changes_between_repeated_searches_passes_no_gate(
    loadstone: VirtualCommandLine, service: Service, reason: str
) -> None:
    words = ("capacity", "--users=0", "--budget=60s", "--repeat=3", "--fail-below=10")
    ended = loadstone(*words, service=service)
    assert ended.code == 4
    *single, combined = " ".join(ended.stdout.split()).split("token issue, ")[1:]
    assert f"known {reason}" in "".join(single)
    assert "N not found" in combined
    assert "not decided (exit 4): 1 of 3 searches found no interval: " in combined
    assert reason in combined
    assert "Try --budget" not in combined


def test_a_service_that_slows_after_the_search_passes_no_gate(
    loadstone: VirtualCommandLine,
) -> None:
    words = (*SEARCH, "--curve=10", "--fail-below=45")
    slower = replace(STEADY, change=Change(80.0, 1.5))  # on the curve, which begins after 60 s
    codes = [loadstone(*words, service=service).code for service in (STEADY, slower)]
    assert codes == [0, 4]


def test_more_time_is_not_recommended_for_a_service_that_went_away(
    loadstone: VirtualCommandLine,
) -> None:
    service = replace(STEADY, outage=Outage(30.0))
    ended = loadstone(*SEARCH[:-1], service=service)
    assert ended.code == 4
    shown = " ".join(ended.stdout.split())
    assert "the service stopped answering in mid-search" in shown
    assert "Try --budget" not in shown


def test_after_a_capacity_that_halves_in_mid_search_both_levels_are_said_and_no_number(
    loadstone: VirtualCommandLine,
) -> None:
    # In a minute nobody sees whether it stays so: a job in the background looks the same.
    halving = Service(workers=2, capacity_rps=100.0, change=Change(at_s=17.0, slower=2.0))
    failed = 0
    for _, one in searches(loadstone, [halving] * 5):
        assert one.code == 4
        found = only(one.data)
        assert found["capacity"]["rate_rps"] is None
        assert any("The capacity changed during the search: " in text for text in found["words"])
        failed += missed(found["capacity"], 50.0)
    assert failed <= most_failures(5, MISSED)


@pytest.mark.parametrize("share", [0.25, 0.8])
def test_a_limiter_is_found_where_it_refuses(loadstone: VirtualCommandLine, share: float) -> None:
    failed = 0
    services = [
        Service(
            workers=8,
            capacity_rps=capacity_rps,
            limiter=Limiter(share * capacity_rps, burst_s=0.1),
            refuses_with="status",
        )
        for capacity_rps in (85.0, 95.0, 115.0, 140.0, 180.0)
    ]
    for service, one in searches(loadstone, services):
        truth_rps = share * service.capacity_rps
        found = only(one.data)
        assert (one.code, found["capacity"]["kind"]) == (0, "refusal")
        assert found["capacity"]["rate_rps"] == pytest.approx(truth_rps, rel=0.025)
        assert "refuses with 429" in " ".join(found["words"]).lower()
        failed += missed(found["capacity"], truth_rps)
    assert failed <= most_failures(5, MISSED)


def test_a_distant_service_is_loaded_over_as_many_connections_as_it_needs(
    loadstone: VirtualCommandLine,
) -> None:
    distant = Service(workers=2, capacity_rps=300.0, delay_s=1.0)
    for _, one in searches(loadstone, [distant] * 2, "--max-rate=100000"):
        found = only(one.data)["capacity"]
        # 256 connections over 1 s would be 256/s.
        assert (one.code, found["kind"]) == (0, "saturation")
        assert found["rate_rps"] == pytest.approx(300.0, rel=0.05)
        assert max(plan.limits.max_connections for plan in one.engine.plans) > 256


def test_the_highest_rate_allowed_is_not_taken_for_what_the_service_sustains(
    loadstone: VirtualCommandLine,
) -> None:
    for _, one in searches(loadstone, [STEADY] * 2, "--max-rate=20"):
        found = only(one.data)["capacity"]
        assert found["high_rps"] is None
        assert found["kind"] == "ceiling"
        for plan in one.engine.plans:
            assert plan.limits.max_rate_rps == 20.0


def test_a_service_that_answers_errors_only_has_no_n(loadstone: VirtualCommandLine) -> None:
    ended = loadstone(*SEARCH, service=Service(error_share=1.0))
    assert ended.code == 1
    assert n_of(ended) is None
    assert "The service answers errors only." in only(ended.data)["words"]
    assert len(ended.engine.plans) == 1


@pytest.mark.parametrize(
    ("capacity_rps", "words"), [(0.1, ("--budget=4m", "--max-rate=0.2")), (0.25, ("--budget=4m",))]
)
def test_time_outs_in_the_queue_of_too_high_a_rate_are_its_overload(
    loadstone: VirtualCommandLine, capacity_rps: float, words: tuple[str, ...]
) -> None:
    service = Service(workers=1, capacity_rps=capacity_rps)
    ended = loadstone("capacity", "--users=0", "--json=-", *words, service=service, seed=1)
    found = only(ended.data)
    said = " ".join(found["words"])
    assert "no answer in time" in said
    assert not any(one in said for one in ("stopped answering", "was gone", "not depend on the"))
    assert found["capacity"]["high_rps"] > capacity_rps


def test_a_service_that_fails_half_of_its_requests_did_not_stop_answering(
    loadstone: VirtualCommandLine,
) -> None:
    ended = [loadstone(*SEARCH, service=Service(error_share=0.6), seed=seed) for seed in range(4)]
    assert {n_of(one) for one in ended} == {None}
    said = " ".join(words for one in ended for words in only(one.data)["words"])
    assert "stopped answering" not in said
    assert re.search(r"answered only [123] of the first 6 requests without an error", said)


@pytest.mark.parametrize(
    ("workers", "code", "reason"),
    [
        (1, 4, "the service answered 3 of the first 6 requests in 30 s: the others may have"),
        (8, 1, "the service answers errors only"),  # after 80 s, even the first one
    ],
)
def test_requests_that_time_out_behind_others_may_be_answered_at_a_lower_rate(
    loadstone: VirtualCommandLine, workers: int, code: int, reason: str
) -> None:
    service = Service(workers=workers, capacity_rps=0.1, variation=0.0)
    ended = loadstone(*SEARCH[:-1], service=service)
    assert ended.code == code
    assert f"(exit {code}): {reason}" in " ".join(ended.stdout.split())
    assert "Try --budget" not in ended.stdout


def test_mlrsearch_goes_on_after_refusals_that_stop_its_first_trial_at_once(
    loadstone: VirtualCommandLine,
) -> None:
    service = Service(capacity_rps=50.0, limiter=Limiter(rate_rps=20.0), refuses_with="status")
    ended = loadstone(*SEARCH, "--method=mlrsearch", service=service)
    first, *others = only(ended.data)["trials"]
    assert first["verdict"] == "degraded"
    assert others
    assert ended.code == 4


def test_one_connection_to_a_slow_service_has_a_rate_that_is_not_zero(
    loadstone: VirtualCommandLine,
) -> None:
    service = Service(workers=4, capacity_rps=2.0, variation=0.0)  # a response takes 2 s
    ended = loadstone(*SEARCH, "--max-connections=1", "--curve=2", service=service)
    assert ended.code == 0
    assert n_of(ended) == pytest.approx(0.5, rel=0.05)


def test_a_rate_that_held_too_briefly_to_fill_a_limiter_is_not_said_to_have_failed(
    loadstone: VirtualCommandLine,
) -> None:
    words = ("--users=5", "--objective=p99<1000ms", "--objective=p90<300ms")
    ended = loadstone(*SEARCH, *words, service=draw("sliding-window", 887, 20.0, 60.0), seed=887)
    found = only(ended.data)
    assert found["trials"][-1]["verdict"] == "sustained"
    assert "No more than 10.12/s: no rate was sustained for long enough." in found["words"]


def test_hardly_any_error_may_be_allowed(loadstone: VirtualCommandLine) -> None:
    service = Service(capacity_rps=50.0, limiter=Limiter(rate_rps=20.0))
    ended = loadstone(*SEARCH, "--objective=errors<0.0001%", service=service)
    assert ended.code == 0
    assert n_of(ended) == pytest.approx(20.0, rel=0.02)


def test_a_share_of_errors_that_shows_no_n_is_refused(loadstone: VirtualCommandLine) -> None:
    ended = loadstone(*SEARCH, "--objective=errors<90%", service=STEADY)
    assert ended.code == 2
    assert "at most 50 % may fail" in ended.stderr + ended.stdout


@pytest.mark.parametrize("at_s", [6.0, 12.0, 20.0, 30.0])
def test_a_service_that_goes_away_in_mid_search_has_no_n(
    loadstone: VirtualCommandLine, at_s: float
) -> None:
    ended = loadstone(*SEARCH, service=Service(capacity_rps=50.0, outage=Outage(at_s)))
    assert ended.code == 4
    assert n_of(ended) is None
    assert "The service stopped answering in mid-search." in only(ended.data)["words"]


def test_a_target_that_dies_ends_the_search_and_keeps_its_trials(
    loadstone: VirtualCommandLine,
) -> None:
    ended = loadstone(
        *SEARCH,
        "--junit=n.xml",
        service=Service(capacity_rps=50.0, outage=Outage(20.0)),
        failure=lambda now_s: "keystone died: see its log" if now_s > 20.0 else None,
    )
    assert ended.code == 3
    assert "keystone died: see its log" in ended.stderr
    assert (ended.data["status"], ended.data["exit_code"]) == ("failed", 3)
    case = Xml.parse(loadstone.home / "n.xml").find("testsuite/testcase/error")
    assert case is not None
    assert case.get("type") == "exit code 3"
    kept = json.loads(loadstone("results", "show", "latest", "--json=-").stdout)
    assert kept["status"] == "failed"
    assert len(only(kept)["trials"]) == len(ended.engine.plans) > 1


def test_a_lab_that_was_ended_during_the_preparation_is_the_reason(
    loadstone: VirtualCommandLine,
) -> None:
    def disturb(method: str, path: str) -> None:
        if (method, path) == ("POST", "/v3/users"):
            raise requests.exceptions.ConnectionError(ConnectionRefusedError(111, "refused"))

    loadstone.fake.disturb = disturb
    ended = loadstone(
        "capacity", "--users=2", failure=lambda _: "lab mine was ended by another command"
    )
    assert ended.code == 3
    assert ended.stderr.splitlines()[-1] == "loadstone: lab mine was ended by another command"
    assert "connection refused" not in ended.stdout


def test_a_service_that_is_restarted_in_mid_search_is_measured_and_the_restart_said(
    loadstone: VirtualCommandLine,
) -> None:
    services = [
        Service(capacity_rps=50.0, outage=Outage(at_s, at_s + 2.0))
        for at_s in (13.0, 16.0, 19.0, 22.0)
    ]
    for _, one in numbers(searches(loadstone, services)):
        assert n_of(one) == pytest.approx(50.0, rel=0.05)
        assert any("was it restarted?" in text for text in only(one.data)["words"])


@pytest.mark.parametrize(("at_s", "seed"), [(10.0, 0), (26.0, 6), (31.0, 7)])
def test_a_restart_that_ends_a_trial_at_once_is_not_taken_for_the_limit(
    loadstone: VirtualCommandLine, at_s: float, seed: int
) -> None:
    service = Service(capacity_rps=50.0, outage=Outage(at_s, at_s + 2.0))
    ended = loadstone(*SEARCH, service=service, seed=seed)
    assert ended.code == 0
    assert only(ended.data)["capacity"]["kind"] == "saturation"
    assert n_of(ended) == pytest.approx(50.0, rel=0.05)
    assert any("was it restarted?" in text for text in only(ended.data)["words"])


def test_a_capacity_that_declines_all_the_time_is_no_number_and_exit_4(
    loadstone: VirtualCommandLine,
) -> None:
    declining = Service(capacity_rps=400.0, pace=Decline(per_request=2e-5))
    for _, one in searches(loadstone, [declining] * 4):
        assert one.code == 4
        assert n_of(one) is None
        said = " ".join(only(one.data)["words"])
        assert "These trials do not fit one capacity: the capacity declines all the time" in said
        assert "for each 1,000 requests" in said


def test_a_collapse_has_the_n_that_is_left_when_a_queue_forms(
    loadstone: VirtualCommandLine,
) -> None:
    collapsing = Service(capacity_rps=400.0, pace=Collapse(40, 2.0))
    for _, one in searches(loadstone, [collapsing] * 4):
        found = only(one.data)["capacity"]
        assert (one.code, found["kind"]) == (0, "collapse")
        assert found["rate_rps"] == pytest.approx(200.0, rel=0.05)
        assert any("collapses when a queue forms" in text for text in only(one.data)["words"])


def test_a_service_that_only_takes_its_time_has_a_lower_bound(
    loadstone: VirtualCommandLine,
) -> None:
    # Every request takes 0.9 s, however many there are.
    idle = Service(workers=100_000, capacity_rps=100_000 / 0.9, variation=0.1)
    for _, one in searches(loadstone, [idle] * 2, "--max-connections=614"):
        found = only(one.data)["capacity"]
        assert (one.code, found["kind"], found["high_rps"]) == (0, "ceiling", None)
        assert found["low_rps"] <= 614 / 0.9 * 1.01
        assert any("connections for each 100/s" in text for text in only(one.data)["words"])


def test_a_late_generator_gives_no_number(loadstone: VirtualCommandLine) -> None:
    ended = loadstone(*SEARCH, service=STEADY, lag_s=0.1)
    assert ended.code == 4
    found = only(ended.data)
    assert found["capacity"]["rate_rps"] is None
    assert found["generator"]["valid"] is False
    assert found["generator"]["reasons"]


@pytest.mark.parametrize("more", [(), ("--repeat=2",)])
def test_a_gate_without_any_bound_of_n_is_not_decided(
    loadstone: VirtualCommandLine, more: tuple[str, ...]
) -> None:
    ended = loadstone(*SEARCH, "--fail-below=50", *more, service=STEADY, lag_s=0.1)
    assert ended.code == 4
    found = ended.data["measurements"][-1]
    assert found["capacity"]["rate_rps"] is None
    assert found["floor"] == {"least_rps": 50, "outcome": "undecided"}
    shown = loadstone("results", "show", "latest", "--trials").stdout
    assert "Gate not decided: N not found, 50 wanted" in " ".join(shown.split())


def test_an_interrupted_search_says_what_it_knows_of_n(loadstone: VirtualCommandLine) -> None:
    def interrupt(now_s: float) -> str | None:
        if now_s > 30.0:
            raise KeyboardInterrupt
        return None

    ended = loadstone(*SEARCH[:-1], service=STEADY, failure=interrupt)
    assert ended.code == 130
    [completed] = re.findall(r"N so far: about ([\d.]+)/s", ended.stdout)
    assert float(completed) == pytest.approx(50.0, rel=0.1)
    assert "nothing is confirmed" in ended.stdout
    assert "Try --budget" not in ended.stdout  # not the budget ended it
    [run_id] = re.findall(r"loadstone report (\S+)", ended.stdout)
    listed = loadstone("results", "list").stdout
    assert run_id in listed
    assert "N not found" not in listed


@pytest.mark.parametrize("predict", ["--predict", "--predict=first"])
def test_a_prediction_without_the_services_processes_is_refused_before_load(
    loadstone: VirtualCommandLine, predict: str
) -> None:
    ended = loadstone("capacity", "--users=0", predict, service=STEADY)
    assert ended.code == 2
    assert "those of this target are not known" in ended.stderr
    assert not ended.engine.plans


def test_a_gate_from_elsewhere_is_refused_by_a_prediction_alone(
    loadstone: VirtualCommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOADSTONE_CAPACITY_FAIL_BELOW", "5")
    ended = loadstone("capacity", "--users=0", "--predict", service=STEADY)
    assert ended.code == 2
    assert "--fail-below needs a measured N" in ended.stderr


@pytest.mark.parametrize(
    "word", ["--budget=20s", "--curve=5", "--method=bisect", "--objective=p99<1s"]
)
def test_a_prediction_alone_refuses_what_belongs_to_a_search(
    loadstone: VirtualCommandLine, word: str
) -> None:
    ended = loadstone("capacity", "--users=0", "--predict", word, service=STEADY)
    assert (ended.code, bool(ended.engine.plans)) == (2, False)
    assert f"{word.partition('=')[0]} needs a measured N" in ended.stderr


@pytest.mark.parametrize(
    "words",
    [("--scenario=issue,validate",), ("--scenario=issue", "--scenario=validate")],
)
def test_several_scenarios_are_searched_one_after_the_other(
    loadstone: VirtualCommandLine, words: tuple[str, ...]
) -> None:
    ended = loadstone("capacity", "--budget=4m", "--users=2", "--json=-", *words, service=STEADY)
    assert ended.code == 0
    titles = ["token issue", "token validation"]
    assert [one["title"] for one in ended.data["measurements"]] == titles
    for one in ended.data["measurements"]:
        assert one["capacity"]["rate_rps"] == pytest.approx(50.0, rel=0.03)
        assert one["load_seconds"] <= 240.0
    assert loadstone("results", "show", "latest").stdout.count("  N = ") == 2


def test_refusals_near_a_limiters_rate_are_not_said_to_come_at_any_rate(
    loadstone: VirtualCommandLine,
) -> None:
    words = ("capacity", "--users=0", "--budget=20s", "--json=-")
    ended = loadstone(*words, service=Service(capacity_rps=50.0, limiter=Limiter(30.0)))
    assert ended.code == 4
    assert "do not depend on the load" not in " ".join(only(ended.data)["words"])


def test_a_mix_may_be_one_of_several_scenarios(loadstone: VirtualCommandLine) -> None:
    scenarios = "--scenario=issue,mix:issue=1,validate=9,validate"
    ended = loadstone("capacity", scenarios, "--dry-run", "--json=-", service=STEADY)
    titles = ["token issue", "mix of issue and validate", "token validation"]
    assert [load["title"] for load in ended.data["runs"][0]["loads"]] == titles


def test_the_limit_of_fail_below_holds_for_each_scenario(loadstone: VirtualCommandLine) -> None:
    words = ("--scenario=issue,validate", "--users=2", "--budget=4m", "--fail-below=70/s")
    ended = loadstone("capacity", *words, "--junit=-", service=STEADY)
    assert ended.code == 1
    cases = Xml.fromstring(ended.stdout).iter("testcase")
    assert [case.find("failure") is not None for case in cases] == [True, True]


def test_a_scenario_that_the_target_lacks_does_not_end_the_others(
    loadstone: VirtualCommandLine,
) -> None:
    # The simulated Keystone has one user, who may not log in here.
    ended = loadstone(*SEARCH, "--scenario=validate,issue", service=STEADY)
    assert ended.code == 3
    failed, found = ended.data["measurements"]
    assert "could not log in" in failed["failure"]
    assert found["capacity"]["rate_rps"] == pytest.approx(50.0, rel=0.03)
    shown = loadstone("results", "show", "latest").stdout
    assert "could not be carried out (exit 3)" in shown
    assert "could not log in" in shown


def test_the_targets_own_user_may_be_of_another_domain_than_its_project(
    loadstone: VirtualCommandLine,
) -> None:
    token = loadstone.fake.token

    def of_two_domains(given: Any, scope: Any) -> Any:
        status, answer, headers = token(given, scope)
        answer["token"]["user"]["domain"] = {"id": "d-corp", "name": "corp"}
        return status, answer, headers

    loadstone.fake.token = of_two_domains  # type: ignore[method-assign]
    ended = loadstone(*SEARCH, service=STEADY)
    assert ended.code == 0, ended.stderr
    columns = ended.engine.plans[0].columns
    assert (columns["domain_name"], columns["project_domain_name"]) == (("corp",), ("Default",))


def test_a_search_that_has_ended_is_not_interrupted_by_a_signal_while_users_are_removed(
    loadstone: VirtualCommandLine,
) -> None:
    change = loadstone.fake.change
    # One, however many projects there are: a second one ends the removal.
    pending = iter((signal.SIGINT,))

    def interrupt(method: str, plural: str, *about: Any) -> Any:
        if (method, plural) == ("DELETE", "projects") and (number := next(pending, None)):
            signal.raise_signal(number)
        return change(method, plural, *about)

    loadstone.fake.change = interrupt  # type: ignore[method-assign]
    ended = loadstone("capacity", "--users=2", "--budget=60s", "--json=-", service=STEADY)
    assert ended.code == 130
    of_search = only(ended.data)["status"]
    assert (ended.data["status"], of_search) == ("interrupted", "finished")
    assert loadstone.fake.names("domains") == []


def test_more_users_than_a_directory_has_are_refused(loadstone: VirtualCommandLine) -> None:
    known = tuple(User(f"u{n}", f"user-{n}", "pw", "p", "p", "d", "d") for n in range(2))
    words = ("capacity", "--budget=60s", "--json=-")
    ended = loadstone(*words, "--users=3", service=STEADY, users=known)
    assert (ended.code, ended.engine.plans) == (2, [])
    assert "3 users are asked for, and the target has 2" in ended.stderr
    ended = loadstone(*words, "--users=2", service=STEADY, users=known)
    assert ended.engine.plans[0].columns["user_name"] == ("user-0", "user-1")


def test_the_users_of_a_directory_that_a_task_uses_are_counted(
    loadstone: VirtualCommandLine,
) -> None:
    known = tuple(User(f"u{n}", f"user-{n}", "pw", "p", "p", "d", "d") for n in range(3))
    (loadstone.home / "task.yaml").write_text(TASK)
    words = ("capacity", "--budget=60s", "--json=-", "--task=task.yaml", "--workload=1")
    ended = loadstone(*words, service=STEADY, users=known)
    assert ended.code == 0, ended.stderr
    assert only(ended.data)["parameters"]["users"] == "3"


def test_a_scenario_for_which_an_option_is_missing_does_not_end_the_others(
    loadstone: VirtualCommandLine,
) -> None:
    scenarios = "--scenario=federated-login,issue"
    ended = loadstone("capacity", "--users=2", "--budget=4m", "--json=-", scenarios, service=STEADY)
    assert ended.code == 2
    failed, found = ended.data["measurements"]
    assert "--federation FILE" in failed["failure"]
    assert found["capacity"]["rate_rps"] == pytest.approx(50.0, rel=0.03)


TASK = """
version: 2
title: Logins
subtasks:
  - title: All
    workloads:
      - scenario: {Authenticate.keystone: {}}
      - scenario: {Dummy.dummy: {sleep: 0.1}}
      - scenario: {KeystoneBasic.authenticate_user_and_validate_token: {}}
"""


def test_each_workload_of_a_task_is_searched(loadstone: VirtualCommandLine) -> None:
    (loadstone.home / "task.yaml").write_text(TASK)
    words = ("capacity", "--budget=4m", "--json=-", "--task=task.yaml", "--all")
    ended = loadstone(*words, service=STEADY)
    assert "workload 2 of 3, Dummy.dummy, is left out: a Python function" in ended.stderr
    assert ended.code == 0
    names = ["Authenticate.keystone", "KeystoneBasic.authenticate_user_and_validate_token"]
    assert [one["title"] for one in ended.data["measurements"]] == names
    rates = [one["capacity"]["rate_rps"] for one in ended.data["measurements"]]
    assert rates == [pytest.approx(50.0, rel=0.02), pytest.approx(25.0, rel=0.02)]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--task=task.yaml", "--all", "--workload=1"), "--workload chooses one workload"),
        (("--all",), "--all needs --task"),
        (("--scenario=issue,issue",), "--scenario issue is given twice; --repeat repeats a search"),
        (("--scenario=issue,isue",), "no scenario 'isue'; did you mean 'issue'?"),
        (("--scenario=issue,Authenticate.keystone", "--arg=a=1"), "--arg goes with one --scenario"),
    ],
)
def test_a_mistake_in_what_to_search_is_said(
    loadstone: VirtualCommandLine, words: tuple[str, ...], said: str
) -> None:
    (loadstone.home / "task.yaml").write_text(TASK)
    ended = loadstone("capacity", *words, service=STEADY)
    assert ended.code == 2
    assert said in ended.stderr
    assert not ended.engine.plans


def test_a_user_of_an_identity_provider_may_be_the_targets_identity(
    loadstone: VirtualCommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = loadstone.fake
    carry_out, issue = fake.carry_out, fake.issue

    def federated(call: Any, url: Any, body: Any) -> Any:
        if "OS-FEDERATION" not in call.path:
            return carry_out(call, url, body)
        assert call.headers["Authorization"] == "Bearer of-the-provider"
        return fake.token({"name": "ann"}, {})

    def scoped(body: Any) -> Any:
        if body["auth"]["identity"]["methods"] == ["token"]:
            return fake.token({"name": "ann"}, body["auth"]["scope"])
        return issue(body)

    fake.carry_out, fake.issue = federated, scoped  # type: ignore[method-assign]

    def variables(port: int) -> dict[str, str]:
        return {
            "OS_AUTH_URL": f"http://127.0.0.1:{port}/v3",
            "OS_AUTH_TYPE": "v3oidcaccesstoken",
            "OS_ACCESS_TOKEN": "of-the-provider",
            "OS_IDENTITY_PROVIDER": "company",
            "OS_PROTOCOL": "openid",
            "OS_PROJECT_NAME": "admin",
            "OS_PROJECT_DOMAIN_ID": "default",
        }

    monkeypatch.setattr("virtual._variables", variables)
    ended = loadstone("capacity", "--users=2", "--budget=60s", "--json=-", service=STEADY)
    assert ended.code == 0, ended.stderr
    assert fake.names("domains") == []
    ended = loadstone(*SEARCH, "--scenario=issue", service=STEADY)
    assert ended.code == 2
    assert "has no password and project to log in with; let users be made" in ended.stderr
