"""Progress on stderr."""

import sys
from enum import StrEnum
from math import inf
from typing import Self

from rich.console import RenderableType
from rich.live import Live
from rich.text import Text

from loadstone.analysis.model import NOT_JUDGED, Trial, TrialState
from loadstone.cli.stderr import unfailing
from loadstone.live.feed import Viewer
from loadstone.live.state import LiveState, LoadState
from loadstone.report import moment
from loadstone.report.console import PrintableConsole
from loadstone.system.clock import SYSTEM, Clock
from loadstone.system.printable import styled

# Without a terminal, an occasional line shows progress.
LINE_EVERY_S = 10.0
COLOURS: dict[str, str] = {
    TrialState.SUSTAINED: "green",
    TrialState.DEGRADED: "yellow",
    TrialState.UNDECIDED: "cyan",
    TrialState.INVALID: "red",
}


class ProgressStyle(StrEnum):
    """The form of the progress display on stderr."""

    PANEL = "panel"  # on a terminal: some lines, redrawn in place
    PLAIN = "plain"  # a line every few seconds
    NONE = "none"  # messages and verdicts only
    QUIET = "quiet"  # nothing


class Screen(Viewer):
    """Shows messages, trials and what a load does, which a terminal redraws in place."""

    def __init__(self, clock: Clock = SYSTEM, style: ProgressStyle = ProgressStyle.PANEL) -> None:
        self._clock = clock
        self._style = style
        self.console = PrintableConsole(file=unfailing(styled(sys.stderr)), highlight=False)
        self._live = Live(console=self.console, refresh_per_second=4, transient=True)
        self._last_line_s = -inf
        # FORCE_COLOR makes a console of a file, and a dumb terminal cannot move the cursor.
        can_redraw = self.console.is_interactive and self.console.file.isatty()
        self._is_redrawn = can_redraw and style is ProgressStyle.PANEL

    @property
    def needs_resources(self) -> bool:  # type: ignore[override]  # an attribute in the protocol
        """Whether the busiest resources are shown: on a terminal only."""
        return self._is_redrawn

    def __enter__(self) -> Self:
        if self._is_redrawn:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def say(self, line: str) -> None:
        """Print one permanent line."""
        if self._style is not ProgressStyle.QUIET:
            self.console.print(Text(line), soft_wrap=True)

    def show(self, state: LiveState) -> None:
        """Show the load under way; without one, the terminal's last lines are cleared."""
        if self._is_redrawn:
            self._live.update(self._drawn(state) if state.loads else Text(""))
            return
        now_s = self._clock.monotonic_s()
        is_due = now_s - self._last_line_s >= LINE_EVERY_S
        if self._style in (ProgressStyle.PANEL, ProgressStyle.PLAIN) and state.loads and is_due:
            load = state.loads[-1]
            if load.progress.elapsed_s > 0:
                self._last_line_s = now_s
                self.say(_line(state, load))

    def _drawn(self, state: LiveState) -> RenderableType:
        load = state.loads[-1]
        if not load.progress.elapsed_s:
            return Text("")
        lines = [_line(state, load)]
        if state.busiest:
            lines.append(moment.busiest(state.busiest))
        # One row each: a line that wraps moves all that is below it.
        return Text("\n".join(lines), style="dim", no_wrap=True, overflow="ellipsis")

    def tell(self, trial: Trial) -> None:
        """Print a trial that has a verdict."""
        if trial.verdict is NOT_JUDGED or self._style is ProgressStyle.QUIET:
            return
        rate, verdict, done = moment.ended(trial)
        line = Text(rate)
        line.append(f"{verdict:<10}", style=COLOURS.get(verdict, "dim"))
        line.append(f"  {done}")
        self.console.print(line, soft_wrap=True)


def _line(state: LiveState, load: LoadState) -> str:
    return moment.now(
        moment.purpose(load.request),
        load.progress,
        latency_ms=load.latency_ms,
        count=load.count,
        at_most_s=state.left_s,
        is_paced=load.is_paced,
    )
