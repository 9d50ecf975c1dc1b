"""A scenario in the making: calls of the identity API under the names of Rally's actions."""

import json
import secrets
from collections.abc import Mapping

from loadstone.keystone.scenarios.body import Tree, json_body
from loadstone.keystone.scenarios.model import ADMIN_TOKEN, MADE, SUBJECT_TOKEN, Scenario
from loadstone.keystone.scenarios.rally.ground import Ground
from loadstone.keystone.things import Kind, Made
from loadstone.plan.script import (
    Captured,
    Column,
    Iteration,
    JsonCapture,
    Step,
    Template,
    Text,
    text,
)
from loadstone.task.model import Json

Wanted = Mapping[str, Json]
USER_ID, PROJECT_ID = (Column("user_id"),), (Column("project_id"),)


class Draft:
    """Steps one after the other; as the admin unless `as_user` is told."""

    def __init__(self, name: str, ground: Ground | None = None) -> None:
        self.name = name
        self._ground = ground
        self.steps: list[Step] = []
        self.makes: dict[Made, None] = {}
        self.values: dict[str, tuple[str, ...]] = {}
        self.as_user = False
        self.goes_with_users = ""

    @property
    def ground(self) -> Ground:
        """What is looked up; a scenario without look-ups needs none."""
        if self._ground is None:
            raise AssertionError(f"{self.name} looks something up")
        return self._ground

    def scenario(self, title: str) -> Scenario:
        """Give what was drafted."""
        requests = ", ".join(f"{step.method} /v3{_in_words(step.path)}" for step in self.steps)
        return Scenario(
            self.name,
            title,
            requests,
            tuple(self.steps),
            self.values,
            tuple(self.makes),
            self.goes_with_users,
        )

    def call(
        self,
        action: str,
        method: str,
        path: Template,
        body: Tree = None,
        keep: tuple[str, str] | None = None,
    ) -> None:
        """Send one request; `keep` names a value of the answer and says where it stands."""
        headers = [("Accept", text("application/json"))]
        if body is not None:
            headers.append(("Content-Type", text("application/json")))
        headers.append(("X-Auth-Token", (SUBJECT_TOKEN if self.as_user else ADMIN_TOKEN,)))
        step = Step(
            action,
            method,
            path,
            tuple(headers),
            body=() if body is None else json_body(body),
            expect_status=(_STATUS[method],),
            captures=() if keep is None else (JsonCapture(*keep),),
            # What was made is deleted also when a call between failed.
            always=method == "DELETE",
        )
        self.steps.append(step)

    def thing(self, number: int = 1) -> Template:
        """Give the name of the iteration's thing of this number."""
        tail = () if number == 1 else (Text(f"-{number}"),)
        return (MADE, Iteration(""), *tail)

    def create(
        self, kind: Kind, attributes: Mapping[str, Tree], *, within: str = "", number: int = 1
    ) -> Template:
        """Make a thing with the iteration's name; give the hole for its id."""
        where = attributes.get("domain_id")
        if where is None or isinstance(where, str):  # else the users' domain, which goes whole
            self.makes[Made(kind, where)] = None
        keep = f"{kind}_id" if number == 1 else f"{kind}_id_{number}"
        body = {kind.value: {"name": self.thing(number), **attributes}}
        action = f"{within}keystone_v3.create_{kind}{_mark(number)}"
        self.call(action, "POST", text(f"/{kind}s"), body, (keep, f"/{kind}/id"))
        return (Captured(keep),)

    def create_user(
        self,
        wanted: Wanted,
        project: Template | None = None,
        *,
        within: str = "",
        number: int = 1,
    ) -> Template:
        """Make a user; in a project with a role, where one is given."""
        attributes: dict[str, Tree] = {
            "domain_id": self.ground.finder.domain_id(str(wanted.get("domain_name") or "Default")),
            "enabled": bool(wanted.get("enabled", True)),
        }
        if wanted.get("password"):
            attributes["password"] = self.secret("new_password", str(wanted["password"]))
        if project is None and wanted.get("project_id"):
            project = text(str(wanted["project_id"]))
        if project is not None:
            attributes["default_project_id"] = project
        user = self.create(Kind.USER, attributes, within=within, number=number)
        if project is not None:
            inside = f"{within}keystone_v3.create_user{_mark(number)}/"
            self.call(f"{inside}keystone_v3.list_roles", "GET", text("/roles"))
            role = text(self.ground.finder.role_id(str(wanted.get("default_role") or "member")))
            self.call(f"{inside}keystone_v3.add_role", "PUT", grant(project, user, role))
        return user

    def create_project(self, wanted: Wanted) -> Template:
        """Make a project."""
        domain = self.ground.finder.domain_id(str(wanted.get("domain_name") or "Default"))
        return self.create(Kind.PROJECT, {"domain_id": domain, "enabled": True})

    def create_role(self, wanted: Wanted) -> Template:
        """Make a role, of a domain where one is named."""
        domain = wanted.get("domain_name")
        where = {"domain_id": self.ground.finder.domain_id(str(domain))} if domain else {}
        return self.create(Kind.ROLE, where)

    def create_service(self, wanted: Wanted) -> Template:
        """Make a service of the catalog."""
        kind = str(wanted.get("service_type") or "rally_test_type")
        about = wanted.get("description")
        description = text(str(about)) if about else self.thing(2)
        made: dict[str, Tree] = {"type": kind, "description": description, "enabled": True}
        return self.create(Kind.SERVICE, made)

    def get(self, what: str, path: str, *rest: Template) -> None:
        """Get one thing or list many."""
        self.call(f"keystone_v3.{what}", "GET", under(path, *rest))

    def update(self, kind: Kind, identity: Template, attributes: Mapping[str, Tree]) -> None:
        """Change a thing."""
        path = under(f"/{kind}s", identity)
        self.call(f"keystone_v3.update_{kind}", "PATCH", path, {kind.value: attributes})

    def delete(self, kind: Kind, identity: Template) -> None:
        """Delete a thing."""
        self.call(f"keystone_v3.delete_{kind}", "DELETE", under(f"/{kind}s", identity))

    def secret(self, column: str, value: str | None = None) -> Template:
        """Give the hole for a password, which stays out of what is stored; a random one if None."""
        chosen = value or secrets.token_urlsafe(24) + "aA1!"
        self.values[column] = (json.dumps(chosen)[1:-1],)
        return (Column(column),)


def grant(project: Template, user: Template, role: Template) -> Template:
    """Give the path of a role that a user has in a project."""
    return under("/projects", project, text("users"), user, text("roles"), role)


def under(path: str, *rest: Template) -> Template:
    """Give a path: the parts with slashes between."""
    return (Text(path), *(part for one in rest for part in (Text("/"), *one)))


_STATUS = {"GET": 200, "POST": 201, "PUT": 204, "PATCH": 200, "DELETE": 204}


def _mark(number: int) -> str:
    # Tells the second call of an action from a further request of the first (atomics.py).
    return "" if number == 1 else f"#{number}"


def _in_words(path: Template) -> str:
    return "".join(part.text if isinstance(part, Text) else "{}" for part in path)
