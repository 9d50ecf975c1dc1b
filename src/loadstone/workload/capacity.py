"""Searches for N: of a scenario by its name, or of a workload of a task file."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, assert_never

from loadstone.analysis.goal import NO_OBJECTIVES, goal, with_rules
from loadstone.engine.limits import MOST_CONNECTIONS, most_connections
from loadstone.errors import InvalidInput
from loadstone.keystone.contexts.model import Context, Users
from loadstone.keystone.contexts.workload import evenly
from loadstone.keystone.scenarios import Scenario, is_named, named, unknown
from loadstone.oidc.scenarios import PREFIX as OIDC
from loadstone.plan.json_value import Json
from loadstone.plan.model import Limits, Placement
from loadstone.rally.scenarios import is_data
from loadstone.rally.scenarios import scenario as rally_scenario
from loadstone.rally.task.catalogue.own import OIDC_PLATFORM, entry_of
from loadstone.rally.task.catalogue.scenarios import SCENARIOS as CATALOGUE
from loadstone.rally.task.checked import Checked
from loadstone.rally.task.model import Workload
from loadstone.rally.task.problem import TaskInvalid
from loadstone.rally.task.read import check_tree
from loadstone.rally.task.spec import runner_text
from loadstone.rally.task.tree import Path, Tree, parse
from loadstone.result.model import Measurement
from loadstone.search import low_load, profiling
from loadstone.search.curve import SHARES
from loadstone.search.low_load import after_low_load
from loadstone.search.model import Strategy
from loadstone.search.profiling import with_profile
from loadstone.search.settings import SearchSettings
from loadstone.search.strategies import DEFAULT, strategy
from loadstone.system.redaction import secrets_in
from loadstone.workload.model import MAX_RATE_RPS, MeasurementConfig, MeasurementGroup
from loadstone.workload.policy import LowLoad, Search
from loadstone.workload.requests import Requests
from loadstone.workload.searchable import OWN_USER, USERS, RequestOptions, Searchable

ARG = "--arg"
BY_ENGINE = "Authenticate.keystone, KeystoneBasic.*, HttpRequests.*"
_FUNCTION = "a Python function"
_FUNCTIONS = (
    f"N can be searched only for scenarios that the engine sends by itself ({BY_ENGINE}); "
    "`loadstone run` carries functions out"
)
SHOWN = 80  # characters of the arguments in a title
_SUBTASK: Path = ("subtasks", 0)


def by_name(name: str, users: int, arguments: Sequence[str] = ()) -> Searchable:
    """Return a scenario by its name, with arguments NAME=VALUE and this number of users.

    The name is a short one, a mix, or one that task files use; InvalidInput says what is wrong.
    """
    searched = (
        _of_catalogue(name, users, arguments)
        if name in CATALOGUE
        else _of_own(name, users, arguments)
    )
    scenario = searched.scenario
    if isinstance(scenario, Scenario) and scenario.goes_with_users and searched.most_existing == 0:
        raise InvalidInput(
            f"--scenario {name} needs --users 1 or more: the {scenario.goes_with_users} that it "
            "makes are removed with the users of the run"
        )
    return searched


def _of_own(name: str, users: int, arguments: Sequence[str]) -> Searchable:
    if OIDC in name:
        raise InvalidInput(f"--scenario {name}: needs an OpenID provider: --oidc ISSUER")
    if not is_named(name):
        of_tasks = [one for one in CATALOGUE if is_data(one)]
        raise unknown(name, of_tasks, f"; or a scenario of task files ({BY_ENGINE})")
    if arguments:
        raise InvalidInput(f"{ARG}: scenario {name} takes no arguments")
    return _searchable(named(name), (evenly(users),), users)


def _of_catalogue(name: str, users: int, arguments: Sequence[str]) -> Searchable:
    _require_engine(name, f"--scenario {name}")
    checked = _checked(name, arguments)
    workload = checked.task.subtasks[0].workloads[0]
    has_users = any(isinstance(context, Users) for context in workload.contexts)
    contexts = (evenly(users),) if has_users else ()
    found = _of_workload(workload, ARG, contexts, users if has_users else None)
    return replace(found, secrets=checked.secrets)


def of_task(checked: Checked, selector: str | None) -> Searchable:
    """Return a workload of a task: its number from 1 over all, or its scenario's name.

    The search chooses the load: runner and hooks of the file are left out, and the parameters say
    so. Rules of the SLA become objectives where they can.
    """
    workloads = checked.task.workloads
    return _of_checked(checked, _chosen([one.scenario.name for one in workloads], selector))


def of_whole_task(checked: Checked) -> tuple[Searchable, ...]:
    """Return each workload of a task; warnings name the Python functions, which are left out."""
    workloads = checked.task.workloads
    numbered = tuple(enumerate(workloads, 1))
    found = [number for number, one in numbered if is_data(one.scenario.name)]
    if not found:
        raise InvalidInput(f"--all: no workload can be searched: {_FUNCTIONS}")
    left_out = tuple(
        f"workload {number} of {len(workloads)}, {one.scenario.name}, is left out: "
        f"{_not_searched(one.scenario.name)}"
        for number, one in numbered
        if number not in found
    )
    searched = (_of_checked(checked, number) for number in found)
    return tuple(replace(one, warnings=(*one.warnings, *left_out)) for one in searched)


def _of_checked(checked: Checked, number: int) -> Searchable:
    """Return a workload of a task by its number, from 1."""
    workloads = checked.task.workloads
    workload = workloads[number - 1]
    place = f"{workload.file}:{workload.line}"
    _require_engine(workload.scenario.name, f"{place}: {workload.scenario.name}")
    runner = f"{runner_text(workload.spec)}; not used, the search chooses the load"
    left_out = [("runner of the task", runner)]
    if workload.hooks:
        left_out.append(("hooks of the task", f"{len(workload.hooks)}, not run"))
    about = _of_workload(workload, place, workload.contexts)
    return replace(
        about,
        parameters=(
            ("task", f"{workload.file}, workload {number} of {len(workloads)}"),
            *about.parameters,
            *left_out,
        ),
        rules=() if workload.is_sla_implied else workload.sla,
        secrets=checked.secrets,
        warnings=checked.warning_lines,
    )


def _chosen(names: Sequence[str], selector: str | None) -> int:
    """Return the number of the selected workload, from 1."""
    numbers = range(1, len(names) + 1)
    if selector is None and len(names) == 1:
        return 1
    matches = [number for number in numbers if selector in (str(number), names[number - 1])]
    if len(matches) == 1:
        return matches[0]
    choices = ", ".join(f"{number} {name}" for number, name in enumerate(names, 1))
    if selector is None:
        raise InvalidInput(
            f"the task has several workloads; choose one with --workload, or --all: {choices}"
        )
    if matches:
        raise InvalidInput(
            f"--workload {selector}: several workloads have this scenario; choose by number: "
            f"{choices}"
        )
    raise InvalidInput(
        f"--workload {selector}: the task has no such workload; choose from {choices}"
    )


def _require_engine(name: str, place: str) -> None:
    if not is_data(name):
        why = _not_searched(name)
        raise InvalidInput(f"{place} is {why}{f': {_FUNCTIONS}' if why == _FUNCTION else ''}")


def _not_searched(name: str) -> str:
    entry = entry_of(name)
    if entry is not None and entry.platform == OIDC_PLATFORM:
        return f"of an OpenID provider, whose N --oidc ISSUER --scenario {name} finds"
    return _FUNCTION


def _of_workload(
    workload: Workload,
    place: str,
    contexts: tuple[Context, ...],
    most_existing: int | None = None,
) -> Searchable:
    """Return a workload with these contexts; its title is the scenario's name and arguments."""
    name, arguments = workload.scenario.name, workload.scenario.arguments
    try:
        scenario = rally_scenario(name, arguments)
    except InvalidInput as refused:
        raise InvalidInput(f"{place}: {refused}") from None
    text = _argument_text(workload.spec.scenario)
    title = f"{name} ({_shortened(text)})" if text else name
    found = _searchable(replace(scenario, title=title), contexts, most_existing, arguments)
    return replace(found, parameters=(("arguments", text),) if text else ())


