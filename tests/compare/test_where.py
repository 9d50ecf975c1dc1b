"""The functions in which a difference lies, from two profiles."""

from dataclasses import replace

import pytest
from made_runs import SEARCHES

from loadstone.analysis.model import Trial
from loadstone.compare.where import sentence, statement_sentence, where
from loadstone.diagnosis.cpu_profile import CpuProfile, flame, parts
from loadstone.diagnosis.sql import SqlCount

ROOT = "application (keystone/server/wsgi.py)"
ROLES = "list_role_assignments (keystone/assignment/core.py)"
TOKEN = "issue_token (keystone/token/provider.py)"
SQL = "execute (sqlalchemy/engine/base.py)"


def trial(requests: int, stacks: dict[tuple[str, ...], int]) -> Trial:
    profile = CpuProfile(10.0, 50, 1, sum(stacks.values()), parts(stacks), flame(stacks), 0.1)
    plain = SEARCHES.measurements[0].trials[0]
    total = replace(plain.stats.total, ok=requests)
    return replace(plain, profile=profile, stats=replace(plain.stats, total=total))


A = {(ROOT, TOKEN): 500, (ROOT, ROLES, SQL): 100}
B = {(ROOT, TOKEN): 510, (ROOT, ROLES, SQL): 500}


def test_the_smallest_function_with_most_of_the_difference_is_named() -> None:
    found = where((trial(1000, A), trial(1000, B)))
    assert found is not None
    assert found.carrier is not None
    assert found.carrier.name == ROLES
    # 20 ms of a sample at 50 Hz, over 1,000 requests.
    assert found.carrier.difference_ms == pytest.approx(8.0)
    assert found.whole.difference_ms == pytest.approx(8.2)
    assert [one.name for one in found.functions] == [ROOT, ROLES]
    assert f"+8.0 of +8.2 ms are in {ROLES}" in sentence(found)


def test_the_flame_graph_has_both_sides_of_each_function() -> None:
    cached = "cached (keystone/common/cache.py)"
    found = where((trial(1000, A), trial(1000, B | {(ROOT, cached): 300})))
    assert found is not None
    root = found.root.children[0]
    times = {one.time.name: (one.time.a_ms, one.time.b_ms) for one in root.children}
    assert times == {
        TOKEN: (pytest.approx(10.0), pytest.approx(10.2)),
        ROLES: (pytest.approx(2.0), pytest.approx(10.0)),
        cached: (0.0, pytest.approx(6.0)),  # A does not call it
    }
    assert root.time.b_ms == pytest.approx(sum(b for _, b in times.values()))
    assert [one.time.is_sure for one in root.children] == [False, True, True]


def test_the_sql_statements_of_both_are_told_side_by_side() -> None:
    roles, token = "SELECT ... FROM role WHERE role.id = ?", "SELECT ... FROM revocation_event"
    counted = [
        replace(trial(100, A), statements=(SqlCount(roles, 600), SqlCount(token, 100))),
        replace(trial(50, B), statements=(SqlCount(roles, 900), SqlCount(token, 50))),
    ]
    found = where((trial(1000, A), trial(1000, B)), counted)
    assert found is not None
    assert [(one.text, one.a, one.b) for one in found.statements] == [
        (roles, 6.0, 18.0),
        (token, 1.0, 1.0),
    ]
    assert statement_sentence(found) == (
        "Without those of the driver (COMMIT, ROLLBACK, SET), a request sends 7.0 SQL statements "
        "in A and 19.0 in B: +12.0 of +12.0 are " + roles + "."
    )


def test_times_are_of_a_request() -> None:
    found = where((trial(1000, A), trial(2000, {stack: 2 * n for stack, n in A.items()})))
    assert found is not None
    assert found.whole.a_ms == found.whole.b_ms
    assert found.functions == ()
    assert "shows no difference" in sentence(found)


def test_a_difference_of_a_few_samples_is_chance() -> None:
    found = where((trial(1000, A), trial(1000, A | {(ROOT, ROLES, SQL): 112})))
    assert found is not None
    assert found.functions == ()


def test_a_function_that_calls_itself_counts_once() -> None:
    again = where((trial(100, {(ROOT, ROLES, ROLES): 50}), trial(100, {(ROOT, ROLES, ROLES): 200})))
    assert again is not None
    assert again.carrier is not None
    assert again.carrier.b_ms == pytest.approx(40.0)


def test_without_a_profile_there_is_nothing_to_say() -> None:
    assert where((replace(trial(1, A), profile=None), trial(1, B))) is None
