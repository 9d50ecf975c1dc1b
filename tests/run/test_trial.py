"""One trial: when watching begins."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from loadstone.engine.gate import Allowance
from loadstone.plan.load import OpenLoad
from loadstone.result.observer import TrialObserver
from loadstone.run.trial import Conditions, run_trial
from loadstone.search.model import TrialRequest
from loadstone.system.clock import SYSTEM


def test_what_a_load_prepares_is_not_watched():
    """Such as the logins of sessions that are to be refreshed: their CPU is not the load's."""
    order = []

    class Watching(TrialObserver):
        def on_trial_begin(self, _request):
            order.append("watched")

    def load(_request, terms):
        order.append("prepared")
        terms.on_begin()
        order.append("sent")
        raise KeyboardInterrupt

    conditions = Conditions(
        config=SimpleNamespace(goal=None),
        target=SimpleNamespace(members=lambda: None, other_side=lambda: None),
        number=1,
        seed=1,
        allowance=Allowance(10.0, 1.0),
        engine=SimpleNamespace(clock=SYSTEM),
        file=Path("samples"),
        observers=(Watching(),),
        keep=lambda trial, _samples: trial,
        say=print,
    )
    with pytest.raises(KeyboardInterrupt):
        run_trial(TrialRequest(OpenLoad(1.0, 1.0), "a trial"), load, conditions)
    assert order == ["prepared", "watched", "sent"]
