"""What N can be searched of and targets compared by, whatever the kind of identity service."""

from collections.abc import Callable
from dataclasses import dataclass, field

from loadstone.analysis.criteria import SlaRule
from loadstone.keystone.contexts.model import Context
from loadstone.keystone.scenarios.model import Scenario
from loadstone.oidc.scenarios import OidcScenario
from loadstone.plan.model import Limits, Placement, Retries
from loadstone.search.settings import FIRST_CONNECTIONS
from loadstone.workload.generator import LoadGenerator

USERS = "users"  # parameter: the number of users that the load is of
OWN_USER = "the target's own"  # its value for the user that the target was given with


@dataclass(frozen=True, slots=True)
class RequestOptions:
    """Options for sending requests; measurements of faults override the defaults."""

    retries: Retries = "unread"
    opens_connections: bool = False  # one for each iteration, whatever the scenario says


USUAL_OPTIONS = RequestOptions()


@dataclass(frozen=True, slots=True)
class Searchable:
    """One scenario with its users and criteria."""

    scenario: Scenario | OidcScenario
    sender: Callable[[Limits, Placement, RequestOptions], LoadGenerator] = field(repr=False)
    contexts: tuple[Context, ...] = ()  # what is created before the load and removed at its end
    # How many users that exist already are used; 0: the target's own user; None: all.
    most_existing: int | None = None
    parameters: tuple[tuple[str, str], ...] = ()  # stored with the measurement
    rules: tuple[SlaRule, ...] = ()  # SLA rules that become objectives
    users: str = "none"  # their number, as text
    senders: int | None = None  # number of users that send the requests in turn; None: unknown
    first_connections: int = FIRST_CONNECTIONS  # with which a search begins
    secrets: frozenset[str] = field(default=frozenset(), repr=False)  # of command line or file
    warnings: tuple[str, ...] = ()  # are shown first

    def generator(
        self, limits: Limits, placement: Placement, options: RequestOptions = USUAL_OPTIONS
    ) -> LoadGenerator:
        """Return what sends its load."""
        return self.sender(limits, placement, options)
