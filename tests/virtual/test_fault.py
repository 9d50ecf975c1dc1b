"""`loadstone fault` on simulated services: the figures of faults whose effect is known.

A fault is carried out by the commands of `--faults FILE`, which are real: as long as a file exists,
the simulated service refuses connections. No time passes while they run.
"""

import json
import re
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from documents import only
from simulator.engine import TICK_S
from simulator.service import Outage, Service
from virtual import Ended, VirtualCommandLine

pytestmark = pytest.mark.processes  # the commands

SERVICE = Service(workers=4, capacity_rps=100.0, variation=0.2)
RATE_RPS, BASELINE_S, OBSERVED_S = 40.0, 5.0, 15.0
STEADY = (f"--rate={RATE_RPS:g}", f"--baseline={BASELINE_S:g}s", "--users=0", "--json=-")
SEEDS = range(4)


@pytest.fixture
def away(loadstone: VirtualCommandLine) -> Path:
    """The file that takes the service away."""
    return loadstone.home / "away"


@pytest.fixture
def fault(
    loadstone: VirtualCommandLine, away: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Ended]:
    """Run `fault` with commands that take the service away and bring it back."""
    # A process that undoes faults when this one dies; tests/faults kills it.
    monkeypatch.setattr("loadstone.faults.watcher.watched", lambda *_: nullcontext())
    kill = {"do": f"touch {away}", "undo": f"rm {away}"}
    commands = {"keystone": {"hosts": ["here"], "kill": kill, "stop": kill["do"]}}
    (loadstone.home / "faults.yaml").write_text(json.dumps(commands))

    def run_it(sentence: str, *words: str, **world: Any) -> Ended:
        by = ("--faults=faults.yaml", "--yes-break-this-target")
        given = (f"--do={sentence}", *by, *STEADY, *words)
        return loadstone("fault", *given, is_away=away.exists, **{"service": SERVICE, **world})

    return run_it


@pytest.mark.parametrize("hold_s", [2.0, 4.0])
def test_what_clients_lose_is_what_was_due_while_the_service_was_away(
    fault: Callable[..., Ended], away: Path, hold_s: float
) -> None:
    sentence = f"kill keystone service on one node for {hold_s:g} seconds"
    for seed in SEEDS:
        ended = fault(sentence, f"--observe={OBSERVED_S:g}s", "--repeats=2", seed=seed)
        assert ended.code == 0
        assert not away.exists()
        for found in only(ended.data)["faults"]:
            assert found["at_s"] == pytest.approx(BASELINE_S, abs=1e-3)
            assert found["undone_s"] == pytest.approx(BASELINE_S + hold_s, abs=1e-3)
            assert found["failed"] + found["baseline_failed"] == RATE_RPS * hold_s
            # A gap between two arrivals is not seen.
            for figure in ("downtime_s", "unavailable_s", "mttr_s"):
                assert found[figure] == pytest.approx(hold_s, abs=1 / RATE_RPS)
            assert found["baseline_s"] == pytest.approx(0.04, rel=0.05)
            assert found["relative"] == pytest.approx(1.0, abs=0.05)
        [summary] = only(ended.data)["faults_summary"]
        assert (summary["repeats"], summary["recovered"]) == (2, 2)


def test_a_service_that_does_not_come_back_is_exit_code_1(
    fault: Callable[..., Ended], away: Path
) -> None:
    ended = fault("stop keystone service on one node for 2 seconds", "--repeats=1")
    assert ended.code == 1
    assert away.exists()
    [found] = only(ended.data)["faults"]
    assert (found["undone_s"], found["mttr_s"]) == (None, None)
    assert only(ended.data)["faults_summary"][0]["recovered"] == 0


def test_a_repeat_without_figures_is_exit_code_4_and_the_reason_is_kept(
    fault: Callable[..., Ended],
) -> None:
    # Down around the fault of the second of three loads, each of 20 s.
    service = replace(SERVICE, outage=Outage(20.5, 25.5))
    sentence = "kill keystone service on one node for 1 seconds"
    ended = fault(sentence, f"--observe={OBSERVED_S:g}s", "--repeats=3", service=service)
    assert ended.code == 4
    found = only(ended.data)
    assert [one["repeat"] for one in found["faults"]] == [1, 3]
    [without] = found["unmeasured_faults"]
    assert (without["action"], without["repeat"]) == (sentence, 2)
    reason = (
        r"1 of 3 repeats has no figures: only 1\d iterations succeeded before the fault at 5.0 s"
    )
    assert re.match(reason, found["certainty"]["reason"])
    assert any(re.match(reason, one["text"]) for one in found["statements"])
    [summary] = found["faults_summary"]
    assert (summary["repeats"], summary["unmeasured"], summary["recovered"]) == (2, 1, 2)
    assert "no figures 1 of 3 times (mean of 2)" in found["answer"]["sentence"]


def test_errors_from_before_the_fault_are_no_downtime(fault: Callable[..., Ended]) -> None:
    service = replace(SERVICE, error_share=0.1)
    sentence = "kill keystone service on one node for 3 seconds"
    ended = fault(sentence, f"--observe={OBSERVED_S:g}s", "--repeats=2", service=service)
    assert ended.code == 4  # so few requests do not show the same share of errors within 1 point
    found = only(ended.data)
    assert found["certainty"]["reason"].startswith("the requests show neither that the service")
    assert found["answer"]["value"] == pytest.approx(3.0, abs=0.3)
    [summary] = found["faults_summary"]
    assert summary["downtime_s"]["mean"] > 4.0  # the plan's
    assert 0.05 < summary["baseline_failed_share"]["mean"] < 0.2
    assert re.search(
        r"failed [\d.]+ % \([\d.]+ % before\), errors and slow", found["answer"]["sentence"]
    )
    assert "recovery not shown 2 of 2 times (mean of 2)" in found["answer"]["sentence"]
    assert (summary["recovered"], summary["not_recovered"], summary["not_shown"]) == (0, 0, 2)
    texts = [one["text"] for one in found["statements"]]
    assert any(one.startswith("2 of 2 times the requests do not show whether") for one in texts)
    assert any(
        re.match(r"\d+ of \d+ requests failed before the fault, too\.", one) for one in texts
    )


