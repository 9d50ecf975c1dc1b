from pathlib import Path

import pytest
from study_files import STEPS, TWO_BY_TWO

from loadstone.errors import InvalidInput
from loadstone.keystone.scenarios import SCENARIOS
from loadstone.study import read
from loadstone.study.cell import groups_of, steps_groups
from loadstone.study.duet import cell_pairs, comparison_of
from loadstone.study.estimate import estimate_s
from loadstone.study.model import FaultMeasurement
from loadstone.study.read import StudySource

QUICK_AT_MOST_S = {
    "identity-servers": 28 * 60,
    "isp-ras-2015": 40 * 60,
    "memcached-death": 12 * 60,
    "rackspace-2016": 20 * 60,
}


def study(text=TWO_BY_TWO, *, quick=False):
    return StudySource("mine.yaml", text).study(quick=quick)


def said(text, *, quick=False):
    with pytest.raises(InvalidInput) as refused:
        study(text, quick=quick)
    return str(refused.value).splitlines()


def test_all_combinations_are_cells():
    found = study()
    assert [str(cell) for cell in found.cells] == [
        "web apache, workers 1",
        "web apache, workers 2",
        "web nginx, workers 1",
        "web nginx, workers 2",
    ]
    assert found.cells[3].settings == (("web", "nginx-uwsgi"), ("workers", "2"))
    assert {cell.scenario for cell in found.cells} == {"issue"}


def test_listed_cells_stand_in_place_of_all_combinations():
    text = TWO_BY_TWO + "cells:\n  - {web: apache, workers: 1}\n  - {workers: 2, web: nginx}\n"
    assert [str(cell) for cell in study(text).cells] == [
        "web apache, workers 1",
        "web nginx, workers 2",
    ]


def test_a_factor_may_be_the_scenario():
    found = study("title: t\nfactors: {scenario: [issue, validate]}\n")
    assert [cell.scenario for cell in found.cells] == ["issue", "validate"]
    assert all(cell.settings == () for cell in found.cells)


def test_the_quick_form_leaves_out_what_it_says():
    found = study(quick=True)
    assert [str(cell) for cell in found.cells] == ["web apache, workers 1", "web nginx, workers 1"]
    assert (found.repeats, found.pause_s, found.measurement.budget_s) == (1, 0.0, 20.0)
    assert found.quick == "one worker, once"


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("repeats: 3", "repeats: 0", 'mine.yaml:7: the study: "repeats" must be at least 1, not 0'),
        ("pause_s: 7", "pauses: 7", "mine.yaml:8: the study has no \"pauses\"; "
         'did you mean "pause_s"?'),
        ("web: apache}\n    ng", "web: apach}\n    ng", "mine.yaml:4: web must be one of uwsgi, "
         "nginx-uwsgi, apache, gunicorn, granian, single, not 'apach'"),
        ("{web: nginx-uwsgi}", "{webs: nginx-uwsgi}",
         "mine.yaml:5: the lab has no setting 'webs'; did you mean 'web'?"),
        ("[1, 2]\nrep", "[1, off]\nrep", 'mine.yaml:6: "workers" is read as true or false: quote '
         'it, as workers: "off"'),
        ("web: apache}\n    ng", "web: }\n    ng",
         'mine.yaml:4: "web" must have one value, not nothing'),
        ("web: apache}\n    ng", "web: [apache]}\n    ng",
         'mine.yaml:4: "web" must have one value, not a list'),
        ("    apache: {", "    on: {",
         'mine.yaml:4: a level of factor "web" is read as true or false: quote its name'),
        ("{budget_s: 60}", "{users: 0, scenario: user-life}", 'mine.yaml:9: scenario "user-life" '
         "makes users, which are removed with the users of the run: give users: 1 or more"),
        ("levels: [apache, nginx]", "levels: [apache, ngin]", 'mine.yaml:11: factor "web" has no '
         'level "ngin"; did you mean "nginx"?'),
        ("levels: [apache, nginx]", "levels: [apache, apache]",
         'mine.yaml:11: "apache" is compared with itself: give two levels'),
        ("published:", "  - {factor: web, levels: [nginx, apache]}\npublished:",
         'mine.yaml:12: "nginx" and "apache" are compared already'),
        ("quick:", "  - {cell: {workers: 2}, value: 7}\nquick:",
         "mine.yaml:14: web apache, workers 2 has a published figure already"),
        ("{web: apache, workers: 2}", "{web: apache, worker: 2}", 'mine.yaml:13: there is no '
         'factor "worker"; did you mean "workers"?'),
        ("workers: [1, 2]", "workers: [1, 1]", 'mine.yaml:6: factor "workers" has the level "1" '
         "twice"),
        ("apache: {web: apache}", "apache: {web: apache, workers: 2}", 'mine.yaml:6: factors "web" '
         'and "workers" both set "workers"'),
        ("{budget_s: 60}", "{budget_s: 60, scenario: xyzzy}", "mine.yaml:9: there is no scenario "
         f'"xyzzy"; choose from {", ".join(sorted(SCENARIOS))}'),
        ("{budget_s: 60}", "{budget_s: 60, scenario: issues}", "mine.yaml:9: there is no scenario "
         '"issues"; did you mean "issue"?'),
        ("budget_s: 60", "budget_s: 5", 'mine.yaml:9: the measurement: "budget_s" must be at least '
         "20, not 5"),
        ("title: Two by two\n", "", 'mine.yaml:1: the study needs "title"'),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line_that_names_its_place(old, new, line):
    assert old in TWO_BY_TWO
    assert line in said(TWO_BY_TWO.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("{budget_s: 60}", "{kind: [steps]}", "mine.yaml:9: there is no kind "),
        ("measurement:", "reference: {settings: {service: keycloak}}\nmeasurement:",
         "mine.yaml:9: web reference, workers none: service=keycloak is measured by a search "),
        ("{web: apache}", "{web: apache, expect: {tls: on}}",
         'mine.yaml:4: "tls" must be text: quote its value'),
    ],
)  # fmt: skip
def test_what_no_deployment_can_meet_is_refused_before_it_starts(old, new, line):
    assert any(one.startswith(line) for one in said(TWO_BY_TWO.replace(old, new, 1)))


