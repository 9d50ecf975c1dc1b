"""Injects the faults of a trial at their times, and computes their effects."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from threading import Condition, Event, Thread
from typing import Protocol

from loadstone.analysis.fault import FaultEffect, FaultPhase, Injection, UnmeasuredFault
from loadstone.analysis.fault_effect import effect
from loadstone.analysis.iterations import iterations
from loadstone.analysis.model import Trial
from loadstone.analysis.stats import pauses_s
from loadstone.diagnosis.finding import Finding
from loadstone.engine import parquet
from loadstone.engine.parquet import SampleFile
from loadstone.engine.progress import Progress
from loadstone.engine.samples import Samples
from loadstone.errors import EnvironmentUnusable
from loadstone.faults.model import FaultRecord, Planned
from loadstone.faults.sentence import ROLLING, Fault, read
from loadstone.result.observer import TrialObserver
from loadstone.search.model import TrialRequest
from loadstone.system.clock import SYSTEM, Clock
from loadstone.system.say import Say

AFTER_S = 15.0  # load after a rolling change; later effects are not attributed to it


class FaultListener(Protocol):
    """Called when a fault begins and when it is undone, from any thread."""

    def __call__(self, sentence: str, *, is_in_force: bool) -> None:
        """Take the fault as a sentence."""


@dataclass(slots=True, kw_only=True)
class Injector(ABC):
    """Carries faults out on a target. The defaults are those of one of which nothing is known."""

    over: Event = field(default_factory=Event)  # set: end all holds
    begun: Event = field(default_factory=Event)  # it sets this once a fault is in force
    clock: Clock = SYSTEM

    def check(self, fault: Fault) -> None:  # noqa: ARG002
        """Raise InvalidInput for a fault that the target cannot have."""
        return

    @abstractmethod
    def inject(self, fault: Fault) -> FaultRecord:
        """Inject a fault, hold it, undo it; errors are in `failure` of the result."""

    def prepare(self, fault: Fault, say: Say) -> None:  # noqa: ARG002
        """Prepare a fault before the load, if it needs long preparation."""
        return

    def settle(self) -> None:
        """Wait until the service is whole."""
        return

    def findings(self, fault: Fault, effect: FaultEffect) -> tuple[Finding, ...]:  # noqa: ARG002
        """Return findings about the target's settings from the effect of a fault."""
        return ()

    def logged_failures(self) -> int | None:
        """Return the number of failed requests in the balancer's log; None without a log."""
        return None


