"""`loadstone task`."""

import json

import pytest
from click.testing import CliRunner

from loadstone.cli.task import task

GOOD = "version: 2\ntitle: T\nsubtasks:\n- title: S\n  scenario: {Authenticate.keystone: {}}\n"
TRAP = GOOD + "  sla: {max_avg_duration: 1}\n"
BAD = GOOD.replace("keystone:", "keyston:")


def run(*words, stdin=None):
    return CliRunner().invoke(task, list(words), input=stdin)


def test_a_good_task_is_called_good(write):
    path = write(GOOD)
    shown = run("check", path)
    assert shown.exit_code == 0
    assert shown.output == f"{path}: good; subtasks: 1, workloads: 1\n"


def test_a_warning_does_not_make_a_task_bad(write):
    path = write(TRAP)
    shown = run("check", path)
    assert shown.exit_code == 0
    assert shown.output.startswith(f"{path}:6: warning: this sla section has no failure_rate")


def test_a_bad_task_ends_with_2_and_a_line_for_each_error(write):
    path = write(BAD)
    shown = run("check", path)
    assert shown.exit_code == 2
    assert shown.output == (
        f'{path}:5: no scenario "Authenticate.keyston"; did you mean "Authenticate.keystone"?\n'
    )


def test_requests_that_cannot_be_sent_are_no_good_task(write):
    arguments = "{url: 'http://x', method: GET, status_code: 200, cert: x}"
    path = write(
        GOOD.replace("Authenticate.keystone: {}", f"HttpRequests.check_request: {arguments}")
    )
    shown = run("check", path)
    assert shown.exit_code == 2
    assert shown.output.startswith(f"{path}:4: HttpRequests.check_request: ")
    assert "cert: not known" in shown.output
    assert json.loads(run("check", path, "--json", "-").output)["valid"] is False


def test_an_iteration_of_too_many_requests_is_no_good_task(write):
    tenant = "KeystoneBasic.create_tenant_with_users: {users_per_tenant: 100}"
    shown = run("check", write(GOOD.replace("Authenticate.keystone: {}", tenant)))
    assert shown.exit_code == 2
    assert "an iteration would send 301 requests, and the engine sends 255 at most" in shown.output


@pytest.mark.parametrize(
    "runner",
    ["constant: {times: 999, concurrency: 300}", "rps: {times: 9, rps: 1, max_concurrency: 300}"],
)
def test_more_functions_at_a_time_than_processes_are_no_good_task(write, runner):
    good = GOOD.replace("Authenticate.keystone", "Dummy.dummy") + f"  runner: {{{runner}}}\n"
    path = write(good)
    shown = run("check", path)
    assert shown.exit_code == 2
    assert shown.output.startswith(f"{path}:4: Dummy.dummy: its runner: 300 at a time")
    assert run("check", write(good.replace("300", "256"))).exit_code == 0


@pytest.mark.parametrize(
    "changed",
    [
        ("title: ", "description:\ntitle: "),
        ("Authenticate.keystone: {}", "NovaFlavors.list_flavors: {is_public: null}"),
    ],
)
def test_what_rally_accepts_without_a_value_is_accepted(write, changed):
    assert run("check", write(GOOD.replace(*changed, 1))).exit_code == 0


@pytest.mark.parametrize(
    ("contexts", "words"),
    [
        ("nics: [a, {net-id: b}]", ""),
        ("nics: []", "at least 1"),
        ("nics: [{uuid: b}]", 'needs "nics[0].net-id"'),
    ],
)
def test_servers_are_booted_in_networks_by_their_ids(write, contexts, words):
    settings = f"image: {{name: x}}, flavor: {{name: y}}, {contexts}"
    good = GOOD + f"  contexts: {{users: {{}}, servers: {{{settings}}}}}\n"
    shown = run("check", write(good))
    assert (shown.exit_code, words in shown.output) == (2 if words else 0, True), shown.output


def test_rules_of_outliers_may_be_whole_numbers_as_a_template_computes_them(write):
    good = GOOD + "  sla: {outliers: {max: 1.0, min_iterations: 3.0}}\n"
    assert run("check", write(good)).exit_code == 0


def test_a_server_takes_what_nova_can_be_asked_for(write):
    server = "image: {name: x}, flavor: {name: y}, "
    good = GOOD.replace(
        "Authenticate.keystone: {", f"NovaServers.boot_server: {{{server}nics: auto"
    )
    assert run("check", write(good)).exit_code == 0
    bad = run("check", write(good.replace("nics:", "nicks:")))
    assert bad.exit_code == 2
    assert 'did you mean "nics"?' in bad.output


def test_arguments_from_stdin_that_are_no_text_are_refused(write):
    path = write(GOOD)
    shown = run("check", path, "--task-args", "-", stdin=b"a: \xff")
    assert shown.exit_code == 2
    assert "--task-args:1: is not UTF-8 text" in shown.output


def test_the_task_can_come_from_stdin():
    assert run("check", "-", stdin=GOOD).output.startswith("stdin: good")
    assert run("check", "-", stdin=BAD).output.startswith("stdin:5: no scenario")


@pytest.mark.parametrize(("text", "code"), [(TRAP, 0), (BAD, 2)])
def test_the_result_is_given_as_data(text, code, write):
    path = write(text)
    shown = run("check", path, "--json", "-")
    data = json.loads(shown.output)
    assert shown.exit_code == code
    assert data["valid"] is (code == 0)
    said = data["warnings"] if code == 0 else data["problems"]
    assert [(one["file"], one["line"]) for one in said] == [(path, 6 if code == 0 else 5)]
    if code == 0:
        assert data["subtasks"] == [{"title": "S", "workloads": ["Authenticate.keystone"]}]


@pytest.mark.processes
def test_template_arguments_are_taken(write):
    path = write(GOOD + "  runner: {constant: {times: {{ times }}, concurrency: {{ c }}}}\n")
    given = write("times: 4", "args.yaml")
    assert run("check", path, "--task-args-file", given, "--task-args", "c=2").exit_code == 0
    assert (
        "Please specify template task argument: c"
        in run("check", path, "--task-args", '{"times": 4}').output
    )


def test_the_schema_knows_every_plugin():
    shown = run("schema")
    assert shown.exit_code == 0
    parts = json.loads(shown.output)["$defs"]
    assert "KeystoneBasic.create_user" in parts["scenario"]["properties"]
    assert set(parts["runner"]["properties"]) == {
        "constant",
        "constant_for_duration",
        "rps",
        "serial",
    }
    assert {"users", "roles", "quotas", "api_versions"} <= set(parts["contexts"]["properties"])
    assert {"failure_rate", "outliers", "max_percentiles"} <= set(parts["sla"]["properties"])
    times = parts["ConstantForm"]["properties"]["times"]
    assert (times["minimum"], times["default"]) == (1, 1)
    for text in _refs(parts):
        assert text.removeprefix("#/$defs/") in parts


def _refs(value):
    if isinstance(value, dict):
        yield from (value[key] for key in value if key == "$ref")
        for part in value.values():
            yield from _refs(part)
    elif isinstance(value, list):
        for part in value:
            yield from _refs(part)
