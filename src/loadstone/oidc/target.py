"""A provider as the user chose it, and how it is connected to."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from loadstone.cloud.cloud import Cloud, Endpoint
from loadstone.cloud.permission import require_permission
from loadstone.cloud.read import require_certificates, require_file
from loadstone.errors import InvalidInput
from loadstone.oidc.client import Client
from loadstone.oidc.http import Http
from loadstone.oidc.metadata import Metadata
from loadstone.oidc.provider import Provider
from loadstone.oidc.users import OPTION as USERS_OPTION
from loadstone.oidc.users import OidcUser, read_users
from loadstone.plan.model import Tls
from loadstone.system.say import Say

CA_VARIABLE = "SSL_CERT_FILE"  # the engine reads it, too


@dataclass(frozen=True)
class OidcIssuer:
    """--oidc ISSUER with its client and its users, or a lab deployment that is a provider."""

    url: str
    client: Client
    users_file: Path | None = None
    beyond_loopback: bool = False  # the user permits load on another machine
    anyway: bool = False  # measure it although another measurement is at work
    watched: tuple[str, ...] = ()  # more to watch: --monitor
    lab: str | None = None  # the deployment that it is
    chosen: str = "--oidc"  # what names it
    users_option: str = USERS_OPTION  # what names the file

    @cached_property
    def cloud(self) -> Cloud:
        """The provider in the form of a cloud without credentials."""
        from keystoneauth1.noauth import NoAuth

        try:
            endpoint = Endpoint.parse(self.url)
        except ValueError as wrong:
            # The URL may hold a password.
            raise InvalidInput(f"{self.chosen}: {wrong}") from None
        who = f"client {self.client.id}"
        chosen = self.chosen if self.lab is None else f"--lab {self.lab}"
        return Cloud(chosen, self.url, endpoint, who, NoAuth(), _tls(endpoint))

    @cached_property
    def users(self) -> tuple[OidcUser, ...]:
        """The users of the file."""
        return () if self.users_file is None else read_users(self.users_file, self.users_option)

    @property
    def secrets(self) -> frozenset[str]:
        """The client's secret, also as it is sent by HTTP Basic, and the users' passwords."""
        passwords = frozenset(user.password for user in self.users)
        return self.client.secrets | passwords


@contextmanager
def connected(choice: OidcIssuer, say: Say = lambda _: None) -> Iterator[Provider]:
    """Read the metadata of a provider, which needs the user's permission beyond loopback.

    `say` is called every few seconds while a response is pending, also in later calls.
    """
    cloud = choice.cloud
    require_permission(cloud, choice.beyond_loopback)
    users = choice.users
    loopback_only = not choice.beyond_loopback
    with Http(cloud.endpoint, cloud.tls, say, loopback_only=loopback_only) as http:
        metadata = Metadata.read(cloud.endpoint, http)
        client = _authenticating(choice.client, metadata)
        yield Provider(cloud.endpoint, metadata, client, users, http, cloud.tls)


def _authenticating(client: Client, metadata: Metadata) -> Client:
    """Return the client that authenticates in a way that the provider offers."""
    offered = metadata.client_authentications
    in_body = "client_secret_basic" not in offered and "client_secret_post" in offered
    return Client(client.id, client.secret, client.redirect_uri, in_body)


def _tls(endpoint: Endpoint) -> Tls:
    ca_file = os.environ.get(CA_VARIABLE) or None
    if ca_file is not None and endpoint.scheme == "https":
        require_file(ca_file, CA_VARIABLE)
        require_certificates(ca_file, CA_VARIABLE)
    return Tls(ca_file=ca_file)
