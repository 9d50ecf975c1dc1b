"""A Keystone as far as preparation and clean-up need one, which can be told to fail."""

import re
import threading
import uuid
from collections import Counter
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, unquote, urlsplit

from fake_server import handled

PASSWORD = "admin's own"
PLURAL = {
    "domains": "domain",
    "groups": "group",
    "projects": "project",
    "services": "service",
    "users": "user",
}


def matches(thing, key, value):
    field, _, how = key.partition("__")
    if how == "startswith":
        return str(thing.get(field)).startswith(value)
    return thing.get(key) == value


def keeping_the_first_domain():
    """Return a `disturb` that refuses to remove the first domain that anyone removes."""
    removed = []

    def disturb(method, path):
        if method == "DELETE" and path.startswith("/v3/domains/"):
            removed.append(path)
            return 403 if path == removed[0] else None
        return None

    return disturb


class FakeKeystone:
    """State, and a `disturb(method, path)` that stands before every call.

    It returns a status, a status and a body, or None.
    """

    def __init__(self):
        self.things = {plural: {} for plural in PLURAL}
        self.grants = set()
        self.tokens = {}
        self.domain_scopes = {}  # of tokens for a domain: its id
        self.calls = Counter()
        self.bodies = []
        self.token_life_s = 3600
        self.roles = {"r-admin": "admin", "r-member": "member", "r-reader": "reader"}
        self.token_roles = ["admin"]
        self.catalog = []
        self.disturb = lambda _method, _path: None
        self.after = lambda _method, _path: None
        self.page = None  # how many of a list are shown at once
        self.lock = threading.Lock()
        self.prefix = ""
        self.most_at_once = 0
        self.at_once = 0
        self.idle = threading.Event()  # no call is being carried out

    def names(self, plural):
        return sorted(thing["name"] for thing in self.things[plural].values())

    def add(self, plural, name, **attributes):
        made = {"id": uuid.uuid4().hex, "name": name} | attributes
        self.things[plural][made["id"]] = made
        return made

    def handler(self):
        return handled(self.serve)

    def serve(self, request):
        url = urlsplit(request.path)
        body = request.json()
        with self.lock:
            self.calls[request.command, re.sub(r"[0-9a-f]{32}", "ID", url.path)] += 1
            self.bodies.append(body)
            self.at_once += 1
            self.idle.clear()
            self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            status = self.disturb(request.command, url.path)
            if status is None:
                with self.lock:
                    done = self.carry_out(request, url, body)
                status = self.after(request.command, url.path)
            if isinstance(status, tuple):
                done = status
            elif status is not None:
                done = (status, {"error": {"code": status, "message": "as told"}})
            if status == 0:
                request.close_connection = True
                return
            request.answer(*done)
        finally:
            with self.lock:
                self.at_once -= 1
                if self.at_once == 0:
                    self.idle.set()

    def carry_out(self, request, url, body):
        path = url.path.removeprefix(self.prefix)
        match [request.command, *path.strip("/").split("/")]:
            case ["GET", ""] | ["GET", "v3"]:
                base = f"http://{request.headers['Host']}{self.prefix}/v3/"
                version = {
                    "id": "v3.14",
                    "status": "stable",
                    "links": [{"rel": "self", "href": base}],
                }
                if path.strip("/") == "v3":
                    return 200, {"version": version}
                return 300, {"versions": {"values": [version]}}
            case ["POST", "v3", "auth", "tokens"]:
                return self.issue(body)
        if request.headers.get("X-Auth-Token") not in self.tokens:
            return 401, {"error": {"code": 401, "message": "no"}}
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        segments = [unquote(segment) for segment in path.strip("/").split("/")[1:]]
        return self.serve_admin(request, segments, query, body)

    def serve_admin(self, request, path, query, body):
        done = 404, None
        match [request.command, *path]:
            case ["GET", "auth", "tokens"] if request.headers["X-Subject-Token"] in self.tokens:
                done = 200, {"token": {}}
            case ["GET", "roles"]:
                roles = [{"id": i, "name": n} for i, n in self.roles.items()]
                name = query.get("name")
                named = [role for role in roles if name in (None, role["name"])]
                done = 200, {"roles": named[: self.page]}
            case ["GET", plural] if plural in self.things:
                done = 200, {plural: self.listed(request.headers["X-Auth-Token"], plural, query)}
            case ["GET", plural, identity] if identity in self.things.get(plural, {}):
                done = 200, {PLURAL[plural]: self.things[plural][identity]}
            case ["POST", "credentials"]:
                done = 201, {"credential": {"id": uuid.uuid4().hex}}
            case ["POST", plural]:
                done = self.make(plural, body[PLURAL[plural]])
            case ["PUT", *place, "users", user, "roles", role]:
                self.grants.add((place[-1], user, role))
                done = 204, None
            case ["POST", _, "trusts"] | ["POST", "users", _, *_]:
                done = 201, self.credential(path[-1], body)
            case [("PATCH" | "DELETE") as method, plural, identity]:
                done = self.change(method, plural, identity, body)
        return done

    def listed(self, token, plural, query):
        """Return a page of what the query matches; a token of a domain sees what is in it."""
        only = self.domain_scopes.get(token)
        found = [
            thing
            for thing in self.things[plural].values()
            if all(matches(thing, key, value) for key, value in query.items())
            and only in (None, thing["id"], thing.get("domain_id"))
        ]
        return found[: self.page]

    def credential(self, kind, body):
        match kind:
            case "trusts":
                return {"trust": {"id": uuid.uuid4().hex}}
            case "OS-EC2":
                return {"credential": {"access": "an access key", "secret": "its secret"}}
            case _:
                name = body["application_credential"]["name"]
                return {"application_credential": {"id": name, "secret": "its secret"}}

    def make(self, plural, wanted):
        if any(
            (thing["name"], thing.get("domain_id")) == (wanted["name"], wanted.get("domain_id"))
            for thing in self.things[plural].values()
        ):
            return 409, {"error": {"code": 409, "message": "Duplicate entry"}}
        return 201, {PLURAL[plural]: self.add(plural, **wanted)}

    def change(self, method, plural, identity, body):
        if identity not in self.things[plural]:
            return 404, None
        thing = self.things[plural][identity]
        if method == "PATCH":
            thing.update(body[PLURAL[plural]])
            return 200, {PLURAL[plural]: thing}
        if plural == "domains":
            if thing.get("enabled", True):
                return 403, {"error": {"code": 403, "message": "Cannot delete an enabled domain"}}
            for kind in ("users", "projects"):
                inside = [i for i, t in self.things[kind].items() if t["domain_id"] == identity]
                for i in inside:
                    del self.things[kind][i]
        if any(other.get("parent_id") == identity for other in self.things[plural].values()):
            return 403, {"error": {"code": 403, "message": "it is not a leaf in the hierarchy"}}
        del self.things[plural][identity]
        return 204, None

    def issue(self, body):
        identity = body["auth"]["identity"]
        if identity["methods"] == ["application_credential"]:
            return self.token(identity["application_credential"], ())
        given = identity["password"]["user"]
        known = [
            thing["password"]
            for thing in self.things["users"].values()
            if (thing["id"] == given.get("id") or thing["name"] == given.get("name"))
            and not thing.get("options", {}).get("multi_factor_auth_enabled")
        ]
        if given.get("name") == "admin":
            known = [PASSWORD]
        if given["password"] not in known:
            return 401, {"error": {"code": 401, "message": "The request requires authentication."}}
        return self.token(given, body["auth"].get("scope", {}))

    def token(self, given, scope):
        token = uuid.uuid4().hex
        self.tokens[token] = given
        expires = datetime.now(UTC) + timedelta(seconds=self.token_life_s)
        value = {"expires_at": f"{expires:%Y-%m-%dT%H:%M:%S.%fZ}", "methods": ["password"]}
        domain = {"id": "default", "name": "Default"}
        user = {"id": "u-admin"} | given | {"domain": domain}
        value |= {"user": user, "catalog": self.catalog, "issued_at": value["expires_at"]}
        value["roles"] = [{"id": f"r-{name}", "name": name} for name in self.token_roles]
        if "domain" in scope:
            value["domain"] = domain
            self.domain_scopes[token] = domain["id"]
        if "project" in scope:
            value["project"] = {"id": "p-admin", "name": "admin", "domain": domain}
        return 201, {"token": value}, (("X-Subject-Token", token),)
