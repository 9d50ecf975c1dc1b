"""A Keystone as far as preparation and clean-up need one, which can be told to fail."""

import json
import re
import socket
import threading
import uuid
from collections import Counter
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

PASSWORD = "admin's own"
PLURAL = {
    "domains": "domain",
    "groups": "group",
    "projects": "project",
    "services": "service",
    "users": "user",
}


class Server(ThreadingHTTPServer):
    """Ends at once: connections that clients keep open are hung up."""

    daemon_threads = False

    def __init__(self, handler, tls):
        super().__init__(("127.0.0.1", 0), handler)
        self.tls = tls
        self.accepted = []

    def get_request(self):
        accepted, address = super().get_request()
        if self.tls is not None:
            # Hands are shaken in the connection's own thread, when it is first read.
            accepted = self.tls.wrap_socket(
                accepted, server_side=True, do_handshake_on_connect=False
            )
        self.accepted.append(accepted)
        return accepted, address

    def server_close(self):
        for accepted in self.accepted:
            with suppress(OSError):
                accepted.shutdown(socket.SHUT_RDWR)
        super().server_close()


@contextmanager
def serving(handler, tls=None):
    """Serve on a free port of 127.0.0.1; gives the URL without a path."""
    server = Server(handler, tls)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"{'https' if tls else 'http'}://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Quiet(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # one segment an answer, else each waits for a delayed ACK

    def log_message(self, *_):
        pass

    def handle(self):
        # A client may hang up, or speak no TLS.
        with suppress(OSError):
            super().handle()

    def answer(self, status, value=None, headers=()):
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        body = b"" if value is None else body
        self.send_response(status)
        for name, text in (("Content-Type", "application/json"), *headers):
            self.send_header(name, text)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def answering(status, body=b""):
    """Make a handler that always gives this answer."""

    class Fixed(Quiet):
        def __getattr__(self, name):
            if name.startswith("do_"):
                return lambda: self.answer(status, body)
            raise AttributeError(name)

    return Fixed


def handled(serve):
    """Make a handler that gives each request to a function."""

    class Handled(Quiet):
        def __getattr__(self, name):
            if name.startswith("do_"):
                return lambda: serve(self)
            raise AttributeError(name)

    return Handled


def matches(thing, key, value):
    field, _, how = key.partition("__")
    if how == "startswith":
        return str(thing.get(field)).startswith(value)
    return thing.get(key) == value


class FakeKeystone:
    """State, and a `disturb(method, path) -> status | None` that stands before every call."""

    def __init__(self):
        self.things = {plural: {} for plural in PLURAL}
        self.grants = set()
        self.tokens = {}
        self.calls = Counter()
        self.bodies = []
        self.token_life_s = 3600
        self.roles = {"r-admin": "admin", "r-member": "member", "r-reader": "reader"}
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
        fake = self

        class Handler(Quiet):
            def __getattr__(self, name):
                if name.startswith("do_"):
                    return lambda: fake.serve(self)
                raise AttributeError(name)

        return Handler

    def serve(self, request):
        url = urlsplit(request.path)
        length = int(request.headers.get("Content-Length") or 0)
        sent = request.rfile.read(length) if length else b""
        if len(sent) < length:  # a client that was killed while it sent
            raise ConnectionError("the request has no end")
        body = json.loads(sent) if sent else None
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
            if status is not None:
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
                done = 200, {"roles": [{"id": i, "name": n} for i, n in self.roles.items()]}
            case ["GET", plural] if plural in self.things:
                found = [
                    thing
                    for thing in self.things[plural].values()
                    if all(matches(thing, key, value) for key, value in query.items())
                ]
                done = 200, {plural: found[: self.page]}
            case ["GET", plural, identity] if identity in self.things.get(plural, {}):
                done = 200, {PLURAL[plural]: self.things[plural][identity]}
            case ["POST", plural]:
                done = self.make(plural, body[PLURAL[plural]])
            case ["PUT", "projects", project, "users", user, "roles", role]:
                self.grants.add((project, user, role))
                done = 204, None
            case ["POST", "users", _, "application_credentials"]:
                name = body["application_credential"]["name"]
                done = 201, {"application_credential": {"id": name, "secret": "its secret"}}
            case [("PATCH" | "DELETE") as method, plural, identity]:
                done = self.change(method, plural, identity, body)
        return done

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
        del self.things[plural][identity]
        return 204, None

    def issue(self, body):
        given = body["auth"]["identity"]["password"]["user"]
        known = [
            thing["password"]
            for thing in self.things["users"].values()
            if thing["id"] == given.get("id") or thing["name"] == given.get("name")
        ]
        if given.get("name") == "admin":
            known = [PASSWORD]
        if given["password"] not in known:
            return 401, {"error": {"code": 401, "message": "The request requires authentication."}}
        token = uuid.uuid4().hex
        self.tokens[token] = given
        expires = datetime.now(UTC) + timedelta(seconds=self.token_life_s)
        value = {"expires_at": f"{expires:%Y-%m-%dT%H:%M:%S.%fZ}", "methods": ["password"]}
        domain = {"id": "default", "name": "Default"}
        user = {"id": "u-admin"} | given | {"domain": domain}
        value |= {"user": user, "catalog": [], "issued_at": value["expires_at"]}
        if "project" in body["auth"].get("scope", {}):
            value["project"] = {"id": "p-admin", "name": "admin", "domain": domain}
        return 201, {"token": value}, (("X-Subject-Token", token),)