@dataclass(slots=True)
class Faults(TrialObserver):
    """The faults of one trial."""

    injector: Injector
    planned: Sequence[Planned]
    say: Say
    mark: FaultListener
    clock: Clock = SYSTEM
    _threads: list[Thread] = field(default_factory=list, init=False)
    _records: list[FaultRecord] = field(default_factory=list, init=False)
    # Planned faults that ended with an exception, which belongs to no record.
    _broken: list[tuple[Fault, Exception]] = field(default_factory=list, init=False)
    _running: int = field(default=0, init=False)  # faults that are not undone yet
    _changed: Condition = field(default_factory=Condition, init=False)
    _samples: Samples | SampleFile | None = field(default=None, init=False)
    _logged: int | None = field(default=None, init=False)  # failures before the load

    def on_trial_begin(self, request: TrialRequest) -> None:  # noqa: ARG002
        """Prepare the faults."""
        for planned in self.planned:
            self.injector.prepare(planned.fault, self.say)
        self._logged = self.injector.logged_failures()

    def on_progress(self, progress: Progress) -> bool:
        """Begin the faults that are due; end the load if one failed or rolling changes are over."""
        if self._has_failed():
            return False
        for planned in self.planned[len(self._threads) :]:
            if progress.elapsed_s < planned.at_s:
                break
            self.say(f"  {progress.elapsed_s:5.1f} s  {planned.fault.sentence}")
            thread = self.clock.thread(partial(self._carry_out, planned.fault))
            self._threads.append(thread)
            thread.start()
        return not self._is_over()

    def _has_failed(self) -> bool:
        """Return whether a fault could not be carried out: the trial gets no result then."""
        return bool(self._broken) or any(record.failure for record in self._records)

    def _is_over(self) -> bool:
        """Return whether all planned faults are rolling changes that ended AFTER_S ago."""
        end_times_s = [record.phases[-1].end_s for record in self._records if record.phases]
        lasting = all(one.fault.verb in ROLLING for one in self.planned)
        return (
            lasting
            and 0 < len(self.planned) == len(end_times_s)
            and self.clock.unix_s() > max(end_times_s) + AFTER_S
        )

    def _carry_out(self, fault: Fault) -> None:
        """Inject a fault in a thread of its own, whose exception nobody would see."""
        try:
            self.inject(fault)
        except Exception as problem:
            self._broken.append((fault, problem))

    def inject(self, fault: Fault) -> FaultRecord:
        """Inject a fault in the caller's thread; it is undone when this returns."""
        with self._changed:
            self._running += 1
        record = None
        self.mark(fault.sentence, is_in_force=True)
        try:
            record = self.injector.inject(fault)
        finally:
            self.mark(fault.sentence, is_in_force=False)
            with self._changed:
                self._running -= 1
                self._records += [record] if record is not None else []
                self._changed.notify_all()
        return record

    def inject_sentence(self, sentence: str) -> FaultRecord:
        """Carry out the fault that a sentence names."""
        return self.inject(read(sentence))

    def on_load_end(self, samples: Samples | SampleFile) -> None:
        """Let the faults that are still held be undone.

        That may take long (nodes restart), and other observers measure what the load used.
        """
        self._samples = samples
        self.injector.over.set()

    def on_trial_end(self, trial: Trial) -> Trial:
        """Add the effects of the faults, once all are undone."""
        self._end()
        for fault, problem in self._broken:
            if isinstance(problem, OSError):
                raise EnvironmentUnusable(f"fault {fault.sentence!r}: {problem}") from problem
            raise problem
        for record in self._records:
            if record.failure:
                raise EnvironmentUnusable(f"fault {record.fault.sentence!r}: {record.failure}")
        if self._records:  # the next trial begins with a whole service
            self.injector.settle()
        return self._with_effects(trial)

    def close(self) -> None:
        """Undo the faults that are still held, whatever ended the trial."""
        self._end()

    def _end(self) -> None:
        self.injector.over.set()
        for thread in self._threads:
            thread.join()
        with self._changed:  # faults from hooks run in other threads
            self._changed.wait_for(lambda: self._running == 0)

    def _with_effects(self, trial: Trial) -> Trial:
        if trial.start_s is None or self._samples is None or not self._records:
            return trial
        file = self._samples
        samples = parquet.read(file.path) if isinstance(file, SampleFile) else file
        rows = iterations(samples)
        paused_s = pauses_s(samples, trial.actions, rows.number)
        logged = self.injector.logged_failures()
        if logged is not None:
            # Those of the whole load, which are not the failures of one fault of several.
            logged = logged - (self._logged or 0) if len(self._records) == 1 else None
        effects: list[FaultEffect] = []
        unmeasured: list[UnmeasuredFault] = []
        records = sorted(self._records, key=lambda one: one.began_s)
        for record in records:
            try:
                measured = effect(
                    rows,
                    _injection(record, trial.start_s),
                    end_s=_next_s(record, records) - trial.start_s,
                    usual_until_s=records[0].began_s - trial.start_s,
                    pauses_s=paused_s,
                )
                findings = self.injector.findings(record.fault, measured)
                effects.append(replace(measured, logged_failures=logged, findings=findings))
            except ValueError as problem:
                self.say(f"  {record.fault.sentence}: no figures: {problem}")
                unmeasured.append(UnmeasuredFault(record.fault.sentence, str(problem)))
        return replace(trial, faults=tuple(effects), unmeasured_faults=tuple(unmeasured))


def _next_s(record: FaultRecord, records: Sequence[FaultRecord]) -> float:
    """Return when the next fault began that has effects of its own; infinite if none did.

    The effects of a fault that begins while this one is held cannot be told from its own.
    """
    over_s = max(record.began_s, record.undone_s or 0.0)
    return min((one.began_s for one in records if one.began_s > over_s), default=inf)


def _injection(record: FaultRecord, start_s: float) -> Injection:
    return Injection(
        action=record.fault.sentence,
        at_s=record.began_s - start_s,
        undone_s=None if record.undone_s is None else record.undone_s - start_s,
        detected_s=None if record.detected_s is None else record.detected_s - record.began_s,
        targets=record.targets,
        steps=tuple(f"{at_s - start_s:.2f} s {step}" for at_s, step in record.steps),
        phases=tuple(
            FaultPhase(one.words, one.begin_s - start_s, one.end_s - start_s)
            for one in record.phases
        ),
    )
