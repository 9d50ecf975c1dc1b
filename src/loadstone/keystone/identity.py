"""Calls of the v3 identity API for preparation and clean-up, with retries."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

from loadstone.cloud import Access
from loadstone.cloud.access import not_json, unusable
from loadstone.errors import EnvironmentUnusable
from loadstone.keystone.resources import Resource, ResourceKind, Token, User

if TYPE_CHECKING:
    from requests import Response

# Waits before retries; an overloaded Keystone needs seconds to recover.
_RETRY_WAITS_S = (0.1, 0.5, 1.0, 2.0)
# The longest wait that a service may ask for (Retry-After, RFC 9110, section 10.2.3).
_LONGEST_WAIT_S = 30.0
# No retry after this long: do not wait for a service that accepts calls and never answers, or only
# once its database has timed out.
_PATIENCE_S = 90.0
# Transient errors: database locked (500), a proxy without a backend, too many requests.
_PASSING_STATUS = {429, 500, 502, 503, 504}
_CREATED, _GONE, _CONFLICT, _FORBIDDEN = 201, 404, 409, 403
_CLIENT_ERROR, _SERVER_ERROR = 400, 500
# A process of several threads that has just started forbids everything to one thread while another
# one still loads the policy. What is forbidden for good is so after these attempts, too.
_FORBIDDEN_ATTEMPTS = 3


Whom = Token | Literal["admin", "nobody"]


class Refused(EnvironmentUnusable):
    """The service understood the call and refuses it."""


class Unreachable(EnvironmentUnusable):
    """No connection even after retries; further calls would wait as long."""


@dataclass(frozen=True, slots=True)
class Identity:
    """A cloud's identity API, called as the identity that the user chose."""

    access: Access

    def create(self, kind: ResourceKind, name: str, attributes: Mapping[str, Any]) -> Resource:
        """Create a resource, or find it if an attempt that seemed to fail has created it.

        Refused: it certainly does not exist.
        """
        body = {kind.value: {"name": name, **attributes}}
        response, may_be_done = self._call(f"/{kind}s", "POST", body)
        if response.status_code == _CREATED:
            resource_id = self._json(f"create {kind} {name}", response, kind.value, "id")
            return Resource(kind, name, str(resource_id))
        refused = self._refused(f"create {kind} {name}", response)
        if response.status_code == _CONFLICT:
            # The name contains the run's id, so only this run can have created it.
            place = {key: attributes[key] for key in ("domain_id",) if key in attributes}
            try:
                for found in self.find(kind, name=name, **place):
                    self.update(found, {k: v for k, v in attributes.items() if k == "password"})
                    return found
            except Refused as problem:
                refused = problem
        elif not may_be_done:
            raise refused
        # It may exist, so this is not Refused.
        raise EnvironmentUnusable(str(refused))

    def find(self, kind: ResourceKind, **query: str) -> tuple[Resource, ...]:
        """List what the query (name, domain_id) matches, up to the service's list limit."""
        response = self.call(f"/{kind}s", "GET", query=query)
        if is_missing(response):
            return ()
        if not response.ok:
            raise self._refused(f"list {kind}s", response)
        return tuple(
            Resource(kind, str(one.get("name")), str(one["id"]))
            for one in self._list(f"list {kind}s", response, f"{kind}s")
        )

    def is_gone(self, thing: Resource) -> bool:
        """Return whether no resource has this id."""
        response = self.call(_path(thing), "GET")
        if not response.ok and not is_missing(response):
            raise self._refused(f"look up {thing.kind} {thing.name}", response)
        return not response.ok

    def update(self, thing: Resource, attributes: Mapping[str, Any]) -> None:
        """Change a resource; no request is sent if there is nothing to change."""
        if not attributes:
            return
        response = self.call(_path(thing), "PATCH", {thing.kind.value: dict(attributes)})
        if not response.ok:
            raise self._refused(f"change {thing.kind} {thing.name}", response)

    def remove(self, thing: Resource) -> None:
        """Remove a resource; it is no error if it is gone already."""
        path = _path(thing)
        if thing.kind is ResourceKind.DOMAIN:
            self._expect(
                f"disable domain {thing.name}", path, "PATCH", {"domain": {"enabled": False}}
            )
        self._expect(f"remove {thing.kind} {thing.name}", path, "DELETE")

    def role_ids(self, default: str, others: Iterable[str] = ()) -> tuple[str, ...]:
        """Return the ids of the default role of users and of others, each once.

        As in Rally, the default may be written otherwise: `member` also finds `Member` and
        `_member_`.
        """
        roles = {role.name: str(role.id) for role in self.find(ResourceKind.ROLE)}
        unique = tuple(dict.fromkeys((_written(default, roles), *others)))
        for name in unique:
            if name not in roles:
                # A service with a list limit names only a part of its roles.
                alike = self.find(ResourceKind.ROLE, name=name)
                roles |= {role.name: str(role.id) for role in alike if role.name == name}
            if name not in roles:
                raise self._lacks("role", name, roles)
        return tuple(roles[name] for name in unique)

    def role_id(self, name: str) -> str:
        """Return the id of a role, found as the default role is."""
        return self.role_ids(name)[0]

    def domain(self, name_or_id: str) -> Resource:
        """Find a domain by id, else by name."""
        response = self.call(f"/domains/{_quoted(name_or_id)}", "GET")
        if response.ok:
            what = f"look up domain {name_or_id}"
            name, own_id = (self._json(what, response, "domain", key) for key in ("name", "id"))
            return Resource(ResourceKind.DOMAIN, str(name), str(own_id))
        for domain in self.find(ResourceKind.DOMAIN, name=name_or_id):
            return domain
        raise EnvironmentUnusable(f"{self.access.identity_url}: has no domain {name_or_id!r}")

    def domain_id(self, name_or_id: str) -> str:
        """Return the id of a domain, given its id or name."""
        return str(self.domain(name_or_id).id)

    def service_id(self, name: str) -> str:
        """Return the id of a service in the catalog."""
        services = self.find(ResourceKind.SERVICE)
        for service in services:
            if service.name == name:
                return str(service.id)
        raise self._lacks("service", name, (service.name for service in services))

    def _lacks(self, kind: str, name: str, names: Iterable[str]) -> EnvironmentUnusable:
        available = ", ".join(sorted(filter(None, names))) or f"no {kind} with a name"
        where = self.access.identity_url
        return EnvironmentUnusable(f"{where}: has no {kind} {name!r}; it has {available}")

    def grant(self, role_id: str, user_id: str, project_id: str) -> None:
        """Assign a role on a project to a user."""
        self.grant_on(f"/projects/{_quoted(project_id)}", user_id, role_id)

    def log_in(self, user: User) -> Token:
        """Issue a token for the user's project."""
        return self.issue(user, {**password_method(user), **project_scope(user)})

    def issue(self, user: User, auth: Mapping[str, Any]) -> Token:
        """Issue a token to the user; `auth` has the API's form."""
        what = f"log in as {user.name}"
        response = self.call("/auth/tokens", "POST", {"auth": auth}, whom="nobody")
        return self._issued(what, response)

    def issue_federated(self, path: str, access: Token, project_id: str) -> Token:
        """Issue a token for a project to a user who has this access token of a provider."""
        what = "log in as a federated user"
        bearer = {"Authorization": f"Bearer {access.value}"}
        unscoped = self._issued(what, self._send(path, "POST", None, None, "nobody", bearer))
        identity = {"methods": ["token"], "token": {"id": unscoped.value}}
        auth = {"identity": identity, "scope": {"project": {"id": project_id}}}
        response = self.call("/auth/tokens", "POST", {"auth": auth}, whom="nobody")
        return self._issued(what, response)

    def _issued(self, what: str, response: "Response") -> Token:
        if response.status_code != _CREATED:
            raise self._refused(what, response, "nobody")
        expires = str(self._json(what, response, "token", "expires_at"))
        try:
            expires_at = datetime.fromisoformat(expires)
            return Token(str(response.headers["X-Subject-Token"]), expires_at.timestamp())
        except (KeyError, ValueError):
            raise not_json(self.access.cloud, what, response) from None

    def create_application_credential(
        self, user: User, token: Token, name: str, access_rules: Iterable[Mapping[str, str]] = ()
    ) -> tuple[str, str]:
        """Create one as the user, for the project of its token; return its id and secret.

        If an earlier attempt that seemed to fail has created it, its secret is lost, and another
        name is used.
        """
        what = "create an application credential"
        path = f"/users/{_quoted(user.id)}/application_credentials"
        for suffix in ("", "-again"):
            wanted: dict[str, Any] = {"name": f"{name}{suffix}"}
            if access_rules:
                wanted["access_rules"] = list(access_rules)
            body = {"application_credential": wanted}
            response = self.call(path, "POST", body, whom=token)
            if response.status_code != _CONFLICT:
                break
        if response.status_code != _CREATED:
            raise self._refused(what, response, token)
        credential_id, secret = (
            self._json(what, response, "application_credential", key) for key in ("id", "secret")
        )
        return str(credential_id), str(secret)

    def create_trust(self, user: User, token: Token, role_id: str) -> str:
        """Let the user trust itself with a role in its project; return the trust's id."""
        trust = {
            "trustor_user_id": user.id,
            "trustee_user_id": user.id,
            "project_id": user.project_id,
            "impersonation": False,
            "roles": [{"id": role_id}],
        }
        what = "create a trust"
        response = self.call("/OS-TRUST/trusts", "POST", {"trust": trust}, whom=token)
        if response.status_code != _CREATED:
            raise self._refused(what, response, token)
        return str(self._json(what, response, "trust", "id"))

    def create_ec2_credential(self, user: User, token: Token) -> tuple[str, str]:
        """Create an EC2 credential as the user, for its project; return the key and the secret."""
        what, path = "create an EC2 credential", f"/users/{_quoted(user.id)}/credentials/OS-EC2"
        response = self.call(path, "POST", {"tenant_id": user.project_id}, whom=token)
        if response.status_code != _CREATED:
            raise self._refused(what, response, token)
        key, secret = (
            self._json(what, response, "credential", part) for part in ("access", "secret")
        )
        return str(key), str(secret)

    def require_second_factor(self, user: User, secret: str) -> None:
        """From now on, accept the user's password only together with a one-time code.

        `secret` is in base32 (RFC 4648). Raises EnvironmentUnusable if the service then still
        accepts the password alone: it ignores rules with methods that it does not have.
        """
        what = "create a TOTP credential"
        credential = {"type": "totp", "blob": secret, "user_id": user.id}
        response = self.call("/credentials", "POST", {"credential": credential})
        if response.status_code != _CREATED:
            raise self._refused(what, response)
        options = {
            "multi_factor_auth_enabled": True,
            "multi_factor_auth_rules": [["password", "totp"]],
        }
        path = f"/users/{_quoted(user.id)}"
        response = self.call(path, "PATCH", {"user": {"options": options}})
        if not response.ok:
            raise self._refused("require a second factor", response)
        auth = {**password_method(user), **project_scope(user)}
        response = self.call("/auth/tokens", "POST", {"auth": auth}, whom="nobody")
        if response.status_code == _CREATED:
            raise EnvironmentUnusable(
                f"{self.access.identity_url}: does not ask for a second factor: totp is missing "
                "in [auth] methods of keystone.conf; for a lab: lab up --with "
                "conf.auth.methods=external,password,token,oauth1,mapped,application_credential,ec2credential,totp"
            )

    def grant_on(self, place: str, user_id: str, role_id: str) -> None:
        """Assign a role to a user; `place` is the path of a project or domain, or /system."""
        path = f"{place}/users/{_quoted(user_id)}/roles/{_quoted(role_id)}"
        self._put("assign a role", path)

    def grant_to_group(self, project_id: str, group_id: str, role_id: str) -> None:
        """Assign a role on a project to a group."""
        place = f"/projects/{_quoted(project_id)}/groups/{_quoted(group_id)}"
        self._put("assign a role to a group", f"{place}/roles/{_quoted(role_id)}")

    def add_to_group(self, group_id: str, user_id: str) -> None:
        """Put a user into a group."""
        path = f"/groups/{_quoted(group_id)}/users/{_quoted(user_id)}"
        self._put("put a user into a group", path)

    def imply_role(self, role_id: str, implied_id: str) -> None:
        """Let whoever has the first role have the second, too."""
        path = f"/roles/{_quoted(role_id)}/implies/{_quoted(implied_id)}"
        self._put("let a role imply another", path, done=(_CONFLICT,))

    def _put(self, what: str, path: str, done: tuple[int, ...] = ()) -> None:
        """Send a PUT; a status of `done` says that it was done before."""
        response = self.call(path, "PUT")
        if not response.ok and response.status_code not in done:
            raise self._refused(what, response)

    def _json(self, what: str, response: "Response", *keys: str) -> object:
        """Return a value of the JSON response; raise if a proxy sent a page."""
        try:
            value = response.json()
            for key in keys:
                value = value[key]
        except (KeyError, TypeError, ValueError):
            raise not_json(self.access.cloud, what, response) from None
        return value

    def _list(self, what: str, response: "Response", key: str) -> list[dict[str, Any]]:
        """Return the response's list of resources, each with an id."""
        resources = self._json(what, response, key)
        if not isinstance(resources, list) or not all(
            isinstance(o, dict) and "id" in o for o in resources
        ):
            raise not_json(self.access.cloud, what, response)
        return resources

    def _expect(
        self, what: str, path: str, method: str, body: Mapping[str, Any] | None = None
    ) -> None:
        response = self.call(path, method, body)
        if not response.ok and not is_missing(response):
            raise self._refused(what, response)

    def call(
        self,
        path: str,
        method: str,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, str] | None = None,
        whom: Whom = "admin",
    ) -> "Response":
        """Send a request, with retries on transient errors; `path` may be another service's URL."""
        return self._call(path, method, body, query, whom)[0]

    def _call(
        self,
        path: str,
        method: str,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, str] | None = None,
        whom: Whom = "admin",
    ) -> tuple["Response", bool]:
        """Return the last response, and whether an earlier attempt may have been carried out.

        A service may do so although its proxy answers with an error, or the connection is lost.
        """
        may_be_done = False
        began_s = time.monotonic()
        for attempt, wait_s in enumerate(_RETRY_WAITS_S, 1):
            asked_s = 0.0
            try:
                response = self._send(path, method, body, query, whom)
            except Unreachable:
                may_be_done = True
                if time.monotonic() - began_s > _PATIENCE_S:
                    raise
            else:
                may_be_done |= _is_repeat(response)
                is_forbidden = response.status_code == _FORBIDDEN and method in ("POST", "PUT")
                may_pass = is_forbidden and attempt < _FORBIDDEN_ATTEMPTS
                if response.status_code not in _PASSING_STATUS and not may_pass:
                    return response, may_be_done
                may_be_done |= response.status_code >= _SERVER_ERROR
                if time.monotonic() - began_s > _PATIENCE_S:
                    return response, may_be_done
                asked_s = _asked_wait_s(response)
            time.sleep(max(wait_s, asked_s))
        response = self._send(path, method, body, query, whom)
        return response, may_be_done or _is_repeat(response)

    def call_service(
        self,
        url: str,
        method: str,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, str] | None = None,
    ) -> "Response":
        """Send a request to another service; raise EnvironmentUnusable if it is not reached."""
        try:
            return self.call(url, method, body, query)
        except Unreachable:
            # The identity service may still be reachable.
            raise EnvironmentUnusable(f"{url}: no connection") from None

    def refused_by_service(
        self, url: str | None, what: str, response: "Response"
    ) -> EnvironmentUnusable:
        """Return the error for a response of another service; `url` is that of its API."""
        why = self.access.cloud.lacks_role("for it")
        hint = f"; {why}" if response.status_code == _FORBIDDEN else ""
        return EnvironmentUnusable(
            f"{url}: could not {what}: HTTP {response.status_code} {response.reason}{hint}"
        )

    def lacks_service(self, service_type: str) -> EnvironmentUnusable:
        """Return the error that the catalog lacks a service in which resources are to be found."""
        missing = self.access.lacks(service_type)
        return EnvironmentUnusable(
            f"{missing}; choose the run's region and interface, and a project"
        )

    def _send(
        self,
        path: str,
        method: str,
        body: Mapping[str, Any] | None,
        query: Mapping[str, str] | None,
        whom: Whom,
        headers: Mapping[str, str] = {},
    ) -> "Response":
        from keystoneauth1 import exceptions

        try:
            return self.access.session.request(
                self.access.identity_url + path if path.startswith("/") else path,
                method,
                json=body,
                params=query,
                authenticated=whom == "admin",
                headers={"X-Auth-Token": whom.value} if isinstance(whom, Token) else headers,
                raise_exc=False,
                log=False,  # bodies contain passwords
            )
        except exceptions.ConnectionError as error:
            raise Unreachable(str(unusable(self.access.cloud, error))) from None
        except exceptions.ClientException as error:
            raise unusable(self.access.cloud, error) from None

    def _refused(
        self, what: str, response: "Response", whom: Whom = "admin"
    ) -> EnvironmentUnusable:
        """Return the error for a response to somebody; Refused if it is definite (4xx)."""
        hint = ""
        if response.status_code == _FORBIDDEN and whom == "admin":
            hint = (
                f"; {self.access.cloud.lacks_role('to prepare users')}; --users 0 prepares none, "
                "nor does `loadstone run --existing-users FILE`"
            )
        is_definite = _CLIENT_ERROR <= response.status_code < _SERVER_ERROR
        refusal = Refused if is_definite else EnvironmentUnusable
        return refusal(
            f"{self.access.identity_url}: could not {what}: "
            f"HTTP {response.status_code} {_message(response)}{hint}"
        )


