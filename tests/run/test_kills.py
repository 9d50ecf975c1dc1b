"""Commands that are ended at random moments leave nothing; `make verify ONLY=kills` tries more."""

import pytest

from verification.faults.kills.__main__ import reference
from verification.faults.kills.attempt import attempts, trouble

SEED = 1609  # a lost terminal, a lost reader and each signal, at a different stage each
KINDS = ("run", "capacity", "run", "fault-file", "run")

# Four command lines and a load each; a machine with other work is slow to start them.
pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def served():
    with reference() as target:
        yield target


@pytest.mark.parametrize("attempt", tuple(attempts(5, 20, SEED, KINDS)), ids=str)
def test_a_command_ended_at_any_moment_leaves_nothing(attempt, served, tmp_path):
    assert trouble(attempt, served, tmp_path) == []
