"""`--dry-run`: what would be sent and created, while nothing is."""

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from loadstone.cli import loadstone
from loadstone.engine.limits import most_connections
from loadstone.run.backend import Backend

TASK = """
KeystoneBasic.create_user:
  - runner: {type: rps, rps: 7, times: 70}
    context: {users: {tenants: 2, users_per_tenant: 3}}
Dummy.dummy:
  - runner: {type: constant_for_duration, duration: 30, concurrency: 4}
"""


@pytest.fixture(autouse=True)
def target(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A target at which nothing listens; a test that connects to it fails."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOADSTONE_HOME", str(tmp_path / "home"))
    choose(monkeypatch, "http://127.0.0.1:9/v3")


def choose(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    variables = {
        "OS_AUTH_URL": url,
        "OS_USERNAME": "admin",
        "OS_PASSWORD": "pw-of-a-dry-run",
        "OS_PROJECT_NAME": "admin",
        "OS_USER_DOMAIN_ID": "default",
        "OS_PROJECT_DOMAIN_ID": "default",
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


def dry(*words: str) -> Result:
    def fails(*_: object, **__: object) -> object:
        raise AssertionError("a dry run connects to nothing")

    backend = Backend(connected=fails)
    return CliRunner().invoke(loadstone, [*words, "--dry-run"], obj=backend, standalone_mode=False)


def as_data(*words: str) -> list[dict[str, object]]:
    done = dry(*words, "--json", "-")
    assert done.exception is None, done.exception
    tree = json.loads(done.stdout)
    assert tree["dry_run"] is True
    return tree["runs"]


def test_a_search_says_where_how_much_and_what_is_created(tmp_path: Path) -> None:
    done = dry("capacity", "--budget", "90s", "--max-rate", "40", "--max-connections", "64")
    assert done.return_value in (None, 0)
    lines = done.stdout.splitlines()
    assert lines[0] == "dry run: nothing was sent, created or stored"
    assert "target     http://127.0.0.1:9/v3 (OS_*)" in lines
    assert "load       at most 40/s, 64 in flight, 90.0 s of load" in lines
    assert "creates    1 domain, 2 projects, 10 users" in lines
    assert "pw-of-a-dry-run" not in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_prediction_loads_for_two_minutes_at_most() -> None:
    [run] = as_data("capacity", "--predict")
    assert run["seconds_at_most"] == 124.0  # 4 s of one after the other, 120 s of low load
    [run] = as_data("capacity", "--predict", "first", "--budget", "90s")
    assert run["seconds_at_most"] == 90.0 + 124.0


def test_a_tuning_says_that_its_load_is_that_of_one_comparison() -> None:
    done = dry("tune", "--with", "cache=memcached")
    assert done.exception is None, done.exception
    lines = done.stdout.splitlines()
    assert lines.count("target     a lab that is started on this machine") == 3
    assert any(line.strip().startswith("8 at once, for 3 s") for line in lines)
    assert any("the first comparison, of the default with itself" in line for line in lines)
    [run] = as_data("tune", "--with", "cache=memcached", "--budget", "15m")
    assert run["seconds_at_most"] == 15 * 60.0


def test_a_tuning_with_time_for_searches_shows_their_load() -> None:
    assert "After a gain, N of both combinations is searched." in dry("tune").stdout
    [run, search] = as_data("tune", "--budget", "40m")
    assert run["seconds_at_most"] == 40 * 60.0
    assert (search["times"], search["seconds_at_most"]) == (2, 60.0)
    assert search["in_flight_at_most"] > run["in_flight_at_most"]


def test_a_tuning_of_a_cloud_names_the_cloud_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(tmp_path / "clouds.yaml"))
    (tmp_path / "space.yaml").write_text("settings: [{name: WORKERS, levels: [4, 8]}]\n")
    auth = {
        "auth_url": "http://127.0.0.1:9/v3",
        "username": "admin",
        "password": "pw-of-a-cloud",
        "project_name": "admin",
        "user_domain_id": "default",
        "project_domain_id": "default",
    }
    (tmp_path / "clouds.yaml").write_text(json.dumps({"clouds": {"mine": {"auth": auth}}}))
    commands = ("--apply", "./apply.sh", "--revert", "./revert.sh", "--yes-change-this-target")
    for run in as_data("tune", "--cloud", "mine", "--space", "space.yaml", *commands):
        assert [one["url"] for one in run["targets"]] == ["http://127.0.0.1:9/v3"]


def test_with_the_targets_own_user_nothing_is_created() -> None:
    [run] = as_data("capacity", "--users", "0")
    assert run["creates"] == []


def test_a_task_says_each_load_and_what_its_iterations_create(tmp_path: Path) -> None:
    (tmp_path / "task.yaml").write_text(TASK)
    [run] = as_data("run", "task.yaml", "--max-rate", "50")
    rates, calls = run["loads"]
    # Iterations that are late all run: only the budget ends them.
    assert (rates["rate_per_s_at_most"], rates["seconds_at_most"]) == (7.0, None)
    assert rates["creates_in_load"] == ["user"]
    assert run["creates"] == ["1 domain, 2 projects, 6 users"]
    assert (calls["in_flight_at_most"], calls["seconds_at_most"]) == (4, 30.0)
    assert calls["rate_per_s_at_most"] == 50.0  # a closed loop is as fast as answers, up to here
    assert [one.name for one in tmp_path.iterdir()] == ["task.yaml"]


def test_a_function_says_what_it_creates_and_how_many_processes_it_may_have(
    tmp_path: Path,
) -> None:
    arguments = "{image: {name: a}, flavor: {name: b}}"
    runner = "{type: rps, times: 1000, rps: 5}"
    task = f"NovaServers.boot_server: [{{args: {arguments}, runner: {runner}}}]\n"
    (tmp_path / "task.yaml").write_text(task)
    [run] = as_data("run", "task.yaml")
    assert [one["creates_in_load"] for one in run["loads"]] == [["server"]]
    assert run["in_flight_at_most"] == 256


@pytest.mark.parametrize(
    ("runner", "step", "rate", "in_flight"),
    [
        ("{type: constant, times: 1000, concurrency: 10}", "concurrency=+400", 5000.0, 810),
        ("{type: constant_for_duration, duration: 9}", "concurrency=+5000", 5000.0, 65_001),
        ("{type: rps, times: 1000, rps: 50, max_concurrency: 3}", "rps=+1", 149.0, 3),
    ],
)
def test_a_rising_load_says_how_high_it_may_rise(
    tmp_path: Path, runner: str, step: str, rate: float, in_flight: int
) -> None:
    (tmp_path / "task.yaml").write_text(f"Authenticate.keystone: [{{runner: {runner}}}]\n")
    [run] = as_data("run", "task.yaml", "--step", step, "--until", "p99>2s")
    assert (run["rate_per_s_at_most"], run["in_flight_at_most"]) == (rate, in_flight)


@pytest.mark.parametrize("ends", ["times: 100", "duration: 9"])
def test_a_rising_load_does_not_exceed_what_is_given_as_the_most(tmp_path: Path, ends: str) -> None:
    runner = "constant" if ends.startswith("times") else "constant_for_duration"
    task = f"Authenticate.keystone: [{{runner: {{type: {runner}, {ends}, concurrency: 2}}}}]\n"
    (tmp_path / "task.yaml").write_text(task)
    words = ("--step", "concurrency=+3", "--until", "p99>2s", "--at-most", "concurrency=9")
    [run] = as_data("run", "task.yaml", *words)
    assert run["in_flight_at_most"] == 8


@pytest.fixture
def commands(tmp_path: Path) -> tuple[str, ...]:
    """The options with which a target that is not a lab can have faults."""
    (tmp_path / "faults.yaml").write_text("keystone: {hosts: [here], kill: 'true'}\n")
    return "--faults", "faults.yaml", "--yes-break-this-target"


def test_what_happens_once_is_said_so(tmp_path: Path, commands: tuple[str, ...]) -> None:
    fault = ("fault", "--do", "kill keystone service", *commands)
    [run] = as_data(*fault, "--repeats", "1", "--rate", "50")
    assert [one["load"] for one in run["loads"]] == ["50/s at most for 30 s, once"]
    (tmp_path / "task.yaml").write_text("Authenticate.keystone: [{runner: {type: serial}}]\n")
    [run] = as_data("run", "task.yaml")
    assert [one["load"] for one in run["loads"]] == ["1 at once, for 1 iteration"]


def test_a_fault_is_named_and_a_load_after_a_search_is_a_share_of_n(
    commands: tuple[str, ...],
) -> None:
    sentence = "kill keystone service"
    [run] = as_data("fault", "--do", sentence, "--repeats", "2", *commands)
    search, fault = run["loads"]
    assert search["load"] == "a search for N (meter)"
    assert fault["faults"] == [sentence]
    assert fault["load"] == "a share of the N that is measured before"
    # A low N needs more time before and after the fault, and at a high one more iterations are due
    # in a standstill.
    assert fault["seconds_at_most"] == pytest.approx(2 * (50 / 0.6 + 5 + 120))
    assert fault["in_flight_at_most"] == most_connections(45_000)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "is carried out on a lab, chosen with --lab NAME, or by the commands of a file"),
        (("--do", "freeze keystone service"), "keystone has no freeze; choose from kill"),
    ],
)
def test_a_fault_that_the_target_cannot_have_is_refused_as_it_would_be_without_it(
    commands: tuple[str, ...], words: tuple[str, ...], message: str
) -> None:
    done = dry("fault", "--do", "kill keystone service", *words, *(commands if words else ()))
    assert message in str(done.exception)