def _searchable(
    scenario: Scenario,
    contexts: tuple[Context, ...],
    most_existing: int | None,
    arguments: Mapping[str, Json] | None = None,
) -> Searchable:
    """Return a scenario that is built for no cloud yet, as its users send it."""
    groups = [one for one in contexts if isinstance(one, Users)]
    count = sum(one.tenants * one.users_per_tenant for one in groups) if groups else None
    users = "none" if count is None else str(count)
    # Of a mix, fewer users would send less, and the administrator as much as before.
    is_countable = scenario.origin is None and not scenario.has_several_kinds_of_senders
    senders = 1 if most_existing == 0 or scenario.is_sent_by_administrator else count
    return Searchable(
        scenario,
        partial(_requests, scenario, arguments or {}),
        contexts,
        most_existing,
        users=OWN_USER if most_existing == 0 else users,
        senders=senders if is_countable or most_existing == 0 else None,
    )


def _requests(
    scenario: Scenario,
    arguments: Mapping[str, Json],
    limits: Limits,
    placement: Placement,
    options: RequestOptions,
) -> Requests:
    if options.opens_connections:
        scenario = replace(scenario, connection="iteration")
    return Requests(scenario, arguments, limits, placement, retries=options.retries)


def _argument_text(scenario: Mapping[str, Any]) -> str:
    """Format the arguments of a spec, secrets masked: name=value, ..."""
    (arguments,) = scenario.values()
    return ", ".join(
        f"{name}={value if isinstance(value, str) else json.dumps(value, default=str)}"
        for name, value in (arguments or {}).items()
    )


