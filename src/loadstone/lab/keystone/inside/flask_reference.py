"""A plain token service in Flask, with its tokens in memory: the control of a Keystone in the lab.

It does for a login what any service must: parse the request, compare the password, make a token,
remember it, answer with user, roles and catalog. There is no database, no password hash, and no
encryption. Each worker process remembers the tokens that it issued itself.
"""

import hmac
import os
import sys
import uuid
from collections import OrderedDict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from flask import Flask, Response, jsonify, request  # type: ignore[import-not-found]

LIFETIME = timedelta(hours=1)
MOST_TOKENS = 1_000_000  # of a process; the oldest go first
PASSWORD = Path(os.environ["LOADSTONE_PASSWORD_FILE"]).read_text(encoding="utf-8")
URL = os.environ["LOADSTONE_URL"]
DOMAIN = {"id": "default", "name": "Default"}
USER = {"id": "admin", "name": "admin", "domain": DOMAIN, "password_expires_at": None}
PROJECT = {"id": "admin", "name": "admin", "domain": DOMAIN}
ROLES = [{"id": "admin", "name": "admin"}]
ENDPOINTS = [
    {"id": name, "interface": name, "region": "RegionOne", "region_id": "RegionOne", "url": URL}
    for name in ("public", "internal", "admin")
]
CATALOG = [{"id": "identity", "type": "identity", "name": "keystone", "endpoints": ENDPOINTS}]
VERSION = {"id": "v3.14", "status": "stable", "links": [{"rel": "self", "href": f"{URL}/"}]}

application = Flask("flask_reference")
tokens: OrderedDict[str, dict[str, Any]] = OrderedDict()


def refused(code: int, title: str) -> tuple[Response, int]:
    """Return an error in Keystone's form."""
    return jsonify({"error": {"code": code, "title": title, "message": title}}), code


def holds(method: dict[str, Any]) -> bool:
    """Return whether name and password are the administrator's."""
    user = method.get("user", {})
    is_known = USER["name"] in (user.get("name"), user.get("id"))
    return is_known and hmac.compare_digest(str(user.get("password", "")), PASSWORD)


def versions() -> tuple[Response, int]:
    """List the versions."""
    return jsonify({"versions": {"values": [VERSION]}}), 300


def version() -> Response:
    """Describe the version."""
    return jsonify({"version": VERSION})


def issue() -> tuple[Response, int] | tuple[Response, int, dict[str, str]]:
    """Issue a token for a password."""
    identity = (request.get_json(silent=True) or {}).get("auth", {}).get("identity", {})
    if not holds(identity.get("password", {})):
        return refused(401, "Unauthorized")
    now = datetime.now(UTC)
    token = uuid.uuid4().hex
    body = {
        "methods": ["password"],
        "user": USER,
        "audit_ids": [uuid.uuid4().hex],
        "issued_at": now.strftime("%Y-%m-%dT%H:%M:%S.000000Z"),
        "expires_at": (now + LIFETIME).strftime("%Y-%m-%dT%H:%M:%S.000000Z"),
        "project": PROJECT,
        "is_domain": False,
        "roles": ROLES,
        "catalog": CATALOG,
    }
    tokens[token] = body
    if len(tokens) > MOST_TOKENS:
        tokens.popitem(last=False)
    return jsonify({"token": body}), 201, {"X-Subject-Token": token}


def validate() -> Response | tuple[Response, int]:
    """Show a token that this process issued."""
    if request.headers.get("X-Auth-Token") not in tokens:
        return refused(401, "Unauthorized")
    body = tokens.get(request.headers.get("X-Subject-Token", ""))
    return refused(404, "Not Found") if body is None else jsonify({"token": body})


def absent(_: Exception) -> tuple[Response, int]:
    """Say what there is."""
    return refused(404, "this service only issues and validates tokens: measure with --users 0")


application.add_url_rule("/", view_func=versions)
application.add_url_rule("/v3", view_func=version, strict_slashes=False)
application.add_url_rule("/v3/auth/tokens", view_func=issue, methods=["POST"])
application.add_url_rule("/v3/auth/tokens", view_func=validate, methods=["GET"])
for status in (404, 405):
    application.register_error_handler(status, absent)
# Goes to the web server's log, where the lab counts the loaded processes.
print(os.environ["LOADSTONE_LOADED"], file=sys.stderr, flush=True)
