"""The whole flow on one page: an order in, a Result out, everything kept as soon as it is known."""

import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from loadstone.analysis.goal import Goal
from loadstone.analysis.model import Trial
from loadstone.analysis.trial import alarm, assess
from loadstone.engine import local
from loadstone.engine.progress import Progress
from loadstone.errors import EnvironmentUnusable, LoadstoneError
from loadstone.keystone.compile import compile_plan
from loadstone.keystone.contexts.application_credentials import with_application_credentials
from loadstone.keystone.contexts.existing import own_user
from loadstone.keystone.contexts.tokens import issue_tokens
from loadstone.keystone.contexts.users import UsersSettings, users
from loadstone.keystone.contexts.workload import announce, require_own_users
from loadstone.keystone.journal import Journal
from loadstone.keystone.scenarios import Scenario
from loadstone.keystone.things import Token, User
from loadstone.monitor import machine
from loadstone.monitor.usage import snapshot, usage
from loadstone.plan.model import Limits, Placement
from loadstone.result import Environment, Finding, Result
from loadstone.search.model import Ask, Capacity, Measure, Strategy
from loadstone.search.repeats import combined
from loadstone.search.run import search
from loadstone.store.store import Store
from loadstone.target import Access

JOURNAL = "created.jsonl"


@dataclass(frozen=True, slots=True)
class Job:
    """One scenario, and how hard it is asked: a search from the start, or one stretch of load."""

    scenario: Scenario
    how: Callable[[], Strategy] | Ask
    load_s: float  # at most; for the display
    parameters: tuple[tuple[str, str], ...]  # the above in words, for the report
    search: tuple[int, int] = (1, 1)  # which of how many that are combined

    @property
    def title(self) -> str:
        """Give the scenario's title, with which search it is where there are several."""
        number, count = self.search
        part = f", search {number} of {count}" if count > 1 else ""
        return f"{self.scenario.title}{part}"


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be measured, and within which limits."""

    kind: str
    jobs: tuple[Job, ...]
    goal: Goal = field(default_factory=Goal)
    users: UsersSettings | None = None  # None: the target's own user, nothing is made
    limits: Limits = field(default_factory=Limits)
    placement: Placement = field(default_factory=Placement)


@dataclass(frozen=True, slots=True)
class Subject:
    """What is measured, and what can be known of it from this machine."""

    access: Access
    facts: tuple[tuple[str, str], ...]
    pids: Callable[[], tuple[int, ...] | None] = field(default=lambda: None)
    # One line with the log that explains it, once a part of the service has died.
    failure: Callable[[], str | None] = field(default=lambda: None)
    # What is known of the service besides the trials, as words for the report.
    explain: Callable[[Scenario, Finding], tuple[str, ...]] = field(default=lambda _, __: ())
    # Users that it has, where none can be made as others are: kept in LDAP.
    people: Callable[[], tuple[User, ...]] | None = None


class Observer(Protocol):
    """Whoever shows what goes on."""

    def say(self, line: str) -> None:
        """Show one line that stays."""

    def begin(self, load_s: float) -> None:
        """Say that at most `load_s` seconds of load begin."""

    def watch(self, ask: Ask, progress: Progress) -> None:
        """Show where a trial stands."""

    def trial(self, trial: Trial) -> None:
        """Show a trial that has ended."""


def run(order: Order, subject: Subject, store: Store, observer: Observer, command: str) -> Result:
    """Measure what is ordered; what was measured is in the store also when this raises."""
    result = begun(order.kind, subject, command)
    folder = store.begin(result)
    observer.say(f"run {result.run_id}: {subject.access.identity_url}")
    with closing(result, store) as findings, actors(order, subject, folder, observer) as people:
        for job in order.jobs:
            trip = Trip(order, subject, store, observer, result.run_id, len(findings))
            finding = trip.find(job, people)
            store.keep_finding(result.run_id, len(findings), finding)
            findings.append(finding)
            number, count = job.search
            if number == count > 1:
                finding = together(job, findings[-count:])
                store.keep_finding(result.run_id, len(findings), finding)
                findings.append(finding)
    return store.get(result.run_id)


@contextmanager
def actors(
    order: Order, subject: Subject, folder: Path, observer: Observer
) -> Iterator[tuple[User, ...]]:
    """Give those as whom the load is made: the target's own, those that it has, or made ones.

    What is made, by iterations too, goes at the end.
    """
    scenarios = [job.scenario for job in order.jobs]
    if order.users is None or subject.people is not None:
        for scenario in scenarios:
            require_own_users(scenario)
    if order.users is None:
        yield (own_user(subject.access),)
    elif subject.people is not None:
        yield subject.people()[: order.users.tenants * order.users.users_per_tenant]
    else:
        journal = folder / JOURNAL
        with users(subject.access, folder.name, order.users, journal, observer.say) as people:
            for scenario in scenarios:
                announce(Journal(journal, folder.name), scenario)
            yield people


@dataclass(frozen=True, slots=True)
class Trip:
    """One scenario's way from its actors to its finding."""

    order: Order
    subject: Subject
    store: Store
    observer: Observer
    run_id: str
    index: int  # of the finding in the result

    def find(self, job: Job, people: tuple[User, ...]) -> Finding:
        """Carry out one job."""
        scenario = job.scenario
        if scenario.needs_application_credentials:
            people = with_application_credentials(self.subject.access, people)
        tokens = self.tokens(scenario, people)
        finding = Finding(
            scenario=scenario.name,
            title=job.title,
            request=scenario.request,
            capacity=None,
            trials=(),
            load_s=0.0,
            wall_s=0.0,
            parameters=job.parameters,
            is_search=not isinstance(job.how, Ask),
        )
        # In the store before the first trial, so that a killed run knows what its trials are of.
        self.store.keep_finding(self.run_id, self.index, finding)
        self.observer.say(f"{job.title}: {scenario.request}")
        self.observer.begin(job.load_s)
        began_s = time.monotonic()
        measure = self.measure(scenario, people, tokens)
        capacity, trials = carried_out(job.how, measure)
        finding = replace(
            finding,
            capacity=capacity,
            trials=trials,
            load_s=sum(trial.summary.load_s for trial in trials),
            wall_s=time.monotonic() - began_s,
        )
        return replace(finding, notes=self.subject.explain(scenario, finding))

    def tokens(self, scenario: Scenario, people: tuple[User, ...]) -> tuple[Token, ...]:
        """Issue the tokens that the scenario needs."""
        if not scenario.needs_tokens:
            return ()
        self.observer.say(f"issuing {len(people)} tokens to validate")
        return issue_tokens(self.subject.access, people)

    def measure(
        self, scenario: Scenario, people: tuple[User, ...], tokens: tuple[Token, ...]
    ) -> Callable[[Ask], Trial]:
        """Give the function that the search measures with: one stretch of load on the target."""
        numbers = iter(range(1, 10**6))

        def trial(ask: Ask) -> Trial:
            self.require_alive()
            time.sleep(ask.pause_s)
            order, access = self.order, self.subject.access
            fresh = scenario.of_run(self.run_id)
            plan = compile_plan(fresh, access, people, tokens, ask.load, order.limits)
            plan = replace(plan, placement=order.placement)
            watchdog = alarm(ask.load, ask.alarm_s, order.goal)

            def watch(progress: Progress) -> bool:
                self.observer.watch(ask, progress)
                return watchdog(progress) and self.subject.failure() is None

            before = snapshot(self.subject.pids())
            measured = local.run(plan, watch)
            spent = usage(before, snapshot(self.subject.pids()))
            offer = ask.offer(next(numbers))
            judged = assess(offer, measured.samples, measured.health, order.goal)
            kept = self.store.keep_trial(
                self.run_id, self.index, replace(judged, usage=spent), measured.samples
            )
            self.observer.trial(kept)
            if measured.interrupted:
                raise KeyboardInterrupt
            self.require_alive()
            return kept

        return trial

    def require_alive(self) -> None:
        """Stop the run when a part of the service has died."""
        if why := self.subject.failure():
            raise EnvironmentUnusable(why)