def test_a_level_needs_a_scenario_for_each_service_that_it_meets():
    text = SERVERS.replace("{keystone: validate, keycloak: oidc-introspect}",
                           "{keycloak: oidc-introspect}")  # fmt: skip
    assert said(text) == ['mine.yaml:2: level "validation" has no scenario for service "keystone"']


def test_methods_and_objectives_are_those_of_capacity():
    (method,) = said(TWO_BY_TWO.replace("budget_s: 60", "method: guess"))
    assert method.startswith("mine.yaml:9: method 'guess' is not known; known are ")
    (objective,) = said(TWO_BY_TWO.replace("budget_s: 60", "objectives: [p99]"))
    assert objective.startswith("mine.yaml:9: objective 'p99' is not understood; write it like ")


def test_all_mistakes_are_told_at_once():
    text = TWO_BY_TWO.replace("[1, 2]", "[0, 2]").replace("{web: nginx-uwsgi}", "{web: iis}")
    assert [line.split(":")[1] for line in said(text)][:2] == ["5", "6"]


def test_settings_that_are_good_alone_but_not_together_are_refused():
    text = "title: t\nfactors: {web: [single, uwsgi], workers: [1, 2]}\n"
    assert said(text) == ["mine.yaml:2: web=single serves with workers=1 and threads=1 only"]


def test_what_is_no_study_is_refused():
    assert said("- 1\n") == ["mine.yaml:1: the study must be a mapping, not a list"]
    assert said("") == ["mine.yaml:1: the study must be a mapping, not nothing"]
    assert said("title: [\n")[0].startswith("mine.yaml:1: not YAML or JSON")
    many = "title: t\nfactors: {workers: " + str(list(range(1, 502))) + "}\n"
    assert said(many) == ["mine.yaml:2: 501 combinations; a study has 500 at most"]


def test_a_study_without_a_quick_form_says_so():
    text = TWO_BY_TWO.partition("quick:")[0]
    assert said(text, quick=True) == ["mine.yaml: the study has no quick form"]


