"""Observers of a trial."""

from collections.abc import Sequence
from typing import Protocol

from loadstone.analysis.model import Trial
from loadstone.diagnosis.resources import Watch
from loadstone.engine.parquet import SampleFile
from loadstone.engine.progress import Progress
from loadstone.engine.samples import Samples
from loadstone.result.model import Run
from loadstone.search.model import Capacity, TrialRequest
from loadstone.system.redaction import Redaction


class TrialObserver(Protocol):
    """Methods are called from the thread that runs the trial; the defaults do nothing."""

    reads_samples: bool = False  # whether `on_samples` is called

    def on_trial_begin(self, request: TrialRequest) -> None:
        """Called right before the load."""
        return

    def on_progress(self, progress: Progress) -> bool:
        """Called a few times a second during the load; False stops it."""
        return True

    def on_samples(self, samples: Samples, actions: Sequence[str]) -> None:
        """Called during the load with all rows of the iterations ended since the last call."""
        return

    def on_load_end(self, samples: Samples | SampleFile) -> None:
        """Called right after the load, before statistics are computed."""
        return

    def on_trial_end(self, trial: Trial) -> Trial:
        """Called when the trial is stored; the returned trial replaces it."""
        return trial

    def close(self) -> None:
        """Called at the end of the trial in any case, also after an error."""
        return


class Display(TrialObserver, Protocol):
    """Shows the progress of a run."""

    def say(self, line: str) -> None:
        """Show one permanent line."""

    def hide(self, redaction: Redaction) -> None:
        """Replace these secrets in all further output."""

    def begin(self, load_s: float) -> None:
        """Start a countdown of at most `load_s` seconds of load."""

    def watch(self, watch: Watch | None) -> None:
        """Show the busiest resources during each load; None: nothing is watched."""
        return

    def on_run(self, run: Run) -> None:
        """Called when a run has begun and is in the store."""
        return

    def on_measurement(self, heading: str) -> None:
        """Called when a measurement begins, before its resources are created."""
        self.say(heading)

    def on_measured(self, capacity: Capacity | None) -> None:
        """Called when a measurement has ended and is stored; with its N, if it searched for it."""
        return

    def on_fault(self, sentence: str, *, is_in_force: bool) -> None:
        """Called when a fault begins and when it is undone, from any thread."""
        return

    def observer(self, run_id: str) -> TrialObserver:
        """Return the observer of a trial of a run; two runs of a comparison have one each."""
        return self
