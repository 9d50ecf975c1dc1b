"""What a task's workload needs before its load, and what is removed after it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Literal, assert_never

from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.keystone.contexts.quotas import set_quotas
from loadstone.keystone.contexts.users import UsersSettings, make_users, removing
from loadstone.keystone.identity import Identity
from loadstone.keystone.journal import Journal
from loadstone.keystone.scenarios.model import Scenario
from loadstone.keystone.things import User, of_iterations
from loadstone.target import Access
from loadstone.task.model import (
    ApiVersion,
    ApiVersions,
    Cleanup,
    Context,
    DummyContext,
    Quotas,
    Roles,
    Users,
)

Say = Callable[[str], None]
# Rows that users are drawn into at random: many a user, and at least so many.
_DRAWS_PER_USER, _FEWEST_DRAWS = 4, 1024


@dataclass(frozen=True, slots=True)
class Actors:
    """As whom a workload's load is made."""

    users: tuple[User, ...]
    journal: Journal = field(repr=False)
    choice: Literal["random", "round_robin"] = "random"
    api_versions: tuple[ApiVersion, ...] = ()
    are_own: bool = True  # made by the run, so that all of theirs goes with them

    def turns(self, seed: int = 0) -> tuple[int, ...]:
        """Give the index of the user of each iteration; iteration i takes turn i mod n.

        At random with putting back, as Rally draws, or each in turn. Rows for `compile_plan` are
        `[users[turn] for turn in turns]`, and tokens likewise.
        """
        count = len(self.users)
        if count < 2 or self.choice == "round_robin":
            return tuple(range(count))
        draw = Random(seed)  # noqa: S311  no secret
        draws = max(_FEWEST_DRAWS, _DRAWS_PER_USER * count)
        return tuple(draw.randrange(count) for _ in range(draws))

    def announce(self, scenario: Scenario) -> None:
        """Put into the journal what the scenario's iterations will make; before every load."""
        if not self.are_own:
            require_own_users(scenario)
        announce(self.journal, scenario)


def require_own_users(scenario: Scenario) -> None:
    """Refuse a scenario whose things only go with users that the run made."""
    if scenario.goes_with_users:
        raise InvalidInput(
            f"{scenario.name}: leaves {scenario.goes_with_users} with its users, and these exist "
            "already; let users be made (users: {tenants: 1} in a task, --users 1 or more)"
        )


def announce(journal: Journal, scenario: Scenario) -> None:
    """Put into the journal what the scenario's iterations will make; before every load."""
    for made in scenario.makes:
        thing = of_iterations(journal.run_id, made)
        journal.create(thing.kind, thing.name, thing.domain_id)


@contextmanager
def contexts(
    access: Access,
    run_id: str,
    wanted: Sequence[Context],
    journal_path: Path,
    say: Say,
    existing: Sequence[User] = (),
) -> Iterator[Actors]:
    """Make what the workload's contexts say; remove it, and what iterations made, at the end.

    `existing` users are taken where the file leaves room for them. What could not be removed stays
    in the journal (`clean.remaining`), and `say` is told the command that removes it. With the id
    and the journal of a run that was killed, the users that it had made are taken over.
    """
    dummies = [context for context in wanted if isinstance(context, DummyContext)]
    with removing(access, run_id, journal_path, say) as journal:
        if any(dummy.fail_setup for dummy in dummies):
            raise EnvironmentUnusable("dummy_context: failed, as fail_setup says")
        yield _made(access, wanted, journal, say, existing)
    if any(dummy.fail_cleanup for dummy in dummies):
        raise EnvironmentUnusable("dummy_context: failed, as fail_cleanup says")


def _made(
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
            case ApiVersions(clients=clients):
                actors = _with_versions(actors, clients)
            case Quotas(limits=limits):
                projects = sorted({user.project_id for user in actors.users})
                set_quotas(access, projects if actors.are_own else (), limits, say)
            case Roles() | Cleanup() | DummyContext():
                pass  # with the users; always done; done around this
            case _:
                assert_never(context)
    return actors


def _users(
    access: Access,
    wanted: Users,
    roles: tuple[str, ...],
    journal: Journal,
    say: Say,
    existing: Sequence[User],
) -> Actors:
    if existing and wanted.may_be_existing:
        if roles:
            raise InvalidInput(
                "roles: the users exist already, and their roles are not changed; give them "
                f"{', '.join(roles)} yourself, or let users be made (users: {{tenants: 1}})"
            )
        return Actors(tuple(existing), journal, wanted.choice, are_own=False)
    settings = UsersSettings(
        tenants=wanted.tenants,
        users_per_tenant=wanted.users_per_tenant,
        resource_management_workers=wanted.workers,
        roles=roles,
        password=wanted.password,
        project_domain=wanted.project_domain,
        user_domain=wanted.user_domain,
    )
    return Actors(make_users(Identity(access), settings, journal, say), journal, wanted.choice)


def _with_versions(actors: Actors, clients: tuple[ApiVersion, ...]) -> Actors:
    return replace(actors, api_versions=(*actors.api_versions, *clients))
