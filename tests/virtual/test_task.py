"""`loadstone run` of tasks on simulated services: SLA rules, exit codes, the end of a task."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from documents import workloads
from simulator.engine import TICK_S
from simulator.service import Change, Limiter, Outage, Service
from virtual import Ended, VirtualCommandLine

# Four workers of 100 ms.
SERVICE = Service(workers=4, capacity_rps=40.0, variation=0.2)
SEEDS = range(12)


@pytest.fixture
def run(loadstone: VirtualCommandLine) -> Callable[..., Ended]:
    """Run a task of one workload with these rules."""

    def run_it(runner: str, sla: str, *words: str, **world: Any) -> Ended:
        (loadstone.home / "task.yaml").write_text(
            f"Authenticate.keystone: [{{runner: {{{runner}}}, sla: {{{sla}}}}}]\n"
        )
        return loadstone("run", "task.yaml", "--json=-", *words, **world)

    return run_it


def only(ended: Ended) -> dict[str, Any]:
    (workload,) = workloads(ended.data)
    return workload


CLOSED = "type: constant, times: 200, concurrency: 4"
# What the service is like, a rule, whether it holds.
RULES = [
    (SERVICE, "max_avg_duration: 0.11", True),
    (SERVICE, "max_avg_duration: 0.09", False),
    (SERVICE, "max_seconds_per_iteration: 0.3", True),
    (SERVICE, "max_seconds_per_iteration: 0.12", False),
    (SERVICE, "max_avg_duration_per_atomic: {authenticate.keystone: 0.11}", True),
    (SERVICE, "max_avg_duration_per_atomic: {authenticate.keystone: 0.09}", False),
    (SERVICE, "performance_degradation: {max_degradation: 400}", True),
    (SERVICE, "performance_degradation: {max_degradation: 10}", False),
    (Service(workers=4, capacity_rps=40.0, error_share=0.05), "failure_rate: {max: 15}", True),
    (Service(workers=4, capacity_rps=40.0, error_share=0.25), "failure_rate: {max: 15}", False),
]


@pytest.mark.parametrize(("service", "rule", "holds"), RULES)
def test_a_rule_decides_the_exit_code(
    run: Callable[..., Ended], service: Service, rule: str, holds: bool
) -> None:
    for seed in range(3):
        ended = run(CLOSED, rule, service=service, seed=seed)
        found = only(ended)
        assert (ended.code, found["pass_sla"]) == ((0, True) if holds else (1, False))
        assert found["total"]["count"] == 200


DESCRIBED = """
version: 2
title: T
subtasks:
  - {title: Simple, description: in short, scenario: {Authenticate.keystone: {}}}
  - title: Full
    description: at length
    workloads:
      - {description: of one load, scenario: {Authenticate.keystone: {}}}