def test_a_fault_of_a_hook_is_named(tmp_path: Path, commands: tuple[str, ...]) -> None:
    sentence = "kill keystone service"
    trigger = "{name: event, args: {unit: time, at: [1]}}"
    hook = f"{{name: fault_injection, args: {sentence}, trigger: {trigger}}}"
    task = f"Authenticate.keystone: [{{runner: {{type: serial}}, hooks: [{hook}]}}]\n"
    (tmp_path / "task.yaml").write_text(task)
    [run] = as_data("run", "task.yaml", *commands)
    assert [(one["faults"], one["hooks"]) for one in run["loads"]] == [([sentence], 1)]
    assert f"breaks the target: {sentence}" in dry("run", "task.yaml", *commands).stdout


def test_another_machine_is_named_as_such_and_is_not_an_error(monkeypatch) -> None:
    choose(monkeypatch, "http://192.0.2.1:5000/v3")
    [run] = as_data("capacity")
    assert run["targets"][0]["lacks_permission"] is True
    assert "only with --yes-load-this-target" in dry("capacity").stdout
    [permitted] = as_data("capacity", "--yes-load-this-target")
    assert permitted["targets"][0]["lacks_permission"] is False


def test_a_comparison_of_settings_says_that_it_starts_two_labs(tmp_path: Path) -> None:
    words = ("compare", "--with", "workers=1", "--with", "workers=2", "--concurrency", "6")
    [run] = as_data(*words, "--seconds", "2", "--pairs", "5")
    assert [one["chosen"] for one in run["targets"]] == [
        "a lab that is started on this machine"
    ] * 2
    assert run["in_flight_at_most"] == 6
    assert run["loads"][0]["load"].startswith("6 at once, for 2 s, ")
    assert list(tmp_path.iterdir()) == []


