"""HttpRequests: one request to any URL (rally 5.1.1), or a random one of several."""

import base64
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from urllib.parse import quote, urlencode, urlsplit

from loadstone.errors import InvalidInput
from loadstone.keystone.scenarios.model import Scenario
from loadstone.plan.json_value import Json
from loadstone.plan.model import Origin, Tls
from loadstone.plan.script import Column, Step, Template, Text

ACTION = "requests.check_request"
_DRAWS = 1024  # number of iterations after which the random choice repeats
_KNOWN = ("url", "method", "headers", "json", "data", "params", "auth", "verify")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110, section 5.6.2
_NOT_OF_VALUE = re.compile(r"[\0-\x08\n-\x1f\x7f]")  # RFC 9110, section 5.5
_OWN_HEADERS = ("content-length", "transfer-encoding")
LEAST_STATUS, MOST_STATUS = 200, 999  # of a final response; 999 is the highest of three digits
_BARE_PERCENT = re.compile("%(?![0-9A-Fa-f]{2})")  # begins no escape
# Arguments of requests.request that do not change the request.
_WITHOUT_EFFECT = ("allow_redirects", "stream")


@dataclass(frozen=True, slots=True)
class _Request:
    origin: Origin
    method: str
    path: str
    headers: Mapping[str, str] = field(repr=False)
    body: str = field(repr=False)
    status: int


def is_token(text: str) -> bool:
    """Return whether this can be a method or the name of a header."""
    return _TOKEN.fullmatch(text) is not None


def unsendable(header: str) -> str:
    """Return why the engine does not send a header of this name; empty if it does."""
    if not is_token(header):
        return "is not the name of a header, such as X-Request-Id"
    if header.lower() in _OWN_HEADERS:
        return "is written by the load generator; leave it out"
    return ""


def check_request(arguments: Mapping[str, Json]) -> Scenario:
    """Send one request without following redirects."""
    return _scenario("HttpRequests.check_request", (_request(arguments),))


def check_random_request(arguments: Mapping[str, Json]) -> Scenario:
    """Send one of several requests, with the same choice in every run."""
    entries = arguments["requests"]
    entries = entries if isinstance(entries, Sequence) else ()
    status = {"status_code": arguments["status_code"]}  # of those that give none
    requests = tuple(_request({**status, **one}) for one in entries if isinstance(one, Mapping))
    if not requests:
        raise InvalidInput("HttpRequests.check_random_request: requests: at least one is needed")
    kinds = {
        (one.origin, one.method, tuple(one.headers), bool(one.body), one.status) for one in requests
    }
    if len(kinds) > 1:
        raise InvalidInput(
            "HttpRequests.check_random_request: requests: all must have the same scheme, host, "
            "port, method, names of headers and status_code, and all or none a body"
        )
    draw = Random(0)  # noqa: S311  no secret
    drawn = tuple(draw.choice(requests) for _ in range(_DRAWS))
    name = "HttpRequests.check_random_request"
    return _scenario(name, requests if len(requests) == 1 else drawn)


def _scenario(name: str, requests: Sequence[_Request]) -> Scenario:
    first = requests[0]
    # Columns, because what a file sends to its own service may be secret: plans are stored without.
    values = {"path": tuple(one.path.removeprefix("/") for one in requests)}
    headers: list[tuple[str, Template]] = []
    for number, header in enumerate(first.headers):
        values[f"header_{number}"] = tuple(one.headers[header] for one in requests)
        headers.append((header, (Column(f"header_{number}"),)))
    if first.body:
        values["body"] = tuple(one.body for one in requests)
    step = Step(
        ACTION,
        first.method,
        (Text("/"), Column("path")),
        tuple(headers),
        body=(Column("body"),) if first.body else (),
        expect_status=(first.status,),
    )
    request_text = f"{first.method} {first.origin.url}"
    return Scenario(name, "HTTP request", request_text, (step,), values, origin=first.origin)