def test_a_name_that_is_not_there_is_told_what_there_is(tmp_path):
    with pytest.raises(InvalidInput, match=r"no such study and no such file; built in are .*isp-"):
        read.find(str(tmp_path / "nothing.yaml"))
    with pytest.raises(InvalidInput, match="cannot be read: Is a directory"):
        read.find(str(tmp_path))
    (tmp_path / "latin.yaml").write_bytes(b"title: \xe9\n")
    with pytest.raises(InvalidInput, match="is not UTF-8 text"):
        read.find(str(tmp_path / "latin.yaml"))


@pytest.mark.parametrize("name", read.builtin())
def test_a_built_in_study_can_be_read_and_its_quick_form_is_quick(name):
    whole, quick = (read.find(name).study(quick=form) for form in (False, True))
    assert whole.name == name
    asks_when_one_fails = getattr(whole.measurement, "until_failure", False)
    has_its_own_answer = asks_when_one_fails or isinstance(whole.measurement, FaultMeasurement)
    assert whole.comparisons or has_its_own_answer
    assert quick.quick
    assert estimate_s(quick) <= QUICK_AT_MOST_S.get(name, 10 * 60)


def test_isp_ras_has_its_twelve_configurations_the_reference_and_the_published_figures():
    found = read.find("isp-ras-2015").study(quick=True)
    assert [one.is_reference for one in found.cells] == [False] * 12 + [True]
    assert dict(found.cells[-1].settings) == {"service": "flask-reference", "web": "nginx-uwsgi"}
    shown = {p.value for cell in found.cells for p in found.published if p.is_of(cell, None)}
    assert shown == {37, 99, 711}


def test_steps_are_read_with_what_they_leave_out():
    found = study(STEPS)
    assert found.figure == ("rate", "per s")
    assert found.steps == ("create serially", "validate at 20")
    warm, create, validate = found.measurement.steps
    assert (warm.timed, warm.name, warm.concurrency) == (False, "issue at 1", 1)
    assert (create.iterations, validate.iterations, validate.concurrency) == (200, 500, 20)
    assert found.published[0].is_of(found.cells[1], "validate at 20")
    assert not found.published[0].is_of(found.cells[1], "create serially")


def test_a_step_may_be_a_mix_of_scenarios():
    mixed = STEPS.replace(
        "scenario: validate,", 'name: validate at 20, scenario: "mix:issue=1,validate=9",'
    )
    found = study(mixed).measurement
    scenarios = [
        one.generator.scenario for group in steps_groups(found) for one in group.measurements
    ]
    [mix, *_] = [one for one in scenarios if one.name.startswith("mix:")]
    assert mix.mix


def test_a_step_that_changes_its_users_has_users_of_its_own():
    first = "name: create serially, scenario: issue"
    text = STEPS.replace(first, "name: in groups, scenario: issue-groups")
    groups = steps_groups(study(text).measurement)
    names = [[one.generator.scenario.name for one in group.measurements] for group in groups]
    issue, validate = "Authenticate.keystone", "Keystone.validate_token"
    assert names == [[issue], ["Keystone.issue_token_by_groups"], [validate]]
    assert len(steps_groups(study(STEPS).measurement)) == 1


def test_a_mix_names_what_is_wrong_with_it():
    with pytest.raises(InvalidInput, match="no scenario 'issues'"):
        study(STEPS.replace("scenario: validate,", 'scenario: "mix:issue=1,issues=2",'))


def test_the_quick_form_of_steps_makes_them_shorter():
    assert [step.iterations for step in study(STEPS, quick=True).measurement.steps] == [10, 50, 50]


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("kind: steps", "kind: stepps", 'mine.yaml:4: there is no kind "stepps" of measurement; '
         'did you mean "steps"?'),
        ("figure: rate", "figure: rates", 'mine.yaml:5: there is no figure "rates"; '
         'did you mean "rate"?'),
        ("scenario: validate,", "scenario: validates,", 'mine.yaml:9: there is no scenario '
         '"validates"; did you mean "validate"?'),
        ("iterations: 500", "iterations: 0", 'mine.yaml:9: the measurement: "steps[2].iterations" '
         "must be at least 1, not 0"),
        ("name: create serially, ", "name: validate at 20, ", 'mine.yaml:6: two timed steps '
         'are called "validate at 20": give them a name each'),
        ("step: validate at 20", "step: validat at 20", 'mine.yaml:11: there is no step '
         '"validat at 20"; did you mean "validate at 20"?'),
        ("workers: [1, 2]", "scenario: [issue, validate]", "mine.yaml:2: a step names its scenario "
         "itself: no level can choose one"),
    ],
)  # fmt: skip
def test_a_mistake_in_steps_is_one_line_that_names_its_place(old, new, line):
    assert old in STEPS
    assert line in said(STEPS.replace(old, new))