def test_a_study_shows_each_cell_once_and_begins_nothing(tmp_path: Path) -> None:
    runs = as_data("study", "run", "workers", "--quick", "--store", str(tmp_path / "store"))
    assert len(runs) == len({run["targets"][0]["chosen"] for run in runs}) == 6
    assert list(tmp_path.iterdir()) == []


def test_a_study_shows_the_pairs_of_cells_that_take_turns(tmp_path: Path) -> None:
    words = ("study", "run", "cache-settings", "--store", str(tmp_path / "store"))
    *cells, first, _, _ = as_data(*words)
    assert len(cells) == 4
    assert [one["chosen"].partition(":")[0] for one in first["targets"]] == [
        "cache local, in turns",
        "cache off, in turns",
    ]
    assert first["loads"][0]["load"].startswith("8 at once, for 3 s, ")
    assert (first["times"], first["rate_per_s_at_most"]) == (1, 5000.0)


@pytest.mark.parametrize("command", [("capacity",), ("fault", "--do", "kill keystone service")])
def test_two_targets_are_refused_as_they_would_be_without_it(command: tuple[str, ...]) -> None:
    done = dry(*command, "--lab", "a", "--cloud", "b")
    assert str(done.exception) == "give --lab or --cloud, not both"


@pytest.mark.parametrize("words", [("capacity",), ("hit", "http://127.0.0.1:9/")])
def test_a_monitor_that_does_not_exist_is_refused_as_it_would_be_without_it(
    words: tuple[str, ...],
) -> None:
    done = dry(*words, "--monitor", "ssh=")
    assert "--monitor ssh=: must be a host" in str(done.exception)
    assert dry(*words, "--monitor", "memcached://127.0.0.1:9").exception is None


