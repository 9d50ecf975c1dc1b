"""Users of an OpenID provider who get tokens of Keystone (Keystone's guide: "Federation")."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import quote

from loadstone.errors import EnvironmentUnusable
from loadstone.keystone.identity import Identity, Refused
from loadstone.keystone.resources import ResourceKind, Token
from loadstone.oidc.prepare import user_tokens
from loadstone.oidc.target import OidcIssuer, connected
from loadstone.system.say import Say


@dataclass(frozen=True, slots=True)
class Federation:
    """An identity provider as Keystone names it, and how its users log in there."""

    identity_provider: str
    protocol: str
    project: str  # name of a project in which its users have a role
    issuer: OidcIssuer = field(repr=False)

    @property
    def path(self) -> str:
        """Path of the request that takes an access token, below the version."""
        names = (quote(name, safe="") for name in (self.identity_provider, self.protocol))
        return "/OS-FEDERATION/identity_providers/{}/protocols/{}/auth".format(*names)

    def project_id(self, identity: Identity) -> str:
        """Return the id of the project; EnvironmentUnusable if there is none."""
        found = [str(one.id) for one in identity.find(ResourceKind.PROJECT, name=self.project)]
        if len(found) == 1:
            return found[0]
        number = f"{len(found)} projects" if found else "no project"
        raise EnvironmentUnusable(
            f"{identity.access.identity_url}: has {number} {self.project!r}; federated users need "
            "one"
        )

    def access_tokens(self, count: int, say: Say) -> tuple[Token, ...]:
        """Log in at the provider; return as many access tokens, of its users in turn."""
        with connected(self.issuer, say) as provider:
            tokens = user_tokens(provider, provider.users[:count])
        issued = [Token(one.access, one.expires_at) for one in tokens]
        return tuple(issued[number % len(issued)] for number in range(count))

    def tokens(self, identity: Identity, accesses: Sequence[Token]) -> tuple[Token, ...]:
        """Return tokens for the project, in exchange for access tokens."""
        project = self.project_id(identity)
        try:
            return tuple(identity.issue_federated(self.path, one, project) for one in accesses)
        except Refused as refused:
            raise EnvironmentUnusable(
                f"{refused}; check identity_provider, protocol, and the mapping, which must give "
                f"users a role in project {self.project}"
            ) from None
