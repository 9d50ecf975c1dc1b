"""Multiple loss ratio search (FD.io CSIT, draft-ietf-bmwg-mlrsearch) through its own package.

Made for packet loss; an overloaded identity service loses nothing, it queues. So the loss of a
trial is the backlog gained in it plus the errors.
"""

import queue
import threading
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

from loadstone.analysis.model import Trial
from loadstone.errors import EnvironmentUnusable
from loadstone.plan.load import OpenLoad
from loadstone.search.guard import guarded
from loadstone.search.model import Capacity, Strategy
from loadstone.search.session import Session
from loadstone.search.settings import SearchSettings
from loadstone.system.installation import pip_install

LOWEST_RPS = 1.0
TRIAL_S = 10.0
TRIALS_S = 60.0  # summed per load
WIDTH = 0.01
LOSS = 0.005
UNNOTICED = 2  # requests of backlog that are no loss
MEASURED_CONFIDENCE = 0.20  # share of simulated services within the interval (docs/methodology.md)


Message = OpenLoad | Capacity | Exception  # of the package's thread
Answer = Trial | None  # None: stop


def mlrsearch(settings: SearchSettings) -> Strategy:
    """Search with the package's controller."""
    if find_spec("MLRsearch") is None:
        raise EnvironmentUnusable(f"method mlrsearch needs: {pip_install('MLRsearch')}")
    session = Session(settings)
    return guarded(session, _search(session))


def _search(session: Session) -> Strategy:
    requests: queue.Queue[Message] = queue.Queue()
    answers: queue.Queue[Answer] = queue.Queue()
    # The package calls its measurer, but a strategy yields requests. So the package runs in a
    # separate thread, which only runs while this one waits for it.
    highest_rps = session.settings.ceiling_rps
    thread = threading.Thread(target=_control, args=(requests, answers, highest_rps), daemon=True)
    thread.start()
    try:
        while True:
            message = requests.get()
            if isinstance(message, Exception):
                raise message
            if isinstance(message, Capacity):
                return message
            answers.put((yield from session.run_trial(message, "MLRsearch")))
    finally:
        answers.put(None)
        thread.join()


class _Stopped(Exception):
    """Ends the package's thread when the search is abandoned."""


def _control(
    requests: queue.Queue[Message], answers: queue.Queue[Answer], highest_rps: float
) -> None:
    def measure(load: OpenLoad) -> Trial:
        requests.put(load)
        trial = answers.get()
        if trial is None:
            raise _Stopped
        return trial

    try:
        requests.put(_run_package(measure, highest_rps))
    except _Stopped:
        return
    except Exception as error:
        requests.put(error)


def _run_package(measure: Callable[[OpenLoad], Trial], highest_rps: float) -> Capacity:
    from MLRsearch import (  # type: ignore[import-untyped]  # has no types
        AbstractMeasurer,
        Config,
        MeasurementResult,
        MultipleLossRatioSearch,
        SearchGoal,
    )

    class Measurer(AbstractMeasurer):  # type: ignore[misc]  # the package is not typed
        def measure(self, intended_duration: float, intended_load: float) -> Any:
            trial = measure(OpenLoad(float(intended_load), float(intended_duration)))
            due = trial.stats.due
            return MeasurementResult(
                intended_duration=intended_duration,
                intended_load=intended_load,
                offered_count=due,
                intended_count=due,
                forwarding_count=due - _lost(trial),
                duration_with_overheads=trial.stats.load_s,
            )

    goal = SearchGoal(
        loss_ratio=LOSS,
        exceed_ratio=0.5,
        relative_width=WIDTH,
        initial_trial_duration=TRIAL_S,
        final_trial_duration=TRIAL_S,
        duration_sum=TRIALS_S,
        preceding_targets=2,
        expansion_coefficient=2,
        fail_fast=False,
    )
    config = Config(
        goals=[goal],
        min_load=LOWEST_RPS,
        max_load=highest_rps,
        search_duration_max=1e9,
        warmup_duration=None,
    )
    found = MultipleLossRatioSearch(config=config).search(Measurer(), lambda _: None)[goal]
    notes = ("MLRsearch states no confidence; this one was measured over simulated services",)
    bounds = (found.conditional_throughput, found.relevant_lower_bound, found.relevant_upper_bound)
    rate_rps, low_rps, high_rps = map(_number, bounds)
    return Capacity(rate_rps, low_rps, high_rps, MEASURED_CONFIDENCE, notes)


def _number(bound: object) -> float | None:
    return None if bound is None else float(bound)  # type: ignore[arg-type]  # the package's Decimal-like


def _lost(trial: Trial) -> int:
    in_flight = trial.timeline.in_flight
    n = len(in_flight)
    if not n:  # errors stopped the trial before its first tick ended
        return trial.stats.failed
    start = np.median(in_flight[n // 10 : max(1, n // 3)])
    gained = float(np.median(in_flight[-max(1, n // 10) :]) - start)
    return max(0, round(gained - UNNOTICED)) + trial.stats.failed
