"""Reports on an OpenID provider name it, and never Keystone."""

import io
import json
import re
from html import unescape

import made_runs
import provider_runs
import pytest

from loadstone.compare.section import report_of as report_of_comparison
from loadstone.diagnosis import bottleneck
from loadstone.diagnosis.bottleneck import Case, FoundLimit, name_bottleneck
from loadstone.diagnosis.demand import BottleneckKind, Observation, ResourceUse, Setup
from loadstone.diagnosis.prediction import LowLoadFigures, predict
from loadstone.diagnosis.service import KEYCLOAK, KEYSTONE, PROVIDER, WEB_SERVICE
from loadstone.monitor.roles import Role
from loadstone.report import html, junit, markdown, openmetrics, terminal
from loadstone.report.console import console
from loadstone.report.data import as_data
from loadstone.report.sections.run import report_of

NAMED = re.compile("keystone", re.IGNORECASE)


def in_full(report):
    file = io.StringIO()
    terminal.show(report, console(file, 1000))
    terminal.show_in_full(report, console(file, 1000))
    return file.getvalue()


FORMATS = {
    "terminal": in_full,
    "HTML": html.render,
    "JSON": lambda report: json.dumps(as_data(report)),
    "JUnit": junit.render,
    "Markdown": markdown.render,
}
RUNS = provider_runs.runs(PROVIDER)
REPORTS = {kind: report_of(run, made_runs.samples_of) for kind, run in RUNS.items()} | {
    "comparison": report_of_comparison(provider_runs.compared())
}


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("kind", REPORTS)
def test_no_format_of_any_result_of_a_provider_names_keystone(kind, name):
    shown = FORMATS[name](REPORTS[kind])
    assert shown
    assert [shown[max(at.start() - 60, 0) : at.end() + 60] for at in NAMED.finditer(shown)] == []


@pytest.mark.parametrize("kind", RUNS)
def test_metrics_of_a_provider_do_not_name_keystone(kind):
    assert not NAMED.search(openmetrics.render(RUNS[kind]))


@pytest.mark.parametrize(
    "name", sorted(set(FORMATS) - {"JUnit"})
)  # which has the measurements' verdicts
def test_the_bottleneck_is_the_providers(name):
    shown = unescape(FORMATS[name](REPORTS["bottleneck"]))
    assert "the provider's" in shown.lower()


def _used(kind, role, unit, busy=1.0):
    return ResourceUse(f"the {role}", kind, role, busy, 1.0, unit, 0.1)


OTHERS = tuple(
    _used(kind, role, "units")
    for role in (*Role, "machine")
    if role != Role.KEYSTONE
    for kind in (BottleneckKind.CPU, BottleneckKind.MEMORY, BottleneckKind.CONNECTIONS)
)
OF_THE_SERVICE = (
    (BottleneckKind.CPU, "CPU"),
    (BottleneckKind.CONNECTIONS, "database connection pools"),
    (BottleneckKind.WORKERS, "worker threads"),
)
BUSY = {
    "gc_pause_share": 0.5,
    "refused_connections_per_s": 1.0,
    "statements_per_request": 90.0,
    "worker_cpu": 0.9,
    "worker_cpu_wait": 0.5,
    "others_cores": 2.0,
    "pool_waiting": 5.0,
    "workers": 2.0,
}
WAITING = {"workers": 2.0, "worker_cpu": 0.1}
SETUPS = (
    {"workers": 2, "threads": 1},
    {"workers": 2, "threads": 8, "pool": 1, "cache": "off"},
)


def limits(service) -> dict[str, FoundLimit]:
    """Return the findings on several overloaded services, by the number of the rule."""
    own = tuple(
        ResourceUse(service.part(name), kind, Role.KEYSTONE, 1.0, 1.0, "units", 0.1)
        for kind, name in OF_THE_SERVICE
    )
    found = {}
    for figures in (BUSY, WAITING, BUSY | {"others_cores": 0.0}):
        for options in SETUPS:
            for uses in ((*own, *OTHERS), OTHERS):
                seen = Observation(10.0, 100, uses, tuple(figures.items()), service)
                case = Case(seen, Setup(**options, service=service))
                found |= {
                    f"{number} {one.id}": one
                    for number, rule in enumerate((*bottleneck.RULES, bottleneck._none))
                    if (one := rule(case)) is not None
                }
    return found


@pytest.mark.parametrize("service", [KEYCLOAK, PROVIDER, WEB_SERVICE])
def test_no_rule_names_keystone_where_another_service_was_measured(service):
    of_keystone = limits(KEYSTONE)
    named = [one for one in of_keystone.values() if NAMED.search(one.sentence + one.advice)]
    assert len(named) >= 6
    for one in limits(service).values():
        assert not NAMED.search(f"{one.id} {one.sentence} {one.advice}")
        assert one.sentence[:1].isupper()


def test_a_prediction_names_the_worker_threads_of_the_service():
    cpu = ResourceUse(
        "the provider's CPU", BottleneckKind.CPU, Role.KEYSTONE, 0.1, 4.0, "cores", 0.01
    )
    machine = ResourceUse("the machine's CPU", BottleneckKind.CPU, "machine", 0.1, 4.0, "cores")
    seen = Observation(10.0, 100, (machine, cpu), (("workers", 1.0),), PROVIDER)
    found = predict(seen, LowLoadFigures(0.1, 0.0, 0.01))
    assert found is not None
    assert found.limit == "the provider's worker threads"


def test_the_pool_that_a_full_database_advises_to_lower_is_that_of_the_service():
    database = _used(BottleneckKind.CONNECTIONS, Role.DATABASE, "connections")
    seen = Observation(10.0, 100, (database,), (), KEYCLOAK)
    [found] = name_bottleneck(Case(seen, Setup(service=KEYCLOAK))).findings
    assert "db-pool-max-size of Keycloak" in found.advice