"""


def test_the_descriptions_of_subtasks_are_kept_and_shown(loadstone: VirtualCommandLine) -> None:
    (loadstone.home / "task.yaml").write_text(DESCRIBED)
    ended = loadstone("run", "task.yaml", "--json=-", "--rally-json=rally.json", service=SERVICE)
    found = [(one["subtask_description"], one["description"]) for one in workloads(ended.data)]
    assert found == [("in short", "Issue one token."), ("at length", "of one load")]
    [task] = json.loads((loadstone.home / "rally.json").read_text())["tasks"]
    assert [one["description"] for one in task["subtasks"]] == ["in short", "at length"]
    shown = " ".join(loadstone("results", "show", "latest").stdout.split())
    assert "Simple · in short · Issue one token" in shown
    assert "Full · at length · of one load" in shown


def test_where_no_sla_was_asked_none_is_said_to_have_held(
    run: Callable[..., Ended], loadstone: VirtualCommandLine
) -> None:
    def shown() -> list[str]:
        return [loadstone("results", which).stdout for which in ("list", "trends")]

    assert run(CLOSED, "", service=SERVICE).code == 0
    assert [" held" in text for text in shown()] == [False, False]
    assert "100 %, no SLA" in " ".join(shown()[0].split())
    assert run(CLOSED, "failure_rate: {max: 0}", service=SERVICE).code == 0
    assert [" held" in text for text in shown()] == [True, True]


@pytest.mark.parametrize(
    ("rule", "codes"), [("max_avg_duration: 0.11", (1, 1)), ("max_avg_duration: 0.09", (1, 2))]
)
def test_in_rallys_style_only_a_broken_sla_ends_with_2_not_what_is_left(
    run: Callable[..., Ended], loadstone: VirtualCommandLine, rule: str, codes: tuple[int, int]
) -> None:
    change = loadstone.fake.change

    def keep(method: str, *about: Any) -> Any:
        return (403, None) if method == "DELETE" else change(method, *about)

    loadstone.fake.change = keep  # type: ignore[method-assign]
    styles = ("loadstone", "rally")
    found = [run(CLOSED, rule, "--exit-code-style", one, service=SERVICE) for one in styles]
    assert tuple(one.code for one in found) == codes
    assert "left in" in found[0].stderr


def test_a_closed_loop_completes_what_the_response_time_law_says(
    run: Callable[..., Ended],
) -> None:
    for seed in SEEDS:
        found = only(run("type: constant, times: 400, concurrency: 2", "", service=SERVICE,
                         seed=seed))  # fmt: skip
        # Two of four workers: X = K / S.
        assert found["throughput_rps"] == pytest.approx(20.0, rel=0.05)
        assert found["total"]["mean_s"] == pytest.approx(0.1, rel=0.05)


def test_a_rate_is_offered_whatever_the_service_does(run: Callable[..., Ended]) -> None:
    runner = "type: rps, times: 300, rps: 30"
    for service in (SERVICE, Service(workers=4, capacity_rps=20.0)):
        ended = run(runner, "", service=service)
        assert ended.code == 0
        (plan,) = ended.engine.plans
        assert plan.load.rate_rps == 30.0
        assert only(ended)["total"]["count"] == 300
    # The second completes 20 a second: the last of 300 is due after 10 s and ends after 15 s.
    assert only(ended)["total"]["max_s"] == pytest.approx(5.0, rel=0.1)


def test_a_rate_that_is_paced_as_rally_does_is_said_to_be(run: Callable[..., Ended]) -> None:
    ramp = "type: rps, times: 60, rps: {start: 5, end: 20, step: 5}"
    plain, paced = (
        only(run(ramp, "", *words, service=SERVICE)) for words in ((), ("--rally-pacing",))
    )
    assert [one["paced_as_rally"] for one in (plain, paced)] == [False, True]
    loads = [
        {fact["label"]: fact["text"] for fact in one["facts"]}["load"] for one in (plain, paced)
    ]
    load = "5 to 20 per s, 60 iterations"
    assert loads == [load, f"{load}, paced as Rally does"]
    assert plain["config_id"] != paced["config_id"]  # trends compare no two loads
    closed = only(run(CLOSED, "", "--rally-pacing", service=SERVICE))
    assert not closed["paced_as_rally"]


def test_no_pacing_asks_for_more_than_the_highest_rate(run: Callable[..., Ended]) -> None:
    """Also if the load is over within a second."""
    for words in ((), ("--rally-pacing",)):
        ended = run("type: rps, times: 10, rps: 100", "", *words, "--max-rate=30", service=SERVICE)
        assert ended.code == 2
        assert "100 iterations a second are more than the 30 that are allowed" in ended.stderr
        rising = ("--step=rps=+10", "--until=p99>60s", "--max-rate=30", *words)
        ended = run("type: rps, times: 10, rps: 10", "", *rising, service=SERVICE)
        assert [one["runner"]["rps"]["rps"] for one in workloads(ended.data)] == [10, 20, 30]


def test_a_rate_that_the_generator_did_not_keep_is_exit_code_4(run: Callable[..., Ended]) -> None:
    ended = run("type: rps, times: 50, rps: 10", "failure_rate: {max: 0}", service=SERVICE,
                lag_s=0.1)  # fmt: skip
    assert ended.code == 4
    closed = run(CLOSED, "failure_rate: {max: 0}", service=SERVICE, lag_s=0.1)
    assert closed.code == 0


def test_a_broken_rule_ends_the_task_with_the_iteration_that_broke_it(
    run: Callable[..., Ended],
) -> None:
    runner = "type: constant_for_duration, duration: 60, concurrency: 3"
    for seed in SEEDS:
        at_s = 5.0 + seed
        service = Service(workers=4, capacity_rps=40.0, outage=Outage(at_s))
        ended = run(runner, "failure_rate: {max: 0}", "--abort-on-sla-failure", service=service,
                    seed=seed)  # fmt: skip
        found = only(ended)
        assert (ended.code, found["status"]) == (1, "aborted")
        broke = re.search(
            r"failure_rate broke with iteration (\d+) \(number (\d+) to end\); (\d+) ended after",
            found["sla"][-1]["detail"],
        )
        assert broke is not None
        # Those in progress are lost at the same instant, the first of them breaks the rule.
        assert int(broke[2]) == found["total"]["ok"] + 1
        assert int(broke[2]) + int(broke[3]) == found["total"]["count"]
        begun_s = ended.seconds - found["load_seconds"]
        assert found["load_seconds"] <= at_s - begun_s + 2 * TICK_S


def test_a_rule_that_holds_ends_nothing(run: Callable[..., Ended]) -> None:
    for seed in range(5):
        ended = run(CLOSED, "max_avg_duration: 0.2, failure_rate: {max: 0}",
                    "--abort-on-sla-failure", service=SERVICE, seed=seed)  # fmt: skip
        assert (ended.code, only(ended)["status"]) == (0, "finished")


def test_steps_end_at_the_load_that_the_service_no_longer_answers_in_time(
    run: Callable[..., Ended],
) -> None:
    for seed in range(5):
        ended = run("type: constant, times: 120, concurrency: 2", "", "--step=concurrency=+4",
                    "--until=p90>0.22s", service=SERVICE, seed=seed)  # fmt: skip
        runners = [one["given"]["runner"]["constant"] for one in workloads(ended.data)]
        # By Little's law, responses take 100, 150 and 250 ms.
        assert [one["concurrency"] for one in runners] == [2, 6, 10]


def test_the_throughput_of_steps_is_that_of_one_whose_sla_held(run: Callable[..., Ended]) -> None:
    limited = Service(workers=4, capacity_rps=40.0, variation=0.2, limiter=Limiter(25.0))
    steps = ("--step=rps=+10", "--until=p90>0.22s")
    ended = run("type: rps, times: 100, rps: 10", "failure_rate: {max: 0}", *steps, service=limited)
    (answer,) = [one["answer"] for one in ended.data["measurements"]]
    held = [one for one in workloads(ended.data) if one["pass_sla"]]
    assert answer["value"] == max(one["throughput_rps"] for one in held)
    assert answer["value"] < 31


def test_a_task_whose_load_time_is_used_up_ends_in_the_middle(
    loadstone: VirtualCommandLine,
) -> None:
    loads = (
        f"{{runner: {{type: constant_for_duration, duration: {seconds}, concurrency: 1}}}}"
        for seconds in (5, 60, 60)
    )
    (loadstone.home / "task.yaml").write_text(f"Authenticate.keystone: [{', '.join(loads)}]\n")
    ended = loadstone("run", "task.yaml", "--budget=20s", "--json=-", service=SERVICE)
    assert ended.code == 4
    assert "the load was ended after 20 s, in workload 2 of 3; raise --budget" in ended.stderr
    first, second = workloads(json.loads(ended.stdout))
    assert first["load_seconds"] == pytest.approx(5.0, abs=0.2)
    assert second["load_seconds"] == pytest.approx(15.0, abs=0.4)


def test_a_task_that_no_budget_is_long_enough_for_is_not_told_to_raise_it(
    loadstone: VirtualCommandLine,
) -> None:
    runner = "{type: constant_for_duration, duration: 3100, concurrency: 1}"
    (loadstone.home / "task.yaml").write_text(f"Authenticate.keystone: [{{runner: {runner}}}]\n")
    slow = Service(workers=1, capacity_rps=1.0)
    ended = loadstone("run", "task.yaml", service=slow)
    assert ended.code == 4
    words = "the load was ended after 3000 s, in workload 1 of 1; --budget takes no more"
    assert words in ended.stderr


def test_a_line_shows_progress_every_ten_seconds(run: Callable[..., Ended]) -> None:
    runner = "type: constant_for_duration, duration: 18, concurrency: 2"
    ended = run(runner, "failure_rate: {max: 0}", service=SERVICE)
    shown = re.findall(r" \| (\d+) s \| started [\d.]+/s \| done ", ended.stderr)
    assert [int(at_s) for at_s in shown] == [0, 10]


def test_a_service_that_slows_down_breaks_the_rule_on_degradation(
    run: Callable[..., Ended],
) -> None:
    runner = "type: constant_for_duration, duration: 20, concurrency: 2"
    slowing = Service(workers=4, capacity_rps=40.0, variation=0.05, change=Change(12.0, 2.0))
    steady = Service(workers=4, capacity_rps=40.0, variation=0.05)
    for seed in range(5):
        for service, code in ((slowing, 1), (steady, 0)):
            ended = run(runner, "performance_degradation: {max_degradation: 60}",
                        service=service, seed=seed)  # fmt: skip
            assert ended.code == code
