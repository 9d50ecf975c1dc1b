"""The same search on real sockets and clocks, against a service of exactly known capacity."""

import contextlib
import itertools

import pytest
from known_service import ISSUE, Known, known_service
from measured import is_unhindered, searched

from loadstone.analysis.goal import Goal
from loadstone.analysis.model import Trial
from loadstone.analysis.trial import alarm, assess
from loadstone.engine import local
from loadstone.engine.progress import Progress
from loadstone.plan.model import Origin, Plan
from loadstone.search.meter import meter
from loadstone.search.model import TrialRequest
from loadstone.search.run import search
from loadstone.search.settings import SearchSettings

pytestmark = pytest.mark.quiet


def test_a_real_service_that_answers_errors_only_gives_words_and_no_number() -> None:
    with known_service(2, 0.01, "--only-errors") as known:
        found, trials = searched(known.port, 40.0)
    assert found.rate_rps is None
    assert found.words[0] == "the service answers errors only"
    assert len(trials) == 1


class Restarted:
    """A service that ends in mid-trial, in the first of that purpose, and may be there again."""

    def __init__(self, begun: contextlib.ExitStack, purpose: str, *, comes_back: bool) -> None:
        self._begun = begun
        self._known: Known | None = begun.enter_context(known_service(2, 0.01))
        self._port = self._known.port
        self._purpose, self._comes_back = purpose, comes_back
        self._trials = itertools.count(1)
        self.was_stopped = False

    def measure(self, ask: TrialRequest) -> Trial:
        if self._known is None and self._comes_back:
            self._purpose = "none"
            more = f"--port={self._port}"
            self._known = self._begun.enter_context(known_service(2, 0.01, more))
        plan = Plan(Origin("http", "127.0.0.1", self._port), (ISSUE,), ask.load)
        watchdog = alarm(ask.load, ask.alarm_s, Goal())

        def watch(progress: Progress) -> bool:
            is_now = ask.purpose.startswith(self._purpose) and progress.elapsed_s >= 1.5
            if is_now and self._known is not None:
                self._known.process.kill()
                self.was_stopped = True
                self._known = None
            return watchdog(progress)

        measured = local.run(plan, watch)
        return assess(ask.spec(next(self._trials)), measured.samples, measured.health, Goal())


@pytest.mark.slow
@pytest.mark.parametrize("purpose", ["meter", "must hold"])
def test_a_service_that_is_restarted_in_mid_search_is_told_with_its_number(purpose: str) -> None:
    with contextlib.ExitStack() as begun:
        service = Restarted(begun, purpose, comes_back=True)
        found, trials = search(meter(SearchSettings(budget_s=22.0)), service.measure)
    assert service.was_stopped or not is_unhindered(found, trials)
    if service.was_stopped and is_unhindered(found, trials):
        assert any("was it restarted?" in words for words in found.words), found
    if is_unhindered(found, trials) and found.rate_rps is not None:
        assert found.rate_rps == pytest.approx(200.0, rel=0.06)


def test_a_service_that_goes_away_in_mid_trial_gives_words_and_no_number() -> None:
    with contextlib.ExitStack() as begun:
        service = Restarted(begun, "meter", comes_back=False)
        found, trials = search(meter(SearchSettings(budget_s=30.0)), service.measure)
    assert found.rate_rps is None
    if is_unhindered(found, trials):
        assert found.words[0] == "the service stopped answering in mid-search"
