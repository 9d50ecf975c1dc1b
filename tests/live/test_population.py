"""A population written in bulk is what the API makes."""

import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest
import requests
from lab_client import quietly, token_of

from loadstone.lab import deployment
from loadstone.lab.deployment import Deployment
from loadstone.lab.keystone import settings
from loadstone.lab.keystone.database import data_folder

pytestmark = pytest.mark.live

NAME = "population"
FEW = (("workers", "1"), ("hash-rounds", "4"))
MANY = (
    ("users", "30"),
    ("projects", "7"),
    ("groups", "4"),
    ("roles-per-user", "2"),
    ("unique-passwords", "5"),
)
# What differs between two users made by the API.
OF_EACH = {"id", "name", "user_id", "local_user_id", "actor_id", "target_id", "group_id", "links"}
OF_EACH |= {"created_at", "created_at_int", "password_hash"}
TABLES = {
    "user": "id = :user",
    "local_user": "user_id = :user",
    "password": "local_user_id = (SELECT id FROM local_user WHERE user_id = :user)",
    "user_group_membership": "user_id = :user",
    "assignment": "actor_id = :user AND target_id = :project",
    "project": "id = :project",
    '"group"': "id = :group",
}


@pytest.fixture
def lab(lab_home: None) -> Iterator[Deployment]:  # noqa: ARG001
    yield deployment.up(NAME, settings.read([*FEW, *MANY]), quietly)
    deployment.down(NAME, purge=True)


class Api:
    """The lab's API, as the administrator."""

    def __init__(self, lab: Deployment) -> None:
        self.url = lab.url
        self.headers = {"X-Auth-Token": token_of(lab.environment_variables())}

    def send(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        answer = requests.request(
            method, self.url + path, json=body, headers=self.headers, timeout=30
        )
        assert answer.ok, answer.text
        return answer.json() if answer.content else None

    def made(self) -> dict[str, str]:
        """Make one of each; return their ids."""
        ids = {}
        for kind, more in (("user", {"password": "of-nobody"}), ("project", {}), ("group", {})):
            body = {kind: {"name": f"by-api-{kind}", **more}}
            ids[kind] = self.send("POST", f"/{kind}s", body)[kind]["id"]
        [role] = self.send("GET", "/roles?name=member")["roles"]
        user = f"users/{ids['user']}"
        self.send("PUT", f"/groups/{ids['group']}/{user}")
        self.send("PUT", f"/projects/{ids['project']}/{user}/roles/{role['id']}")
        return ids

    def bulk(self) -> dict[str, str]:
        """Return the ids of one user of the population, and of its project and group."""
        [user] = self.send("GET", "/users?name=population-user-5")["users"]
        projects = self.send("GET", f"/users/{user['id']}/projects")["projects"]
        [group] = self.send("GET", f"/users/{user['id']}/groups")["groups"]
        assert len(projects) == 2
        return {"user": user["id"], "project": projects[0]["id"], "group": group["id"]}

    def answers(self, ids: dict[str, str]) -> list[dict[str, Any]]:
        found = (self.send("GET", f"/{kind}s/{ids[kind]}")[kind] for kind in ids)
        return [{k: v for k, v in one.items() if k not in OF_EACH} for one in found]


def rows(lab: Deployment, ids: dict[str, str]) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of each table; of what differs between any two, only the type."""
    folder = data_folder(lab.folder, settings.read(lab.state.settings))
    with sqlite3.connect(folder / "keystone.db") as database:
        database.row_factory = sqlite3.Row
        found = {
            table: database.execute(f"SELECT * FROM {table} WHERE {which}", ids).fetchall()
            for table, which in TABLES.items()
        }
    return {
        table: [
            {
                key: type(row[key]).__name__
                if key in OF_EACH or (table == "password" and key == "id")
                else row[key]
                for key in row.keys()  # noqa: SIM118  # a Row is not a mapping
            }
            for row in some
        ]
        for table, some in found.items()
    }


def different_hashes(lab: Deployment) -> int:
    """Return how many password hashes the population has."""
    folder = data_folder(lab.folder, settings.read(lab.state.settings))
    query = (
        "SELECT count(DISTINCT password_hash) FROM password JOIN local_user "
        "ON local_user.id = local_user_id WHERE name LIKE 'population-%'"
    )
    with sqlite3.connect(folder / "keystone.db") as database:
        return int(database.execute(query).fetchone()[0])


def sizes(api: Api) -> tuple[int, ...]:
    return tuple(
        sum(one["name"].startswith("population-") for one in api.send("GET", f"/{kind}")[kind])
        for kind in ("users", "projects", "groups")
    )


def test_a_population_has_the_rows_and_answers_of_the_api(lab: Deployment) -> None:
    api = Api(lab)
    assert sizes(api) == (30, 7, 4)
    by_api, by_bulk = api.made(), api.bulk()
    assert all(len(some) == 1 for some in rows(lab, by_api).values())
    assert rows(lab, by_bulk) == rows(lab, by_api)
    assert different_hashes(lab) == 5
    assert api.answers(by_bulk) == api.answers(by_api)

    deployment.down(NAME)
    without = Api(deployment.up(NAME, settings.read(FEW), quietly))
    assert sizes(without) == (0, 0, 0)
    assert without.send("GET", f"/users/{by_api['user']}")["user"]["name"] == "by-api-user"
