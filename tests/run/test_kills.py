"""Runs that are ended at random moments leave nothing; `make verify ONLY=kills` tries many more."""

import pytest

from verification.faults.kills import attempts, reference, trouble

SEED = 242  # ends a run at each stage, by each signal, of each kind of scenario


# Four command lines and a load each; a machine with other work is slow to start them.
pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def served():
    with reference() as variables:
        yield variables


@pytest.mark.parametrize("attempt", tuple(attempts(4, 20, SEED)), ids=str)
def test_a_run_ended_at_any_moment_leaves_nothing(attempt, served, tmp_path):
    assert trouble(attempt, served, tmp_path) == []
