"""Builds a scenario from calls of the identity API, named after Rally's actions."""

import json
from collections.abc import Mapping, Sequence

from loadstone.keystone.contexts.passwords import new_password
from loadstone.keystone.resources import CreatedByIterations, ResourceKind
from loadstone.keystone.scenarios.body import Tree, json_body
from loadstone.keystone.scenarios.build_context import BuildContext
from loadstone.keystone.scenarios.model import ADMIN_TOKEN, MADE, SUBJECT_TOKEN, Scenario
from loadstone.plan.json_value import Json
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

Arguments = Mapping[str, Json]
USER_ID, PROJECT_ID = (Column("user_id"),), (Column("project_id"),)


class Draft:
    """Steps in sequence, as the administrator unless `as_user` is set."""

    def __init__(self, name: str, context: BuildContext | None = None) -> None:
        self.name = name
        self._context = context
        self.steps: list[Step] = []
        self.makes: dict[CreatedByIterations, None] = {}
        self.values: dict[str, tuple[str, ...]] = {}
        self.as_user = False
        self.leaves_with_users: tuple[str, ...] = ()

    @property
    def context(self) -> BuildContext:
        """What look-ups need; scenarios without look-ups have none."""
        if self._context is None:
            raise AssertionError(f"{self.name} looks something up")
        return self._context

    def scenario(self, title: str) -> Scenario:
        """Return the finished scenario."""
        requests = ", ".join(f"{step.method} /v3{_path_text(step.path)}" for step in self.steps)
        return Scenario(
            self.name,
            title,
            requests,
            tuple(self.steps),
            self.values,
            tuple(self.makes),
            leaves_with_users=self.leaves_with_users,
        )

    def call(
        self,
        action: str,
        method: str,
        path: Template,
        body: Tree = None,
        keep: Sequence[JsonCapture] = (),
        status: int | None = None,
    ) -> None:
        """Send one request; `keep` captures values of the answer.

        `status` is what is expected; by default what Keystone usually answers to the method.
        """
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
            expect_status=(status or _STATUS[method],),
            captures=tuple(keep),
            # Delete what was created even if a call in between failed.
            always=method == "DELETE",
        )
        self.steps.append(step)

    def thing(self, number: int = 1) -> Template:
        """Return the name of the iteration's resource with this number."""
        tail = () if number == 1 else (Text(f"-{number}"),)
        return (MADE, Iteration(""), *tail)

    def create(
        self,
        kind: ResourceKind,
        attributes: Mapping[str, Tree],
        *,
        within: str = "",
        number: int = 1,
    ) -> Template:
        """Create a resource with the iteration's name; return a hole for its id."""
        where = attributes.get("domain_id")
        # Otherwise it is in the users' domain, which is deleted as a whole.
        if where is None or isinstance(where, str):
            self.makes[CreatedByIterations(kind, where)] = None
        keep = f"{kind}_id" if number == 1 else f"{kind}_id_{number}"
        body = {kind.value: {"name": self.thing(number), **attributes}}
        action = f"{within}keystone_v3.create_{kind}{_mark(number)}"
        self.call(action, "POST", text(f"/{kind}s"), body, (JsonCapture(keep, f"/{kind}/id"),))
        return (Captured(keep),)

    def create_user(
        self,
        arguments: Arguments,
        project: Template | None = None,
        *,
        within: str = "",
        number: int = 1,
    ) -> Template:
        """Create a user; in a project with a role if one is given."""
        domain = self.context.finder.domain_id(str(arguments.get("domain_name") or "Default"))
        enabled = bool(arguments.get("enabled", True))
        attributes: dict[str, Tree] = {"domain_id": domain, "enabled": enabled}
        if arguments.get("password"):
            attributes["password"] = self.secret("new_password", str(arguments["password"]))
        if project is None and arguments.get("project_id"):
            project = text(str(arguments["project_id"]))
        if project is not None:
            attributes["default_project_id"] = project
        user = self.create(ResourceKind.USER, attributes, within=within, number=number)
        if project is not None:
            inside = f"{within}keystone_v3.create_user{_mark(number)}/"
            self.call(f"{inside}keystone_v3.list_roles", "GET", text("/roles"))
            role = text(self.context.finder.role_id(str(arguments.get("default_role") or "member")))
            self.call(f"{inside}keystone_v3.add_role", "PUT", grant(project, user, role))
        return user

    def create_project(self, arguments: Arguments) -> Template:
        """Create a project."""
        domain = self.context.finder.domain_id(str(arguments.get("domain_name") or "Default"))
        return self.create(ResourceKind.PROJECT, {"domain_id": domain, "enabled": True})

    def create_role(self, arguments: Arguments) -> Template:
        """Create a role, in a domain if one is named."""
        domain = arguments.get("domain_name")
        where = {"domain_id": self.context.finder.domain_id(str(domain))} if domain else {}
        return self.create(ResourceKind.ROLE, where)

    def create_service(self, arguments: Arguments) -> Template:
        """Create a service in the catalog."""
        kind = str(arguments.get("service_type") or "rally_test_type")
        about = arguments.get("description")
        description = text(str(about)) if about else self.thing(2)
        service: dict[str, Tree] = {"type": kind, "description": description, "enabled": True}
        return self.create(ResourceKind.SERVICE, service)

    def get(self, what: str, path: str, *rest: Template) -> None:
        """Get one resource or list many."""
        self.call(f"keystone_v3.{what}", "GET", under(path, *rest))

    def update(
        self, kind: ResourceKind, identity: Template, attributes: Mapping[str, Tree]
    ) -> None:
        """Update a resource."""
        path = under(f"/{kind}s", identity)
        self.call(f"keystone_v3.update_{kind}", "PATCH", path, {kind.value: attributes})

    def delete(self, kind: ResourceKind, identity: Template) -> None:
        """Delete a resource."""
        self.call(f"keystone_v3.delete_{kind}", "DELETE", under(f"/{kind}s", identity))

    def secret(self, column: str, value: str | None = None) -> Template:
        """Return a hole for a password, which is not stored; a random one if None."""
        self.values[column] = (json.dumps(value or new_password())[1:-1],)
        return (Column(column),)


def grant(project: Template, user: Template, role: Template) -> Template:
    """Return the path of a user's role in a project."""
    return under("/projects", project, text("users"), user, text("roles"), role)


def under(path: str, *rest: Template) -> Template:
    """Join parts to a path with slashes."""
    return (Text(path), *(part for one in rest for part in (Text("/"), *one)))


_STATUS = {"GET": 200, "POST": 201, "PUT": 204, "PATCH": 200, "DELETE": 204}


def _mark(number: int) -> str:
    # Distinguishes a second call of an action from a further request of the first (atomics.py).
    return "" if number == 1 else f"#{number}"


def _path_text(path: Template) -> str:
    return "".join(part.text if isinstance(part, Text) else "{}" for part in path)
