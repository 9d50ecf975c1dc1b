"""Authenticated access to a cloud's v3 identity API."""

import math
import os
import socket
import ssl
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

from loadstone.cloud.cloud import Cloud, Endpoint
from loadstone.cloud.permission import require_loopback
from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.system.say import Say

if TYPE_CHECKING:
    from keystoneauth1.access import AccessInfo
    from keystoneauth1.exceptions import ClientException, HttpError
    from keystoneauth1.identity.base import BaseIdentityPlugin
    from keystoneauth1.session import Session
    from requests import Response


NEARLY_NEW = 0.9  # of its life
NEVER_S = 1e9  # no token is valid for so long: each is issued anew
_CERTIFICATE_EXPIRED = 10  # OpenSSL's X509_V_ERR_CERT_HAS_EXPIRED
_CERTIFICATE_OF_ANOTHER = (62, 64)  # X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH


@dataclass(frozen=True, slots=True)
class Access:
    """The v3 API of a cloud, with an authenticated session; close it after use."""

    cloud: Cloud
    endpoint: Endpoint  # of the v3 API on the host that the user named
    session: "Session" = field(repr=False, compare=False)
    beyond_loopback: bool = False  # the user permits load on other machines

    @property
    def identity_url(self) -> str:
        """The URL that API paths are appended to, such as http://127.0.0.1:5000/v3."""
        return self.endpoint.url

    @property
    def login(self) -> "BaseIdentityPlugin | None":
        """The plugin that logs in; None if its kind gives no token."""
        from keystoneauth1.identity.base import BaseIdentityPlugin

        return self.session.auth if isinstance(self.session.auth, BaseIdentityPlugin) else None

    def token(self, lasting_s: float = 120.0) -> str:
        """Return a token of the cloud's user, valid for this long if possible."""
        from keystoneauth1.exceptions import ClientException

        if (auth := self.login) is None:
            raise InvalidInput(f"{self.cloud.chosen}: its kind of authentication gives no token")
        try:
            known = auth.get_access(self.session)
            if known.will_expire_soon(math.ceil(lasting_s)):
                known = self._renewed(auth, known)
        except ClientException as error:
            raise unusable(self.cloud, error) from error
        return str(known.auth_token)

    def fresh_token(self) -> str:
        """Return a token that is new, or nearly; the present one if the user can log in once only.

        For a load whose duration is not known.
        """
        from keystoneauth1.exceptions import ClientException

        present, auth = self.token(), self.login
        if auth is None:
            return present
        known = auth.get_access(self.session)
        if known.issued is None or known.expires is None:
            return present
        life_s = (known.expires - known.issued).total_seconds()
        if self.token_left_s() >= NEARLY_NEW * life_s:
            return present
        try:
            return str(self._renewed(auth, known).auth_token)
        except ClientException:
            return present

    def _renewed(self, auth: "BaseIdentityPlugin", known: "AccessInfo") -> "AccessInfo":
        """Log in again; if that fails, as with a one-time password, the present token stays."""
        from keystoneauth1.exceptions import ClientException

        auth.invalidate()
        try:
            return auth.get_access(self.session)
        except ClientException:
            auth.auth_ref = known
            raise

    def roles(self) -> tuple[str, ...]:
        """Return the names of the roles in the token that was returned last."""
        self.token()
        auth = self.login
        return () if auth is None else tuple(auth.get_access(self.session).role_names or ())

    def scope_domain_id(self) -> str | None:
        """Return the id of the domain that the token is for; None if it is for something else."""
        self.token()
        return None if self.login is None else self.login.get_access(self.session).domain_id

    def token_left_s(self) -> float:
        """Return how long the token that was returned last stays valid; inf if it says not."""
        from keystoneauth1.exceptions import ClientException

        if (auth := self.login) is None:
            return math.inf
        try:
            expires = auth.get_access(self.session).expires
        except ClientException as error:
            raise unusable(self.cloud, error) from error
        return math.inf if expires is None else expires.timestamp() - time.time()

    def service_url(self, service_type: str) -> str | None:
        """Return the URL of a service from the catalog, or None if it is not listed.

        EnvironmentUnusable: it is not a URL. InvalidInput: it is on another machine, and load on
        other machines is not permitted.
        """
        try:
            url = self._catalog_url(service_type)
            if not url:
                return None
            endpoint = Endpoint.parse(url)
        except ValueError as wrong:
            raise EnvironmentUnusable(
                f"{self.identity_url}: the catalog's {service_type} endpoint is not a URL that can "
                f"be used ({wrong}); see `openstack endpoint list`"
            ) from None
        if not self.beyond_loopback:
            about = f"the catalog's {service_type} endpoint {url}: "
            require_loopback(endpoint.host, endpoint.port, url, about)
        return url

    def _catalog_url(self, service_type: str) -> str | None:
        from keystoneauth1.exceptions import CatalogException, ClientException

        try:
            return self.session.get_endpoint(
                service_type=service_type,
                interface=self.cloud.interface,
                region_name=self.cloud.region,
            )
        except CatalogException:
            return None
        except ClientException as error:
            raise unusable(self.cloud, error) from None

    def lacks(self, service_type: str) -> str:
        """Say that the catalog does not list a service."""
        cloud = self.cloud
        place = f"region {cloud.region}, " if cloud.region else ""
        override = f"{service_type.replace('-', '_')}_endpoint_override"
        unused = f" ({override} is not used)" if override in cloud.overrides else ""
        return (
            f"the catalog of {self.identity_url} has no {service_type} for {place}interface "
            f"{cloud.interface}{unused}"
        )

    def close(self) -> None:
        """Close the connections."""
        self.session.session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def connect(cloud: Cloud, say: Say = lambda _: None, *, beyond_loopback: bool = False) -> Access:
    """Discover the v3 API and authenticate; EnvironmentUnusable says in one line why that failed.

    `say` is called every few seconds while a response is pending, also in later calls.
    `beyond_loopback`: the user permits load on other machines.
    """
    from keystoneauth1.exceptions import ClientException

    from loadstone.cloud.session import open_session

    session = open_session(cloud, say, loopback_only=not beyond_loopback)
    try:
        access = Access(cloud, _discover(cloud, session), session, beyond_loopback)
        _log_in_there(access)
        access.token()
    except ClientException as error:
        session.session.close()
        raise unusable(cloud, error) from error
    except BaseException:
        session.session.close()
        raise
    return access


