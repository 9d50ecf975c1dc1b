"""`loadstone compare` of simulated services: which is faster, and how often that is wrong."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from statistics import fmean
from typing import Any
from xml.etree import ElementTree as Xml

import pytest
from binomial import most_failures
from documents import only
from fake_keystone import keeping_the_first_domain
from simulator.engine import VirtualEngine
from simulator.service import Limiter, Outage, Service
from virtual import Ended, VirtualCommandLine

from loadstone.compare.measure import _LoadInTurns
from loadstone.engine import parquet
from loadstone.engine.health import Health
from loadstone.errors import InvalidInput, LoadTimeUsed, StoreUnusable
from loadstone.keystone.journal import JOURNAL

SIDES = ("compare", "--cloud=a", "--cloud=b", "--users=0", "--json=-")
SHORT = ("--seconds=2", "--concurrency=6", "--pairs=12")
WRONG = 0.05  # share of comparisons that may state a difference where there is none
A = Service(workers=2, capacity_rps=40.0)
BROKEN = Service(error_share=0.5)
LEFT = "is left; remove it: loadstone results clean 20"


def compared(
    loadstone: VirtualCommandLine, a: Service, b: Service, count: int, *words: str
) -> list[Ended]:
    words = words or SHORT
    return [loadstone(*SIDES, *words, clouds={"a": a, "b": b}, seed=seed) for seed in range(count)]


def throughput(ended: Ended) -> dict[str, float]:
    return only(ended.data)["metrics"]["throughput"]


def times(factor: float) -> Service:
    """Return a service that is faster than A by a factor."""
    return Service(workers=2, capacity_rps=40.0 * factor)


@pytest.mark.parametrize(("factor", "answer"), [(1.3, "faster"), (0.77, "slower")])
def test_the_faster_of_two_services_is_found(
    loadstone: VirtualCommandLine, factor: float, answer: str
) -> None:
    missed, ratios = 0, []
    for ended in compared(loadstone, A, times(factor), 5):
        found = throughput(ended)
        assert (ended.code, found["answer"]) == (0, answer)
        missed += not found["low"] <= factor <= found["high"]
        ratios.append(found["ratio"])
        assert ended.data["interleaved"]
    assert missed <= most_failures(5, WRONG)
    assert fmean(ratios) == pytest.approx(factor, rel=0.02)


@pytest.mark.parametrize(("workers", "seconds"), [(2, 0.05), (4, 0.05), (4, 0.005)])
def test_a_service_with_more_workers_is_as_much_faster_as_its_n(
    loadstone: VirtualCommandLine, workers: int, seconds: float
) -> None:
    """A turn ends with idle workers, which a full service does not have."""
    one = Service(workers=1, capacity_rps=1 / seconds, variation=0.2)
    more = Service(workers=workers, capacity_rps=workers / seconds, variation=0.2)
    words = ("--concurrency=8", "--seconds=3", "--pairs=12")
    ratios = [throughput(ended)["ratio"] for ended in compared(loadstone, one, more, 2, *words)]
    assert fmean(ratios) == pytest.approx(workers, rel=0.04)


def test_a_service_that_serves_all_that_is_in_flight_may_not_be_full(
    loadstone: VirtualCommandLine,
) -> None:
    wide = Service(workers=16, capacity_rps=320.0, variation=0.2)
    words = ("--concurrency=8", "--seconds=2", "--pairs=8")
    for other, idle in ((wide, True), (A, False)):
        [ended] = compared(loadstone, A, other, 1, *words)
        shown = " ".join(loadstone("compare", *ended.data["runs"]).stdout.split())
        assert ("B served all 8 in flight at once, and may not have been full" in shown) is idle


def test_no_difference_is_stated_between_equal_services(loadstone: VirtualCommandLine) -> None:
    answers = [throughput(one)["answer"] for one in compared(loadstone, A, A, 4)]
    assert len([one for one in answers if one in ("faster", "slower")]) <= most_failures(4, WRONG)


def test_equal_services_are_the_same_within_a_wide_enough_margin(
    loadstone: VirtualCommandLine,
) -> None:
    for ended in compared(loadstone, A, A, 2, *SHORT, "--same-within=20%"):
        assert (ended.code, throughput(ended)["answer"]) == (0, "same")


@pytest.mark.parametrize(
    ("factor", "code", "outcome"), [(1.2, 0, "not slower"), (0.7, 1, "slower")]
)
def test_the_guard_passes_the_faster_and_fails_the_slower(
    loadstone: VirtualCommandLine, factor: float, code: int, outcome: str
) -> None:
    words = (*SHORT, "--fail-if-slower=5%", "--junit=guard.xml", "--markdown=guard.md")
    for ended in compared(loadstone, A, times(factor), 2, *words):
        assert (ended.code, ended.data["guard"]["outcome"]) == (code, outcome)
        suite = Xml.parse(loadstone.home / "guard.xml").getroot()
        assert suite.get("failures") == str(code)
        assert f"guard: {outcome}" in (loadstone.home / "guard.md").read_text()


@pytest.mark.parametrize("method", ["turns", "blocks"])
def test_a_guard_passed_in_turns_says_that_a_limiter_may_not_show(
    loadstone: VirtualCommandLine, method: str
) -> None:
    """Its bucket fills up again while the other side works; a block of 6 s empties it."""
    one = Service(workers=4, capacity_rps=100.0, variation=0.2)
    limited = replace(one, limiter=Limiter(60.0, delays=True))
    words = (*SIDES[:4], "--fail-if-slower=10%", f"--method={method}")
    ended = loadstone(*words, clouds={"a": one, "b": limited})
    assert ended.code == (0 if method == "turns" else 1)
    faster = loadstone(*words, clouds={"a": one, "b": replace(one, capacity_rps=130.0)})
    assert faster.code == 0
    for passed in (one for one in (ended, faster) if one.code == 0):
        shown = " ".join(passed.stdout.split())
        assert "not slower by more than 10 %" in shown
        may_not_show = "in turns, where a limiter of requests may not show" in shown
        assert may_not_show is (method == "turns")


def test_the_guard_leaves_a_difference_at_its_margin_undecided(
    loadstone: VirtualCommandLine,
) -> None:
    ended = compared(loadstone, A, times(1 / 1.05), 3, *SHORT, "--fail-if-slower=5%")
    outcomes = [(one.code, one.data["guard"]["outcome"]) for one in ended]
    decided = [one for one in outcomes if one != (4, "undecided")]
    assert len(decided) <= most_failures(3, WRONG)


def test_what_slows_both_services_alike_does_not_change_the_ratio(
    loadstone: VirtualCommandLine,
) -> None:
    """Both lose a tenth of their capacity a minute; each pair is measured within seconds."""
    a = Service(workers=2, capacity_rps=40.0, leak_per_minute=0.1)
    b = Service(workers=2, capacity_rps=52.0, leak_per_minute=0.1)
    for ended in compared(loadstone, a, b, 2, *SHORT, "--pairs-at-least=12"):
        found = throughput(ended)
        assert (ended.code, found["answer"]) == (0, "faster")
        assert found["low"] <= 1.3 <= found["high"]


def test_at_a_given_rate_latencies_are_compared(loadstone: VirtualCommandLine) -> None:
    slow = Service(workers=2, capacity_rps=40.0, delay_s=0.02)
    words = ("--seconds=2", "--rate=15", "--pairs=12")
    for ended in compared(loadstone, A, slow, 2, *words):
        (name, found), *_ = only(ended.data)["metrics"].items()
        assert (ended.code, name, found["answer"]) == (0, "latency p50", "slower")


def test_when_the_load_time_is_used_up_the_pairs_so_far_count(
    loadstone: VirtualCommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The generator is late in two of three trials, and those that are repeated take load, too."""
    health, calls = VirtualEngine._health, count()

    def is_late_at_first(engine: VirtualEngine, *of_trial: Any) -> Health:
        is_late = next(calls) // 2 % 3 < 2  # both sides of a trial are judged
        return health(replace(engine, lag_s=1.0) if is_late else engine, *of_trial)

    monkeypatch.setattr(VirtualEngine, "_health", is_late_at_first)
    sides = {"a": Service(workers=2, capacity_rps=3.0), "b": Service(workers=2, capacity_rps=1.5)}
    ended = loadstone(*SIDES, "--concurrency=8", clouds=sides)
    assert (ended.code, throughput(ended)["answer"]) == (0, "slower"), ended.stderr
    pairs = throughput(ended)["pairs"]
    assert 4 <= pairs < 8
    assert f"of load are used up after {pairs} pairs; raise --pairs" in ended.stderr
    assert ended.seconds < 900 + 60  # of load, and what is between the trials


