"""Bad input: one clear line, the right exit code, no traceback."""

import json
import resource
from collections.abc import Iterator
from itertools import pairwise

import click
import pytest

from loadstone.cli import loadstone as program
from loadstone.cli.doctor import build_programs, descriptors, disk
from loadstone.cli.duration import Number


@pytest.mark.processes
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("capacity", "--lab", "none-such"), 2, "none-such"),
        (("capacity", "--cloud", "none-such"), 2, "none-such"),
        (("capacity", "--lab", "a", "--cloud", "b"), 2, "not both"),
        (("capacity", "--users", "0"), 3, "127.0.0.1:9"),
        (
            ("compare", "--scenario", "issue", "--scenario", "validate"),
            2,
            "--scenario takes one value, not 2: issue, validate; use a command for each, or their "
            "mix: mix:issue=1,validate=1",
        ),
        (("capacity", "--lab", "a", "--lab", "b"), 2, "--lab takes one value, not 2"),
        (("monitor", "--lab", "a", "--lab", "b"), 2, "--lab takes one value, not 2"),
        (("audit", "--lab", "a", "--lab", "b"), 2, "--lab takes one value, not 2"),
        (("size", "--logins=1", "--lab=a", "--lab=b"), 2, "--lab takes one value, not 2"),
        (("capacity", "--tag", "a=1", "--tag", "a=2"), 2, "--tag a is given twice"),
        (("fault", "--do", "x", "--scenario", "issue", "--scenario", "a"), 2, "takes one value"),
        (("capacity", "--fail-below", "50/day"), 2, "'50/day' is not a rate; write it like 40/s"),
        (("capacity", "--fleet-without-tls"), 2, "--fleet-without-tls needs --fleet"),
        (("lab", "up", "a", "--fleet-without-tls"), 2, "--fleet-without-tls needs --fleet"),
        (("run", ""), 2, "TASK: the name of the file is empty; is a variable not set?"),
        (("results", "list", "--json", ""), 2, "the name of the file is empty; is a variable not"),
        (("fleet", "up", "--join=h:1"), 2, "--join: write tls://HOST:PORT of a scheduler"),
        (("fleet", "up", "--join=tls://h"), 2, "--join: write tls://HOST:PORT of a scheduler"),
        (("fleet", "up", "--host=a..b"), 3, "--host a..b is none of this machine's addresses"),
        (("fleet", "down", "--fleet-certificates=/proc/1/status/x"), 3, "cannot be read"),
        (("fleet", "status", "--fleet=tls://[1"), 2, "--fleet tls://[1: write local:4"),
        (("fleet", "up", "--join=tls://h:1", "--port=9"), 2, "--port does not go with --join"),
        (("audit", "guests", "--node=a=1", "--cloud=b"), 2, "--cloud asks Nova for the nodes"),
        (("audit", "--result", "latest"), 2, "--result needs --rate"),
        (("capacity", "--fail-below", "0/s"), 2, "'0/s' is not a rate"),
        (("capacity", "--max-rate", "fast"), 2, "'fast' is not a rate; write it like 40/s"),
        (("capacity", "--curve", "long"), 2, "'long' is not a valid number"),
        (("serve", "--error-share", "30/min"), 2, "'30/min' is not a share from 0% to 100%"),
        (("size", "--utilisation", "60"), 2, "'60' is not a share from 10% to 95%"),
        (("capacity", "--max-rate", "9000000/s"), 2, "range"),
        (("capacity", "--fail-below", "50/s", "--lab", "none-such"), 2, "none-such"),
        (("capacity", "--scenario", "mix:isue=1,validate=9"), 2, "did you mean 'issue'?"),
        (("study", "show", "sql-per-reqest"), 2, "did you mean 'sql-per-request'?"),
        (("monitor", "--for", "0s"), 2, "--for must be 1s or more"),
        (("fault", "--do", "x", "--observe", "0s"), 2, "0s must be more than 0"),
        (("fault", "--do=x", "--rate=9", "--load=5%"), 2, "--load is a share of N, and --rate is"),
        (("run", "task.yaml", "--hook-timeout", "0"), 2, "0 must be more than 0"),
        (("tune", f"--budget={'9' * 400}s"), 2, "must be at most a year (8760h)"),
        (("serve", "--token-life", "8761h"), 2, "8761h must be at most a year (8760h)"),
        (("capacity", "--budget", "soon"), 2, "not a duration"),
        (("capacity", "--budget", "9h"), 2, "outside"),
        (("capacity", "--max-rate", "1e9"), 2, "range"),
        (("capacity", "--generator-cores", "all"), 2, "write them like 1, 0-1 or 0-1,3"),
        (("capacity", "--generator-cores", "1-0"), 2, "a range goes upwards"),
        (("capacity", "--tls-resumption", "maybe"), 2, "'maybe' is not one of 'on', 'off'"),
        (("capacity", "--generator-cores", "0-4095"), 2, "cannot be used; usable are 0"),
        (("capacity", "--objective", "p98<1s"), 2, "p98<1s"),
        (("capacity", "--objective", "errors<200%"), 2, "at most 50 % may fail"),
        (("capacity", "--users", "0", "--scenario", "user-life"), 2, "needs --users 1 or more"),
        (("results", "list", "--store", "mistyped"), 2, "mistyped: no such folder"),
        (("capacity", "--method", "none-such"), 2, "none-such"),
        (("run", "task.yaml", "--max-rate", "nan"), 2, "nan is not a number"),
        (("audit", "facts.json", "--rate", "inf"), 2, "inf is not a number"),
        (("run", "task.yaml", "--json", "-", "--junit", "-"), 2, "writes to - already"),
        (("results", "delete", ""), 2, "the name is empty"),
        (("results", "show", "none-such"), 2, "none-such"),
        (("results", "clean", "none-such"), 2, "none-such"),
        (("report", "none-such"), 2, "none-such"),
        (("lab", "down", "none-such"), 2, "none-such"),
        (("capacity", "--json", "."), 2, ". is a folder"),
        # Paths that cannot be looked at, like those in a folder that only root may enter.
        (("capacity", "--json", f"{'x' * 300}/a"), 2, "cannot be written: is its folder there"),
        (("lab", "up", "a", f"--with=storage=/{'x' * 300}"), 2, "storage must be disk, tmpfs"),
        (("lab", "up", "a", f"--with=release=/{'x' * 300}"), 2, "release must be a version"),
        (("run", "task.yaml", "--junit", "no/such/folder.xml"), 2, "cannot be written"),
        (("tune", "--html", "no/such/page.html"), 2, "no/such/page.html cannot be written"),
        (("serve", "--counts", "no/such/a.json"), 2, "no/such/a.json cannot be written"),
        (("serve", "--port-file", "no/such/port"), 2, "no/such/port cannot be written"),
        (("report", "-o", "no/such/page.html"), 2, "no/such/page.html cannot be written"),
        (("none-such",), 2, "none-such"),
        (("capcity",), 2, "Did you mean 'capacity'?"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_bad_input_is_said_in_one_line(at_once, words, code, said):
    ended = at_once(*words)
    assert ended.returncode == code, ended.stderr
    assert said in ended.stderr
    assert "Traceback" not in ended.stderr
    # Where JSON was asked for, it says the same.
    is_json = ("--json", "-") in pairwise(words)
    assert ended.stdout == "" or (is_json and json.loads(ended.stdout)["exit_code"] == code)


def test_a_full_disk_is_said_once_also_at_the_end_of_the_process(loadstone):
    ended = loadstone("doctor", "--json", "/dev/full")
    assert ended.returncode == 3
    assert ended.stderr == "loadstone: cannot write /dev/full: No space left on device\n"


def test_http_2_is_refused_before_users_are_created_on_a_target_without_it(loadstone, service):
    words = ("--http2", "--scenario", "issue", "--budget", "30s")
    ended = loadstone("capacity", *words, url=f"http://127.0.0.1:{service.port}/v3")
    assert ended.returncode == 3, ended.stderr
    assert "does not speak HTTP/2 without TLS" in ended.stderr
    assert "leave out --http2" in ended.stderr
    assert "creating" not in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (
            "HttpRequests.check_request: "
            "[{args: {url: 'http://x', method: GET, status_code: 200, cert: x}}]",
            "cert: not known; what is known is url, method",
        ),
        (
            "HttpRequests.check_random_request: [{args: {requests: [], status_code: 200}}]",
            "requests: at least one is needed",
        ),
    ],
)
def test_arguments_that_no_cloud_could_take_are_refused_before_the_first_workload(
    loadstone, service, tmp_path, bad, said
):
    task = tmp_path / "task.yaml"
    task.write_text(f"Authenticate.keystone: [{{}}]\n{bad}\n")
    ended = loadstone("run", str(task), url=f"http://127.0.0.1:{service.port}/v3")
    assert ended.returncode == 2, ended.stderr
    assert ended.stderr.startswith(f"loadstone: {task}:2: ")
    assert said in ended.stderr
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("scenario", "more", "said"),
    [
        ("Authenticate.keystone", ("--rally-requests",), "not both"),
        ("Dummy.dummy", (), "is a Python function, which sends as its library does"),
    ],
)
def test_what_cannot_go_over_http_2_is_refused_before_anything_is_made(
    loadstone, service, tmp_path, scenario, more, said
):
    task = tmp_path / "task.yaml"
    task.write_text(f"{scenario}:\n- runner: {{type: serial, times: 1}}\n")
    url = f"http://127.0.0.1:{service.port}/v3"
    ended = loadstone("run", str(task), "--http2", *more, url=url)
    assert ended.returncode == 2, ended.stderr
    assert said in ended.stderr
    assert "creating" not in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_target_that_is_not_this_machine_needs_permission(loadstone):
    ended = loadstone("capacity", url="http://192.0.2.1:5000/v3")
    assert ended.returncode == 2
    assert "--yes-load-this-target" in ended.stderr


