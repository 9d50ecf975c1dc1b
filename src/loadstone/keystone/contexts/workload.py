"""Prepares what a task's workload needs before its load, and removes it afterwards."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from random import Random
from typing import Literal, assert_never

from loadstone.cloud import Access
from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.keystone.contexts.model import (
    ApiVersions,
    Cleanup,
    Context,
    DummyContext,
    ExistingServers,
    Login,
    Network,
    Quotas,
    Roles,
    Users,
)
from loadstone.keystone.contexts.networks import make_networks
from loadstone.keystone.contexts.quotas import set_quotas
from loadstone.keystone.contexts.security_groups import note_security_groups
from loadstone.keystone.contexts.servers import boot_servers
from loadstone.keystone.contexts.users import RunJournal, make_users, removing
from loadstone.keystone.identity import Identity
from loadstone.keystone.journal import Journal
from loadstone.keystone.resources import (
    CreatedByIterations,
    ResourceKind,
    User,
    counted,
    domain_name,
    of_iterations,
)
from loadstone.keystone.scenarios.model import Scenario
from loadstone.system.say import Say

# Number of rows for random users: several per user, and at least this many.
_DRAWS_PER_USER, _FEWEST_DRAWS = 4, 1024
# Rally's default is 20; at Keystone's hash cost more calls at once only wait in its queue.
_WORKERS = 8


def evenly(users: int) -> Users:
    """Return a context of this many users, in two projects if the number is even.

    Iterations use them in turn. Existing users are used instead, if there are any.
    """
    tenants = 2 if users and users % 2 == 0 else 1
    return Users(
        tenants,
        max(users, 1) // tenants,
        workers=_WORKERS,
        choice="round_robin",
        may_be_existing=True,
    )


@dataclass(frozen=True, slots=True)
class Actors:
    """The identities that a workload's load uses."""

    users: tuple[User, ...]
    journal: Journal = field(repr=False)
    choice: Literal["random", "round_robin"] = "random"
    networks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # ids by project
    logs_in_anew: bool = False  # in every iteration
    are_own: bool = True  # created by the run and removed with everything they own

    def turns(self) -> tuple[int, ...]:
        """Return the index of the user of each iteration; iteration i uses turn i mod n.

        Drawn at random with replacement, as Rally does, or round robin. Rows for `compile_plan` are
        `[users[turn] for turn in turns]`, and likewise for tokens.
        """
        count = len(self.users)
        if count < 2 or self.choice == "round_robin":
            return tuple(range(count))
        draw = Random(0)  # noqa: S311  no secret
        draws = max(_FEWEST_DRAWS, _DRAWS_PER_USER * count)
        return tuple(draw.randrange(count) for _ in range(draws))

    def announce(self, scenario: Scenario) -> None:
        """Record in the journal what the iterations will create; called before every load."""
        if not self.are_own:
            require_own_users(scenario)
        announce(self.journal, scenario.makes)
        if self.are_own and "domain_id" in scenario.columns:
            # Only the run's own domain is deleted with all that is in it.
            own = domain_name(self.journal.run_id)
            others = {one.domain_id for one in self.users if one.domain_name != own}
            kinds = (ResourceKind.USER, ResourceKind.GROUP, ResourceKind.PROJECT)
            made = (CreatedByIterations(kind, one) for one in sorted(others) for kind in kinds)
            announce(self.journal, made)

    def note_security_groups(self, access: Access) -> None:
        """Record in the journal what Neutron makes for servers or networks; called before them."""
        if self.are_own:
            note_security_groups(access, self.users, self.journal)


def require_own_users(scenario: Scenario) -> None:
    """Refuse a scenario whose resources are only removed with users that the run created."""
    if scenario.goes_with_users:
        raise InvalidInput(
            f"{scenario.name}: leaves {scenario.goes_with_users} with its users, and these exist "
            "already; let users be made (users: {tenants: 1} in a task, --users 1 or more)"
        )


def announce(journal: Journal, makes: Iterable[CreatedByIterations]) -> None:
    """Record in the journal what iterations will create."""
    for created in makes:
        thing = of_iterations(journal.run_id, created)
        journal.create(thing.kind, thing.name, thing.domain_id)


@contextmanager
def contexts(
    access: Access,
    run: RunJournal,
    wanted: Sequence[Context],
    say: Say,
    existing: Sequence[User] = (),
) -> Iterator[Actors]:
    """Set up the workload's contexts; remove them, and what iterations created, at the end.

    `existing` users are used where the file does not ask for new ones. What could not be removed
    stays in the journal (`clean.remaining`), and `say` gets the command that removes it. The users
    of a killed run are reused, given its id and journal.
    """
    dummies = [context for context in wanted if isinstance(context, DummyContext)]
    with removing(access, run, say) as journal:
        if any(dummy.fail_setup for dummy in dummies):
            raise EnvironmentUnusable("dummy_context: failed, as fail_setup says")
        yield _set_up(access, wanted, journal, say, existing)
    if any(dummy.fail_cleanup for dummy in dummies):  # As in Rally, this breaks no SLA.
        say("dummy_context: its clean-up failed, as fail_cleanup says")


def _set_up(
    access: Access,
    wanted: Sequence[Context],
    journal: Journal,
    say: Say,
    existing: Sequence[User],
) -> Actors:
    actors = Actors((), journal)
    roles = tuple(n for context in wanted if isinstance(context, Roles) for n in context.names)
    for context in wanted:
        match context:
            case Users():
                actors = _users(access, context, roles, journal, say, existing)
            case Quotas(limits=limits):
                if actors.are_own:
                    projects = sorted({user.project_id for user in actors.users})
                    set_quotas(access, projects, limits, say)
                else:
                    say("quotas: not set, because the projects exist already")
            case Network():
                actors = _with_networks(access, actors, context, say)
            case ExistingServers():
                actors.note_security_groups(access)
                boot_servers(Identity(access), context, actors.users, actors.networks, journal, say)
            case Login(every_iteration=logs_in_anew):
                actors = replace(actors, logs_in_anew=logs_in_anew)
            case Roles() | ApiVersions() | Cleanup() | DummyContext():
                pass  # set with the users; no effect; always runs; handled in `contexts`
            case _:
                assert_never(context)
    return actors


def _users(
    access: Access,
    context: Users,
    roles: tuple[str, ...],
    journal: Journal,
    say: Say,
    existing: Sequence[User],
) -> Actors:
    if existing and context.may_be_existing:
        if roles:
            raise InvalidInput(
                "roles: the users exist already, and their roles are not changed; give them "
                f"{', '.join(roles)} yourself, or let users be made (users: {{tenants: 1}})"
            )
        return Actors(tuple(existing), journal, context.choice, are_own=False)
    users = make_users(Identity(access), context, roles, journal, say)
    return Actors(users, journal, context.choice)


def _with_networks(access: Access, actors: Actors, context: Network, say: Say) -> Actors:
    if not actors.are_own:
        raise InvalidInput(
            "network: the users exist already, and nothing is made in their projects; let users be "
            "made (users: {tenants: 1})"
        )
    projects = tuple(dict.fromkeys(user.project_id for user in actors.users))
    say(f"creating {counted(context.networks_per_tenant * len(projects), ResourceKind.NETWORK)}")
    actors.note_security_groups(access)
    networks = make_networks(Identity(access), context, projects, actors.journal)
    return replace(actors, networks=networks)
