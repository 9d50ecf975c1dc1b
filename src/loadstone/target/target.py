"""A measured target, and what of it can be observed."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from loadstone.cloud import Access
from loadstone.diagnosis.resources import Watch
from loadstone.keystone.federation import Federation
from loadstone.keystone.resources import User
from loadstone.monitor.identity_requests import AccessLogs
from loadstone.monitor.service import Members
from loadstone.oidc.provider import Provider
from loadstone.result.model import Measurement

if TYPE_CHECKING:
    from loadstone.lab.measurement import ActiveMeasurement

Explain = Callable[[Measurement], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Target:
    """A measured target, and its observable parts on this machine."""

    access: Access
    facts: tuple[tuple[str, str], ...] = ()
    # Its processes; None: they are not on this machine.
    members: Members = field(default=lambda: None)
    # Those of the service that is loaded in turns with this one; None: there is none, or elsewhere.
    other_side: Members = field(default=lambda: None)
    # One line with the log that explains it, once a part of the service has died.
    failure: Callable[[], str | None] = field(default=lambda: None)
    # Sentences about the service for the report, besides the trials.
    explain: Explain = field(default=lambda _: ())
    # Reads resources while load runs; None: nothing is read.
    watch: Watch | None = None
    # Counts requests to Keystone; None: it writes no access log.
    access_log: AccessLogs | None = None
    # The record of this measurement on it, and of others at the same time.
    reservation: "ActiveMeasurement | None" = None
    # Existing users, for targets on which no users are created: from LDAP or from a file.
    users: Callable[[], tuple[User, ...]] = field(default=tuple)
    # The folder of its lab deployment; None: it is none.
    lab: Path | None = None
    # Users of an OpenID provider who may log in; None: not known.
    federation: Federation | None = None
    # Scenarios that the service does not have, by their names on the command line.
    unserved: tuple[str, ...] = ()
    # It, if it is an OpenID provider.
    provider: Provider | None = None

    @property
    def secrets(self) -> frozenset[str]:
        """The secret values of its login, and of the logins at its identity provider."""
        of_provider = self.federation.issuer.secrets if self.federation else frozenset()
        return self.access.cloud.secrets | of_provider

    @property
    def beside(self) -> tuple[str, ...]:
        """Names of other measurements that ran on it at the same time."""
        return self.reservation.beside if self.reservation else ()
