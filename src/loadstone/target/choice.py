"""The target that the user chose: a lab, a cloud, a provider, or any web service."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from loadstone.cloud import Cloud, from_clouds_yaml, from_environment
from loadstone.cloud.cloud import Endpoint
from loadstone.errors import InvalidInput
from loadstone.keystone.contexts.users_file import read_users
from loadstone.keystone.federation import Federation
from loadstone.oidc.target import OidcIssuer
from loadstone.plan.model import Tls

if TYPE_CHECKING:
    from loadstone.lab.keystone.settings import LabSettings
    from loadstone.lab.remote_lab import LabPlace


@dataclass(frozen=True, slots=True)
class NamedTarget:
    """--lab NAME, --cloud NAME, else OS_* variables."""

    lab: str | None = None
    cloud: str | None = None
    beyond_loopback: bool = False  # the user permits load on another machine
    # Measure a target that another measurement is at work on, or with a fault in force.
    anyway: bool = False
    users_file: Path | None = None  # users that exist already
    watched: tuple[str, ...] = ()  # more to watch: --monitor
    federation: Federation | None = None  # where users of another provider log in

    def __post_init__(self) -> None:
        if self.lab is not None and self.cloud is not None:
            raise InvalidInput("give --lab or --cloud, not both")


@dataclass(frozen=True, slots=True)
class OwnLab:
    """A lab that is started for one run and stopped at its end."""

    name: str
    settings: "LabSettings"
    is_purged: bool = False  # before and after, so that every run begins with nothing
    anyway: bool = False  # measure it although a fault is still in force


@dataclass(frozen=True, slots=True)
class LabOnHost:
    """A lab that is started on a lab host of a fleet for one run, and removed at its end."""

    name: str
    pairs: tuple[tuple[str, str], ...]  # settings; others have that host's defaults
    place: "LabPlace"
    beyond_loopback: bool = False  # the user permits load on that host


@dataclass(frozen=True, slots=True)
class ReferenceService:
    """`loadstone serve` in a separate process."""


@dataclass(frozen=True, slots=True)
class WebService:
    """Any HTTP service, known by a URL: nothing is logged in to, and nothing created."""

    url: str  # without user, query and fragment
    beyond_loopback: bool = False  # the user permits load on another machine
    anyway: bool = False  # measure it although another measurement is at work
    verify: bool = True  # its certificate
    watched: tuple[str, ...] = ()

    @property
    def cloud(self) -> Cloud:
        """The service in the form of a cloud without credentials."""
        from keystoneauth1.noauth import NoAuth

        endpoint = Endpoint.parse(self.url)
        tls = Tls(self.verify)
        return Cloud(self.url, self.url, endpoint, "nobody", NoAuth(), tls)


TargetChoice = NamedTarget | OwnLab | LabOnHost | ReferenceService | WebService | OidcIssuer


def secrets_of(choice: TargetChoice) -> frozenset[str]:
    """Return the passwords in the choice of a target."""
    if isinstance(choice, OidcIssuer):
        return choice.secrets
    if not isinstance(choice, NamedTarget):
        return frozenset()
    found = set(choice.federation.issuer.secrets) if choice.federation else set()
    if choice.users_file is not None:
        found |= {str(user["password"]) for user in read_users(choice.users_file)}
    return frozenset(found)


def cloud_of(choice: NamedTarget) -> Cloud:
    """Return the chosen entry of clouds.yaml, or the cloud of the OS_* variables."""
    return from_environment(os.environ) if choice.cloud is None else from_clouds_yaml(choice.cloud)


def place_of(choice: TargetChoice) -> "LabPlace | None":
    """Return the lab host of a lab that is on another machine."""
    if isinstance(choice, LabOnHost):
        return choice.place
    if not isinstance(choice, NamedTarget) or choice.lab is None:
        return None
    from loadstone.lab import remote_lab

    record = remote_lab.recorded(choice.lab)
    return None if record is None else record.place