@pytest.mark.parametrize("figure", ["mean", "total"])
def test_a_published_total_is_not_beside_the_fewer_iterations_of_the_quick_form(figure):
    text = STEPS.replace("figure: rate", f"figure: {figure}")
    whole, quick = (study(text, quick=form).published for form in (False, True))
    assert whole
    assert quick == (() if figure == "total" else whole)


def test_a_quick_form_that_says_what_its_kind_has_not_is_refused():
    steps = STEPS.replace("iterations: 50\n", "budget_s: 50\n")
    assert said(steps, quick=True) == [
        "mine.yaml:16: steps have no budget_s: iterations makes them shorter"
    ]
    search = TWO_BY_TWO.replace("budget_s: 20\n", "iterations: 20\n")
    assert said(search, quick=True) == [
        "mine.yaml:18: a search has no iterations: budget_s makes it shorter"
    ]


def test_the_study_in_the_documentation_can_be_read():
    text = (Path(__file__).parents[2] / "docs/studies.md").read_text()
    example = text.partition("```yaml\n")[2].partition("```")[0]
    assert len(study(example).cells) == 8
    assert len(study(example, quick=True).cells) == 4


SERVERS = """\
title: Servers
factors:
  server:
    Keystone: {}
    Keycloak: {service: keycloak, expect: {password hash: argon2}}
  operation:
    login:
      scenario: {keystone: issue, keycloak: oidc-login}
    validation:
      scenario: {keystone: validate, keycloak: oidc-introspect}
measurement: {budget_s: 20, warm_up_s: 15}
"""


def test_the_load_before_a_search_may_depend_on_the_service():
    found = study(SERVERS.replace("warm_up_s: 15", "warm_up_s: {keycloak: 90, keystone: 10}"))
    seconds = [
        {one.budget_s for one in groups_of(found.measurement, cell, 100.0)[0].measurements[:-1]}
        for cell in found.cells
    ]
    assert seconds == [{10.0}, {10.0}, {90.0}, {90.0}]
    assert estimate_s(found) > 4 * 20 + 2 * 90 + 2 * 10
    assert said(SERVERS.replace("warm_up_s: 15", "warm_up_s: {keycloack: 90}")) == [
        'mine.yaml:11: there is no service "keycloack"; did you mean "keycloak"?'
    ]


def test_a_level_may_have_a_scenario_for_each_service():
    found = study(SERVERS)
    assert [(str(cell), cell.scenario) for cell in found.cells] == [
        ("server Keystone, operation login", "issue"),
        ("server Keystone, operation validation", "validate"),
        ("server Keycloak, operation login", "oidc-login"),
        ("server Keycloak, operation validation", "oidc-introspect"),
    ]
    assert [cell.expected for cell in found.cells] == [
        *((), ()),
        *((("password hash", "argon2"),),) * 2,
    ]
    warm_ups = [groups_of(found.measurement, cell, 100.0)[0].measurements for cell in found.cells]
    assert {tuple(one.record.policy for one in group) for group in warm_ups} == {
        ("fixed", "search")
    }


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("keycloak: oidc-login", "keycloak: oidc-logn",
         "mine.yaml:8: no scenario 'oidc-logn' of OpenID Connect; did you mean 'oidc-login'?"),
        ("keycloak: oidc-login", "keycloack: oidc-login",
         'mine.yaml:8: there is no service "keycloack"; did you mean "keycloak"?'),
        ("keycloak: oidc-login", "keycloak: issue",
         "mine.yaml:2: server Keycloak, operation login: service=keycloak is measured by a search "
         '(kind: capacity) of an oidc-* scenario, not by scenario "issue"'),
        ("keystone: issue", "keystone: oidc-login",
         'mine.yaml:2: server Keystone, operation login: scenario "oidc-login" needs '
         "service=oidc-provider or service=hydra or service=keycloak"),
        ("expect: {password hash: argon2}", "expect: argon2",
         'mine.yaml:5: "expect" must be a mapping of facts to their values'),
    ],
)  # fmt: skip
def test_a_scenario_that_its_service_lacks_is_one_line(old, new, line):
    assert old in SERVERS
    lines = said(SERVERS.replace(old, new))
    assert any(one.startswith(line) for one in lines), lines


