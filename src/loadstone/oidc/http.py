"""Single requests to a provider, for discovery and preparation; load does not use it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import urlsplit

from loadstone.cloud.authorities import system_authorities
from loadstone.cloud.body import BodyTooLong
from loadstone.cloud.cloud import Endpoint
from loadstone.errors import EnvironmentUnusable
from loadstone.plan.model import Tls
from loadstone.system.http_date import own_date
from loadstone.system.say import Say


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """An answer of the provider, read to its end."""

    status: int
    text: str = field(repr=False)
    location: str = field(default="", repr=False)
    set_cookies: tuple[str, ...] = field(default=(), repr=False)
    date: str = ""  # as the header has it; empty if a cache kept the answer

    @property
    def json(self) -> Mapping[str, Any]:
        """The JSON object of the body; an empty one if it is none."""
        try:
            value = json.loads(self.text)
        except (ValueError, RecursionError):
            return {}
        return value if isinstance(value, dict) else {}

    @property
    def error(self) -> str:
        """What the answer says went wrong, in a few words."""
        said = self.json
        words = [str(said[key]) for key in ("error", "error_description") if said.get(key)]
        return f"HTTP {self.status}: {': '.join(words)}" if words else f"HTTP {self.status}"


class Http:
    """HTTP to one origin, without redirects, proxies, cookies or a netrc file.

    `say` reports every few seconds which response is pending.
    """

    def __init__(self, endpoint: Endpoint, tls: Tls, say: Say, *, loopback_only: bool) -> None:
        import requests

        from loadstone.cloud.session import BoundedAdapter

        self._base = Endpoint(endpoint.scheme, endpoint.host, endpoint.port, "").url
        self._session = requests.Session()
        self._session.trust_env = False
        self._session.verify = tls.ca_file or (tls.verify and system_authorities())
        for scheme in ("http://", "https://"):
            self._session.mount(scheme, BoundedAdapter(say, loopback_only=loopback_only))

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> HttpAnswer:
        """Send GET to a path with its query."""
        return self._send("GET", path, headers or {}, None)

    def post(self, path: str, body: str, headers: Mapping[str, str] | None = None) -> HttpAnswer:
        """Post a form, encoded already."""
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        return self._send("POST", path, form | dict(headers or {}), body)

    def _send(
        self, method: str, path: str, headers: Mapping[str, str], body: str | None
    ) -> HttpAnswer:
        import requests

        where = f"{self._base}{urlsplit(path).path}"
        try:
            answer = self._session.request(
                method,
                f"{self._base}{path}",
                data=body,
                headers=headers,
                allow_redirects=False,
            )
            text = answer.content.decode("utf-8", "replace")
        except BodyTooLong as too_long:
            raise EnvironmentUnusable(f"{where}: {too_long}") from None
        except requests.exceptions.SSLError:
            raise EnvironmentUnusable(
                f"{where}: TLS failed, or the certificate is not trusted; give its CA as "
                "SSL_CERT_FILE"
            ) from None
        except requests.exceptions.Timeout:
            raise EnvironmentUnusable(f"{where}: no complete answer in time") from None
        except requests.exceptions.ConnectionError:
            raise EnvironmentUnusable(
                f"{where}: cannot be reached; is the provider running there?"
            ) from None
        except requests.exceptions.RequestException as error:
            raise EnvironmentUnusable(f"{where}: {type(error).__name__}") from None
        self._session.cookies.clear()
        return HttpAnswer(
            answer.status_code,
            text,
            answer.headers.get("Location", ""),
            tuple(answer.raw.headers.getlist("Set-Cookie")),
            own_date(answer.headers),
        )

    def close(self) -> None:
        """Close the connections."""
        self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
