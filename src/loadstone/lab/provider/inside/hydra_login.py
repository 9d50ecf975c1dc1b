"""Login and consent pages for Ory Hydra, which has none of its own.

Settings are environment variables: PORT, ADMIN_PORT (of Hydra), USERS_FILE, SCRYPT_N (0: passwords
are compared as they are). Both pages follow Hydra's guide, "Custom login and consent flow": look
the request up, accept it, and send the browser to where Hydra says. GET /seen gives what was
accepted and refused, as JSON.
"""

import hashlib
import hmac
import html
import http.client
import json
import os
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

HOST = "127.0.0.1"
COST = int(os.environ.get("SCRYPT_N", "0"))
SALT = bytes(16)
REFRESH_SCOPE = "offline"  # without it Hydra gives no refresh token
HTML = "text/html; charset=utf-8"
ADMIN = "/admin/oauth2/auth/requests"
PAGE = """<p>{message}</p><form method="post" action="/login">
<input type="hidden" name="login_challenge" value="{challenge}">
<input name="username"><input type="password" name="password"><button>Log in</button></form>"""

seen: Counter[str] = Counter()
seen_lock = threading.Lock()
connections = threading.local()


def hashed(password: str) -> bytes:
    """Return what is kept of a password."""
    if not COST:
        return password.encode()
    return hashlib.scrypt(password.encode(), salt=SALT, n=COST, r=8, p=1, maxmem=256 * COST * 8)


with open(os.environ["USERS_FILE"]) as file:
    USERS = {row["username"]: hashed(row["password"]) for row in json.load(file)}


def count(name: str) -> None:
    """Count an event for /seen."""
    with seen_lock:
        seen[name] += 1


def ask_hydra(
    method: str, path: str, body: dict[str, Any] | None = None
) -> tuple[int, dict[str, Any]]:
    """Send a request to Hydra's admin API on this thread's connection; return status and JSON."""
    connection = getattr(connections, "hydra", None)
    if connection is None:
        port = int(os.environ["ADMIN_PORT"])
        connection = connections.hydra = http.client.HTTPConnection(HOST, port, timeout=60)
    text = None if body is None else json.dumps(body)
    try:
        connection.request(method, path, text, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read() or b"{}")
    except (OSError, http.client.HTTPException):
        connection.close()  # the next request opens it again
        raise


class Pages(BaseHTTPRequestHandler):
    """The two pages."""

    protocol_version = "HTTP/1.1"  # haproxy keeps connections
    # Head and body go in one packet: a body of its own would wait for an acknowledgement.
    wbufsize = -1
    disable_nagle_algorithm = True

    def log_message(self, *_: object) -> None:
        """Do not log requests."""

    def do_GET(self) -> None:
        """Show the login page, or accept the consent."""
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if parts.path == "/seen":
            with seen_lock:
                self.answer(200, json.dumps(seen), "application/json")
        elif parts.path == "/login" and "login_challenge" in query:
            self.login_page(query["login_challenge"])
        elif parts.path == "/consent" and "consent_challenge" in query:
            self.consent(query["consent_challenge"])
        else:
            self.answer(404, "There is no such page.")

    def do_POST(self) -> None:
        """Check name and password."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        form = {name: values[0] for name, values in parse_qs(body).items()}
        challenge, name = form.get("login_challenge", ""), form.get("username", "")
        given = hashed(form.get("password", ""))  # also for unknown names, as long
        if not hmac.compare_digest(given, USERS.get(name, b"")) or name not in USERS:
            count("wrong_password")
            self.show_form(challenge, "Wrong name or password.")
            return
        self.accept("login", challenge, {"subject": name})

    def login_page(self, challenge: str) -> None:
        """Show the form, unless Hydra knows the browser."""
        status, request = ask_hydra("GET", f"{ADMIN}/login?login_challenge={quote(challenge)}")
        if status != 200:
            self.answer(400, f"Hydra does not know this login: {request.get('error', status)}")
        elif request["skip"]:
            self.accept("login", challenge, {"subject": request["subject"]})
        else:
            self.show_form(challenge, "")

    def consent(self, challenge: str) -> None:
        """Grant what is asked."""
        status, request = ask_hydra("GET", f"{ADMIN}/consent?consent_challenge={quote(challenge)}")
        if status != 200:
            self.answer(400, f"Hydra does not know this consent: {request.get('error', status)}")
            return
        scopes = [*request["requested_scope"], REFRESH_SCOPE]
        self.accept("consent", challenge, {"grant_scope": scopes})

    def accept(self, kind: str, challenge: str, body: dict[str, Any]) -> None:
        """Accept a login or a consent, and send the browser where Hydra says."""
        path = f"{ADMIN}/{kind}/accept?{kind}_challenge={quote(challenge)}"
        status, answer = ask_hydra("PUT", path, body)
        if status != 200:
            self.answer(400, f"Hydra does not accept the {kind}: {answer.get('error', status)}")
            return
        count(kind)
        self.answer(302, "", location=answer["redirect_to"])

    def show_form(self, challenge: str, message: str) -> None:
        """Send the login form."""
        self.answer(200, PAGE.format(message=message, challenge=html.escape(challenge)))

    def answer(self, status: int, text: str, kind: str = HTML, location: str | None = None) -> None:
        """Send one answer."""
        body = html.escape(text).encode() if status >= 400 else text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if location is not None:
            self.send_header("Location", location)
        self.end_headers()
        self.wfile.write(body)


ThreadingHTTPServer.request_queue_size = 1024
ThreadingHTTPServer((HOST, int(os.environ["PORT"])), Pages).serve_forever()