def test_the_demo_can_be_looked_at() -> None:
    done = dry("demo")
    assert "target     a lab that is started on this machine" in done.stdout
    assert "  2. token validation" in done.stdout


@pytest.mark.parametrize(
    "words", [("fault", "--undo"), ("compare", "latest", "latest")], ids=lambda one: one[0]
)
def test_what_sends_no_load_has_no_dry_run(words: tuple[str, ...]) -> None:
    refused = dry(*words).exception
    assert isinstance(refused, click.UsageError)
    assert "--dry-run" in refused.message


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--metrics-beyond-loopback", "--metrics-beyond-loopback needs --metrics"),
        ("--live-beyond-loopback", "--live-beyond-loopback needs --live"),
        ("--otlp-headers=headers.txt", "--otlp-headers needs --otlp URL"),
        ("--metrics=0.0.0.0:9999", "if that is meant, add --metrics-beyond-loopback"),
    ],
)
def test_a_dry_run_refuses_options_that_the_command_refuses(option: str, words: str) -> None:
    assert words in str(dry("capacity", option).exception)


def test_a_comparison_has_a_rate_or_a_number_in_flight() -> None:
    sides = ("--with", "workers=1", "--with", "workers=2")
    done = dry("compare", *sides, "--rate", "5", "--concurrency", "4")
    assert isinstance(done.exception, click.UsageError)
    assert "--concurrency does not go with --rate" in done.exception.message
    assert dry("compare", *sides, "--rate", "5").exception is None


def test_with_a_file_of_users_only_what_a_task_asks_for_is_created(tmp_path: Path) -> None:
    runner = "{runner: {type: constant, times: 9, concurrency: 1}}"
    made = runner.replace("}}", "}, context: {users: {tenants: 3, project_domain: default}}}")
    (tmp_path / "task.yaml").write_text(f"Authenticate.keystone: [{runner}, {made}]\n")
    (tmp_path / "users.yaml").write_text("[{username: a, password: b, project_name: c}]\n")
    [run] = as_data("run", "task.yaml", "--existing-users", "users.yaml")
    assert run["creates"] == ["1 domain, 3 projects, 3 users"]
    [run] = as_data("run", "task.yaml")
    assert run["creates"] == ["1 domain, 1 project, 1 user", "1 domain, 3 projects, 3 users"]
