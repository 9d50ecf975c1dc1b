"""The reference service answers as a real Keystone does: status, shape of the JSON, headers."""

import uuid

import pytest
import requests
from command_line import PASSWORD
from known_service import serving

pytestmark = pytest.mark.live

HEADERS = ("Content-Type", "Vary", "WWW-Authenticate", "X-Subject-Token")
# Differ within one Keystone, too, by who made the thing.
IGNORED = {"description", "options"}


def shape(value):
    """Keys and types, without what differs from one answer to the next."""
    if isinstance(value, dict):
        return {key: shape(inner) for key, inner in value.items() if key not in IGNORED}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return type(value).__name__


class Conversation:
    """The same requests to any Identity service; what is compared of each answer is kept."""

    def __init__(self, url, password):
        self.url = url
        self.password = password
        self.session = requests.Session()
        self.seen = {}
        self.token = self.unscoped = ""

    def ask(self, what, method, path, body=None, **headers):
        answer = self.session.request(
            method,
            self.url + path,
            json=body,
            headers={name.replace("_", "-"): value for name, value in headers.items()},
            timeout=30,
        )
        is_json = answer.text and "json" in answer.headers["Content-Type"]
        said = answer.json() if is_json else None
        self.seen[what] = (
            answer.status_code,
            shape(said),
            [name for name in HEADERS if name in answer.headers],
            said["error"]["title"] if said and "error" in said else None,
        )
        return answer

    def log_in(self, what, scope, user="admin", password=None):
        domain = {"id": "default"}
        given = {"name": user, "domain": domain, "password": password or self.password}
        auth = {"identity": {"methods": ["password"], "password": {"user": given}}}
        if scope:
            auth["scope"] = scope
        return self.ask(what, "POST", "/auth/tokens", {"auth": auth})

    def hold(self):
        self.discover()
        self.issue()
        self.use_tokens()
        self.manage()
        self.session.close()
        return self.seen

    def discover(self):
        self.ask("version", "GET", "")
        self.ask("versions", "GET", "/..")

    def issue(self):
        project = {"project": {"name": "admin", "domain": {"id": "default"}}}
        self.token = self.log_in("project", project).headers["X-Subject-Token"]
        self.unscoped = self.log_in("unscoped", None).headers["X-Subject-Token"]
        self.log_in("unscoped on request", "unscoped")
        self.log_in("wrong password", None, password="wrong")
        self.log_in("wrong user", None, user="nobody")
        self.log_in("wrong project", {"project": {"id": uuid.uuid4().hex}})
        self.log_in("wrong domain", {"domain": {"id": uuid.uuid4().hex}})
        by_token = {"methods": ["token"], "token": {"id": self.unscoped}}
        self.ask(
            "rescope", "POST", "/auth/tokens", {"auth": {"identity": by_token, "scope": project}}
        )
        self.ask("no auth", "POST", "/auth/tokens", {})
        self.ask("no identity", "POST", "/auth/tokens", {"auth": {}})

    def use_tokens(self):
        me = {"X_Auth_Token": self.token}
        about = {**me, "X_Subject_Token": self.unscoped}
        self.ask("validate", "GET", "/auth/tokens", **me, X_Subject_Token=self.token)
        self.ask(
            "validate, no catalog",
            "GET",
            "/auth/tokens?nocatalog",
            **me,
            X_Subject_Token=self.token,
        )
        self.ask("validate unscoped", "GET", "/auth/tokens", **about)
        self.ask("check", "HEAD", "/auth/tokens", **about)
        self.ask("no token", "GET", "/auth/tokens")
        self.ask("unknown token", "GET", "/auth/tokens", **me, X_Subject_Token="unknown")
        self.ask("unknown own token", "GET", "/auth/tokens", X_Auth_Token="unknown")
        self.ask("catalog", "GET", "/auth/catalog", **me)
        self.ask("own projects", "GET", "/auth/projects", **me)
        self.ask("own domains", "GET", "/auth/domains", **me)
        self.ask("revoke", "DELETE", "/auth/tokens", **about)
        self.ask("revoked", "GET", "/auth/tokens", **about)
        self.ask("revoke again", "DELETE", "/auth/tokens", **about)

    def manage(self):
        me = {"X_Auth_Token": self.token}
        ids = {}
        for kind in ("domain", "project", "user", "role"):
            place = {"domain_id": ids["domain"]} if kind in ("project", "user") else {}
            secret = {"password": PASSWORD} if kind == "user" else {}
            body = {kind: {"name": f"of-{kind}", **place, **secret}}
            made = self.ask(f"create {kind}", "POST", f"/{kind}s", body, **me)
            ids[kind] = made.json()[kind]["id"]
            where = f"/{kind}s/{ids[kind]}"
            self.ask(f"create {kind} twice", "POST", f"/{kind}s", body, **me)
            self.ask(f"create nameless {kind}", "POST", f"/{kind}s", {kind: {}}, **me)
            self.ask(f"show {kind}", "GET", where, **me)
            self.ask(f"show no {kind}", "GET", where + "0", **me)
            self.ask(f"find {kind}", "GET", f"/{kind}s?name=of-{kind}", **me)
            self.ask(f"find no {kind}", "GET", f"/{kind}s?name=nobody", **me)
            self.ask(f"list {kind}", "GET", f"/{kind}s", **me)
            self.ask(f"update {kind}", "PATCH", where, {kind: {"name": f"my-{kind}"}}, **me)
            self.ask(f"list {kind} as nobody", "GET", f"/{kind}s")
        self.ask("list groups", "GET", "/groups", **me)
        self.grant(ids, me)
        self.remove(ids, me)

    def grant(self, ids, me):
        grant = f"/projects/{ids['project']}/users/{ids['user']}/roles"
        self.ask("grant", "PUT", f"{grant}/{ids['role']}", **me)
        self.ask("check grant", "HEAD", f"{grant}/{ids['role']}", **me)
        self.ask("list grants", "GET", grant, **me)
        self.ask("assignments", "GET", f"/role_assignments?user.id={ids['user']}", **me)
        self.ask("projects of a user", "GET", f"/users/{ids['user']}/projects", **me)
        self.as_member(ids)
        self.ask("take grant", "DELETE", f"{grant}/{ids['role']}", **me)
        self.ask("take grant again", "DELETE", f"{grant}/{ids['role']}", **me)

    def remove(self, ids, me):
        self.ask("remove enabled domain", "DELETE", f"/domains/{ids['domain']}", **me)
        off = {"domain": {"enabled": False}}
        self.ask("disable domain", "PATCH", f"/domains/{ids['domain']}", off, **me)
        for kind in ("role", "user", "project", "domain"):
            self.ask(f"remove {kind}", "DELETE", f"/{kind}s/{ids[kind]}", **me)
            self.ask(f"remove {kind} again", "DELETE", f"/{kind}s/{ids[kind]}", **me)

    def as_member(self, ids):
        given = {"id": ids["user"], "password": PASSWORD}
        identity = {"methods": ["password"], "password": {"user": given}}
        scope = {"project": {"id": ids["project"]}}
        auth = {"auth": {"identity": identity, "scope": scope}}
        answer = self.ask("log in as member", "POST", "/auth/tokens", auth)
        member = {"X_Auth_Token": answer.headers["X-Subject-Token"]}
        self.ask("member makes a user", "POST", "/users", {"user": {"name": "x"}}, **member)
        self.ask("member lists users", "GET", "/users", **member)
        self.ask("member shows itself", "GET", f"/users/{ids['user']}", **member)
        about = {**member, "X_Subject_Token": self.token}
        self.ask("member validates another's token", "GET", "/auth/tokens", **about)
        change = {"user": {"password": "other", "original_password": "wrong"}}
        self.ask("wrong old password", "POST", f"/users/{ids['user']}/password", change)


def test_the_reference_service_answers_as_keystone_does(exclusive_keystone):
    variables = exclusive_keystone.environment_variables()
    real = Conversation(variables["OS_AUTH_URL"], variables["OS_PASSWORD"]).hold()
    with serving() as (port, _):
        ours = Conversation(f"http://127.0.0.1:{port}/v3", PASSWORD).hold()
    assert len(real) > 70
    differing = {what: (real[what], ours[what]) for what in real if real[what] != ours[what]}
    assert differing == {}
