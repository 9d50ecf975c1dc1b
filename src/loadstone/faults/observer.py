"""Observes a trial in which faults happen: carries them out, and computes what they did."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from threading import Condition, Event, Thread
from typing import Protocol

from loadstone.analysis.fault import FaultEffect, FaultPhase, Injection
from loadstone.analysis.fault_effect import effect
from loadstone.analysis.iterations import iterations
from loadstone.analysis.model import Trial
from loadstone.engine import parquet
from loadstone.engine.parquet import SampleFile
from loadstone.engine.progress import Progress
from loadstone.engine.samples import Samples
from loadstone.errors import EnvironmentUnusable
from loadstone.faults.model import Done, Planned
from loadstone.faults.sentence import ROLLING, Fault, read
from loadstone.findings import Finding
from loadstone.observer import TrialObserver
from loadstone.search.model import TrialRequest

Say = Callable[[str], None]
AFTER_S = 15.0  # of load after a rolling change: what comes later is not its doing


class Injector(Protocol):
    """Carries faults out on a target."""

    over: Event  # once it is set nothing is held any longer

    def check(self, fault: Fault) -> None:
        """Raise InvalidInput for a fault that the target cannot have."""

    def inject(self, fault: Fault) -> Done:
        """Carry a fault out, hold it, undo it; what goes wrong is in `failure`."""

    def prepare(self, fault: Fault, say: Say) -> None:
        """Make what a fault needs and takes long, before the load."""

    def settle(self) -> None:
        """Wait until the service is whole."""

    def findings(self, fault: Fault, seen: FaultEffect) -> tuple[Finding, ...]:
        """Return what the effect of a fault shows of the target's settings."""

    def logged_failures(self) -> int | None:
        """Return how many requests failed by the balancer's own log; None: there is none."""


@dataclass(slots=True)
class Faults(TrialObserver):
    """The faults of one trial."""

    injector: Injector
    planned: Sequence[Planned]
    say: Say
    _threads: list[Thread] = field(default_factory=list, init=False)
    _done: list[Done] = field(default_factory=list, init=False)
    _running: int = field(default=0, init=False)  # faults that are not undone yet
    _changed: Condition = field(default_factory=Condition, init=False)
    _samples: Samples | SampleFile | None = field(default=None, init=False)
    _logged: int | None = field(default=None, init=False)  # failures before the load

    def on_trial_begin(self, request: TrialRequest) -> None:  # noqa: ARG002
        """Make ready what the faults need."""
        for one in self.planned:
            self.injector.prepare(one.fault, self.say)
        self._logged = self.injector.logged_failures()

    def on_progress(self, progress: Progress) -> bool:
        """Begin the faults that are due; end the load when a rolling change is over."""
        for one in self.planned[len(self._threads) :]:
            if progress.elapsed_s < one.at_s:
                break
            self.say(f"  {progress.elapsed_s:5.1f} s  {one.fault.sentence}")
            thread = Thread(target=self.inject, args=(one.fault,), name="fault")
            self._threads.append(thread)
            thread.start()
        return not self._is_seen()

    def _is_seen(self) -> bool:
        """Return whether all that is planned are changes that ended long enough ago."""
        ended = [done.phases[-1].end_s for done in self._done if done.phases]
        lasting = all(one.fault.verb in ROLLING for one in self.planned)
        return (
            lasting and 0 < len(self.planned) == len(ended) and time.time() > max(ended) + AFTER_S
        )

    def inject(self, fault: Fault) -> Done:
        """Carry a fault out, in the thread of the caller; it is undone when this returns."""
        with self._changed:
            self._running += 1
        done = None
        try:
            done = self.injector.inject(fault)
        finally:
            with self._changed:
                self._running -= 1
                self._done += [done] if done is not None else []
                self._changed.notify_all()
        return done

    def inject_sentence(self, sentence: str) -> Done:
        """Carry out the fault that a sentence names."""
        return self.inject(read(sentence))

    def on_load_end(self, samples: Samples | SampleFile) -> None:
        """Undo what is still held."""
        self._samples = samples
        self._end()

    def on_trial_end(self, trial: Trial) -> Trial:
        """Add what the faults did."""
        for done in self._done:
            if done.failure:
                raise EnvironmentUnusable(f"fault {done.fault.sentence!r}: {done.failure}")
        if self._done:  # the next trial begins with a whole service
            self.injector.settle()
        return replace(trial, faults=tuple(self._effects(trial)))

    def close(self) -> None:
        """Undo what is still held, whatever ended the trial."""
        self._end()

    def _end(self) -> None:
        self.injector.over.set()
        for thread in self._threads:
            thread.join()
        with self._changed:  # those of hooks have threads of their own
            self._changed.wait_for(lambda: self._running == 0)

    def _effects(self, trial: Trial) -> list[FaultEffect]:
        if trial.start_s is None or self._samples is None or not self._done:
            return []
        file = self._samples
        samples = parquet.read(file.path) if isinstance(file, SampleFile) else file
        rows = iterations(samples)
        logged = self.injector.logged_failures()
        if logged is not None:
            logged -= self._logged or 0
        found = []
        for done in sorted(self._done, key=lambda one: one.began_s):
            try:
                seen = effect(rows, _injection(done, trial.start_s))
                findings = self.injector.findings(done.fault, seen)
                found.append(replace(seen, logged_failures=logged, findings=findings))
            except ValueError as problem:
                self.say(f"  {done.fault.sentence}: no figures: {problem}")
        return found


def _injection(done: Done, start_s: float) -> Injection:
    return Injection(
        action=done.fault.sentence,
        at_s=done.began_s - start_s,
        undone_s=None if done.undone_s is None else done.undone_s - start_s,
        detected_s=None if done.detected_s is None else done.detected_s - done.began_s,
        targets=done.targets,
        steps=tuple(f"{at_s - start_s:.2f} s {words}" for at_s, words in done.steps),
        phases=tuple(
            FaultPhase(one.words, one.begin_s - start_s, one.end_s - start_s) for one in done.phases
        ),
    )
