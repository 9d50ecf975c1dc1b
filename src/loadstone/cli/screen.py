"""What is shown on stderr while work goes on."""

import sys
import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

from loadstone.analysis.model import State, Trial
from loadstone.engine.progress import Progress
from loadstone.search.model import Ask

# Without a terminal a line now and then is enough to see that work goes on.
LINE_EVERY_S = 5.0
COLOURS = {
    State.SUSTAINED: "green",
    State.DEGRADED: "yellow",
    State.UNDECIDED: "cyan",
    State.INVALID: "red",
}


class Screen:
    """Shows steps, trials and a live line; on a terminal it is redrawn in place."""

    def __init__(self) -> None:
        self.console = Console(stderr=True, highlight=False)
        self._live = Live(console=self.console, refresh_per_second=4, transient=True)
        self._last_line_s = 0.0
        self._ends_at_s: float | None = None

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
        self.close()

    def close(self) -> None:
        """Show nothing live any more."""
        self._live.stop()

    def say(self, line: str) -> None:
        """Show one line that stays."""
        self.console.print(Text(line), soft_wrap=True)
        sys.stderr.flush()

    def begin(self, load_s: float) -> None:
        """Say that at most `load_s` seconds of load begin; the live line counts them down."""
        self._ends_at_s = time.monotonic() + load_s

    def watch(self, ask: Ask, progress: Progress) -> None:
        """Show where a trial stands."""
        self.progress(ask.purpose, progress)

    def progress(self, purpose: str, progress: Progress) -> None:
        """Show where a stretch of load stands."""
        line = self.live_line(purpose, progress)
        if self.console.is_terminal:
            self._live.update(Text(line, style="dim"))
        elif time.monotonic() - self._last_line_s >= LINE_EVERY_S:
            self._last_line_s = time.monotonic()
            self.say(line)

    def live_line(self, purpose: str, progress: Progress) -> str:
        """Give rate, throughput, latency, errors and time left in one line."""
        elapsed_s = max(progress.elapsed_s, 1e-9)
        parts = [
            f"  {purpose}",
            f"{progress.elapsed_s:.0f} s",
            f"due {progress.due / elapsed_s:.1f}/s",
            f"done {progress.ok / elapsed_s:.1f}/s",
            f"latency {progress.latency_ms:.0f} ms",
            f"waiting {progress.in_flight}",
            f"errors {progress.failed}",
        ]
        if self._ends_at_s is not None:
            parts.append(f"at most {max(0.0, self._ends_at_s - time.monotonic()):.0f} s left")
        return " | ".join(parts)

    def trial(self, trial: Trial) -> None:
        """Show a trial that has ended."""
        rate = "saturated" if trial.rate_rps is None else f"{trial.rate_rps:.2f}/s"
        why = trial.verdict.reasons[0] if trial.verdict.reasons else ""
        state = trial.verdict.state
        line = Text(f"  {trial.number:>3}  {rate:>10}  ")
        line.append(f"{state.value:<10}", style=COLOURS[state])
        line.append(f"  {trial.summary.throughput_rps:7.2f}/s done  {why}")
        self.console.print(line, soft_wrap=True)
