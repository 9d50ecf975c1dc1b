"""Turns what happens in a run into states, and hands each to all that show it."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from threading import RLock
from typing import Protocol

import numpy as np

from loadstone.analysis.model import Trial
from loadstone.analysis.stats import ended
from loadstone.diagnosis.resources import Watch
from loadstone.engine import parquet
from loadstone.engine.parquet import SampleFile
from loadstone.engine.progress import BUCKETS, Progress, buckets_of
from loadstone.engine.samples import Samples
from loadstone.live import state as live
from loadstone.live.state import MOST_MESSAGES, LiveState
from loadstone.result.model import Run
from loadstone.result.observer import Display, TrialObserver
from loadstone.search.model import Capacity, TrialRequest
from loadstone.system import crash
from loadstone.system.clock import SYSTEM, Clock
from loadstone.system.redaction import Redaction

BUSY_EVERY_S = 3.0
BUSY_OVER_S = 5.0  # the period over which utilisation is averaged
MOST_BUSY = 3
MOST_ROWS = 5_000_000  # of samples that are read once more to count their latencies


class Viewer(Protocol):
    """Shows a command's progress. It must return at once: it is called during the load."""

    needs_resources: bool = False  # whether somebody looks at the busiest resources
    needs_latencies: bool = False  # whether the latencies of each sample are counted

    def show(self, state: LiveState) -> None:
        """Take the present state; called a few times a second."""

    def say(self, line: str) -> None:  # noqa: ARG002
        """Take one permanent line."""
        return

    def tell(self, trial: Trial) -> None:  # noqa: ARG002
        """Take a trial that has ended."""
        return


class Feed(Display):
    """The display of a run whose states go to viewers."""

    def __init__(self, viewers: Sequence[Viewer], clock: Clock = SYSTEM) -> None:
        self.state = LiveState(clock.unix_s(), clock.unix_s())
        self._viewers = viewers
        self._clock = clock
        self._redaction = Redaction()
        self._watch: Watch | None = None
        self._busy_read_s = -inf
        self._lock = RLock()  # faults and the two sides of a comparison come from threads

    def say(self, line: str) -> None:
        """Pass on one permanent line."""
        clean = self._redaction.text(line)
        with self._lock:
            for viewer in self._viewers:
                viewer.say(clean)
            self._show(messages=(*self.state.messages, clean)[-MOST_MESSAGES:])

    def hide(self, redaction: Redaction) -> None:
        """Redact these secrets in all that is shown from now on."""
        self._redaction = redaction
        crash.hide(redaction)

    def begin(self, load_s: float) -> None:
        """Start the countdown: at most `load_s` seconds of load."""
        self._show(load_left_s=load_s, so_far=())

    def watch(self, watch: Watch | None) -> None:
        """Show the busiest resources of each load."""
        self._watch = watch
        self._show(busiest=())

    def on_run(self, run: Run) -> None:
        """Begin a run."""
        with self._lock:
            run_ids = (*self.state.run_ids, run.run_id)
            self._show(run_ids=run_ids, kind=run.kind, stored=self.state.stored + 1)

    def on_measurement(self, heading: str) -> None:
        """Begin a measurement."""
        self._show(heading=self._redaction.text(heading), so_far=(), load_left_s=None)
        self.say(heading)

    def on_measured(self, capacity: Capacity | None) -> None:
        """End a measurement."""
        self._fold(partial(live.measured, capacity=capacity))

    def on_fault(self, sentence: str, *, is_in_force: bool) -> None:
        """Mark a fault."""
        clean = self._redaction.text(sentence)
        self._fold(partial(live.faulted, sentence=clean, is_in_force=is_in_force))

    def observer(self, run_id: str) -> TrialObserver:
        """Return the observer of a trial of a run."""
        return _Observed(self, run_id)

    def end(self) -> None:
        """Say that the command has measured all that it will."""
        self._show(is_over=True)

    @property
    def needs_latencies(self) -> bool:
        """Whether the latencies of each sample are counted."""
        return any(one.needs_latencies for one in self._viewers)

    def begun(self, run_id: str, request: TrialRequest) -> None:
        """Begin a load."""
        clean = replace(request, purpose=self._redaction.text(request.purpose))
        self._fold(partial(live.began, run_id=run_id, request=clean))

    def progressed(self, run_id: str, progress: Progress) -> None:
        """Take the counts of a load."""
        with self._lock:
            self._read_busiest()
            self._fold(partial(live.progressed, run_id=run_id, progress=progress))

    def ended(self, run_id: str, trial: Trial, latencies: Sequence[int] | None) -> None:
        """Take a trial that has ended and is stored."""
        self._fold(partial(live.ended, run_id=run_id, trial=trial, latencies=latencies))
        for viewer in self._viewers:
            viewer.tell(trial)

    def abandoned(self, run_id: str) -> None:
        """End a load that has no result."""
        self._fold(partial(live.abandoned, run_id=run_id))

    def _fold(self, change: "_Change") -> None:
        with self._lock:
            now = replace(self.state, now_s=self._clock.unix_s())
            self.state = change(now)
            self._pass_on()

    def _show(self, **changes: object) -> None:
        with self._lock:
            self.state = replace(self.state, now_s=self._clock.unix_s(), **changes)  # type: ignore[arg-type]  # fields of LiveState
            self._pass_on()

    def _pass_on(self) -> None:
        for viewer in self._viewers:
            viewer.show(self.state)

    def _read_busiest(self) -> None:
        """Read the busiest resources, every few seconds and only if somebody looks."""
        now_s = self._clock.monotonic_s()
        if self._watch is None or now_s - self._busy_read_s <= BUSY_EVERY_S:
            return
        if not any(one.needs_resources for one in self._viewers):
            return
        self._busy_read_s = now_s
        with suppress(Exception):  # a monitor never ends a run
            uses = self._watch.busiest(BUSY_OVER_S)[:MOST_BUSY]
            busiest = tuple((one.name, one.utilisation) for one in uses)
            self.state = replace(self.state, busiest=busiest)


