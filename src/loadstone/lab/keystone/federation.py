"""Federated users: Apache's mod_auth_openidc lets in whom an OpenID provider beside it knows.

An application sends an access token of the provider. The module asks the provider about it
(RFC 7662) and gives the answer to Keystone, whose mapping puts the user into a group with a role.
Keystone's guide: "Configuring Federation"; the module's: "OAuth 2.0 Resource Server".
"""

from dataclasses import dataclass, replace
from pathlib import Path

from loadstone.lab import state
from loadstone.lab.hashing import FACT
from loadstone.lab.keystone.conf import PROTOCOL
from loadstone.lab.keystone.manage import FederatedUsers
from loadstone.lab.keystone.settings import Option
from loadstone.lab.parts.apache import MODULES, Apache
from loadstone.lab.parts.part import Facts, Part
from loadstone.lab.parts.server import Site
from loadstone.lab.ports import HOST, Ports
from loadstone.lab.programs import Program
from loadstone.lab.provider import credentials
from loadstone.lab.provider.node import NodePackages, NodeProvider
from loadstone.system.say import Say

PORT = "provider"
IDENTITY_PROVIDER = "lab"
PROJECT = "federated"  # in which the users' group has a role
MODULE = Program(f"{MODULES}/mod_auth_openidc.so", "libapache2-mod-auth-openidc")

# An interval of -1: each request is asked about at the provider, as with tokens that are new to it.
# By default the module keeps the answer until the token expires.
CONF = """\
LoadModule authn_core_module {modules}/mod_authn_core.so
LoadModule authz_user_module {modules}/mod_authz_user.so
LoadModule auth_openidc_module {modules}/mod_auth_openidc.so
OIDCClaimPrefix "OIDC-"
OIDCCryptoPassphrase "{secret}"
OIDCOAuthServerMetadataURL {issuer}/.well-known/openid-configuration
OIDCOAuthIntrospectionEndpointAuth client_secret_basic
OIDCOAuthClientID {client}
OIDCOAuthClientSecret "{secret}"
OIDCOAuthTokenIntrospectionInterval -1
<Location "/v3/OS-FEDERATION/identity_providers/{provider}/protocols/{protocol}/auth">
    AuthType oauth20
    Require valid-user
</Location>
"""


def issuer(port: int) -> str:
    """Return the URL of the provider."""
    return f"http://{HOST}:{port}"


@dataclass(frozen=True, slots=True)
class IdentityProvider(NodeProvider):
    """The provider beside Keystone, whose own password hash no load of Keystone computes."""

    kind = "idp"

    def facts(self) -> Facts:
        """Versions."""
        return tuple((key, value) for key, value in NodeProvider.facts(self) if key != FACT)


@dataclass(frozen=True, slots=True)
class RelyingParty(Part):
    """Configuration of mod_auth_openidc; it contains the client's secret."""

    folder: Path  # of the deployment
    port: int  # of the provider

    programs = (MODULE,)
    name = "mod_auth_openidc"

    @property
    def conf(self) -> Path:
        """File that Apache's configuration includes."""
        return state.secret_folder(self.folder) / "mod_auth_openidc.conf"

    def prepare(self, say: Say) -> None:  # noqa: ARG002
        """Write the configuration."""
        text = CONF.format(
            modules=MODULES,
            issuer=issuer(self.port),
            client=credentials.CLIENT_ID,
            secret=credentials.client_secret_file(self.folder).read_text(),
            provider=IDENTITY_PROVIDER,
            protocol=PROTOCOL,
        )
        state.write_secret(self.conf, text)

    def facts(self) -> Facts:
        """What stands before Keystone."""
        return (("federation", "mod_auth_openidc, each token looked up at the provider"),)

    @property
    def users(self) -> FederatedUsers:
        """What Keystone must know of the provider."""
        return FederatedUsers(IDENTITY_PROVIDER, PROTOCOL, issuer(self.port), PROJECT)

    def before(self, part: Part) -> Part:
        """Return a web server that asks for the provider's tokens."""
        return replace(part, includes=(self.conf,)) if isinstance(part, Apache) else part


def federation(
    folder: Path, ports: Ports
) -> tuple[tuple[Part, ...], RelyingParty, tuple[Option, ...]]:
    """Return the provider's parts, the relying party, and options for keystone.conf."""
    port = ports.allocate(PORT)
    provider = IdentityProvider(Site(folder, port))
    return (
        (NodePackages(folder), provider),
        RelyingParty(folder, port),
        (("federation", "remote_id_attribute", "HTTP_OIDC_ISS"),),
    )
