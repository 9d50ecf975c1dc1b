"""One trial: when watching begins, and what helps if its time is used up."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from loadstone.engine.gate import Allowance
from loadstone.errors import MeasurementInvalid
from loadstone.plan.load import OpenLoad
from loadstone.result.observer import TrialObserver
from loadstone.run import trials
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


@pytest.mark.parametrize(
    ("is_valid", "advice"),
    [(True, "raise --max-connections or lower --rate"), (False, "use a quieter machine")],
)
def test_the_advice_for_requests_that_are_sent_late_names_what_made_them_late(
    monkeypatch, is_valid, advice
):
    trial = SimpleNamespace(spent_s=6.0, is_valid=is_valid)
    monkeypatch.setattr(trials, "run_trial", lambda *_: (trial, True))
    monkeypatch.setattr(trials, "require_alive", lambda _: None)
    monkeypatch.setattr(trials.Trials, "_observers", lambda _: [])
    monkeypatch.setattr(trials.Trials, "_conditions", lambda *_: None)
    of_run = trials.Trials(
        run=SimpleNamespace(kind="hit", budget_s=6.0, measurements=(None,)),
        config=SimpleNamespace(budget_s=60.0, policy=None),
        target=None,
        store=None,
        display=None,
        engine=SimpleNamespace(clock=SYSTEM),
        load=None,
        fault_runner=None,
        index=0,
        measurement=SimpleNamespace(trials=()),
        left_s=6.0,
    )
    with pytest.raises(MeasurementInvalid, match=f"the load was ended after 6 s.*{advice}"):
        of_run.measure(TrialRequest(OpenLoad(1.0, 1.0), "a trial"))