def _request(arguments: Mapping[str, Json]) -> _Request:
    known = (*_KNOWN, *_WITHOUT_EFFECT, "status_code")
    for key in arguments:
        if key == "timeout":
            raise InvalidInput(
                f"{ACTION}: timeout: requests have no time-out of their own; give the runner one"
            )
        if key not in known:
            raise InvalidInput(f"{ACTION}: {key}: not known; what is known is {', '.join(_KNOWN)}")
    parts = urlsplit(str(arguments.get("url")))
    status = arguments["status_code"]
    if not isinstance(status, int) or isinstance(status, bool):
        raise InvalidInput(f"{ACTION}: status_code: must be a whole number")
    if not LEAST_STATUS <= status <= MOST_STATUS:
        raise InvalidInput(
            f"{ACTION}: status_code: must be from {LEAST_STATUS} to {MOST_STATUS}, not {status}"
        )
    method = arguments.get("method", "GET")
    if not isinstance(method, str) or not is_token(method):
        raise InvalidInput(f"{ACTION}: method: {method!r} is not an HTTP method, such as GET")
    body, kind = _body(arguments)
    params = _form(_mapping(arguments, "params"))
    query = "&".join(part for part in (_quoted(parts.query), params) if part)
    verify = arguments.get("verify")
    ca_file = verify if isinstance(verify, str) else None
    return _Request(
        Origin(
            "https" if parts.scheme == "https" else "http",
            parts.hostname or "",  # checked by the task's form
            parts.port or (443 if parts.scheme == "https" else 80),
            Tls(verify=verify is None or bool(verify), ca_file=ca_file),
        ),
        method.upper(),
        _quoted(parts.path or "/") + (f"?{query}" if query else ""),
        _headers(arguments, kind),
        body,
        status,
    )


def _headers(arguments: Mapping[str, Json], content_type: str) -> dict[str, str]:
    """Return the headers; of names that differ only in case, the last."""
    given = _mapping(arguments, "headers").items()
    headers = {
        str(name).lower(): (str(name), str(value)) for name, value in given if value is not None
    }
    if content_type:
        headers.setdefault("content-type", ("Content-Type", content_type))
    if auth := arguments.get("auth"):
        if isinstance(auth, str) or not isinstance(auth, Sequence) or len(auth) != 2:
            raise InvalidInput(f"{ACTION}: auth: must be a list of user and password")
        pair = base64.b64encode(":".join(map(str, auth)).encode())
        headers["authorization"] = ("Authorization", f"Basic {pair.decode()}")
    for name, value in headers.values():
        if why := unsendable(name):
            raise InvalidInput(f"{ACTION}: headers: {name!r} {why}")
        if _NOT_OF_VALUE.search(value):  # not repeated: it may be a secret
            raise InvalidInput(f"{ACTION}: headers: the value of {name!r} must be one line of text")
    return dict(headers.values())


def _quoted(part: str) -> str:
    """Escape what no URL may hold, and leave the rest as it is, as requests does."""
    return quote(_BARE_PERCENT.sub("%25", part), safe="!$%&'()*+,/:;=?@~")


def _body(arguments: Mapping[str, Json]) -> tuple[str, str]:
    """Return the body and its content type, as requests builds them from `json` and `data`."""
    data = arguments.get("data")
    if not data and arguments.get("json") is not None:
        return json.dumps(arguments["json"]), "application/json"
    if data and isinstance(data, Mapping):
        return _form(data), "application/x-www-form-urlencoded"
    if data and not isinstance(data, str):
        raise InvalidInput(f"{ACTION}: data: must be text or a mapping of fields")
    return (data, "") if isinstance(data, str) else ("", "")


def _form(fields: Mapping[str, Json]) -> str:
    """Encode fields as requests does, which leaves out those that are null."""
    pairs: list[tuple[str, Json]] = []
    for name, value in fields.items():
        if isinstance(value, Sequence | Mapping) and not isinstance(value, str):
            pairs += [(name, one) for one in value if one is not None]
        elif value is not None:
            pairs.append((name, value))
    return urlencode(pairs, doseq=True)


def _mapping(arguments: Mapping[str, Json], key: str) -> Mapping[str, Json]:
    value = arguments.get(key)
    if value is not None and not isinstance(value, Mapping):
        raise InvalidInput(f"{ACTION}: {key}: must be a mapping")
    return value or {}