def carried_out(
    how: Callable[[], Strategy] | Ask, measure: Measure
) -> tuple[Capacity | None, tuple[Trial, ...]]:
    """Search, or put one stretch of load on the service: it has no capacity."""
    return (None, (measure(how),)) if isinstance(how, Ask) else search(how(), measure)


def together(job: Job, searches: Sequence[Finding]) -> Finding:
    """Give what several searches of one scenario found together; each keeps its own trials."""
    return replace(
        searches[0],
        title=f"{job.scenario.title}, {len(searches)} searches",
        capacity=combined([one.capacity for one in searches if one.capacity is not None]),
        trials=(),
        notes=(),
        load_s=sum(one.load_s for one in searches),
        wall_s=sum(one.wall_s for one in searches),
    )


def begun(kind: str, subject: Subject, command: str) -> Result:
    """Give the result of a run that has just begun."""
    now = datetime.now(UTC)
    target = {"url": subject.access.identity_url} | dict(subject.facts)
    return Result(
        run_id=f"{now:%Y%m%d-%H%M}-{secrets.token_hex(3)}",
        kind=kind,
        status="running",
        started_at=now.isoformat(timespec="seconds"),
        ended_at=None,
        findings=(),
        environment=Environment(machine=machine.facts(), target=tuple(target.items())),
        command=command,
    )


@contextmanager
def closing(result: Result, store: Store) -> Iterator[list[Finding]]:
    """Keep how a run ended, however it ends."""
    findings: list[Finding] = []
    status, failure = "failed", None
    try:
        yield findings
        status = "finished"
    except KeyboardInterrupt:
        status = "interrupted"
        raise
    except LoadstoneError as error:
        failure = str(error)
        raise
    finally:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        kept = store.get(result.run_id).findings
        ended = replace(result, status=status, ended_at=now, failure=failure)
        store.finish(replace(ended, findings=(*findings, *kept[len(findings) :])))
