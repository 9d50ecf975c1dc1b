"""The calls of the v3 identity API that preparation and clean-up need, with retries."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

from loadstone.errors import EnvironmentUnusable
from loadstone.keystone.things import Kind, Thing, Token, User
from loadstone.target import Access
from loadstone.target.access import unusable

if TYPE_CHECKING:
    from requests import Response

# Waits before a call is sent again; an overloaded Keystone needs seconds to come back.
_RETRY_WAITS_S = (0.1, 0.5, 1.0, 2.0)
# No further try after this long: a service that takes calls and never answers is not waited for.
_PATIENCE_S = 90.0
# What passes: database locked (500), a front without a backend, too many requests.
_PASSING_STATUS = {429, 500, 502, 503, 504}
_CREATED, _GONE, _CONFLICT, _FORBIDDEN = 201, 404, 409, 403


Whom = Token | Literal["admin", "nobody"]


class Refused(EnvironmentUnusable):
    """The service understood the call and will not do it."""


class Unreachable(EnvironmentUnusable):
    """No connection at all, also after retries: further calls would only wait as long."""


@dataclass(frozen=True, slots=True)
class Identity:
    """A cloud's identity API, as the identity that the user gave."""

    access: Access

    def create(self, kind: Kind, name: str, attributes: Mapping[str, Any]) -> Thing:
        """Make one thing, or find it where an earlier try that seemed to fail had made it."""
        answer = self.call(f"/{kind}s", "POST", {kind.value: {"name": name, **attributes}})
        if answer.status_code == _CREATED:
            return Thing(kind, name, str(answer.json()[kind.value]["id"]))
        if answer.status_code == _CONFLICT:
            # The name carries the run's id, so only we can have made it.
            place = {key: attributes[key] for key in ("domain_id",) if key in attributes}
            for found in self.find(kind, name=name, **place):
                self.update(found, {k: v for k, v in attributes.items() if k == "password"})
                return found
        raise self._refused(f"create {kind} {name}", answer)

    def find(self, kind: Kind, **query: str) -> tuple[Thing, ...]:
        """List what the query (name, domain_id) matches, as much as the service shows at once."""
        answer = self.call(f"/{kind}s", "GET", query=query)
        if answer.status_code == _GONE:
            return ()
        if not answer.ok:
            raise self._refused(f"list {kind}s", answer)
        return tuple(
            Thing(kind, str(e.get("name")), str(e["id"])) for e in answer.json()[f"{kind}s"]
        )

    def update(self, thing: Thing, attributes: Mapping[str, Any]) -> None:
        """Change a thing; nothing is sent where there is nothing to change."""
        if not attributes:
            return
        path = f"/{thing.kind}s/{thing.id}"
        answer = self.call(path, "PATCH", {thing.kind.value: dict(attributes)})
        if not answer.ok:
            raise self._refused(f"change {thing.kind} {thing.name}", answer)

    def remove(self, thing: Thing) -> None:
        """Remove it; that it is gone already is as good."""
        path = f"/{thing.kind}s/{thing.id}"
        if thing.kind is Kind.DOMAIN:
            self._expect(
                f"disable domain {thing.name}", path, "PATCH", {"domain": {"enabled": False}}
            )
        self._expect(f"remove {thing.kind} {thing.name}", path, "DELETE")

    def role_ids(self, names: Iterable[str]) -> tuple[str, ...]:
        """Find roles by their names; each name counts once."""
        answer = self.call("/roles", "GET")
        if not answer.ok:
            raise self._refused("list roles", answer)
        roles = {str(role["name"]): str(role["id"]) for role in answer.json()["roles"]}
        wanted = tuple(dict.fromkeys(names))
        for name in wanted:
            if name not in roles:
                known = ", ".join(sorted(roles))
                raise EnvironmentUnusable(
                    f"{self.access.identity_url}: has no role {name!r}; it has {known}"
                )
        return tuple(roles[name] for name in wanted)

    def role_id(self, name: str) -> str:
        """Find a role by its name."""
        return self.role_ids((name,))[0]

    def domain(self, name_or_id: str) -> Thing:
        """Find a domain by its id, or else by its name."""
        answer = self.call(f"/domains/{quote(name_or_id, safe='')}", "GET")
        if answer.ok:
            found = answer.json()["domain"]
            return Thing(Kind.DOMAIN, str(found["name"]), str(found["id"]))
        for domain in self.find(Kind.DOMAIN, name=name_or_id):
            return domain
        raise EnvironmentUnusable(f"{self.access.identity_url}: has no domain {name_or_id!r}")

    def domain_id(self, name_or_id: str) -> str:
        """Find the id of a domain by its id or name."""
        return str(self.domain(name_or_id).id)

    def service_id(self, name: str) -> str:
        """Find a service of the catalog by its name."""
        services = self.find(Kind.SERVICE)
        for service in services:
            if service.name == name:
                return str(service.id)
        known = ", ".join(sorted(service.name for service in services))
        raise EnvironmentUnusable(
            f"{self.access.identity_url}: has no service {name!r}; it has {known}"
        )

    def grant(self, role_id: str, user_id: str, project_id: str) -> None:
        """Give a user a role on a project."""
        path = f"/projects/{project_id}/users/{user_id}/roles/{role_id}"
        answer = self.call(path, "PUT")
        if not answer.ok:
            raise self._refused("assign a role", answer)

    def log_in(self, user: User) -> Token:
        """Issue a token for the user's project."""
        answer = self.call("/auth/tokens", "POST", _password_body(user), whom="nobody")
        if answer.status_code != _CREATED:
            raise self._refused(f"log in as {user.name}", answer)
        expires_at = datetime.fromisoformat(str(answer.json()["token"]["expires_at"]))
        return Token(str(answer.headers["X-Subject-Token"]), expires_at.timestamp())

    def create_application_credential(self, user: User, token: Token, name: str) -> tuple[str, str]:
        """Make one as the user, for the project of its token; give its id and its secret."""
        path = f"/users/{user.id}/application_credentials"
        answer = self.call(path, "POST", {"application_credential": {"name": name}}, whom=token)
        if answer.status_code != _CREATED:
            raise self._refused("create an application credential", answer)
        made = answer.json()["application_credential"]
        return str(made["id"]), str(made["secret"])

    def _expect(
        self, what: str, path: str, method: str, body: Mapping[str, Any] | None = None
    ) -> None:
        answer = self.call(path, method, body)
        if not answer.ok and answer.status_code != _GONE:
            raise self._refused(what, answer)

    def call(
        self,
        path: str,
        method: str,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, str] | None = None,
        whom: Whom = "admin",
    ) -> "Response":
        """Send, again where what came back passes; `path` may be another service's URL."""
        began_s = time.monotonic()
        for wait_s in _RETRY_WAITS_S:
            try:
                answer = self._send(path, method, body, query, whom)
            except Unreachable:
                if time.monotonic() - began_s > _PATIENCE_S:
                    raise
            else:
                if answer.status_code not in _PASSING_STATUS:
                    return answer
            time.sleep(wait_s)
        return self._send(path, method, body, query, whom)

    def _send(
        self,
        path: str,
        method: str,
        body: Mapping[str, Any] | None,
        query: Mapping[str, str] | None,
        whom: Whom,
    ) -> "Response":
        from keystoneauth1 import exceptions

        try:
            return self.access.session.request(
                self.access.identity_url + path if path.startswith("/") else path,
                method,
                json=body,
                params=query,
                authenticated=whom == "admin",
                headers={"X-Auth-Token": whom.value} if isinstance(whom, Token) else {},
                raise_exc=False,
                log=False,  # bodies hold passwords
            )
        except exceptions.ConnectionError as error:
            raise Unreachable(str(unusable(self.access.cloud, error))) from None
        except exceptions.ClientException as error:
            raise unusable(self.access.cloud, error) from None

    def _refused(self, what: str, answer: "Response") -> EnvironmentUnusable:
        """Put the answer in words; Refused where the service is sure (4xx)."""
        cloud = self.access.cloud
        mend = ""
        if answer.status_code == _FORBIDDEN:
            mend = f"; {cloud.who} needs the role admin to prepare users"
        refusal = Refused if answer.status_code < 500 else EnvironmentUnusable
        return refusal(
            f"{self.access.identity_url}: could not {what}: "
            f"HTTP {answer.status_code} {_message(answer)}{mend}"
        )


def _password_body(user: User) -> dict[str, Any]:
    return {
        "auth": {
            "identity": {
                "methods": ["password"],
                "password": {"user": {"id": user.id, "password": user.password}},
            },
            "scope": {"project": {"id": user.project_id}},
        }
    }


def _message(answer: "Response") -> str:
    """Keystone's own words, unless they may quote what was sent (400: bad value in the body)."""
    if answer.status_code == 400:
        return answer.reason
    try:
        return " ".join(str(answer.json()["error"]["message"]).split())[:200]
    except (KeyError, TypeError, ValueError):
        return answer.reason
