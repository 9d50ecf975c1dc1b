"""Runs the trials of a measurement, each with its observers and within the load time left."""

import json
from dataclasses import dataclass, replace
from functools import partial

from loadstone.analysis.model import Trial
from loadstone.engine.gate import Allowance, Engine
from loadstone.engine.parquet import SampleFile
from loadstone.engine.samples import Samples
from loadstone.errors import MeasurementInvalid
from loadstone.faults.carried import FaultRunner
from loadstone.observers.hooks import Hooks
from loadstone.observers.identity_requests import IdentityWatch, capacities
from loadstone.observers.profile import MOST_WORKERS, WorkerProfile
from loadstone.observers.resources import ResourceWatch
from loadstone.observers.sla_abort import SlaAbort
from loadstone.plan.trace import Trace
from loadstone.result.model import Measurement
from loadstone.result.observer import Display, TrialObserver
from loadstone.run.trial import Conditions, require_alive, run_trial
from loadstone.search.model import Capacity, TrialRequest
from loadstone.search.profiling import PURPOSE
from loadstone.search.settings import LONGEST_BUDGET_S
from loadstone.store.store import Store
from loadstone.target.target import Target
from loadstone.workload.generator import Load
from loadstone.workload.model import MeasurementConfig, RunConfig
from loadstone.workload.policy import Interleaved, LoadPolicy, Search, Steps

MOST_TRIALS = 1 << 20  # of a measurement


@dataclass(slots=True)
class Trials:
    """Runs the trials that a load policy requests, and stores each as soon as it has ended."""

    run: RunConfig
    config: MeasurementConfig
    target: Target
    store: Store
    display: Display
    engine: Engine
    load: Load
    fault_runner: FaultRunner
    index: int  # of the measurement in the run
    measurement: Measurement  # with its trials so far
    left_s: float  # seconds of load left in the run
    found: Capacity | None = None  # the result of a search, before trials that come after it

    def measure(self, request: TrialRequest) -> Trial:
        """Run one trial.

        Raises MeasurementInvalid if the run's load time is used up, and EnvironmentUnusable if a
        part of the service has died.
        """
        self.found = request.found
        require_alive(self.target)
        self.engine.clock.sleep(request.pause_s)
        if isinstance(self.config.policy, Steps):
            self.display.say(f"  {json.dumps(request.runner)}")
        left_s = self.config.budget_s - sum(one.spent_s for one in self.measurement.trials)
        is_last = self.left_s < left_s  # of the run's load, not of the measurement's
        observers = self._observers()
        before_s = sum(one.spent_s for one in self.measurement.trials)
        began_s = self.engine.clock.monotonic_s()
        try:
            trial, is_cut_short = run_trial(
                request, self.load, self._conditions(min(left_s, self.left_s), observers)
            )
        finally:
            for observer in observers:
                observer.close()
            # A trial is among them also if it failed after its load. Of one that failed during
            # its load, the whole time counts.
            spent_s = sum(one.spent_s for one in self.measurement.trials) - before_s
            self.left_s -= spent_s or self.engine.clock.monotonic_s() - began_s
        if is_cut_short and is_last:
            raise MeasurementInvalid(
                f"the load was ended after {self.run.budget_s:.0f} s, in workload "
                f"{self.index + 1} of {len(self.run.measurements)}; {_advice(self.run, trial)}"
            )
        return trial

    def _conditions(self, most_s: float, observers: list[TrialObserver]) -> Conditions:
        number = len(self.measurement.trials) + 1
        beyond = self.target.access.beyond_loopback
        return Conditions(
            self.config,
            self.target,
            number,
            # Two runs of the same measurements send the same requests; two repeats do not.
            MOST_TRIALS * self.index + number,
            Allowance(self.run.max_rate_rps, most_s, beyond),
            self.engine,
            self.store.samples_path(self.run.run_id, self.index, number),
            observers,
            self._keep,
            self.display.say,
            Trace.of(self.run.trace_share, self.run.run_id, self.index, number),
        )

    def _observers(self) -> list[TrialObserver]:
        run, config, target, say = self.run, self.config, self.target, self.display.say
        observers: list[TrialObserver] = [self.display.observer(run.run_id)]
        if run.aborts_on_sla_failure:
            observers.append(SlaAbort(config.criteria))
        inject = None
        if config.breaks:
            faults = self.fault_runner.observer(config.faults, say, self.display.on_fault)
            inject = faults.inject_sentence
            observers.append(faults)
        if config.hooks:
            redaction, timeout_s = self.store.redaction, run.hook_timeout_s
            observers.append(Hooks(config.hooks, redaction, timeout_s, inject, self.engine.clock))
        if target.watch is not None:
            keep = partial(self.store.keep_readings, run.run_id, self.index)
            observers.append(ResourceWatch(target.watch, keep, say))
        if target.access_log is not None:
            known = capacities(self.store, dict(target.facts))
            observers.append(IdentityWatch(target.access_log, known))
        if run.profiles:
            keep_stacks = partial(self.store.keep_profile, run.run_id, self.index)
            wanted = _profiled(config.policy)
            threads = target.watch.setup.threads if target.watch is not None else None
            most = None if isinstance(config.policy, Interleaved) else MOST_WORKERS
            profile = WorkerProfile(target.members, keep_stacks, say, wanted, threads, most)
            observers.append(profile)
            if isinstance(config.policy, Interleaved) and target.lab is not None:
                # Imported here: it imports the code of the lab, which other runs do not need.
                from loadstone.observers.statements import StatementLog

                observers.append(StatementLog(target.lab, say, config.policy.counted))
        return observers

    def _keep(self, trial: Trial, samples: Samples | SampleFile | None) -> Trial:
        others = tuple(one for one in self.measurement.trials if one.number != trial.number)
        # Its load counts also if the disk is full.
        self.measurement = replace(self.measurement, trials=(*others, trial))
        kept = self.store.keep_trial(self.run.run_id, self.index, trial, samples)
        self.measurement = replace(self.measurement, trials=(*others, kept))
        return kept


def _advice(run: RunConfig, trial: Trial) -> str:
    """Return what helps a run whose load time was used up in a trial."""
    if run.kind == "hit":  # its load time is longer than the load, unless requests wait
        if not trial.is_valid:
            return "the load generator could not keep up: lower --rate, or use a quieter machine"
        return "to send all that is due, raise --max-connections or lower --rate"
    if run.budget_s >= LONGEST_BUDGET_S:
        return "--budget takes no more, so ask for less"
    return "raise --budget, or ask for less"


def _profiled(policy: LoadPolicy) -> str | None:
    """Return the purpose of the trials that are profiled; None: of any."""
    match policy:
        case Search():
            return PURPOSE
        case Interleaved(profiled=purpose):
            return purpose
        case _:
            return None