def test_a_store_that_cannot_be_written_is_said(at_once, tmp_path):
    (tmp_path / "file").write_text("")
    words = ("results", "import", str(tmp_path / "file"))
    ended = at_once(*words, "--store", str(tmp_path / "file" / "store"))
    assert ended.returncode == 3
    assert "--store" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_deployment_whose_state_cannot_be_read_is_said_with_its_mend(at_once, tmp_path):
    folder = tmp_path / "lab" / "deployments" / "stale"
    folder.mkdir(parents=True)
    (folder / "state.json").write_text("garbage")
    listed = at_once("lab", "list")
    assert listed.returncode == 0
    assert "state.json cannot be read" in listed.stderr
    assert "lab down --purge stale" in listed.stderr
    assert at_once("lab", "down", "--purge", "stale").returncode == 0
    assert not folder.exists()


@pytest.mark.processes
def test_doctor_says_what_is_there(at_once):
    ended = at_once("doctor")
    assert ended.returncode == 0, ended.stdout
    assert "engine" in ended.stdout


def test_doctor_refuses_a_home_that_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("LOADSTONE_HOME", str(tmp_path / "file" / "home"))
    found = disk()
    assert not found.is_there
    assert found.found == f"{tmp_path}/file is not a folder that you may write to"


def test_doctor_compares_the_hard_limit_to_which_the_engine_raises_its_own(monkeypatch):
    limits = {"allowed": (256, 524_288)}
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits["allowed"])
    assert descriptors().is_there
    limits["allowed"] = (256, 512)
    assert not descriptors().is_there


