"""Progress on stderr."""

import sys
from contextlib import suppress
from math import inf
from types import TracebackType
from typing import Self

from rich.live import Live
from rich.text import Text

from loadstone.analysis.model import NOT_JUDGED, Trial, TrialState
from loadstone.cli.stderr import unfailing
from loadstone.diagnosis.resources import Watch
from loadstone.engine.progress import Progress
from loadstone.plan.load import BandLoad, ClosedLoad
from loadstone.report import moment
from loadstone.report.console import PrintableConsole
from loadstone.result.observer import Display
from loadstone.search.model import TrialRequest
from loadstone.system import crash
from loadstone.system.clock import SYSTEM, Clock
from loadstone.system.printable import styled
from loadstone.system.redaction import Redaction

# Without a terminal, an occasional line shows progress.
LINE_EVERY_S = 5.0
BUSY_EVERY_S = 3.0
BUSY_OVER_S = 5.0  # the period over which utilisation is averaged
MOST_BUSY = 3
COLOURS: dict[str, str] = {
    TrialState.SUSTAINED: "green",
    TrialState.DEGRADED: "yellow",
    TrialState.UNDECIDED: "cyan",
    TrialState.INVALID: "red",
}


class Screen(Display):
    """Shows messages, trials and a live line, which a terminal redraws in place."""

    def __init__(self, clock: Clock = SYSTEM) -> None:
        self._clock = clock
        self.console = PrintableConsole(file=unfailing(styled(sys.stderr)), highlight=False)
        self._live = Live(console=self.console, refresh_per_second=4, transient=True)
        self._redaction = Redaction()
        self._last_line_s = -inf
        self._ends_at_s: float | None = None
        self._latency_ms = 0.0  # of the last iterations
        self._request: TrialRequest
        self._watch: Watch | None = None
        self._busy = ""
        self._busy_read_s = -inf

    def __enter__(self) -> Self:
        if self.console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._live.stop()

    def hide(self, redaction: Redaction) -> None:
        """Redact these secrets in all output from now on."""
        self._redaction = redaction
        crash.hide(redaction)

    def close(self) -> None:
        """Clear the live line at the end of a trial; the next trial continues it."""
        self._live.update(Text(""))

    def say(self, line: str) -> None:
        """Print one permanent line."""
        self.console.print(Text(self._redaction.text(line)), soft_wrap=True)

    def begin(self, load_s: float) -> None:
        """Start the countdown of the live line: at most `load_s` seconds of load."""
        self._ends_at_s = self._clock.monotonic_s() + load_s
        self._latency_ms = 0.0

    def watch(self, watch: Watch | None) -> None:
        """Show the busiest resources below the live line, on a terminal only."""
        self._watch = watch if self.console.is_terminal else None
        self._busy = ""

    def on_trial_begin(self, request: TrialRequest) -> None:
        """Start the live line of a trial."""
        self._request = request
        self._latency_ms = 0.0

    def on_progress(self, progress: Progress) -> bool:
        """Show the progress of a trial; return True to continue it."""
        load = self._request.load
        count = load.iterations if isinstance(load, ClosedLoad) else None
        is_paced = not isinstance(load, ClosedLoad | BandLoad)
        self.progress(moment.purpose(self._request), progress, count, is_paced=is_paced)
        return True

    def progress(
        self,
        purpose: str,
        progress: Progress,
        count: int | None = None,
        *,
        is_paced: bool = True,
    ) -> None:
        """Show the progress of a load; it ends after `count` iterations, if given."""
        # With a slow service, no iteration may have ended since the last call.
        self._latency_ms = progress.latency_ms or self._latency_ms
        now_s = self._clock.monotonic_s()
        if not self.console.is_terminal and now_s - self._last_line_s < LINE_EVERY_S:
            return
        at_most_s = None if self._ends_at_s is None else max(0.0, self._ends_at_s - now_s)
        latency_ms = self._latency_ms or None
        line = moment.now(
            purpose,
            progress,
            latency_ms=latency_ms,
            count=count,
            at_most_s=at_most_s,
            is_paced=is_paced,
        )
        if self.console.is_terminal:
            lines = "\n".join(filter(None, (line, self._busiest())))
            # One row each: a line that wraps moves all that is below it.
            self._live.update(Text(lines, style="dim", no_wrap=True, overflow="ellipsis"))
        else:
            self._last_line_s = now_s
            self.say(line)

    def _busiest(self) -> str:
        """Return the line of the busiest resources, updated every few seconds."""
        now_s = self._clock.monotonic_s()
        if self._watch is not None and now_s - self._busy_read_s > BUSY_EVERY_S:
            self._busy_read_s = now_s
            with suppress(Exception):  # a monitor never ends a run
                uses = self._watch.busiest(self._clock.unix_s() - BUSY_OVER_S)[:MOST_BUSY]
                self._busy = moment.busiest(uses) if uses else ""
        return self._busy

    def on_trial_end(self, trial: Trial) -> Trial:
        """Print a trial that has a verdict."""
        if trial.verdict is NOT_JUDGED:
            return trial
        rate, verdict, done = moment.ended(trial)
        line = Text(rate)
        line.append(f"{verdict:<10}", style=COLOURS.get(verdict, "dim"))
        line.append(f"  {done}")
        self.console.print(line, soft_wrap=True)
        return trial
