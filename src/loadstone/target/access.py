"""Authenticated access to a cloud's v3 identity API."""

import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.target.cloud import Cloud, Endpoint

if TYPE_CHECKING:
    from keystoneauth1.exceptions import ClientException, HttpError
    from keystoneauth1.session import Session


@dataclass(frozen=True, slots=True)
class Access:
    """The v3 API of a cloud, with a session that is authenticated; close it after use."""

    cloud: Cloud
    endpoint: Endpoint  # of the v3 API, on the host that the user named
    session: "Session" = field(repr=False, compare=False)

    @property
    def identity_url(self) -> str:
        """The URL that API paths are appended to, such as http://127.0.0.1:5000/v3."""
        return self.endpoint.url

    def token(self, lasting_s: float = 120.0) -> str:
        """Give a token of the cloud's identity that is valid for so long, if such are issued."""
        from keystoneauth1.exceptions import ClientException
        from keystoneauth1.identity.base import BaseIdentityPlugin

        auth = self.session.auth
        if not isinstance(auth, BaseIdentityPlugin):
            raise InvalidInput(f"{self.cloud.chosen}: its kind of authentication gives no token")
        try:
            if auth.get_access(self.session).will_expire_soon(int(lasting_s)):
                auth.invalidate()
            return str(auth.get_access(self.session).auth_token)
        except ClientException as error:
            raise unusable(self.cloud, error) from error

    def service_url(self, service_type: str) -> str | None:
        """Give where the catalog says that a service is; None: it lists no such service."""
        from keystoneauth1.exceptions import CatalogException, ClientException

        try:
            return self.session.get_endpoint(
                service_type=service_type, region_name=self.cloud.region
            )
        except CatalogException:
            return None
        except ClientException as error:
            raise unusable(self.cloud, error) from None

    def close(self) -> None:
        """Close the connections."""
        self.session.session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def connect(cloud: Cloud) -> Access:
    """Find the v3 API and authenticate; EnvironmentUnusable says in one line why not."""
    from keystoneauth1.exceptions import ClientException

    from loadstone.target.session import open_session

    session = open_session(cloud)
    try:
        access = Access(cloud, _discover(cloud, session), session)
        access.token()
    except ClientException as error:
        session.session.close()
        raise unusable(cloud, error) from error
    except BaseException:
        session.session.close()
        raise
    return access


def _discover(cloud: Cloud, session: "Session") -> Endpoint:
    from keystoneauth1.discover import Discover
    from keystoneauth1.exceptions import DiscoveryFailure, HttpError

    try:
        versions = Discover(session, cloud.auth_url, authenticated=False).version_data()
    except (DiscoveryFailure, HttpError) as error:
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
        f"{cloud.auth_url}: what answers there is no Keystone ({why}); "
        "give Keystone's own URL, such as http://HOST:5000/v3"
    )


def _v3_path(named: str, link: str) -> str:
    # Host and port stay those that the user named (and permitted); a service behind a proxy often
    # links to another of its names.
    if named.endswith("/v3"):
        return named
    linked = urlsplit(link).path.rstrip("/")
    return linked if linked.startswith(named) and linked.endswith("/v3") else f"{named}/v3"


def unusable(cloud: Cloud, error: "ClientException") -> EnvironmentUnusable:
    """Say in one line why the cloud cannot be used, and what to do."""
    from keystoneauth1 import exceptions

    where = cloud.auth_url
    match error:
        case exceptions.Unauthorized():
            return EnvironmentUnusable(
                f"{where}: refused the credentials of {cloud.who} (HTTP 401: "
                f"{_said(error)}); check password, user, project and their domains"
            )
        case exceptions.HttpError():
            return EnvironmentUnusable(
                f"{where}: answered {cloud.who} with HTTP {error.http_status}: {_said(error)}"
            )
        case exceptions.SSLError():
            return EnvironmentUnusable(f"{where}: {_tls_words(error)}")
        case exceptions.ConnectTimeout():
            return EnvironmentUnusable(f"{where}: {_timeout_words(error)}")
        case exceptions.ConnectFailure():
            return EnvironmentUnusable(f"{where}: {_connection_words(cloud, error)}")
        case _:
            return EnvironmentUnusable(f"{where}: {_first_line(error)}")


def _connection_words(cloud: Cloud, error: BaseException) -> str:
    for cause in _causes(error):
        match cause:
            case ConnectionRefusedError():
                return (
                    f"connection refused on port {cloud.endpoint.port}; "
                    "is Keystone running there, and is the port right?"
                )
            case socket.gaierror():
                return f"no address for host {cloud.endpoint.host!r}; check the URL"
            case OSError() if cause.strerror:
                return f"cannot be reached ({cause.strerror}); check host, port and network"
    return "the connection was closed without an answer; is this http where https is served?"


def _timeout_words(error: BaseException) -> str:
    from requests.exceptions import ConnectTimeout

    from loadstone.target.session import ANSWER_TIMEOUT_S, CONNECT_TIMEOUT_S

    if any(isinstance(cause, ConnectTimeout) for cause in _causes(error)):
        return (
            f"no connection within {CONNECT_TIMEOUT_S:.0f} s; "
            "check host, port, network and firewall"
        )
    return f"connected, and no answer within {ANSWER_TIMEOUT_S:.0f} s; is it overloaded, or hung?"


def _tls_words(error: BaseException) -> str:
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return (
                f"its TLS certificate is not trusted ({cause.verify_message}); "
                "give its CA as OS_CACERT (clouds.yaml: cacert), "
                "or OS_INSECURE=true for a test cloud"
            )
        if isinstance(cause, ssl.SSLError) and cause.reason:
            words = cause.reason.lower().replace("_", " ")
            return f"TLS failed ({words}); is https served on this port, and a client cert asked?"
    return f"TLS failed ({_first_line(error)})"


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _said(error: "HttpError") -> str:
    # keystoneauth adds status and request id in brackets.
    return _first_line(error).partition(" (HTTP ")[0]


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else type(error).__name__
