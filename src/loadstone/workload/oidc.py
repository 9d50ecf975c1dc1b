"""Requests to an OpenID provider."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial

from loadstone.errors import InvalidInput
from loadstone.keystone.contexts.workload import Actors
from loadstone.oidc.prepare import LEAST_SESSIONS, prepare, require_given
from loadstone.oidc.provider import Provider
from loadstone.oidc.scenarios import OidcNeed, OidcScenario, named
from loadstone.oidc.target import OidcIssuer
from loadstone.plan.model import Limits, Placement
from loadstone.search.model import TrialRequest
from loadstone.search.settings import FIRST_CONNECTIONS
from loadstone.system.say import Say
from loadstone.target.target import Target
from loadstone.workload.generator import (
    GeneratorPreview,
    Load,
    Loaded,
    LoadTerms,
)
from loadstone.workload.requests import limits_of_trial, send
from loadstone.workload.searchable import USUAL_OPTIONS, RequestOptions, Searchable


@dataclass(frozen=True, slots=True)
class OidcRequests:
    """A scenario of OpenID Connect; the engine sends it."""

    scenario: OidcScenario
    limits: Limits = field(default_factory=Limits)
    placement: Placement = field(default_factory=Placement)
    options: RequestOptions = USUAL_OPTIONS
    place: str = ""  # in a task file: "task.yaml:3: "

    needs_actors = False  # users are given, and nothing is created
    is_sent_by_engine = True
    requests_as_rally = False

    @property
    def preview(self) -> GeneratorPreview:
        """What an iteration sends."""
        return GeneratorPreview(self.scenario.request, limits=self.limits)

    def require_permitted(self, target: Target) -> None:
        """Refuse a target that is no OpenID provider; its host is permitted already."""
        self._provider(target)

    def require_usable(self, target: Target) -> None:
        """Nothing is created that a refusal would leave."""

    @contextmanager
    def prepared(
        self,
        target: Target,
        run_id: str,  # noqa: ARG002 (iterations create nothing that has a name)
        actors: Actors | None,  # noqa: ARG002 (users are given)
        say: Say,
    ) -> Iterator[Load]:
        """Try each operation once; each load gets the tokens that it needs."""
        prepared = prepare(self.scenario, self._provider(target), say)

        def load(request: TrialRequest, terms: LoadTerms) -> Loaded:
            limits = limits_of_trial(self.limits, request)
            plan = prepared.plan(request.load, limits, self.placement)
            plan = replace(
                plan,
                retries=self.options.retries,
                connection="iteration" if self.options.opens_connections else "kept",
            )
            return send(plan, prepared.actions, terms)

        yield load

    def _provider(self, target: Target) -> Provider:
        if target.provider is None:
            raise InvalidInput(
                f"{self.place}{self.scenario.name}: needs an OpenID provider: --oidc ISSUER"
            )
        return target.provider


def of_provider(name: str | None, target: OidcIssuer) -> Searchable:
    """Return a scenario by its name; InvalidInput says what is wrong.

    Without a name: logins if there are users, else client credentials.
    """
    count = len(target.users)
    scenario = named(name or ("oidc-login" if count else "oidc-client-credentials"))
    require_given(scenario, target, f"--scenario {scenario.name}")
    return of_scenario(scenario, str(count) if count else "none")


def of_scenario(scenario: OidcScenario, users: str) -> Searchable:
    """Return a scenario; `users` is the number of users that are given."""
    # Each session costs a login before every trial.
    first = LEAST_SESSIONS if OidcNeed.SESSIONS in scenario.needs else FIRST_CONNECTIONS
    return Searchable(
        scenario, partial(OidcRequests, scenario), users=users, first_connections=first
    )
