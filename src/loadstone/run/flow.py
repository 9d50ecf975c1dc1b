"""The flow of every run: a search, a task, a study cell.

For each measurement: create resources; make the trials that the load policy requests; judge and
store each trial as soon as it has ended; remove the resources.
"""

import math
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from loadstone.errors import (
    EnvironmentUnusable,
    InvalidInput,
    LoadstoneError,
    MeasurementInvalid,
)
from loadstone.faults.carried import FaultRunner
from loadstone.faults.pending import fault_target, undone_target
from loadstone.keystone.contexts.existing import own_user
from loadstone.keystone.contexts.users import RunJournal
from loadstone.keystone.contexts.workload import Actors, contexts
from loadstone.keystone.identity import Unreachable
from loadstone.keystone.journal import JOURNAL
from loadstone.keystone.resources import User
from loadstone.monitor import machine
from loadstone.observers.profile import require_profiler
from loadstone.oidc.target import OidcIssuer
from loadstone.report import figures
from loadstone.report.so_far import capacity_so_far
from loadstone.result.model import BESIDE, LAB_HOST, TAG, Environment, Measurement, Run
from loadstone.result.observer import Display
from loadstone.run import resume
from loadstone.run.backend import REAL, Backend
from loadstone.run.exit_code import leftovers
from loadstone.run.temporary import gone_with_target, is_temporary
from loadstone.run.trials import Trials
from loadstone.search.model import Capacity
from loadstone.search.repeats import combined
from loadstone.store.store import Store
from loadstone.system.clock import Clock
from loadstone.system.redaction import secrets_of_environment
from loadstone.target.choice import NamedTarget, TargetChoice, secrets_of
from loadstone.target.target import Target
from loadstone.workload.generator import Load
from loadstone.workload.model import MeasurementConfig, MeasurementGroup, RunConfig
from loadstone.workload.searchable import OWN_USER, USERS


def run(config: RunConfig, store: Store, display: Display, backend: Backend = REAL) -> Run:
    """Connect to the target and make the measurements; results are stored even if this raises."""
    secrets = config.secrets | secrets_of(config.target) | secrets_of_environment()
    if config.fault_commands is not None:
        secrets |= config.fault_commands.secrets
    if config.fleet is not None:
        _require_fleet_possible(config)
    with (
        hidden(secrets, store, display) as hiding,
        gone_with_target(config.target, config.run_id, store, display.say),
        undone_target(
            config.target, display.say, config.fault_commands, backend.connected
        ) as target,
        backend.sending_from(config.fleet, [target], display.say) as sending,
    ):
        return run_on(target, config, hiding, display, sending)


def run_on(
    target: Target, config: RunConfig, store: Store, display: Display, backend: Backend = REAL
) -> Run:
    """Make the measurements on a connected target; the backend's engine sends the loads."""
    with hidden(target.secrets, store, display) as hiding:
        _Flow(config, target, hiding, display, backend).carry_out()
        return hiding.get(config.run_id)


def _untraced(config: RunConfig) -> Iterator[str]:
    """Yield which measurements `--trace-share` does not reach."""
    for one in config.measurements if config.trace_share else ():
        if not one.generator.is_sent_by_engine:
            yield f"{one.heading}: Python functions send requests without traceparent"


def _require_fleet_possible(config: RunConfig) -> None:
    for one in config.measurements:
        if not one.generator.is_sent_by_engine:
            raise InvalidInput(
                f"{one.heading}: Python functions run on this machine, without --fleet"
            )


