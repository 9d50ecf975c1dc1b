"""Observers of a trial."""

from collections.abc import Sequence
from typing import Protocol

from loadstone.analysis.model import Trial
from loadstone.engine.parquet import SampleFile
from loadstone.engine.progress import Progress
from loadstone.engine.samples import Samples
from loadstone.monitor.resources import Watch
from loadstone.redaction import Redaction
from loadstone.search.model import TrialRequest


class TrialObserver(Protocol):
    """Is called from the thread that runs the trial; each method may be left out."""

    reads_samples: bool = False  # whether `on_samples` is called

    def on_trial_begin(self, request: TrialRequest) -> None:
        """The load is about to begin."""
        return

    def on_progress(self, progress: Progress) -> bool:
        """Called a few times a second during the load; False stops it."""
        return True

    def on_samples(self, samples: Samples, actions: Sequence[str]) -> None:
        """All rows of the iterations that have ended since the last call."""
        return

    def on_load_end(self, samples: Samples | SampleFile) -> None:
        """Called right after the load, before anything is computed."""
        return

    def on_trial_end(self, trial: Trial) -> Trial:
        """The trial is in the store; what an observer adds to it is stored, too."""
        return trial

    def close(self) -> None:
        """The trial is over, whatever ended it."""
        return


class Display(TrialObserver, Protocol):
    """Shows what goes on."""

    def say(self, line: str) -> None:
        """Show one line that stays."""

    def hide(self, redaction: Redaction) -> None:
        """Replace these secrets in all that is said from here on."""

    def begin(self, load_s: float) -> None:
        """Count down from here: at most `load_s` seconds of load."""

    def watch(self, watch: Watch | None) -> None:
        """Show beside each load what is busiest there; None: nothing is watched."""
        return
