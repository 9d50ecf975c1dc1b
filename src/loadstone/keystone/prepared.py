"""A prepared scenario: its requests, and the user and token of each iteration."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from loadstone.cloud import Access
from loadstone.cloud.permission import require_loopback
from loadstone.engine.callables.model import PAUSE
from loadstone.errors import InvalidInput
from loadstone.keystone.compile import compile_plan, needed_s
from loadstone.keystone.contexts.credentials import with_credentials
from loadstone.keystone.contexts.shared import with_shared
from loadstone.keystone.contexts.tokens import issue_tokens
from loadstone.keystone.contexts.workload import Actors
from loadstone.keystone.federation import Federation
from loadstone.keystone.identity import Identity
from loadstone.keystone.resources import Token, User
from loadstone.keystone.scenarios.model import Need, Scenario
from loadstone.plan.load import Load
from loadstone.plan.model import Limits, Placement, Plan
from loadstone.plan.script import Pause
from loadstone.system.say import Say


@dataclass(frozen=True, slots=True)
class PreparedScenario:
    """Everything a load of the scenario needs, except the load itself."""

    scenario: Scenario
    users: tuple[User, ...] = field(repr=False)  # of iteration i: users[i mod n]
    # Likewise, by column.
    tokens: Mapping[str, tuple[Token, ...]] = field(default_factory=dict, repr=False)

    @property
    def actions(self) -> tuple[str, ...]:
        """The names of the samples' actions."""
        return tuple(
            PAUSE if isinstance(step, Pause) else step.action for step in self.scenario.steps
        )

    def of_run(self, run_id: str) -> Self:
        """Return a copy for the next load of a run, with new names for what iterations create."""
        return replace(self, scenario=self.scenario.of_run(run_id))

    def lasting(
        self, access: Access, federation: Federation | None, load: Load, limits: Limits, say: Say
    ) -> Self:
        """Return a copy with new tokens in place of those that would expire during a load."""
        users, tokens = tuple(dict.fromkeys(self.users)), dict(self.tokens)
        for column, present in self.tokens.items():
            lasting_s = needed_s(column, load, limits)
            if present and min(one.expires_at for one in present) - time.time() < lasting_s:
                issued = issue_tokens(access, users, column, federation, say)
                by_user = dict(zip(users, issued, strict=True))
                tokens[column] = tuple(by_user[user] for user in self.users)
        return replace(self, tokens=tokens)

    def of_fewer_users(self, share: float) -> Self:
        """Return a copy whose iterations use only this share of the users."""
        distinct = list(dict.fromkeys(self.users))
        kept = set(distinct[: max(1, round(share * len(distinct)))])
        rows = [row for row, user in enumerate(self.users) if user in kept]
        return replace(
            self,
            users=tuple(self.users[row] for row in rows),
            tokens={
                name: tuple(tokens[row] for row in rows) for name, tokens in self.tokens.items()
            },
        )

    def plan(self, access: Access, load: Load, limits: Limits, placement: Placement) -> Plan:
        """Return the engine's plan for this load on the target."""
        plan = compile_plan(self.scenario, access, self.users, self.tokens, load, limits)
        return replace(plan, placement=placement)


def require_permitted(scenario: Scenario, access: Access, about: str) -> None:
    """Refuse a scenario's own URL on another machine, unless the user permits such targets.

    `about` begins the message.
    """
    origin = scenario.origin
    if origin is not None and not access.beyond_loopback:
        require_loopback(origin.host, origin.port, f"{about}{origin.url}", about)


def prepare(
    scenario: Scenario,
    actors: Actors,
    access: Access,
    say: Say,
    federation: Federation | None = None,
) -> PreparedScenario:
    """Announce in the journal what iterations will create; create the credentials they need."""
    actors.announce(scenario)
    turns = actors.turns()
    users = with_shared(Identity(access), actors.users, scenario.needs, actors.journal, say)
    if federation is not None and Need.FEDERATION in scenario.needs:
        users = _federated(users, Identity(access), federation)
    users = with_credentials(access, users, scenario.needs)
    tokens = {}
    for column in scenario.token_columns:
        say(f"issuing {len(users)} token{'' if len(users) == 1 else 's'}")
        issued = issue_tokens(access, users, column, federation, say)
        tokens[column] = tuple(issued[turn] for turn in turns)
    return PreparedScenario(scenario, tuple(users[turn] for turn in turns), tokens)


def require_credentials(
    scenario: Scenario, access: Access, federation: Federation | None, about: str
) -> None:
    """Refuse logins for which an identity provider or a certificate is missing.

    `about` begins the message.
    """
    if Need.CLIENT_CERTIFICATE in scenario.needs and access.cloud.tls.cert_file is None:
        raise InvalidInput(
            f"{about}{scenario.name} needs a client's certificate: OS_CERT and OS_KEY, or cert and "
            "key in clouds.yaml; for a lab: lab up NAME --with web=apache --with tls=on --with "
            "client-certificates=on"
        )
    if federation is None and Need.FEDERATION in scenario.needs:
        raise InvalidInput(
            f"{about}{scenario.name} needs an identity provider whose users may log in: "
            "--federation FILE; for a lab: lab up NAME --with web=apache --with "
            "federation=oidc-provider"
        )


def _federated(
    users: Sequence[User], identity: Identity, federation: Federation
) -> tuple[User, ...]:
    """Return the users, with where a federated user logs in."""
    where = {
        "federated_auth": federation.path,
        "federated_project_id": federation.project_id(identity),
    }
    return tuple(replace(user, credentials={**user.credentials, **where}) for user in users)
