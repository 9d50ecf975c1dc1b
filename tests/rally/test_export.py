"""What a function's failed iterations say in Rally's report JSON."""

from dataclasses import replace
from typing import Any

from made_runs import runs, samples_of

from loadstone.engine.callables.causes import IterationEnd
from loadstone.engine.callables.model import ITERATION, WAIT
from loadstone.engine.callables.recorder import SampleRecorder, SampleRow
from loadstone.engine.outcome import Outcome
from loadstone.rally.export import as_rally
from loadstone.workload.functions import as_failure

BOOT = "nova.boot_server"


def errors(*ends: tuple[str, IterationEnd]) -> list[list[str]]:
    """Export iterations that end so, each in an action, and return their errors."""
    return [one["error"] for one in iterations(*ends)]


def exported(recorder: SampleRecorder) -> dict[str, Any]:
    """Export what was recorded as a workload."""
    run = runs()["task"]
    measurement = run.measurements[0]
    trial = measurement.trials[0]
    failures = tuple(as_failure(group) for group in recorder.failures())
    stats = replace(trial.stats, failures=failures)
    trial = replace(trial, actions=recorder.actions(), stats=stats)
    run = replace(run, measurements=(replace(measurement, trials=(trial,)),))
    [task] = as_rally(run, lambda _: recorder.samples())["tasks"]
    workload: dict[str, Any] = task["subtasks"][0]["workloads"][0]
    return workload


def iterations(*ends: tuple[str, IterationEnd]) -> list[dict[str, Any]]:
    """Export iterations that end so, each in an action."""
    recorder = SampleRecorder()
    for number, (action, how) in enumerate(ends):
        at_ns = number * 1_000_000_000
        bad = SampleRow(number, 0, at_ns, at_ns, at_ns + 5_000, how.outcome, how.status)
        recorder.row(WAIT, SampleRow(number, 0, at_ns, at_ns, at_ns))
        if action != ITERATION:
            recorder.row(action, replace(bad, due_ns=at_ns + 10, sent_ns=at_ns + 10))
        recorder.row(ITERATION, bad)
        recorder.failure(action, how, number)
    data: list[dict[str, Any]] = exported(recorder)["data"]
    return data


def test_an_iteration_has_the_cause_of_its_own_kind_not_the_most_frequent_one() -> None:
    late = (BOOT, IterationEnd(Outcome.TIMED_OUT, 0, "not complete within 5 s"))
    quota = (BOOT, IterationEnd(Outcome.HTTP_STATUS, 403, "Forbidden: quota"))
    full = (BOOT, IterationEnd(Outcome.HTTP_STATUS, 503, "Unavailable"))
    found = errors(late, late, late, quota, quota, full, full)
    causes = [cause.removeprefix(f"{BOOT}: ") for cause, _, _ in found]
    assert causes == [
        *["not complete within 5 s"] * 3,
        *["Forbidden: quota"] * 2,
        *["Unavailable"] * 2,
    ]


def test_an_iteration_that_failed_outside_of_actions_has_no_cause_of_an_action() -> None:
    in_action = (BOOT, IterationEnd(Outcome.RAISED, 0, "ValueError: a"))
    outside = (ITERATION, IterationEnd(Outcome.RAISED, 0, "ValueError: b"))
    found = errors(in_action, in_action, outside, outside, in_action)
    assert [cause[-1] for cause, _, _ in found] == ["a", "a", "b", "b", "a"]


def test_where_several_causes_are_possible_all_are_named() -> None:
    causes = [(BOOT, IterationEnd(Outcome.RAISED, 0, f"ValueError: {word}")) for word in "aab"]
    first, second, third = errors(*causes)
    assert (first[0][-1], third[0][-1]) == ("a", "b")
    assert second[0] == "one of 2 causes"
    assert second[1] == f"{BOOT}: ValueError: a (2x); {BOOT}: ValueError: b (1x)"


def test_the_name_of_a_functions_action_is_kept_whole() -> None:
    [first] = iterations(("boot #1", IterationEnd(Outcome.OK, 0, "")))
    assert [action["name"] for action in first["atomic_actions"]] == ["boot #1"]


def test_an_action_whose_exception_was_caught_is_marked_and_no_other() -> None:
    recorder = SampleRecorder()
    recorder.row(WAIT, SampleRow(0, 0, 0, 0, 0))
    recorder.row("outer/inner", SampleRow(0, 0, 20, 20, 30, Outcome.RAISED))
    recorder.row("outer", SampleRow(0, 0, 10, 10, 40))
    recorder.row(ITERATION, SampleRow(0, 0, 0, 0, 50))
    recorder.mark_caught([1])
    workload = exported(recorder)
    [iteration] = workload["data"]
    [outer] = iteration["atomic_actions"]
    [inner] = outer["children"]
    assert (iteration["error"], workload["failed_iteration_count"]) == ([], 0)
    assert ("failed" in outer, inner.get("failed")) == (False, True)
    [row] = workload["statistics"]["durations"]["atomics"]
    assert (row["data"]["success"], row["children"][0]["data"]["success"]) == ("100.0%", "0.0%")


def test_steps_of_a_workload_are_of_one_subtask():
    run = runs()["steps"]
    [measurement] = run.measurements
    run = replace(run, measurements=(replace(measurement, begins_subtask=True),) * 2)
    [task] = as_rally(run, samples_of)["tasks"]
    assert [len(one["workloads"]) for one in task["subtasks"]] == [len(measurement.each)] * 2
