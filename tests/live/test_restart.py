"""Two labs whose Keystone is started anew during a comparison."""

from random import Random

import pytest
import requests
from lab_client import quietly

from loadstone.compare.restart import two_labs
from loadstone.faults.journal import UndoJournal
from loadstone.faults.pending import lab_target
from loadstone.lab import deployment
from loadstone.lab.deployment import Deployment
from loadstone.lab.keystone import settings
from loadstone.target.target import Target

pytestmark = pytest.mark.live


def started(name: str, *, owned: bool) -> Deployment:
    chosen = settings.read([("service", "flask-reference"), ("workers", "1")])
    return deployment.up(name, chosen, quietly, owned=owned)


def target(lab: Deployment) -> Target:
    return Target(None, lab=lab.folder)  # type: ignore[arg-type]


def test_both_are_started_anew_and_serve_as_before(name: str) -> None:
    """One belongs to this process; the other is the user's, and outlives it."""
    labs = [started(name, owned=True), started(f"{name}-2", owned=False)]
    try:
        before = [set(lab.pids()) for lab in labs]
        both = two_labs([target(lab) for lab in labs])
        assert both is not None
        both.restart(Random(1))
        now = [deployment.find(lab.name) for lab in labs]
        assert [lab.url for lab in now] == [lab.url for lab in labs]
        for lab, old in zip(now, before, strict=True):
            assert lab.pids()
            assert not old & set(lab.pids())
            assert requests.get(lab.url, timeout=30).ok
            assert deployment.loss(lab) is None
            assert UndoJournal.of(lab_target(lab.name)).steps() == ()
    finally:
        deployment.down(f"{name}-2", purge=True)


def test_a_lab_is_not_restarted_under_itself(name: str) -> None:
    lab = target(started(name, owned=True))
    assert two_labs([lab, lab]) is None
    assert two_labs([lab, Target(None)]) is None  # type: ignore[arg-type]
