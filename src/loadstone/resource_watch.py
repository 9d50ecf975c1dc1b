"""Keeps the use of resources with each trial."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from loadstone.analysis.model import TICK_S, Cause, Trial
from loadstone.engine.parquet import SampleFile
from loadstone.engine.samples import Samples
from loadstone.findings import Finding
from loadstone.monitor.growth import LoadCourse, growth
from loadstone.monitor.metrics import Metrics
from loadstone.monitor.resources import LoadFigures, Watch, Watched
from loadstone.observer import TrialObserver
from loadstone.search.model import TrialRequest

SHORTEST_S = 0.5  # the kernel counts CPU time in hundredths of a second


@dataclass(slots=True)
class ResourceWatch(TrialObserver):
    """Reads resources from the begin to the end of one trial's load."""

    watch: Watch
    keep: Callable[[int, Metrics], str]  # stores the readings of a trial; returns the file's name
    say: Callable[[str], None]
    _watched: Watched | None = field(default=None, init=False)

    def on_trial_begin(self, request: TrialRequest) -> None:  # noqa: ARG002
        """Read everything."""
        self._watched = self.watch.begin()

    def on_load_end(self, samples: Samples | SampleFile) -> None:  # noqa: ARG002
        """Read everything again."""
        if self._watched is not None:
            self._watched.stop()

    def on_trial_end(self, trial: Trial) -> Trial:
        """Add what the load used, and what gave way."""
        if self._watched is None or self._watched.metrics.duration_s < SHORTEST_S:
            return trial
        outcome = LoadFigures(
            requests=trial.stats.total.count,
            is_generator_valid=trial.is_valid,
            is_overloaded=trial.verdict.cause is Cause.OVERLOAD,
        )
        try:
            resources = self._watched.resources(outcome)
        except Exception as problem:  # a monitor never ends a run
            self.say(f"  resources are not shown: {type(problem).__name__}: {problem}")
            return trial
        resources = replace(resources, findings=(*resources.findings, *self._growth(trial)))
        file = self.keep(trial.number, self._watched.metrics)
        return replace(trial, resources=replace(resources, readings_file=file))

    def _growth(self, trial: Trial) -> tuple[Finding, ...]:
        if self._watched is None or trial.start_s is None or not trial.stats.ok:
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
        return growth(self._watched.metrics, course, self.watch.setup)
