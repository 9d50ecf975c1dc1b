"""SQL statements of a real Keystone on MariaDB, by its general log."""

from types import SimpleNamespace

import pytest
from lab_client import token_of, validation_of
from made_runs import SEARCHES

from loadstone.faults import database
from loadstone.faults.journal import of_lab
from loadstone.observers.statements import StatementLog
from loadstone.plan.load import ClosedLoad
from loadstone.search.model import TrialRequest

pytestmark = [pytest.mark.live, pytest.mark.timeout(900)]

WANTED = TrialRequest(ClosedLoad(1, duration_s=1.0), "wanted")


def test_statements_are_counted_for_the_time_of_the_load(balanced_keystone) -> None:
    said: list[str] = []
    lab = balanced_keystone.folder
    log = StatementLog(lab, said.append, "wanted")
    variables = balanced_keystone.environment_variables()
    try:
        log.on_trial_begin(WANTED)
        assert "general_log = 0" in of_lab(lab).steps()[0].description
        tokens = [token_of(variables) for _ in range(3)]
        log.on_load_end(SimpleNamespace())
        validation_of(balanced_keystone.url, tokens[0])  # is not counted any more
        trial = log.on_trial_end(SEARCHES.measurements[0].trials[0])
    finally:
        log.close()
    assert said == []
    counts = {one.text: one.count for one in trial.statements}
    [user] = [text for text in counts if "FROM user " in text or "FROM local_user" in text][:1]
    assert counts[user] >= 3
    assert not any(variables["OS_USERNAME"] in text for text in counts)
    assert of_lab(lab).steps() == ()
    assert database.run_mariadb(lab, "SELECT @@general_log, @@log_output").split() == ["0", "FILE"]
    assert database.run_mariadb(lab, "SELECT COUNT(*) FROM mysql.general_log").strip() == "0"


def test_other_trials_and_databases_without_a_log_are_left_alone(lab_keystone) -> None:
    log = StatementLog(lab_keystone.folder, print, "wanted")
    trial = SEARCHES.measurements[0].trials[0]
    log.on_trial_begin(WANTED)  # on SQLite
    assert log.on_trial_end(trial) is trial
    log.close()
    assert of_lab(lab_keystone.folder).steps() == ()