@dataclass(slots=True)
class _Flow:
    config: RunConfig
    target: Target
    store: Store
    display: Display
    backend: Backend
    left_s: float = field(init=False)  # remaining load time
    maker: str = field(init=False)  # the run that the users are named after
    index: int = field(default=-1, init=False)  # of the current measurement in the run
    present: Measurement = field(init=False)
    found_rps: float | None = field(default=None, init=False)  # the last N without a fault
    is_number: bool = field(default=False, init=False)  # else a lower bound of it

    def carry_out(self) -> None:
        """Make all measurements, and store how the run ended."""
        config, run_id, access = self.config, self.config.run_id, self.target.access
        _require_facts(config, self.target)
        for one in config.measurements:
            one.generator.require_permitted(self.target)
            if one.is_predicted:
                _require_observable(config.target, self.target)
            self._fault_runner.require_possible(one.faults, one.hooks, one.held)
        if config.profiles:
            require_profiler(self.target.members)
        self.left_s, self.maker = config.budget_s, run_id
        if config.resumed_run is not None:
            self.maker = resume.maker(self.store, config.resumed_run, access)
        begun = _new_run(config, self.target, self.backend)
        folder = self.store.begin(begun)
        self.display.on_run(begun)
        for warning in (*config.warnings, *_untraced(config)):
            self.display.say(warning)
        self.display.say(f"run {run_id}: {access.identity_url}")
        with self._recorded_end(begun), self._faults():
            if self.maker != run_id:
                resume.link(folder, self.store.folder(self.maker))
            for group in config.groups:
                self._group(group)
                if self.present.status == "aborted":
                    return
                if config.ends_at_broken_criteria and not self.present.checks_passed:
                    return

    @contextmanager
    def _recorded_end(self, begun: Run) -> Iterator[None]:
        """Store how a run ended, however it ends."""
        status, failure = "failed", None
        try:
            yield
            status = "finished"
        except KeyboardInterrupt:
            status = "interrupted"
            raise
        except LoadstoneError as error:
            failure = str(error)
            raise
        finally:
            store, environment = self.store, begun.environment
            if others := self.target.beside:
                beside = (BESIDE, ", ".join(others))
                environment = replace(environment, target=(*environment.target, beside))
            is_kept = not is_temporary(self.config.target)
            has_leftovers = is_kept and _has_leftovers(store, begun.run_id)
            environment = replace(environment, has_leftovers=has_leftovers)
            ended_at = _now(self.backend.clock)
            store.finish(
                replace(
                    begun,
                    status=status,
                    ended_at=ended_at,
                    failure=failure,
                    environment=environment,
                )
            )
            # The journal of the run that made the users: this run may have no link to it.
            if self.maker != begun.run_id and not _has_leftovers(store, self.maker):
                store.mark_clean(self.maker)

    @contextmanager
    def _faults(self) -> Iterator[None]:
        """If the run injects faults, make sure that they are undone, however this process ends."""
        if not self.config.has_faults:
            yield
            return
        with self._fault_runner.undoing(self.display.say):
            self.target = replace(self.target, failure=lambda: None)  # parts may be dead
            yield

    def _now_s(self) -> float:
        return self.backend.clock.monotonic_s()

    @property
    def _fault_runner(self) -> FaultRunner:
        return FaultRunner(
            fault_target(self.target),
            self.config.fault_commands,
            self.config.run_id,
            dict(self.target.facts).get(LAB_HOST),
            self.backend.clock,
        )

    def _group(self, group: MeasurementGroup) -> None:
        began_s = self._now_s()
        first, *others = group.measurements
        self._begin(first)
        try:
            first.generator.require_usable(self.target)
            with self._resources(group) as actors:
                self._measure(first, actors)
                for later in others:
                    self._measure(self._begin(later), actors)
            if group.is_repeated and others:
                self._combine(group)
        except LoadstoneError as problem:
            error = self._explained(problem)
            self._keep(status="failed", failure=str(error), failure_code=error.exit_code)
            # The next measurement may not need what this one lacks.
            is_its_own = isinstance(error, EnvironmentUnusable | InvalidInput) and not isinstance(
                error, Unreachable
            )
            if not self.config.goes_on_after_failure or not is_its_own:
                if error is problem:
                    raise
                raise error from problem
            self.display.say(f"  failed: {error}")
        except BaseException:
            if not self.present.has_ended:  # else only the removal was interrupted
                found = self.present.capacity
                if self.present.policy == "search" and found is None:
                    found = capacity_so_far(self.present.trials)
                self._keep(status="interrupted", capacity=found)
            raise
        if not others:
            self._keep(wall_s=self._now_s() - began_s)  # with set-up and clean-up

    def _explained(self, error: LoadstoneError) -> LoadstoneError:
        """Return an error that says why a target that was not reached is no longer there."""
        why = self.target.failure() if isinstance(error, Unreachable) else None
        return error if why is None else Unreachable(why)

    @contextmanager
    def _resources(self, group: MeasurementGroup) -> Iterator[Actors | None]:
        """Create the resources of the contexts; at the end remove them and those of iterations."""
        if not group.contexts and not any(one.generator.needs_actors for one in group.measurements):
            yield None
            return
        path, option = self.store.folder(self.config.run_id) / JOURNAL, self.store.location.option
        journal = RunJournal(self.maker, path, option)
        existing = self._existing_users(group)
        access, say = self.target.access, self.display.say
        with contexts(access, journal, group.contexts, say, existing) as actors:
            yield actors

    def _existing_users(self, group: MeasurementGroup) -> tuple[User, ...]:
        """Return the existing users to use; an empty tuple if users must be created."""
        if group.most_existing == 0:
            return (own_user(self.target.access),)
        users = self.target.users()
        if users and group.most_existing is not None and group.most_existing > len(users):
            raise InvalidInput(
                f"{group.most_existing} users are asked for, and the target has {len(users)}; "
                "no others can be made there"
            )
        return users[: group.most_existing]

    def _begin(self, config: MeasurementConfig) -> MeasurementConfig:
        """Store the record of a measurement, and return it with the load computed from N."""
        self.index += 1
        # Stored before its load is computed, which may fail: the one before it has ended.
        self._keep_record(config)
        config = self._at_capacity(config)
        self._keep_record(config)
        self.display.on_measurement(config.heading)
        return config

    def _keep_record(self, config: MeasurementConfig) -> None:
        # Stored before its first trial, so that the trials of a killed run have a measurement.
        self.present = replace(config.record, requests_as_rally=config.generator.requests_as_rally)
        self._keep()

    def _at_capacity(self, config: MeasurementConfig) -> MeasurementConfig:
        """Return the measurement; a load that is a share of N is computed from the N found."""
        if config.at_capacity is None:
            return config
        if self.found_rps is None:
            raise MeasurementInvalid(
                "N was not found, and the load is a share of it; give a rate in its place"
            )
        return config.at_capacity(self.found_rps, is_lower_bound=not self.is_number)

    def _measure(self, config: MeasurementConfig, actors: Actors | None) -> None:
        began_s = self._now_s()
        target, say = self.target, self.display.say
        self._keep_users(actors)
        with (
            config.generator.prepared(target, self.maker, actors, say) as load,
            self._fault_runner.hold(config.held, say),
        ):
            if math.isfinite(config.budget_s):
                self.display.begin(config.budget_s)
            self.display.watch(target.watch)
            capacity = self._carry_out(config, load)
        trials = self.present.trials
        is_aborted = bool(trials) and trials[-1].status == "aborted"
        self._keep(
            capacity=capacity,
            status="aborted" if is_aborted else "finished",
            wall_s=self._now_s() - began_s,
        )
        self.display.on_measured(capacity)
        notes = target.explain(self.present) if config.goal is not None else ()
        beside = tuple(f"measured at the same time as {name}" for name in target.beside)
        self._keep(notes=(*notes, *beside, *self._remaining_capacity(config, capacity)))

    def _keep_users(self, actors: Actors | None) -> None:
        """Store the number of users if they exist already, which only the target tells."""
        if actors is None or actors.are_own:
            return
        count = str(len(actors.users))
        parameters = tuple(
            (name, count if name == USERS and text != OWN_USER else text)
            for name, text in self.present.parameters
        )
        if parameters != self.present.parameters:
            self._keep(parameters=parameters)

    def _carry_out(self, config: MeasurementConfig, load: Load) -> Capacity | None:
        """Make the trials that the load policy requests."""
        trials = Trials(
            self.config,
            config,
            self.target,
            self.store,
            self.display,
            self.backend.engine,
            load,
            self._fault_runner,
            self.index,
            self.present,
            self.left_s,
        )
        try:
            capacity, _ = config.policy.run(trials.measure)
        finally:
            self.present, self.left_s = trials.measurement, trials.left_s
            self.present = replace(self.present, capacity=trials.found or self.present.capacity)
        return capacity

    def _remaining_capacity(
        self, config: MeasurementConfig, capacity: Capacity | None
    ) -> tuple[str, ...]:
        """Remember N; during a fault, return a note with the share of N that remains."""
        found_rps = None if capacity is None else capacity.rate_rps or capacity.low_rps
        if found_rps is None or capacity is None:
            return ()
        is_number = None not in (capacity.rate_rps, capacity.high_rps)
        if config.held is None:
            self.found_rps, self.is_number = found_rps, is_number
        elif self.found_rps is not None and is_number and self.is_number:
            return (
                f"{100 * found_rps / self.found_rps:.0f} % of the {figures.rate(self.found_rps)}/s "
                "that it sustains with nothing broken",
            )
        return ()

    def _combine(self, group: MeasurementGroup) -> None:
        """Add a measurement that combines several searches; each search keeps its own trials."""
        count = len(group.measurements)
        searches = self.store.get(self.config.run_id).measurements[-count:]
        self.index += 1
        self.present = replace(
            searches[0],
            title=f"{searches[0].title.rpartition(', search ')[0]}, {count} searches",
            capacity=combined(
                [one.capacity for one in searches if one.capacity is not None],
                group.search_s,
            ),
            trials=(),
            is_repeat=False,
            notes=(),
            least_rps=group.least_rps,
            wall_s=sum(one.wall_s for one in searches),
        )
        self._keep()

    def _keep(self, **changes: Any) -> None:
        """Store the present measurement; its trials are stored already."""
        self.present = replace(self.present, **changes)
        plain = replace(self.present, trials=())
        self.store.keep_measurement(self.config.run_id, self.index, plain)