def _log_in_there(access: Access) -> None:
    """Send the password to the server that the user named.

    A generic plugin logs in where the version document links to, which behind a proxy or a tunnel
    is often another name, or plain HTTP.
    """
    from keystoneauth1.identity.generic.base import BaseGenericPlugin

    session = access.session
    if isinstance(session.auth, BaseGenericPlugin):
        session.auth = session.auth.create_plugin(session, (3, 0), access.identity_url)


def _discover(cloud: Cloud, session: "Session") -> Endpoint:
    from keystoneauth1.discover import Discover
    from keystoneauth1.exceptions import DiscoveryFailure, HttpError

    try:
        versions = Discover(session, cloud.auth_url, authenticated=False).version_data()
    except HttpError as error:
        if error.http_status is not None and error.http_status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise EnvironmentUnusable(
                f"{cloud.auth_url}: answers HTTP {error.http_status}: Keystone, or a server that "
                "it needs, is down or overloaded; look at its log and at that of its proxy"
            ) from error
        if error.http_status == HTTPStatus.TOO_MANY_REQUESTS:
            raise EnvironmentUnusable(
                f"{cloud.auth_url}: answers HTTP 429: a rate limiter refuses this machine; wait, "
                "or let its operator permit it"
            ) from error
        if error.http_status == HTTPStatus.BAD_REQUEST and cloud.endpoint.scheme == "http":
            raise EnvironmentUnusable(
                f"{cloud.auth_url}: answers HTTP 400; is this http where https is served?"
            ) from error
        raise _no_keystone(cloud, _first_line(error)) from error
    except DiscoveryFailure as error:
        raise _no_keystone(cloud, _first_line(error)) from error
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise _no_keystone(cloud, "its versions are not in OpenStack's form") from error
    links = {version["version"][0]: str(version["url"]) for version in versions}
    if not links:
        raise _no_keystone(cloud, "it names no version")
    if 3 not in links:
        offered = ", ".join(f"v{major}" for major in sorted(links))
        raise EnvironmentUnusable(
            f"{cloud.auth_url}: offers {offered}, not the Identity API v3; "
            "give the URL of v3 or one without a version"
        )
    return replace(cloud.endpoint, path=_v3_path(cloud.endpoint.path, links[3]))


def _no_keystone(cloud: Cloud, why: str) -> EnvironmentUnusable:
    return EnvironmentUnusable(
        f"{cloud.auth_url}: what answers there is not Keystone ({why}); "
        "give Keystone's own URL, such as http://HOST:5000/v3"
    )


def _v3_path(named: str, link: str) -> str:
    # Keep the host and port that the user named (and permitted); a service behind a proxy often
    # links to another of its names.
    if named.endswith("/v3"):
        return named
    linked = urlsplit(link).path.rstrip("/")
    return linked if linked.startswith(named) and linked.endswith("/v3") else f"{named}/v3"