def test_a_load_above_n_is_not_a_fault_without_recovery(fault: Callable[..., Ended]) -> None:
    sentence = "kill keystone service on one node for 1 seconds"
    ended = fault(sentence, "--rate=110", "--repeats=2")
    assert ended.code == 4
    found = only(ended.data)
    assert found["certainty"]["reason"] == (
        "2 of 2 repeats have no figures: latency rose before the fault, too, as under a load that "
        "is more than the service bears; a lower rate is needed to say what the fault does"
    )
    assert not found["faults"]


def test_a_service_that_stays_down_has_not_recovered_whatever_later_repeats_show(
    fault: Callable[..., Ended],
) -> None:
    ended = fault("stop keystone service on one node for 2 seconds", "--repeats=3")
    assert ended.code == 1
    said = only(ended.data)["answer"]["sentence"]
    assert "not recovered 1 of 3 times, no figures 2 of 3 times (mean of 1)" in said


def test_a_fault_that_outlasts_the_load_is_undone_at_its_end(
    fault: Callable[..., Ended], away: Path
) -> None:
    sentence = "kill keystone service on one node for 60 seconds"
    ended = fault(sentence, "--observe=5s", "--repeats=1")
    assert ended.code == 1
    assert not away.exists()
    [found] = only(ended.data)["faults"]
    assert found["undone_s"] == pytest.approx(BASELINE_S + 5.0, abs=TICK_S)


def test_progress_tells_how_much_load_is_left_at_most(fault: Callable[..., Ended]) -> None:
    ended = fault("kill keystone service on one node for 1 seconds", "--repeats=1")
    shown = re.findall(r" \| (\d+) s \| .* at most (\d+) s left", ended.stderr)
    at_s, left_s = zip(*((int(now), int(left)) for now, left in shown), strict=True)
    assert at_s == (0, 10, 20)
    assert all(now + left == left_s[0] for now, left in zip(at_s, left_s, strict=True))


def test_faults_are_measured_one_after_the_other(fault: Callable[..., Ended]) -> None:
    sentences = [f"kill keystone service on one node for {hold_s} seconds" for hold_s in (1, 3)]
    ended = fault(sentences[0], f"--do={sentences[1]}", "--repeats=1")
    assert ended.code == 0
    found = [one["faults"][0] for one in ended.data["measurements"]]
    assert [one["action"] for one in found] == sentences
    assert [one["mttr_s"] for one in found] == pytest.approx([1.0, 3.0], abs=1 / RATE_RPS)


def test_nothing_is_broken_without_the_users_word(
    loadstone: VirtualCommandLine, fault: Callable[..., Ended], away: Path
) -> None:
    fault("kill keystone service on one node for 1 seconds", "--repeats=1")  # writes the file
    words = ("--do=kill keystone service on one node", "--faults=faults.yaml", *STEADY)
    ended = loadstone("fault", *words, service=SERVICE, is_away=away.exists)
    assert ended.code == 2
    assert "--yes-break-this-target" in ended.stderr
    assert not ended.engine.plans


def test_without_a_rate_a_share_of_n_is_offered(loadstone: VirtualCommandLine) -> None:
    words = ("fault", "--do=overload 2x for 5 seconds", "--users=0", "--repeats=1", "--json=-")
    ended = loadstone(*words, "--load=50%", service=SERVICE)
    assert ended.code == 0
    *_, overload = ended.engine.plans
    rates = [stage.from_rps for stage in overload.load.stages]
    assert rates == pytest.approx([50.0, 100.0, 50.0], rel=0.05)


def test_a_search_without_n_ends_as_such_before_a_share_of_n_fails(
    loadstone: VirtualCommandLine,
) -> None:
    words = ("fault", "--do=overload 2x for 5 seconds", "--users=0", "--repeats=1")
    failing = Service(capacity_rps=50.0, error_share=0.05)
    loadstone(*words, service=failing)
    search, overload = loadstone("results", "show", "latest", "--json=-").data["measurements"]
    assert search["status"] == "finished"
    assert "no N exists for the allowed share" in search["capacity"]["words"][0]
    assert overload["status"] == "failed"
    assert "N was not found, and the load is a share of it" in overload["failure"]


def test_an_overload_is_worked_off_at_the_rate_that_is_left(
    loadstone: VirtualCommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loadstone.faults.watcher.watched", lambda *_: nullcontext())
    for seed in SEEDS:
        words = ("--do=overload 4x for 10 seconds", *STEADY, "--repeats=1")
        ended = loadstone("fault", *words, service=SERVICE, seed=seed)
        assert ended.code == 0
        [found] = only(ended.data)["faults"]
        assert (found["failed"], found["targets"]) == (0, ["load"])
        # 160/s of which 100/s are served for 10 s; then 60/s more are served than come.
        assert found["backlog"] == pytest.approx(600, rel=0.05)
        assert found["mttr_s"] == pytest.approx(20.0, rel=0.1)
        assert found["goodput_rps"] == pytest.approx(100.0, rel=0.05)
