"""Hooks that inject faults."""

from dataclasses import replace

from made_runs import runs

from loadstone.engine.progress import Progress
from loadstone.faults.model import FaultRecord
from loadstone.faults.sentence import read
from loadstone.observers.hooks import Hooks
from loadstone.plan.hooks import Event, FaultInjection, Hook
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
    assert [run.value for run in ended.hook_runs] == [1]
