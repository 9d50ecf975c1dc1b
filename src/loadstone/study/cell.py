"""The run configuration of one turn of a study."""

import math
from dataclasses import replace
from itertools import groupby

from loadstone.analysis.goal import Goal
from loadstone.keystone.contexts.workload import evenly
from loadstone.keystone.scenarios import named
from loadstone.keystone.scenarios.model import Need
from loadstone.lab.keystone import settings
from loadstone.lab.keystone.settings import Service
from loadstone.oidc.scenarios import named as named_of_provider
from loadstone.plan.load import ClosedLoad
from loadstone.plan.model import Limits, Placement
from loadstone.rally.task.model import Task
from loadstone.rally.task.read import check_tree
from loadstone.rally.task.tree import parse
from loadstone.result.model import Measurement as Record
from loadstone.search.model import TrialRequest
from loadstone.study.model import (
    Cell,
    ClosedLoopStep,
    FaultMeasurement,
    Measurement,
    SearchMeasurement,
    StepsMeasurement,
    Study,
    Tasks,
)
from loadstone.study.order import Turn
from loadstone.target.choice import OwnLab, ReferenceService, TargetChoice
from loadstone.workload.capacity import SearchTerms, by_name, search_group
from loadstone.workload.fault import fault_groups, most_rate_rps
from loadstone.workload.model import MeasurementConfig, MeasurementGroup, RunConfig
from loadstone.workload.oidc import of_scenario
from loadstone.workload.policy import Fixed
from loadstone.workload.requests import Requests
from loadstone.workload.searchable import OWN_USER, USERS, Searchable
from loadstone.workload.task import TaskTerms, task_groups

# max_rate_rps of the study file applies to Keystone, not to the reference service.
REFERENCE_MAX_RATE_RPS = 100_000.0
DEFAULT_MAX_RATE_RPS = 5000.0
TASK_BUDGET_S = 3000.0
WARM_UP_CLIENTS = 8


def config_of(study: Study, study_id: str, turn: Turn, command: str) -> RunConfig:
    """Return the configuration of one turn's run, on a temporary target."""
    about = (("study", f"{study_id}, turn {turn.number}"), ("cell", str(turn.cell)))
    max_rate_rps = _max_rate_rps(study.measurement, turn.cell)
    groups = groups_of(study.measurement, turn.cell, max_rate_rps)
    if isinstance(study.measurement, FaultMeasurement):
        # A given rate or an overload may be above the limit of a search.
        terms = replace(study.measurement.terms, max_rate_rps=max_rate_rps)
        max_rate_rps = most_rate_rps(terms)
    is_task = isinstance(study.measurement, Tasks)
    until_failure = isinstance(study.measurement, Tasks) and study.measurement.until_failure
    return RunConfig(
        kind="task" if is_task else "study",
        target=_target(turn.cell, f"study-{study_id}"),
        groups=tuple(_labelled(group, about) for group in groups),
        command=command,
        title=task_of(study.measurement).title if isinstance(study.measurement, Tasks) else "",
        max_rate_rps=max_rate_rps,
        expected_facts=turn.cell.expected,
        goes_on_after_failure=is_task,
        ends_at_broken_criteria=until_failure,
        secrets=study.secrets,
        budget_s=TASK_BUDGET_S if is_task else math.inf,
    )


def groups_of(
    measurement: Measurement, cell: Cell, max_rate_rps: float
) -> tuple[MeasurementGroup, ...]:
    """Return the measurements of a cell."""
    match measurement:
        case StepsMeasurement():
            return steps_groups(measurement)
        case Tasks():
            return task_groups(task_of(measurement), TaskTerms(max_rate_rps=max_rate_rps))
        case SearchMeasurement():
            terms = SearchTerms(
                method=measurement.method,
                budget_s=measurement.budget_s,
                max_rate_rps=max_rate_rps,
                objectives=measurement.objectives,
            )
            searched = searched_of(measurement, cell)
            group = search_group((searched,), terms)
            if seconds := measurement.warm_up_of(cell.service):
                warm_up = _warm_up(searched, seconds)
                group = replace(group, measurements=(warm_up, *group.measurements))
            return (group,)
        case FaultMeasurement():
            searched = by_name(measurement.scenario, measurement.users)
            return fault_groups(searched, replace(measurement.terms, max_rate_rps=max_rate_rps))


