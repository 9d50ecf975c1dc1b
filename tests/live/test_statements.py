"""SQL statements of a real Keystone, as its database counts them."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from lab_client import token_of, validation_of
from made_runs import SEARCHES

from loadstone.faults import database
from loadstone.faults.journal import of_lab
from loadstone.lab.parts.postgres import STATEMENTS_ON
from loadstone.observers.statements import StatementLog
from loadstone.plan.load import ClosedLoad
from loadstone.search.model import TrialRequest

pytestmark = [pytest.mark.live, pytest.mark.timeout(900)]

WANTED = TrialRequest(ClosedLoad(1, duration_s=1.0), "wanted")


@pytest.mark.parametrize("shared", ["balanced_keystone", "nginx_keystone"])
def test_statements_are_counted_for_the_time_of_the_load(shared, request) -> None:
    keystone = request.getfixturevalue(shared)
    said: list[str] = []
    lab = keystone.folder
    log = StatementLog(lab, said.append, "wanted")
    variables = keystone.environment_variables()
    try:
        log.on_trial_begin(WANTED)
        assert is_counting(lab)
        assert of_lab(lab).steps()
        tokens = [token_of(variables) for _ in range(3)]
        log.on_load_end(SimpleNamespace())
        validation_of(keystone.url, tokens[0])  # is not counted any more
        trial = log.on_trial_end(SEARCHES.measurements[0].trials[0])
    finally:
        log.close()
    assert said == []
    counts = {one.text: one.count for one in trial.statements}
    assert any("local_user" in text and count >= 3 for text, count in counts.items()), counts
    assert not any(variables["OS_USERNAME"] in text for text in counts)
    assert of_lab(lab).steps() == ()
    assert not is_counting(lab)


def is_counting(lab: Path) -> bool:
    """Whether the database counts, or has something left of it."""
    if database.kind(lab) == "postgres":
        return STATEMENTS_ON in (database.folder(lab) / database.POSTGRES_CONF).read_text()
    states = database.run_mariadb(lab, "SELECT @@general_log, @@log_output")
    rows = database.run_mariadb(lab, "SELECT COUNT(*) FROM mysql.general_log")
    return (states.split(), rows.strip()) != (["0", "FILE"], "0")


def test_other_trials_and_databases_without_a_log_are_left_alone(lab_keystone) -> None:
    log = StatementLog(lab_keystone.folder, print, "wanted")
    trial = SEARCHES.measurements[0].trials[0]
    log.on_trial_begin(WANTED)  # on SQLite
    assert log.on_trial_end(trial) is trial
    log.close()
    assert of_lab(lab_keystone.folder).steps() == ()