def _shortened(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."


def _checked(name: str, arguments: Sequence[str]) -> Checked:
    """Check a scenario and its arguments as those of a task file are checked."""
    values: dict[str, Any] = {}
    places: dict[Path, tuple[str, int]] = {_SUBTASK: (ARG, 1)}
    for argument in arguments:
        key, equals, text = argument.partition("=")
        if not equals or not key:
            raise InvalidInput(f"{ARG} must be NAME=VALUE, not {argument!r}")
        if key in values:
            raise InvalidInput(f"{ARG} {key} is given twice")
        tree = parse(text, f"{ARG} {key}")
        values[key] = tree.value
        inside = (*_SUBTASK, "scenario", name, key)
        places[inside] = (ARG, 1)
        places |= {(*inside, *path): place for path, place in tree.places.items()}
    subtask = {"title": "capacity", "scenario": {name: values}}
    task: Any = {"version": 2, "title": "capacity", "subtasks": [subtask]}
    try:
        return check_tree(Tree(ARG, task, places, secrets_in(values)))
    except TaskInvalid as wrong:
        lines = (f"{ARG}: {problem.message}" for problem in wrong.problems)
        raise InvalidInput("\n".join(lines)) from None


@dataclass(frozen=True, slots=True)
class SearchTerms:
    """Terms of a search for N."""

    method: str = DEFAULT
    budget_s: float = 240.0
    max_rate_rps: float = MAX_RATE_RPS
    objectives: tuple[str, ...] = ()
    max_connections: int = MOST_CONNECTIONS
    curve_s: float = 0.0
    repeats: int = 1
    least_rps: float | None = None  # N below this falls short
    placement: Placement = field(default_factory=Placement)
    # "only": predict N from a low load; "first": do so before the search
    prediction: Literal["only", "first"] | None = None
    is_profiled: bool = False  # the workers, at N
    accepts_range: bool = False  # whether a range of N is an answer


def search_group(searches: Sequence[Searchable], terms: SearchTerms) -> MeasurementGroup:
    """Return the measurements of the searches; InvalidInput names an invalid term.

    All searches use the contexts of the first.
    """
    repeats = range(1, terms.repeats + 1)
    return MeasurementGroup(
        tuple(_search(searched, terms, number) for searched in searches for number in repeats),
        contexts=searches[0].contexts,
        most_existing=searches[0].most_existing,
        is_repeated=terms.repeats > 1 and terms.prediction != "only",
        search_s=terms.budget_s,
        least_rps=terms.least_rps,
    )


def _search(searched: Searchable, terms: SearchTerms, number: int) -> MeasurementConfig:
    of_rules, left_out = with_rules(searched.rules)
    search_goal = goal(terms.objectives, of_rules)
    settings = SearchSettings(
        budget_s=terms.budget_s,
        ceiling_rps=terms.max_rate_rps,
        max_connections=most_connections(terms.max_connections),
        error_share=search_goal.error_share,
        objectives=search_goal.objectives,
        curve_s=terms.curve_s,
        users=searched.senders,
        first_connections=searched.first_connections,
    )
    is_search = terms.prediction != "only"
    low_load_s = low_load.LOAD_S if terms.prediction else 0.0
    profile_s = profiling.LOAD_S if terms.is_profiled else 0.0
    budget_s = terms.budget_s if is_search else low_load_s
    scenario = searched.scenario
    part = f", search {number} of {terms.repeats}" if terms.repeats > 1 else ""
    title = f"{scenario.title}{part}"
    objectives = ", ".join(terms.objectives) or NO_OBJECTIVES
    parameters = (
        *searched.parameters,
        ("method", terms.method if is_search else "prediction from a low load"),
        ("load time at most", f"{budget_s:.0f} s"),
        ("highest rate allowed", f"{terms.max_rate_rps:g}/s"),
        ("connections allowed", f"{settings.max_connections:,}"),
        (USERS, searched.users),
        ("HTTP", terms.placement.http),
        ("objectives", str(search_goal) if searched.rules else objectives),
        *((("SLA rules not applied", ", ".join(left_out)),) if left_out else ()),
    )
    return MeasurementConfig(
        record=Measurement(
            scenario=scenario.name,
            title=title,
            request=scenario.request,
            policy="search" if is_search else "prediction",
            parameters=parameters,
            least_rps=terms.least_rps if terms.repeats == 1 else None,
            is_repeat=is_search and terms.repeats > 1,
            accepts_range=terms.accepts_range,
        ),
        generator=searched.generator(
            Limits(max_connections=settings.max_connections), terms.placement
        ),
        policy=_policy(terms, settings),
        heading=f"{title}: {scenario.request}",
        goal=search_goal,
        # Load outside the search's own budget. Late answers take longer.
        budget_s=terms.budget_s + len(SHARES) * terms.curve_s + low_load_s + 2 * profile_s
        if is_search
        else 2 * low_load_s,
        is_predicted=terms.prediction is not None,
    )


def _policy(terms: SearchTerms, settings: SearchSettings) -> Search | LowLoad:
    begin = strategy(terms.method, settings)
    if terms.is_profiled:
        begin = partial(_profiled, settings.ceiling_rps, begin)
    match terms.prediction:
        case None:
            return Search(begin)
        case "only":
            return LowLoad(settings.ceiling_rps)
        case "first":
            return Search(lambda: after_low_load(settings.ceiling_rps, begin()))
        case _:
            assert_never(terms.prediction)


def _profiled(ceiling_rps: float, begin: Callable[[], Strategy]) -> Strategy:
    return with_profile(ceiling_rps, begin())