TURNS = TWO_BY_TWO.replace("pairs_in_turns: 0\n", "")


def pairs_of(text, *, quick=False):
    return [str(one) for one in cell_pairs(study(text, quick=quick))]


def test_two_compared_cells_take_turns_by_default():
    assert study(TURNS).pairs_in_turns == 24
    assert pairs_of(TURNS) == ["nginx / apache (workers 1)", "nginx / apache (workers 2)"]
    assert [one.number for one in cell_pairs(study(TURNS))] == [13, 14]
    assert pairs_of(TWO_BY_TWO) == []


def test_the_quick_form_may_leave_them_out():
    quick = TURNS.replace("  repeats: 1\n", "  repeats: 1\n  pairs_in_turns: 0\n")
    assert (len(pairs_of(quick)), pairs_of(quick, quick=True)) == (2, [])
    assert len(pairs_of(TURNS, quick=True)) == 1


@pytest.mark.parametrize(
    "instead",
    [
        "measurement: {budget_s: 60, objectives: [p95<500ms]}",
        "measurement: {kind: steps, steps: [{scenario: issue, iterations: 9}]}",
    ],
)
def test_what_has_no_throughput_at_its_limit_takes_no_turns(instead):
    text = TURNS.replace("measurement: {budget_s: 60}", instead).replace("  budget_s: 20\n", "")
    text = text.replace(
        '  - {cell: {web: apache, workers: 2}, value: 42, words: "seen elsewhere"}\n', ""
    )
    text = text.replace("published:\n", "")
    assert pairs_of(text) == []
    [refused] = said(text + "pairs_in_turns: 8\n")
    assert "only the cells of a search (kind: capacity) without objectives take turns" in refused


def test_cells_of_different_scenarios_and_services_take_no_turns():
    levels = "{a: {scenario: issue}, b: {scenario: validate}}"
    text = f"title: t\nfactors: {{what: {levels}}}\ncompare: [{{factor: what, levels: [a, b]}}]\n"
    assert pairs_of(text) == []
    flask = text.replace("scenario: validate", "service: flask-reference, scenario: issue")
    assert pairs_of(flask) == []


def test_too_few_pairs_are_refused():
    [refused] = said(TURNS + "pairs_in_turns: 3\n")
    assert "3 pairs are too few for an answer: give 4 or more, or 0" in refused


def test_a_pair_of_cells_is_loaded_within_the_limits_of_the_study():
    text = TURNS.replace("{budget_s: 60}", "{budget_s: 60, max_rate_rps: 50, warm_up_s: 20}")
    text = text.replace("workers: [1, 2]", "workers: [1, 8]").replace("workers: 2}", "workers: 8}")
    mine = study(text)
    threads = study(text + "settings: {threads: 3}\n")
    many = study(text + "settings: {threads: 100}\n")
    of_threads, of_many = (
        [comparison_of(one, "id", pair, "").load.workers for pair in cell_pairs(one)]
        for one in (threads, many)
    )
    assert (of_threads, of_many) == ([8, 48], [64, 64])
    narrow, wide = (comparison_of(mine, "id", pair, "loadstone") for pair in cell_pairs(mine))
    assert (narrow.load.workers, wide.load.workers) == (8, 16)
    assert (narrow.max_rate_rps, narrow.warm_up_s) == (50, 40)
    assert narrow.criteria.alpha == wide.criteria.alpha == 0.025 / 2
    names = [side.target.name for side in narrow.sides]
    assert names == ["study-id-a", "study-id-b"]
    cold = study(TURNS)
    assert [comparison_of(cold, "id", pair, "").warm_up_s for pair in cell_pairs(cold)] == [10, 10]
