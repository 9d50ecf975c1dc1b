"""The argument of a function: iteration, user, and methods to name actions."""

import copy
import inspect
import json
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from loadstone.engine.callables.causes import IterationEnd, ended
from loadstone.engine.callables.charts import KINDS, chart_problem
from loadstone.engine.callables.model import PAUSE

Send = Callable[[tuple[Any, ...]], None]


class Context:
    """One iteration, as seen by its function."""

    def __init__(
        self, number: int, row: Mapping[str, str], settings: Mapping[str, str], send: Send
    ) -> None:
        self.iteration = number + 1  # from 1, as in Rally
        self.user = row
        self.settings = settings
        self._deliver = send
        self._is_over = False
        # Garbage collection may end an action of this thread while it reports another.
        self._lock = threading.RLock()
        self._path: tuple[str, ...] = ()
        self._paused_ns = 0

    def close(self) -> None:
        """Ignore what threads that outlive the iteration report."""
        with self._lock:
            self._is_over = True

    def _send(self, message: tuple[Any, ...]) -> None:
        with self._lock:
            if not self._is_over:
                self._deliver(message)

    @contextmanager
    def action(self, name: str) -> Iterator[None]:
        """Measure an action; actions may be nested. Pauses in it do not count.

        Raises ValueError for a name that is empty or begins with "(", as Loadstone's own do.
        """
        if not name or name.startswith("("):
            raise ValueError(f"an action cannot be called {name!r}")
        outer = self._path
        self._path = (*outer, name.replace("/", "-"))
        try:
            with self._recorded("/".join(self._path)):
                yield
        finally:
            self._path = outer

    @contextmanager
    def _recorded(self, path: str) -> Iterator[None]:
        began_ns, paused_ns = time.monotonic_ns(), self._paused_ns
        self._send(("begin", path, began_ns))
        how = ended(None)
        try:
            yield
        except BaseException as error:
            how = ended(error)
            raise
        finally:
            ended_ns = time.monotonic_ns() - (self._paused_ns - paused_ns)
            self._send(("end", path, began_ns, ended_ns, how))

    def pause(self, least_s: float, most_s: float | None = None) -> None:
        """Sleep for a random time, which is recorded separately from the scenario's own time."""
        if not most_s and not least_s:
            return
        began_ns = time.monotonic_ns()
        with self._recorded(PAUSE):
            time.sleep(random.uniform(least_s, max(least_s, most_s or 0)))  # noqa: S311
        self._paused_ns += time.monotonic_ns() - began_ns

    def output(
        self, additive: Mapping[str, Any] | None = None, complete: Mapping[str, Any] | None = None
    ) -> None:
        """Add figures for the report, in Rally's chart format; ValueError for another."""
        for form, chart in (("additive", additive), ("complete", complete)):
            if chart:
                if wrong := chart_problem(chart):
                    raise ValueError(f"{form} output {wrong}")
                if (kind := chart["chart_plugin"]) not in KINDS:
                    raise ValueError(
                        f"{form} output has no chart_plugin {kind!r}; choose from "
                        f"{', '.join(KINDS)}"
                    )
                self._send(("output", form, json.dumps(chart, allow_nan=False)))


def whole(
    context: Context, call: Callable[..., object], arguments: Mapping[str, Any]
) -> IterationEnd:
    """Run an iteration and return how it ended."""
    try:
        # As in Rally, an iteration may change its arguments without changing those of the next.
        result = call(context, **copy.deepcopy(arguments))
        if inspect.isawaitable(result) or inspect.isgenerator(result) or inspect.isasyncgen(result):
            # A decorator hid it from the check of the plugin.
            raise TypeError(f"the function has not run: it returned a {type(result).__name__}")
    except Exception as error:
        return ended(error)
    return ended(None)
