"""Runs one trial: a load, its statistics and its verdict."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from loadstone.analysis.alarm import Alarm
from loadstone.analysis.model import Trial
from loadstone.analysis.traces import slowest
from loadstone.analysis.trial import alarm, assess, checked
from loadstone.engine import parquet
from loadstone.engine.gate import Allowance, Engine
from loadstone.engine.parquet import SampleFile
from loadstone.engine.progress import Progress
from loadstone.engine.samples import Samples
from loadstone.errors import EnvironmentUnusable
from loadstone.monitor.usage import Meter, deaths
from loadstone.plan.trace import Trace
from loadstone.result.observer import TrialObserver
from loadstone.search.model import TrialRequest
from loadstone.system.clock import Clock
from loadstone.system.say import Say
from loadstone.target.target import Target
from loadstone.workload.generator import Load, Loaded, LoadTerms
from loadstone.workload.model import MeasurementConfig
from loadstone.workload.policy import Fixed

Keep = Callable[[Trial, Samples | SampleFile | None], Trial]


@dataclass(frozen=True, slots=True)
class Conditions:
    """Conditions under which a trial is run."""

    config: MeasurementConfig
    target: Target
    number: int  # in its measurement, from 1
    seed: int  # of what is random in its load
    allowance: Allowance
    engine: Engine
    file: Path  # for the samples, if they are not kept in memory
    observers: Sequence[TrialObserver]
    keep: Keep  # stores the trial
    say: Say
    trace: Trace | None = None  # requests that carry a `traceparent`; None: none


def run_trial(request: TrialRequest, load: Load, conditions: Conditions) -> tuple[Trial, bool]:
    """Run one load on the target; return the trial, and whether the load time was used up."""
    observers, clock = conditions.observers, conditions.engine.clock
    began_s = clock.monotonic_s()
    watch = _Watch(request, conditions, _alarm(request, conditions.config))
    reads = [observer for observer in observers if observer.reads_samples]

    def on_samples(samples: Samples, actions: tuple[str, ...]) -> None:
        for observer in reads:
            observer.on_samples(samples, actions)

    loaded = load(
        request,
        LoadTerms(
            conditions.allowance,
            conditions.file if _is_written_meanwhile(conditions.config) else None,
            watch.begin,
            watch,
            on_samples if reads else None,
            conditions.engine,
            conditions.trace,
            seed=conditions.seed,
        ),
    )
    usage = watch.meter.usage()
    if not loaded.health.parts:  # whose processes may be on other machines
        spent_s = max(usage.generator_cpu_s, loaded.health.cpu_s)
        usage = replace(usage, generator_cpu_s=spent_s)
    for observer in observers:
        observer.on_load_end(loaded.samples)
    trial = replace(
        _judged(request, loaded, conditions, watch.alarm),
        usage=usage,
        start_s=watch.start_s,
        runner=request.runner,
        turn=getattr(request.load, "turn", None),
        outputs=loaded.outputs,
        outputs_dropped=loaded.outputs_dropped,
        traces=slowest(loaded.samples, loaded.trace, loaded.actions) if loaded.trace else (),
    )
    trial = conditions.keep(trial, loaded.samples)
    try:
        if loaded.interrupted:
            raise KeyboardInterrupt
        trial = _completed(trial, conditions)
        for line in deaths(usage):
            conditions.say(f"  {line}")
        require_alive(conditions.target)
        if why := conditions.engine.failure():
            raise EnvironmentUnusable(why)
    except BaseException as error:
        status = "failed" if isinstance(error, EnvironmentUnusable) else "interrupted"
        conditions.keep(replace(trial, status=status), None)
        raise
    if request.runner:
        trial = conditions.keep(replace(trial, wall_s=clock.monotonic_s() - began_s), None)
    return trial, loaded.health.is_cut_short


def _is_written_meanwhile(config: MeasurementConfig) -> bool:
    """Return whether samples are written during the load: those of searches are few."""
    return config.goal is None or isinstance(config.policy, Fixed)


def require_alive(target: Target) -> None:
    """Raise EnvironmentUnusable if a part of the service has died."""
    if why := target.failure():
        raise EnvironmentUnusable(why)


def _completed(trial: Trial, conditions: Conditions) -> Trial:
    """Return the trial with the additions of observers."""
    whole = trial
    for observer in conditions.observers:
        whole = observer.on_trial_end(whole)
    return whole if whole is trial else conditions.keep(whole, None)


def _alarm(request: TrialRequest, config: MeasurementConfig) -> Alarm | None:
    """Return the alarm that stops a hopeless trial; None for a load without a goal."""
    if config.goal is None:
        return None
    return alarm(
        request.load,
        request.alarm_s,
        config.goal,
        request.settle_s,
        tolerates_errors=request.tolerates_errors,
        time_left=request.time_left,
    )


def _judged(
    request: TrialRequest, loaded: Loaded, conditions: Conditions, alarm: Alarm | None
) -> Trial:
    spec, config = request.spec(conditions.number), conditions.config
    spec = replace(spec, alarmed=alarm.cause if alarm else None)
    if config.goal is not None:
        rows = loaded.samples
        if isinstance(rows, SampleFile):
            rows = parquet.read(rows.path)
        trial = assess(spec, rows, loaded.health, config.goal, loaded.actions)
    else:
        trial = checked(spec, loaded.samples, loaded.health, config.criteria, loaded.actions)
    if not loaded.failures:
        return trial
    return replace(trial, stats=replace(trial.stats, failures=loaded.failures))


@dataclass(slots=True)
class _Watch:
    """Calls observers a few times a second during the load; returns False to end it."""

    request: TrialRequest
    conditions: Conditions
    alarm: Alarm | None
    meter: Meter = field(init=False)
    start_s: float = field(init=False)  # Unix time of the load's first instant
    _least_s: float = field(default=math.inf, init=False)

    def begin(self) -> None:
        """Begin to watch; what a load prepares before, such as logins, does not count."""
        for observer in self.conditions.observers:
            observer.on_trial_begin(self.request)
        target = self.conditions.target
        self.meter = Meter(target.members, target.other_side)
        self.start_s = self._clock.unix_s()

    @property
    def _clock(self) -> Clock:
        return self.conditions.engine.clock

    def __call__(self, progress: Progress) -> bool:
        # The load may have waited for its workers before its start, and a late call must not move
        # the start to a later time.
        self._least_s = self.start_s = min(self._least_s, self._clock.unix_s() - progress.elapsed_s)
        self.meter.sample()
        goes_on = [observer.on_progress(progress) for observer in self.conditions.observers]
        is_hopeless = self.alarm is not None and not self.alarm(progress)
        return all(goes_on) and not is_hopeless and self.conditions.target.failure() is None