class _Change(Protocol):
    def __call__(self, state: LiveState) -> LiveState: ...


@dataclass(slots=True)
class _Observed(TrialObserver):
    """Observes one trial."""

    feed: Feed
    run_id: str
    samples: Samples | SampleFile | None = None
    is_ended: bool = False

    reads_samples = False

    def on_trial_begin(self, request: TrialRequest) -> None:
        """Begin the load."""
        self.feed.begun(self.run_id, request)

    def on_progress(self, progress: Progress) -> bool:
        """Pass on the counts; return True to continue the load."""
        self.feed.progressed(self.run_id, progress)
        return True

    def on_load_end(self, samples: Samples | SampleFile) -> None:
        """Keep the samples, to count their latencies."""
        self.samples = samples

    def on_trial_end(self, trial: Trial) -> Trial:
        """Pass on the trial, with the latencies of its samples if somebody needs them."""
        self.is_ended = True
        latencies = None
        if self.samples is not None and self.feed.needs_latencies:
            with suppress(Exception):  # what shows a run never ends it
                latencies = latencies_of(self.samples, trial.actions)
        self.feed.ended(self.run_id, trial, latencies)
        return trial

    def close(self) -> None:
        """Keep the counts of a load without a result."""
        if not self.is_ended:
            self.feed.abandoned(self.run_id)


def latencies_of(samples: Samples | SampleFile, actions: Sequence[str]) -> tuple[int, ...] | None:
    """Return the latencies of successful iterations per bucket; None if there are too many.

    Pauses do not count. `actions` names the samples' actions.
    """
    if isinstance(samples, SampleFile):
        if samples.rows > MOST_ROWS:
            return None
        samples = parquet.read(samples.path)
    rows = ended(samples, actions)
    # Whole nanoseconds: at the edge of a bucket, a rounded float would be in the one below.
    took_us = np.rint(rows.duration_s[~rows.failed] * 1e9).astype(np.int64) // 1000
    return tuple(np.bincount(buckets_of(took_us), minlength=BUCKETS).tolist())