def _asked_wait_s(response: "Response") -> float:
    """Return the time after which a rate limiter wants the request again; 0 if it does not say."""
    asked = response.headers.get("Retry-After", "")
    # A date would be compared with this machine's clock.
    return min(float(asked), _LONGEST_WAIT_S) if asked.isdecimal() else 0.0


def is_missing(response: "Response") -> bool:
    """Return whether the service itself answers 404, not a proxy that does not reach it.

    A proxy answers with a page.
    """
    if response.status_code != _GONE:
        return False
    try:
        return not response.content or isinstance(response.json(), dict)
    except ValueError:
        return False


def _is_repeat(response: "Response") -> bool:
    """Return whether the session sent the request again, because a connection was closed."""
    retries = getattr(response.raw, "retries", None)  # only of a real connection
    return retries is not None and bool(retries.history)


def _written(name: str, known: Mapping[str, str]) -> str:
    """Return a role's name as it is written among the known ones; the name itself if none fits."""
    lower = name.lower()
    found = [
        *(one for one in known if one == name),
        *(one for one in known if one.lower() == lower),
        *(one for one in known if one.lower().strip("_") == lower),
    ]
    return found[0] if found else name


def _quoted(name: str | None) -> str:
    """Quote an id or name as one segment of a path."""
    return quote(str(name), safe="")


def _path(thing: Resource) -> str:
    return f"/{thing.kind}s/{_quoted(thing.id)}"


def password_method(user: User) -> dict[str, Any]:
    """Return the part of an "auth" object that identifies a user by its id and password."""
    login = {"user": {"id": user.id, "password": user.password}}
    return {"identity": {"methods": ["password"], "password": login}}


def project_scope(user: User) -> dict[str, Any]:
    """Return the part of an "auth" object that asks for the user's project."""
    return {"scope": {"project": {"id": user.project_id}}}


def _message(response: "Response") -> str:
    """Return Keystone's message, unless it may quote the request (400: bad value in the body)."""
    if response.status_code == 400:
        return response.reason
    try:
        return " ".join(str(response.json()["error"]["message"]).split())[:200]
    except (KeyError, TypeError, ValueError):
        return response.reason