def _require_facts(config: RunConfig, target: Target) -> None:
    """Refuse a target that is not what the configuration says, such as with another hash."""
    stated = dict(target.facts)
    for name, expected in config.expected_facts:
        found = stated.get(name)
        if found is None or not re.match(rf"{re.escape(expected)}(?![\w.])", found):
            has = "does not state it" if found is None else f"has {found}"
            raise EnvironmentUnusable(f"{name}: expected {expected}, and the target {has}")


def _require_observable(choice: TargetChoice, target: Target) -> None:
    """Refuse to predict N of a service whose processes cannot be watched."""
    if not isinstance(choice, NamedTarget | OidcIssuer):
        return
    if choice.lab is None and not choice.watched and target.members() is None:
        raise InvalidInput(
            "--predict reads what a request costs the service's processes, and those of this "
            "target are not known: use --lab, or watch its machine with --monitor ssh=HOST or "
            "--monitor prometheus=URL"
        )


def _new_run(config: RunConfig, target: Target, backend: Backend) -> Run:
    """Return the record of a run that begins."""
    if target.reservation is not None:
        target.reservation.set_run(config.run_id)
    facts = {"url": target.access.identity_url} | dict(target.facts)
    facts |= {f"{TAG}{name}": value for name, value in config.tags}
    audit = backend.audited(config.target, target.access.endpoint)
    fleet = () if config.fleet is None else (("fleet", str(config.fleet)),)
    return Run(
        run_id=config.run_id,
        kind=config.kind,
        status="running",
        started_at=_now(backend.clock),
        ended_at=None,
        measurements=(),
        environment=Environment(
            machine=(*machine.facts(), *fleet),
            target=tuple(facts.items()),
            facts=audit.facts,
            audit=audit.findings,
        ),
        command=config.command,
        title=config.title,
    )


def _has_leftovers(store: Store, run_id: str) -> bool:
    try:
        return bool(leftovers(store, run_id))
    except EnvironmentUnusable:  # its journal cannot be read: the run may have left something
        return True


@contextmanager
def hidden(secrets: Iterable[str], store: Store, display: Display) -> Iterator[Store]:
    """Return a store that redacts these secrets; display and errors redact them, too."""
    hiding = store.hiding(secrets, display.say)
    display.hide(hiding.redaction)
    try:
        yield hiding
    except LoadstoneError as error:
        error.args = (hiding.redaction.text(str(error)),)
        raise


def _now(clock: Clock) -> str:
    return datetime.fromtimestamp(clock.unix_s(), UTC).isoformat(timespec="seconds")
