"""What N can be searched of and targets compared by, whatever the kind of identity service."""

from dataclasses import dataclass
from typing import Protocol

from loadstone.analysis.criteria import SlaRule
from loadstone.keystone.contexts.model import Context
from loadstone.plan.model import Limits, Placement, Retries
from loadstone.workload.generator import LoadGenerator

USERS = "users"  # parameter: the number of users that the load is of
OWN_USER = "the target's own"  # its value for the user that the target was given with


@dataclass(frozen=True, slots=True)
class RequestOptions:
    """Options for sending requests; measurements of faults override the defaults."""

    retries: Retries = "unread"
    opens_connections: bool = False  # one for each iteration, whatever the scenario says


USUAL_OPTIONS = RequestOptions()


class NamedScenario(Protocol):
    """A scenario of a service, as results name it."""

    @property
    def name(self) -> str:
        """Its name on the command line or in task files."""

    @property
    def title(self) -> str:
        """A few words."""

    @property
    def request(self) -> str:
        """What an iteration sends."""


class Searchable(Protocol):
    """One scenario with its users and criteria; each kind of service has its own."""

    @property
    def scenario(self) -> NamedScenario:
        """What an iteration does."""

    @property
    def contexts(self) -> tuple[Context, ...]:
        """What is created before the load and removed at its end."""

    @property
    def most_existing(self) -> int | None:
        """How many users that exist already are used; 0: the target's own user; None: all."""

    @property
    def parameters(self) -> tuple[tuple[str, str], ...]:
        """What is stored with the measurement."""

    @property
    def rules(self) -> tuple[SlaRule, ...]:
        """SLA rules that become objectives."""

    @property
    def users(self) -> str:
        """The number of users, as text."""

    @property
    def senders(self) -> int | None:
        """Number of users that send the requests in turn; None: unknown."""

    @property
    def first_connections(self) -> int:
        """Number of connections with which a search begins."""

    @property
    def secrets(self) -> frozenset[str]:
        """Secrets of the command line or file."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is shown first."""

    def generator(
        self, limits: Limits, placement: Placement, options: RequestOptions = USUAL_OPTIONS
    ) -> LoadGenerator:
        """Return what sends its load."""
