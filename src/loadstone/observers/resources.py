"""Adds resource usage to each trial."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from loadstone.analysis.model import TICK_S, Cause, Trial
from loadstone.diagnosis.finding import Finding
from loadstone.diagnosis.growth import LoadCourse, growth
from loadstone.diagnosis.resources import Watch
from loadstone.engine.parquet import SampleFile
from loadstone.engine.samples import Samples
from loadstone.monitor.metrics import EMPTY, Metrics
from loadstone.result.observer import TrialObserver
from loadstone.search.model import TrialRequest
from loadstone.system.say import Say

SHORTEST_S = 0.5  # the kernel counts CPU time in hundredths of a second
LONG_ITERATION = 0.02  # of the load's duration
LEAST_STEADY = 0.5  # of the load's duration


@dataclass(slots=True)
class ResourceWatch(TrialObserver):
    """Reads resources during the load of a trial."""

    watch: Watch
    keep: Callable[[int, Metrics], str]  # stores the readings of a trial; returns the file's name
    say: Say
    _since_s: float = field(default=0.0, init=False)
    _metrics: Metrics = field(default=EMPTY, init=False)

    def on_trial_begin(self, request: TrialRequest) -> None:  # noqa: ARG002
        """Read everything."""
        self._metrics = EMPTY
        self._since_s = self.watch.monitor.sample()

    def on_load_end(self, samples: Samples | SampleFile) -> None:  # noqa: ARG002
        """Read everything again."""
        self.watch.monitor.sample()
        self._metrics = self.watch.monitor.metrics(self._since_s)

    def on_trial_end(self, trial: Trial) -> Trial:
        """Add the resource usage and the bottleneck."""
        if self._metrics.duration_s < SHORTEST_S:
            return trial
        steady = steady_part(trial, self._metrics)
        requests, between_s = steady or (trial.stats.total.count, None)
        try:
            resources = self.watch.resources(
                self._metrics,
                requests,
                between_s,
                is_generator_valid=trial.is_valid,
                is_overloaded=trial.verdict.cause is Cause.OVERLOAD,
            )
            findings = (*resources.findings, *self._growth(trial))
        except Exception as problem:  # a monitor never ends a run
            self.say(f"  resources are not shown: {type(problem).__name__}: {problem}")
            return trial
        resources = replace(resources, findings=findings)
        file = self.keep(trial.number, self._metrics)
        return replace(trial, resources=replace(resources, readings_file=file))

    def _growth(self, trial: Trial) -> tuple[Finding, ...]:
        if trial.start_s is None or not trial.stats.ok:
            return ()
        course = LoadCourse(
            start_s=trial.start_s,
            tick_s=TICK_S,
            ok=trial.timeline.ok,
            response_s=trial.stats.service.mean_s,
            slope=trial.stats.latency_slope,
            is_overloaded=trial.verdict.cause is Cause.OVERLOAD,
            is_drifting=trial.verdict.cause is Cause.DRIFT,
        )
        return growth(self._metrics, course, self.watch.setup)


def steady_part(trial: Trial, metrics: Metrics) -> tuple[int, tuple[float, float]] | None:
    """Return the requests that ended in the steady part of the load, and its Unix times.

    The first iterations end after the mean duration of one, and after the last start fewer and
    fewer are running. If iterations are long compared to the load, these parts would make every
    resource look idle. None: evaluate the whole load.
    """
    took_s, load_s = trial.stats.service.mean_s, trial.stats.load_s
    begun = np.flatnonzero(trial.timeline.due)
    if trial.start_s is None or not len(begun) or not took_s > LONG_ITERATION * load_s:
        return None
    last_s = trial.start_s + (begun[-1] + 1) * TICK_S
    times_s = metrics.between(trial.start_s + took_s, last_s).time_s
    if not len(times_s) or times_s[-1] - times_s[0] < LEAST_STEADY * load_s:
        return None
    ended = np.concatenate(([0], np.cumsum(trial.timeline.ok + trial.timeline.failed)))
    edges_s = trial.start_s + np.arange(len(ended)) * TICK_S
    before, after = np.interp([times_s[0], times_s[-1]], edges_s, ended)
    return round(after - before), (float(times_s[0]), float(times_s[-1]))
