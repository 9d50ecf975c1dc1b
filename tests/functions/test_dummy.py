"""Rally's Dummy scenarios, with its arguments and its actions."""

import json
from collections import Counter

import pytest

from loadstone.engine.callables.context import Context
from loadstone.engine.callables.model import ITERATION, WAIT, CallPlan
from loadstone.engine.callables.run import run
from loadstone.plan.load import ClosedLoad
from loadstone.rally.functions.catalogue import FUNCTIONS


def call(name, times=1, **arguments):
    load = ClosedLoad(1, iterations=times)
    return run(CallPlan(FUNCTIONS[f"Dummy.{name}"], load, arguments))


def failed_iterations(called):
    samples = called.measured.samples
    whole = samples.action == called.actions.index(ITERATION)
    return sorted((samples.iteration[whole & (samples.outcome != 0)] + 1).tolist())


def actions(called):
    numbers = Counter(called.measured.samples.action.tolist())
    return {
        name: numbers[i] for i, name in enumerate(called.actions) if name not in (WAIT, ITERATION)
    }


def test_dummy_is_an_action_inside_another_and_takes_any_argument():
    assert actions(call("dummy", sleep=0, whatever=1)) == {"foo": 1, "foo/bar": 1}
    assert actions(call("openstack", sleep=0.01)) == {"foo": 1, "foo/bar": 1}


def test_failure_fails_in_each_so_many_th_iteration_of_a_range():
    called = call("failure", 12, sleep=0, from_iteration=3, to_iteration=10, each=3)
    assert failed_iterations(called) == [3, 6, 9]
    (failure,) = called.failures
    assert failure.cause == (
        "DummyScenarioException: Dummy scenario expected exception: 'Expected failure'"
    )


def test_an_exception_has_the_size_or_the_text_that_is_asked_for():
    (failure,) = call("dummy_exception", size_of_message=5, sleep=0).failures
    assert "'MMMMM'" in failure.cause
    (failure,) = call("dummy_exception", sleep=0, message="my words").failures
    assert "'my words'" in failure.cause


def test_probabilities_of_nought_and_one_are_certain():
    assert failed_iterations(call("dummy_exception_probability", 5, exception_probability=0)) == []
    called = call("dummy_exception_probability", 5, exception_probability=1)
    assert failed_iterations(called) == [1, 2, 3, 4, 5]
    called = call("dummy_random_fail_in_atomic", 5, exception_probability=0)
    assert failed_iterations(called) == []
    assert actions(called) == {"dummy_fail_test": 10, "dummy_fail_test/dummy_fail_inner_test": 10}
    called = call("dummy_random_fail_in_atomic", 2, exception_probability=1)
    assert actions(called) == {"dummy_fail_test": 2}
    assert called.failures[0].action == "dummy_fail_test"


def test_as_many_actions_as_are_asked_for():
    called = call("dummy_random_action", 2, actions_num=3, sleep_min=0, sleep_max=0.001)
    assert actions(called) == {"action_0": 2, "action_1": 2, "action_2": 2}
    called = call("dummy_timed_atomic_actions", number_of_actions=3, sleep_factor=0.01)
    assert actions(called) == {"action_0": 1, "action_1": 1, "action_2": 1}
    samples = called.measured.samples
    took_ns = (samples.done_ns - samples.sent_ns)[
        samples.action == called.actions.index("action_2")
    ]
    assert took_ns[0] >= 20_000_000


def test_output_in_another_form_is_refused():
    context = Context(0, {}, {}, lambda said: pytest.fail(f"sent {said}"))
    with pytest.raises(ValueError, match="additive output needs chart_plugin"):
        context.output(additive={"title": "Rows", "data": []})
    chart = {"title": "Rows", "chart_plugin": "Pie", "data": [["read", float("nan")]]}
    with pytest.raises(ValueError, match="infinite or not a number"):
        context.output(complete=chart)
    chart = {"title": "Rows", "chart_plugin": "Line", "data": [["read", 1]]}
    with pytest.raises(ValueError, match=r"no chart_plugin 'Line'; choose from Lines, "):
        context.output(additive=chart)


def test_output_has_every_form_of_chart():
    called = call("dummy_output", 2, random_range=3)
    assert [output.iteration for output in called.outputs] == [0, 1]
    (output, _) = called.outputs
    charts = [json.loads(chart) for chart in (*output.additive, *output.complete)]
    plugins = {chart["chart_plugin"] for chart in charts}
    assert plugins == {"StatsTable", "StackedArea", "Lines", "Pie", "TextArea", "Table"}
    assert all(1 <= value <= 3 for _, value in charts[0]["data"])