@pytest.mark.processes
def test_doctor_looks_for_what_verify_compares_with(at_once, tmp_path, monkeypatch):
    wrk2 = tmp_path / "wrk"
    wrk2.write_text("#!/bin/sh\n")
    wrk2.chmod(0o755)
    monkeypatch.setenv("WRK2", str(wrk2))
    found = at_once("doctor").stdout.splitlines()
    assert [line for line in found if " wrk " in line]
    assert [line for line in found if " h2load " in line]
    (line,) = [line for line in found if " wrk2 " in line]
    assert line.startswith("ok")
    assert line.endswith(str(wrk2))


def test_doctor_of_a_wheel_looks_for_no_build_tools(tmp_path):
    package = tmp_path / "site-packages/loadstone"
    assert [*build_programs(package)] == []
    (tmp_path / "pyproject.toml").touch()
    assert [one.name for one in build_programs(tmp_path / "src/loadstone")][:2] == ["cargo", "cc"]


def test_a_method_that_heeds_no_latency_refuses_objectives(at_once):
    words = ("--method", "closed-loop-peak", "--objective", "p99<500ms")
    ended = at_once("capacity", "--lab", "none", *words)
    assert ended.returncode == 2
    assert "--method closed-loop-peak ignores latency objectives" in ended.stderr
    assert "use meter or bisect" in ended.stderr


@pytest.mark.parametrize(
    ("name", "text", "share"),
    [
        ("trace_share", "10%", 0.1),
        ("trace_share", "1", 1.0),
        ("utilisation", "60%", 0.6),
        ("utilisation", "0.95", 0.95),
        ("error_share", "0.2%", 0.002),
        ("decline", "0%", 0.0),
    ],
)
def test_each_share_takes_a_percent_sign(name: str, text: str, share: float) -> None:
    found = [one.type for one in options(program) if one.name == name]
    assert found
    assert {kind.convert(text, None, None) for kind in found} == {share}


def options(command: click.Command) -> Iterator[click.Parameter]:
    """Yield the parameters of a command and of the commands below it."""
    yield from command.params
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from options(below)


def test_no_option_takes_nan() -> None:
    taken = [
        one.name
        for one in options(program)
        if isinstance(one.type, click.types.FloatParamType | click.FloatRange)
        and not isinstance(one.type, Number)
    ]
    assert taken == []