def searched_of(measurement: SearchMeasurement, cell: Cell) -> Searchable:
    """Return what a search of a cell sends."""
    if cell.service.is_provider:
        return of_scenario(named_of_provider(cell.scenario), "the lab's")
    # The plain service in Flask has one user.
    users = 0 if cell.service is Service.FLASK_REFERENCE else measurement.users
    return by_name(cell.scenario, users)


def _warm_up(searched: Searchable, seconds: float) -> MeasurementConfig:
    """Return a closed loop before a search, for services that compile what is called often."""
    scenario = searched.scenario
    limits = Limits(max_connections=WARM_UP_CLIENTS)
    return MeasurementConfig(
        record=Record(
            scenario=scenario.name,
            title=f"{scenario.title}, warm-up",
            request=scenario.request,
            policy="fixed",
            parameters=(("at once", str(WARM_UP_CLIENTS)), ("load time", f"{seconds:g} s")),
        ),
        generator=searched.generator(limits, Placement()),
        policy=Fixed(
            TrialRequest(ClosedLoad(WARM_UP_CLIENTS, seconds), "warm-up", tolerates_errors=True)
        ),
        heading=f"{scenario.title}, warm-up: {scenario.request}",
        goal=Goal(),
        budget_s=seconds,
    )


def steps_groups(measurement: StepsMeasurement) -> tuple[MeasurementGroup, ...]:
    """Return a measurement for each step, in order; those of a group have the same users.

    Steps that change their users, such as by a second factor, have users of their own.
    """
    widest = max(step.concurrency for step in measurement.steps)
    parts = [list(steps) for _, steps in groupby(measurement.steps, _changes_of_users)]
    return tuple(
        MeasurementGroup(
            tuple(_step(step, measurement.users, widest) for step in part),
            contexts=(evenly(measurement.users),),
            most_existing=measurement.users,
        )
        for part in parts
    )


def _changes_of_users(step: ClosedLoopStep) -> tuple[Need, ...]:
    return tuple(need for need in named(step.scenario).needs if need.changes_users)


def task_of(measurement: Tasks) -> Task:
    """Parse the Rally task of a measurement."""
    return check_tree(parse(measurement.text, "task")).task


def _step(step: ClosedLoopStep, users: int, widest: int) -> MeasurementConfig:
    scenario = named(step.scenario)
    load = ClosedLoad(step.concurrency, step.at_most_s, step.iterations)
    parameters = (
        ("step", step.name if step.timed else f"{step.name} (not timed)"),
        ("iterations", str(step.iterations)),
        ("at once", str(step.concurrency)),
        ("load time at most", f"{step.at_most_s:g} s"),
        (USERS, str(users or OWN_USER)),
    )
    return MeasurementConfig(
        record=Record(
            scenario=scenario.name,
            title=scenario.title,
            request=scenario.request,
            policy="fixed",
            parameters=parameters,
        ),
        generator=Requests(scenario, limits=Limits(max_connections=widest)),
        # The first requests of a process may fail, and only what comes after them counts.
        policy=Fixed(TrialRequest(load, step.name, tolerates_errors=not step.timed)),
        heading=f"{scenario.title}: {scenario.request}",
        goal=Goal(),
        budget_s=step.at_most_s,
    )


def _labelled(group: MeasurementGroup, about: tuple[tuple[str, str], ...]) -> MeasurementGroup:
    """Return the measurements with study and cell as parameters, for reports."""
    labelled = (_with_parameters(one, about) for one in group.measurements)
    return replace(group, measurements=tuple(labelled))


def _with_parameters(
    one: MeasurementConfig, about: tuple[tuple[str, str], ...]
) -> MeasurementConfig:
    later = one.at_capacity

    def at_capacity(capacity_rps: float, *, is_lower_bound: bool = False) -> MeasurementConfig:
        if later is None:
            raise AssertionError("its load is no share of N")
        return _with_parameters(later(capacity_rps, is_lower_bound=is_lower_bound), about)

    return replace(
        one,
        record=replace(one.record, parameters=about + one.record.parameters),
        at_capacity=None if later is None else at_capacity,
    )


def _target(cell: Cell, name: str) -> TargetChoice:
    if cell.is_reference and not cell.settings:
        return ReferenceService()
    return OwnLab(name, settings.read(cell.settings), is_purged=True)


def _max_rate_rps(measurement: Measurement, cell: Cell) -> float:
    if cell.is_reference:
        return REFERENCE_MAX_RATE_RPS
    if isinstance(measurement, SearchMeasurement):
        return measurement.max_rate_rps
    return DEFAULT_MAX_RATE_RPS