def test_whole_trials_that_take_all_the_load_time_count_as_far_as_they_went(
    loadstone: VirtualCommandLine,
) -> None:
    """A trial of a second lasts as long as its requests, which is 20 s here."""
    slow = Service(workers=2, capacity_rps=0.2)
    words = ("--concurrency=4", "--pairs=4", "--method=blocks", "--seconds=1")
    [ended] = compared(loadstone, slow, slow, 1, *words)
    assert (ended.code, throughput(ended)["answer"]) == (4, "unknown")
    assert "of load are used up after 1 pair; raise --pairs" in ended.stderr


def test_the_pairs_that_are_told_are_those_of_the_answer(
    loadstone: VirtualCommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The load time ends between the two loads of a round."""
    within_time, calls = _LoadInTurns.within_time, count()

    def limited(turns: _LoadInTurns, load: Any, purpose: str) -> Any:
        if next(calls) == 2 * 5 + 1:  # the second load of the sixth round
            raise LoadTimeUsed("no time is left")
        return within_time(turns, load, purpose)

    monkeypatch.setattr(_LoadInTurns, "within_time", limited)
    [ended] = compared(loadstone, A, times(1.02), 1)
    assert throughput(ended)["pairs"] == 6
    assert "of load are used up after 6 pairs" in ended.stderr


@pytest.mark.parametrize("method", ["turns", "blocks"])
@pytest.mark.parametrize("rates", [(20_000.0, 40_000.0), (6000.0, 7000.0)])
def test_services_that_are_faster_than_the_load_are_not_called_the_same(
    loadstone: VirtualCommandLine, method: str, rates: tuple[float, float]
) -> None:
    a, b = (Service(workers=32, capacity_rps=rate) for rate in rates)
    words = (f"--method={method}", "--seconds=1", "--concurrency=48", "--pairs=4")
    [ended] = compared(loadstone, a, b, 1, *words)
    assert ended.code == 4
    assert "a comparison sends at most 5,000/s in a closed loop" in ended.stderr
    assert "apart: give a --rate" in ended.stderr


@pytest.mark.parametrize("method", ["turns", "blocks"])
def test_services_just_below_the_fastest_load_are_told_apart(
    loadstone: VirtualCommandLine, method: str
) -> None:
    a, b = (Service(workers=8, capacity_rps=rate) for rate in (3600.0, 4200.0))
    words = (f"--method={method}", "--seconds=1", "--concurrency=64", "--pairs=6")
    [ended] = compared(loadstone, a, b, 1, *words)
    assert (ended.code, throughput(ended)["answer"]) == (0, "faster"), ended.stderr


def test_a_rate_above_the_usual_ceiling_is_offered_as_it_was_given(
    loadstone: VirtualCommandLine,
) -> None:
    ended = loadstone(*SIDES, "--rate=6000", "--dry-run", clouds={"a": A, "b": A})
    [found] = ended.data["runs"]
    assert found["rate_per_s_at_most"] == 6000


def test_a_stored_comparison_gives_the_same_answer_again(loadstone: VirtualCommandLine) -> None:
    [ended] = compared(loadstone, A, times(1.3), 1)
    slow, fast = ended.data["runs"]
    again = loadstone("compare", slow, fast, "--json=-")
    assert (again.code, again.data["interleaved"]) == (0, True)
    assert throughput(again) == throughput(ended)
    back = loadstone("compare", f"--baseline={fast}", slow, "--fail-if-slower=5%", "--json=-")
    assert (back.code, back.data["guard"]["outcome"]) == (1, "slower")
    assert not again.engine.plans
    wrong = loadstone("compare", slow, fast, "--scenario=validate", "--json=-")
    assert wrong.code == 2
    assert "--scenario does not go with stored runs" in wrong.stderr


@pytest.mark.parametrize(
    ("given", "pairs"), [("--pairs=4", 4), ("--pairs-at-least=50", 50)], ids=["most", "least"]
)
def test_the_limit_of_pairs_that_is_given_counts_before_the_default_one(
    loadstone: VirtualCommandLine, given: str, pairs: int
) -> None:
    [ended] = compared(loadstone, A, times(3.0), 1, "--seconds=1", "--concurrency=2", given)
    assert throughput(ended)["pairs"] == pairs


def test_one_criterion_that_is_given_leaves_the_others_of_a_stored_comparison(
    loadstone: VirtualCommandLine,
) -> None:
    criteria = ("--same-within=20%", "--fail-if-slower=5%")
    [ended] = compared(loadstone, A, times(0.77), 1, *SHORT, *criteria)
    assert ended.code == 1
    runs = ended.data["runs"]
    other_margin = loadstone("compare", *runs, "--same-within=1%", "--json=-")
    assert (other_margin.code, other_margin.data["same_within"]) == (1, 0.01)
    assert other_margin.data["guard"]["outcome"] == "slower"
    other_limit = loadstone("compare", *runs, "--fail-if-slower=90%", "--json=-")
    assert (other_limit.code, other_limit.data["same_within"]) == (0, 0.2)


def test_a_configuration_file_gives_pairs_and_limits_as_the_command_line_does(
    loadstone: VirtualCommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = loadstone.home / "own.toml"
    config.write_text("[compare]\npairs = 4\npairs-at-least = 4\nseconds = 2\n")
    monkeypatch.setenv("LOADSTONE_CONFIG", str(config))
    clouds = {"a": A, "b": A}
    ended = loadstone(*SIDES, "--concurrency=6", "--same-within=0.1%", clouds=clouds)
    # Not twice as many, as of the command's own default in turns.
    assert throughput(ended)["pairs"] == 4
    config.write_text('[compare]\nfail-if-slower = "1%"\n')
    [slow, fast] = compared(loadstone, times(0.77), A, 1)[0].data["runs"]
    assert loadstone("compare", fast, slow, "--json=-").code == 1


@pytest.mark.parametrize("side", [0, 1])
def test_the_page_of_either_side_begins_with_the_comparison(
    loadstone: VirtualCommandLine, side: int
) -> None:
    words = (*SHORT, "--same-within=4%", "--fail-if-slower=5%")
    [ended] = compared(loadstone, A, times(1.3), 1, *words)
    loadstone("report", ended.data["runs"][side], "-o", "page.html")
    assert_begins_with(throughput(ended), (loadstone.home / "page.html").read_text())


def test_the_page_of_two_runs_begins_with_their_comparison(loadstone: VirtualCommandLine) -> None:
    [ended] = compared(loadstone, A, times(1.3), 1)
    loadstone("report", *ended.data["runs"], "-o", "page.html")
    assert_begins_with(throughput(ended), (loadstone.home / "page.html").read_text())
    in_blocks = compared(loadstone, A, A, 2, *SHORT, "--pairs=4", "--method=blocks")
    first, second = (one.data["runs"][0] for one in in_blocks)
    page = loadstone("report", first, second, "-o", "-").stdout
    assert f"{second} compared with {first}" in page
    assert "measured at different times" in page


def test_a_page_without_the_samples_of_a_comparison_has_its_runs(
    loadstone: VirtualCommandLine,
) -> None:
    [ended] = compared(loadstone, A, times(1.3), 1)
    for samples in [*loadstone.home.rglob("samples")]:
        shutil.rmtree(samples)
    written = loadstone("report", ended.data["runs"][0], "-o", "page.html")
    assert written.code == 0
    assert "without the comparison" in written.stderr
    page = (loadstone.home / "page.html").read_text()
    assert all(run_id in page for run_id in ended.data["runs"])


def assert_begins_with(found: dict[str, float], page: str) -> None:
    header = page[page.index("<header>") : page.index("</header>")]
    lead = header[: header.index("</h1>")]
    assert "b compared with a" in lead
    interval = f"{found['low']:.3f} to {found['high']:.3f}"
    assert f"token issue throughput {found['ratio']:.3f} times ({interval}), faster" in lead
    assert header.index('id="comparison"') < header.index("measured by")
    assert "do not differ in any setting" in header


def test_runs_of_different_comparisons_are_not_paired(loadstone: VirtualCommandLine) -> None:
    first, second = (one.data["runs"] for one in compared(loadstone, A, times(1.3), 2))
    ended = loadstone("compare", first[0], second[1])
    assert ended.code == 2
    assert "are sides of two comparisons" in ended.stderr


def test_a_service_that_fails_is_not_compared(loadstone: VirtualCommandLine) -> None:
    failing = Service(workers=2, capacity_rps=40.0, error_share=0.2)
    [ended] = compared(loadstone, A, failing, 1)
    assert ended.code == 4
    assert "a comparison of speed needs a load that both answer" in ended.stderr


def test_a_stored_comparison_of_a_service_that_died_has_no_answer(
    loadstone: VirtualCommandLine,
) -> None:
    """Of the pairs until then, B was faster."""
    dies = replace(times(1.5), outage=Outage(35.0))
    words = (*SHORT, "--fail-if-slower=5%", "--pairs-at-least=12")
    [ended] = compared(loadstone, A, dies, 1, *words)
    assert (ended.code, set(ended.data)) == (4, {"error", "exit_code"})
    listed = loadstone("results", "list", "--json=-").data
    a, b = sorted(listed, key=lambda one: one["target"])
    again = loadstone("compare", a["run_id"], b["run_id"], "--json=-")
    assert throughput(again)["answer"] == "faster"
    assert (again.code, again.data["exit_code"]) == (4, 4)
    assert again.data["guard"]["outcome"] == "undecided"
    [said] = again.data["notes"]
    assert said.startswith("The comparison was broken off")
    assert said.endswith(ended.data["error"])


def test_a_stored_comparison_without_a_pair_says_why(loadstone: VirtualCommandLine) -> None:
    [ended] = compared(loadstone, A, BROKEN, 1)
    a, b = (one["run_id"] for one in loadstone("results", "list", "--json=-").data)
    again = loadstone("compare", a, b)
    assert again.code == 4
    assert again.stderr.strip().endswith(f"ended before its first pair: {ended.data['error']}")


def test_a_comparison_that_cannot_be_measured_is_an_error_for_the_ci_server(
    loadstone: VirtualCommandLine,
) -> None:
    words = (*SHORT, "--fail-if-slower=5%", "--junit=guard.xml", "--markdown=guard.md")
    [ended] = compared(loadstone, A, BROKEN, 1, *words)
    assert (ended.code, set(ended.data)) == (4, {"error", "exit_code"})
    suite = Xml.parse(loadstone.home / "guard.xml").getroot()
    assert (suite.get("failures"), suite.get("errors")) == ("0", "1")
    for name in ("guard.xml", "guard.md"):
        assert ended.data["error"] in (loadstone.home / name).read_text()


def test_a_late_generator_ends_a_comparison(loadstone: VirtualCommandLine) -> None:
    ended = loadstone(*SIDES, "--rate=15", clouds={"a": A, "b": A}, lag_s=0.1)
    assert ended.code == 4
    assert "the load generator was the limit 3 times in a row" in ended.stderr
    assert json.loads(ended.stdout)["exit_code"] == 4


def test_a_service_that_is_too_slow_for_its_pairs_is_refused_with_the_way_out(
    loadstone: VirtualCommandLine,
) -> None:
    slow = Service(workers=2, capacity_rps=2.6)
    words = ("--seconds=3", "--concurrency=6", "--pairs=4", "--pairs-at-least=4")
    [ended] = compared(loadstone, slow, slow, 1, *words)
    assert ended.code == 4
    assert "do not fit into 81 s of load; raise --pairs" in ended.stderr


def test_a_side_that_is_a_hundred_times_slower_does_not_take_long_to_compare(
    loadstone: VirtualCommandLine,
) -> None:
    slow, fast = (Service(workers=1, capacity_rps=rate_rps) for rate_rps in (2.0, 200.0))
    for ended in compared(loadstone, slow, fast, 5):
        assert throughput(ended)["answer"] == "faster"
        assert ended.seconds < 150


def three(loadstone: VirtualCommandLine, b: float, c: float, *words: str, seed: int = 0) -> Ended:
    clouds = {"a": A, "b": times(b), "c": times(c)}
    return loadstone(*SIDES, "--cloud=c", *SHORT, *words, clouds=clouds, seed=seed)


def test_more_than_two_are_compared_with_the_first(loadstone: VirtualCommandLine) -> None:
    ended = three(loadstone, 1.3, 0.77)
    b, c = ended.data["measurements"]
    assert ended.code == 0
    assert [one["metrics"]["throughput"]["answer"] for one in (b, c)] == ["faster", "slower"]
    assert (b["title"][:2], c["title"][:2]) == ("b:", "c:")
    assert [one["b"] for one in ended.data["comparisons"]] == ["b", "c"]
    assert {one["a"] for one in ended.data["comparisons"]} == {"a"}
    # Each pair of runs shows its own comparison again, at its share of the error rate.
    [x, y] = ended.data["comparisons"][1]["runs"]
    again = loadstone("compare", x, y, "--json=-")
    assert throughput(again)["answer"] == "slower"
    assert throughput(again)["low"] <= c["metrics"]["throughput"]["low"]


def test_equal_services_are_rarely_told_apart_however_many_there_are(
    loadstone: VirtualCommandLine,
) -> None:
    false = 0
    for seed in range(12):
        found = three(loadstone, 1.0, 1.0, "--pairs=6", seed=seed).data["measurements"]
        answers = [row["answer"] for one in found for row in one["metrics"].values()]
        false += any(answer in ("faster", "slower") for answer in answers)
    assert false <= most_failures(12, WRONG)


def test_one_that_cannot_be_measured_does_not_end_the_others(
    loadstone: VirtualCommandLine,
) -> None:
    clouds = {"a": A, "b": BROKEN, "c": times(1.3)}
    ended = loadstone(*SIDES, "--cloud=c", *SHORT, clouds=clouds)
    b, c = ended.data["measurements"]
    codes = [one["certainty"]["exit_code"] for one in (b, c)]
    assert (ended.code, codes) == (4, [4, 0])
    assert c["metrics"]["throughput"]["answer"] == "faster"
    assert any("b: " in one and "failed" in one for one in ended.data["comparisons"][0]["notes"])


def test_a_full_disk_ends_the_others_too(
    loadstone: VirtualCommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_path: object, _samples: object) -> None:
        raise StoreUnusable("No space left on device")

    monkeypatch.setattr(parquet, "write", full)
    clouds = {"a": A, "b": A, "c": times(1.3)}
    ended = loadstone(*SIDES, "--cloud=c", *SHORT, clouds=clouds)
    assert ended.code == 3
    assert len(loadstone("results", "list", "--json=-").data) == 2  # c was not loaded


def test_a_release_that_lacks_a_setting_does_not_end_the_others(
    loadstone: VirtualCommandLine,
) -> None:
    def lab(settings: Mapping[str, str]) -> Service:
        if settings["release"] == "28.0.0":
            raise InvalidInput("conf.cache.x=1: Keystone 28.0.0 has no option x in [cache]")
        return times(1.3) if settings["release"] == "29.0.0" else A

    releases = [f"--release={number}.0.0" for number in (27, 28, 29)]
    ended = loadstone("compare", *releases, *SHORT, "--users=0", "--json=-", lab=lab)
    b, c = ended.data["measurements"]
    assert (ended.code, b["metrics"]) == (4, {})
    assert c["metrics"]["throughput"]["answer"] == "faster"
    assert any("has no option x" in one for one in ended.data["comparisons"][0]["notes"])


def test_if_none_can_be_measured_the_reason_stands_alone(loadstone: VirtualCommandLine) -> None:
    ended = loadstone(*SIDES, "--cloud=c", *SHORT, clouds={"a": BROKEN, "b": A, "c": A})
    assert ended.code == 4
    assert "a comparison of speed needs a load that both answer" in ended.stderr
    assert set(ended.data) == {"error", "exit_code"}


def test_the_guard_fails_if_one_of_several_is_slower(loadstone: VirtualCommandLine) -> None:
    ended = three(loadstone, 1.3, 0.77, "--fail-if-slower=5%")
    assert ended.code == 1
    assert ended.data["guard"] == {"most_slower": 0.05, "outcome": "slower"}
    each = [one["guard"]["outcome"] for one in ended.data["comparisons"]]
    assert each == ["not slower", "slower"]


def test_the_guard_counts_one_that_cannot_be_measured_as_undecided(
    loadstone: VirtualCommandLine,
) -> None:
    clouds = {"a": A, "b": BROKEN, "c": times(0.77)}
    both = ("compare", "--users=0", "--json=-", "--fail-if-slower=5%", *SHORT)
    for others in (("b", "c"), ("c", "b")):
        ended = loadstone(*both, *(f"--cloud={name}" for name in ("a", *others)), clouds=clouds)
        assert ended.code == 1
        assert ended.data["guard"] == {"most_slower": 0.05, "outcome": "slower"}
        each = {one["b"]: one["guard"]["outcome"] for one in ended.data["comparisons"]}
        assert each == {"b": "undecided", "c": "slower"}


def test_a_dry_run_of_several_is_one_document(loadstone: VirtualCommandLine) -> None:
    ended = three(loadstone, 1.3, 0.77, "--dry-run")
    assert ended.code == 0
    assert len(ended.data["runs"]) == 2
    assert not ended.engine.plans


def test_what_a_run_left_in_a_removed_lab_is_not_left(loadstone: VirtualCommandLine) -> None:
    loadstone.fake.disturb = keeping_the_first_domain()
    words = ("compare", "--with=workers=1", "--with=workers=2", *SHORT, "--users=2")
    ended = loadstone(
        *words, "--json=left.json", lab=lambda settings: times(float(settings["workers"]))
    )
    assert ended.code == 0, ended.stderr
    assert LEFT not in " ".join(ended.stdout.split())
    assert "has left nothing: its target was removed with all data" in ended.stderr
    for journal in loadstone.home.rglob(JOURNAL):
        journal.unlink()  # as on another machine, which has the database only
    for run_id in json.loads((loadstone.home / "left.json").read_text())["runs"]:
        shown = loadstone("results", "show", run_id, "--json=-")
        assert shown.data["exit_code"] == 0


def test_what_a_run_left_in_a_cloud_is_left(loadstone: VirtualCommandLine) -> None:
    loadstone.fake.disturb = keeping_the_first_domain()
    words = ("compare", "--cloud=a", "--cloud=b", *SHORT, "--users=2")
    ended = loadstone(*words, clouds={"a": A, "b": times(1.3)})
    assert ended.code == 1, ended.stderr
    assert " ".join(ended.stdout.split()).count(LEFT) == 1


def test_what_a_comparison_that_failed_left_is_named_beside_the_others(
    loadstone: VirtualCommandLine,
) -> None:
    loadstone.fake.disturb = keeping_the_first_domain()  # of the first comparison, which fails
    words = (*SIDES[:3], "--cloud=c", *SHORT, "--users=2")
    ended = loadstone(*words, clouds={"a": A, "b": BROKEN, "c": times(1.3)})
    assert ended.code == 4, ended.stderr
    assert " ".join(ended.stdout.split()).count(LEFT) == 1