def unusable(cloud: Cloud, error: "ClientException") -> EnvironmentUnusable:
    """Return a one-line error that says why the cloud cannot be used, and what to do."""
    from keystoneauth1.exceptions import InvalidResponse

    if isinstance(error, InvalidResponse):
        # The library's message quotes the whole page.
        return not_json(cloud, "log in", error.response)
    return EnvironmentUnusable(f"{cloud.auth_url}: {_failure_message(cloud, error)}")


def _failure_message(cloud: Cloud, error: "ClientException") -> str:
    from keystoneauth1 import exceptions

    match error:
        case exceptions.Unauthorized():
            return (
                f"refused the credentials of {cloud.who} (HTTP 401: {_message(error)}); "
                "check password, user, project and their domains"
            )
        case exceptions.HttpError():
            return f"answered {cloud.who} with HTTP {error.http_status}: {_message(error)}"
        case exceptions.SSLError():
            return _tls_message(error)
        case exceptions.ConnectTimeout():
            return _timeout_message(cloud, error)
        case exceptions.ConnectFailure():
            return _connection_message(cloud, error)
        case _:
            return _first_line(error)


def not_json(cloud: Cloud, what: str, answer: "Response") -> EnvironmentUnusable:
    """Return the error that the response is not JSON, so not from Keystone."""
    kind = answer.headers.get("Content-Type", "").partition(";")[0] or "something"
    return EnvironmentUnusable(
        f"{answer.url.partition('?')[0]}: could not {what}: HTTP {answer.status_code} with {kind} "
        f"that is not Keystone's JSON; does a proxy or a login page stand in front of it? Give "
        f"Keystone's own URL in place of {cloud.auth_url}"
    )


def _connection_message(cloud: Cloud, error: BaseException) -> str:
    for cause in _causes(error):
        match cause:
            case ConnectionRefusedError():
                return (
                    f"connection refused on port {cloud.endpoint.port}; "
                    f"is Keystone running there, and is the port right?{_proxy_message(cloud)}"
                )
            case socket.gaierror():
                return (
                    f"no address for host {cloud.endpoint.host!r}; check the URL"
                    f"{_proxy_message(cloud)}"
                )
            case OSError() if cause.strerror:
                return (
                    f"cannot be reached ({cause.strerror}); check host, port and network"
                    f"{_proxy_message(cloud)}"
                )
    return "the connection was closed without an answer; is this http where https is served?"


def _proxy_message(cloud: Cloud) -> str:
    """Return a note that the environment's proxy is not used for load."""
    name = f"{cloud.endpoint.scheme}_proxy"
    variable = next((n for n in (name, name.upper()) if os.environ.get(n)), None)
    return (
        f" (the proxy of {variable} is not used: load goes straight to the target)"
        if variable
        else ""
    )


def _timeout_message(cloud: Cloud, error: BaseException) -> str:
    from requests.exceptions import ConnectTimeout

    from loadstone.cloud.session import ANSWER_TIMEOUT_S, CONNECT_TIMEOUT_S

    if any(isinstance(cause, ConnectTimeout) for cause in _causes(error)):
        return (
            f"no connection within {CONNECT_TIMEOUT_S:.0f} s; "
            f"check host, port, network and firewall{_proxy_message(cloud)}"
        )
    return (
        f"connected, and no complete answer within {ANSWER_TIMEOUT_S:.0f} s; "
        "is it overloaded, or hung?"
    )


def _tls_message(error: BaseException) -> str:
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return _certificate_message(cause)
        if isinstance(cause, ssl.SSLError) and cause.reason:
            reason = cause.reason.lower().replace("_", " ")
            return f"TLS failed ({reason}); is https served on this port, and a client cert asked?"
    return f"TLS failed ({_first_line(error)})"


def _certificate_message(error: ssl.SSLCertVerificationError) -> str:
    if error.verify_code == _CERTIFICATE_EXPIRED:
        return "its TLS certificate has expired; renew it, or OS_INSECURE=true for a test cloud"
    if error.verify_code in _CERTIFICATE_OF_ANOTHER:
        return (
            f"its TLS certificate is for another name ({error.verify_message.rstrip('.')}); "
            "write the URL with a name that it has, or OS_INSECURE=true for a test cloud"
        )
    return (
        f"its TLS certificate is not trusted ({error.verify_message}); "
        "give its CA as OS_CACERT (clouds.yaml: cacert), or OS_INSECURE=true for a test cloud"
    )


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _message(error: "HttpError") -> str:
    # keystoneauth appends status and request id in brackets.
    return _first_line(error).partition(" (HTTP ")[0]


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else type(error).__name__
