"""Measurements of a task's workloads, made up for tests."""

from collections.abc import Sequence
from dataclasses import replace

from loadstone.analysis.model import NOT_JUDGED, Trial
from loadstone.analysis.sla import Check
from loadstone.analysis.stats import compute_stats
from loadstone.engine.samples import Samples
from loadstone.result.model import Measurement
from loadstone.result.task_workload import TaskWorkload

ACTIONS = ("authenticate.keystone",)
GIVEN = TaskWorkload(runner={"constant": {"times": 9, "concurrency": 2}})


def workload(
    samples: Samples,
    checks: Sequence[Check] = (),
    given: TaskWorkload = GIVEN,
    of_trial: dict | None = None,
    **of_measurement: object,
) -> Measurement:
    """A workload with a trial that these samples are of."""
    computed = compute_stats(samples, ACTIONS)
    trial = Trial(
        number=1,
        rate_rps=None,
        purpose="",
        planned_s=computed.stats.load_s,
        stats=computed.stats,
        timeline=computed.timeline,
        verdict=NOT_JUDGED,
        checks=tuple(checks),
        actions=ACTIONS,
    )
    measurement = Measurement(
        scenario="Authenticate.keystone",
        title="Issue",
        policy="fixed",
        status="finished",
        trials=(replace(trial, **(of_trial or {})),),
        subtask="Issue",
        workload=given,
    )
    return replace(measurement, **of_measurement)


def steps(measurement: Measurement, runners: Sequence[dict], **of_trial: Sequence) -> Measurement:
    """The same at several loads; `of_trial` has a value for each step."""
    (trial,) = measurement.trials
    trials = [
        replace(
            trial,
            number=number,
            runner=runner,
            **{name: values[number - 1] for name, values in of_trial.items()},
        )
        for number, runner in enumerate(runners, 1)
    ]
    return replace(measurement, policy="steps", trials=tuple(trials))
