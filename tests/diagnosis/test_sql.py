"""SQL statements are counted by their shape."""

from collections import Counter

import pytest

from loadstone.diagnosis.sql import SqlCount, counted, shape


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        (
            "SELECT role.id AS role_id, role.name AS role_name FROM role WHERE role.id = 'a\\'b'",
            "SELECT ... FROM role WHERE role.id = ?",
        ),
        (
            "SELECT DISTINCT a.x FROM a WHERE a.x IN ('1', 'it''s', 3)  LIMIT 10",
            "SELECT DISTINCT ... FROM a WHERE a.x IN (?, ...) LIMIT ?",
        ),
        (
            "INSERT INTO revocation_event (id, x1) VALUES (NULL, -2.5)",
            "INSERT INTO revocation_event (id, x1) VALUES (NULL, ?)",
        ),
        (
            'SELECT "user".id AS id FROM "user" WHERE "user".id IN ($1, $2) LIMIT $3',
            'SELECT ... FROM "user" WHERE "user".id IN (?, ...) LIMIT ?',
        ),
        ("DELETE FROM trust WHERE trust.id='x'", "DELETE FROM trust WHERE trust.id=?"),
    ],
)
def test_values_and_columns_are_left_out(statement: str, expected: str) -> None:
    assert shape(statement) == expected


def test_statements_of_the_driver_do_not_count() -> None:
    driver = ("ROLLBACK", "SELECT 1", "SELECT $1", "SET SESSION x = 1", "COMMIT")
    asked = ("SELECT a FROM t WHERE x = 1", "SELECT a FROM t WHERE x = 2", "SELECT b FROM u")
    found = counted(Counter((*driver, *asked)))
    assert found == (
        SqlCount("SELECT ... FROM t WHERE x = ?", 2),
        SqlCount("SELECT ... FROM u", 1),
    )
