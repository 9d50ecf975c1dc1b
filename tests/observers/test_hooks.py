"""Hooks that inject faults."""

import json
from dataclasses import replace
from threading import Barrier
from threading import Event as Flag

import pytest
from made_runs import runs

from loadstone.engine.progress import Progress
from loadstone.faults.model import FaultRecord
from loadstone.faults.sentence import read
from loadstone.observers.hooks import MOST_AT_ONCE, Hooks
from loadstone.plan.hooks import Event, FaultInjection, Hook, SysCall
from loadstone.system.redaction import Redaction

SENTENCE = "kill keystone service"


def test_no_fault_begins_after_the_load():
    injected = []

    def inject(sentence):
        injected.append(sentence)
        return FaultRecord(read(sentence), 1.0, 2.0, None, (), ())

    hook = Hook(FaultInjection(SENTENCE), Event("time", (1, 3)))
    hooks = Hooks((hook,), Redaction(), 5.0, inject)
    hooks.on_progress(Progress(1.5, 10, 10, 10, 0, 1.0))
    hooks.on_load_end(None)
    trial = runs()["search"].measurements[0].trials[0]
    ended = hooks.on_trial_end(replace(trial, stats=replace(trial.stats, load_s=3.0)))
    hooks.close()
    assert injected == [SENTENCE]
    assert [run.value for run in ended.hook_runs] == [1, 3]
    assert ended.hook_runs[1].error[0] == "not started: its moment came as the load ended"


def test_a_fault_that_waited_for_other_hooks_does_not_begin_after_the_load():
    injected = []
    running, load_end = Barrier(MOST_AT_ONCE + 1), Flag()

    def inject(sentence):
        injected.append(sentence)
        if len(injected) <= MOST_AT_ONCE:
            running.wait(10)
            load_end.wait(10)
        return FaultRecord(read(sentence), 1.0, 2.0, None, (), ())

    hook = Hook(FaultInjection(SENTENCE), Event("time", (1,)))
    hooks = Hooks((hook,) * (MOST_AT_ONCE + 1), Redaction(), 5.0, inject)
    hooks.on_progress(Progress(1.5, 10, 10, 10, 0, 1.0))
    running.wait(10)
    hooks.on_load_end(None)
    load_end.set()
    trial = runs()["search"].measurements[0].trials[0]
    ended = hooks.on_trial_end(replace(trial, stats=replace(trial.stats, load_s=3.0)))
    hooks.close()
    assert len(injected) == MOST_AT_ONCE
    errors = [run.error[0] for run in ended.hook_runs if run.error]
    assert errors == ["not started before the load ended: 16 other hooks ran"]


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("head -c 200000 /dev/zero | tr '\\0' '['", "StdOut: [[[["),
        ('echo \'{"status": "ok"}\'', 'StdOut: {"status": "ok"}\n'),
    ],
)
def test_json_that_is_no_chart_is_text(command, text):
    action = SysCall(("/bin/sh", "-c", command))
    hooks = Hooks((Hook(action, Event("time", (1,))),), Redaction(), 5.0)
    hooks.on_progress(Progress(1.5, 10, 10, 10, 0, 1.0))
    trial = runs()["search"].measurements[0].trials[0]
    ended = hooks.on_trial_end(replace(trial, stats=replace(trial.stats, load_s=3.0)))
    hooks.close()
    (run,) = ended.hook_runs
    assert run.error is None
    (area,) = json.loads(run.output)["complete"]
    assert any(line.startswith(text) for line in area["data"])
