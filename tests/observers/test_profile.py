"""A profile that cannot be taken does not end the run."""

import errno

import pytest
from made_runs import runs

from loadstone.observers import profile
from loadstone.observers.profile import WorkerProfile
from loadstone.plan.load import OpenLoad
from loadstone.search.model import TrialRequest


def refuse(*_, **__):
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("place", ["tempfile.TemporaryDirectory", "_started"])
def test_without_space_there_is_no_profile_and_a_line(monkeypatch, place):
    monkeypatch.setattr(profile, "workers", lambda _: iter((1,)))
    monkeypatch.setattr(f"loadstone.observers.profile.{place}", refuse)
    said = []
    observer = WorkerProfile(tuple, lambda *_: "unused", said.append)
    observer.on_trial_begin(TrialRequest(OpenLoad(5.0, 1.0), "load"))
    observer.on_load_end(None)
    trial = runs()["search"].measurements[0].trials[0]
    assert observer.on_trial_end(trial) is trial
    observer.close()
    assert said == ["  no profile: No space left on device"]
