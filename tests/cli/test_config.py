"""Defaults from configuration files and from the environment."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from loadstone.cli import loadstone
from loadstone.errors import InvalidInput
from loadstone.serve.service import ServiceSettings


@pytest.fixture(autouse=True)
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own file, of a user who is in a project's folder."""
    (tmp_path / "config/loadstone").mkdir(parents=True)
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("LOADSTONE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("LOADSTONE_CONFIG", raising=False)
    monkeypatch.delenv("LOADSTONE_STORE", raising=False)
    clouds = {
        "here": "http://127.0.0.1:9/v3",
        "other": "http://127.0.0.2:9/v3",
        "far": "http://192.0.2.1:5000/v3",
    }
    text = "clouds:\n" + "".join(
        f"  {name}: {{auth: {{auth_url: '{url}', username: a, password: b1b2b3b4, "
        "user_domain_id: default}}\n"
        for name, url in clouds.items()
    )
    (tmp_path / "clouds.yaml").write_text(text.replace("}}\n", "}}\n"))
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(tmp_path / "clouds.yaml"))
    return tmp_path / "config/loadstone/config.toml"


@pytest.fixture
def of_folder(tmp_path: Path) -> Path:
    return tmp_path / "project/loadstone.toml"


def invoke(*words: str) -> Result:
    return CliRunner().invoke(loadstone, [*words], standalone_mode=False)


def planned(*words: str) -> dict[str, object]:
    done = invoke("capacity", *words, "--dry-run", "--json", "-")
    assert done.exception is None, done.exception
    [run] = json.loads(done.stdout)["runs"]
    return run


def refused(*words: str) -> str:
    done = invoke(*(words or ("capacity", "--dry-run")))
    assert done.exception is not None, done.stdout
    return getattr(done.exception, "message", "") or str(done.exception)


def test_each_source_overrides_the_one_before(own, of_folder, monkeypatch) -> None:
    own.write_text('[target]\ncloud = "here"\n[limits]\nmax-rate = 10\nbudget = "30s"\nusers = 4\n')
    run = planned()
    assert run["targets"][0]["url"] == "http://127.0.0.1:9/v3"
    assert (run["rate_per_s_at_most"], run["seconds_at_most"]) == (10.0, 30.0)
    assert run["creates"] == ["1 domain, 2 projects, 4 users"]
    of_folder.write_text("[limits]\nmax-rate = 20\n")
    assert planned()["rate_per_s_at_most"] == 20.0
    monkeypatch.setenv("LOADSTONE_CAPACITY_MAX_RATE", "30")
    assert planned()["rate_per_s_at_most"] == 30.0
    assert planned("--max-rate", "40")["rate_per_s_at_most"] == 40.0
    assert planned()["seconds_at_most"] == 30.0


def test_a_file_switches_an_option_on(own) -> None:
    own.write_text('[target]\ncloud = "here"\n[capacity]\ndry-run = true\n')
    assert "rate_per_s_at_most" in invoke("capacity", "--json", "-").stdout


def test_true_chooses_what_an_option_without_a_value_means(own) -> None:
    own.write_text('[target]\ncloud = "here"\n[capacity]\npredict = true\n')
    given = invoke("capacity", "--json", "-", "--dry-run")
    own.write_text('[target]\ncloud = "here"\n')
    assert given.stdout == invoke("capacity", "--json", "-", "--dry-run", "--predict").stdout
    assert given.stdout != invoke("capacity", "--json", "-", "--dry-run").stdout


def test_a_table_of_a_command_sets_its_options(own) -> None:
    own.write_text(
        '[target]\ncloud = "here"\n[capacity]\nscenario = "validate"\nmax-connections = 7\n'
        'objective = ["p99<1s"]\n'
    )
    run = planned()
    assert run["in_flight_at_most"] == 7
    assert run["loads"][0]["title"] == "token validation"


def test_a_target_that_is_named_nearer_replaces_the_other_kind(own, of_folder, monkeypatch) -> None:
    own.write_text('[target]\nlab = "demo"\n')
    assert planned("--cloud", "other")["targets"][0]["chosen"] == "--cloud other"
    of_folder.write_text('[target]\ncloud = "other"\n')
    assert planned()["targets"][0]["chosen"] == "--cloud other"
    monkeypatch.setenv("LOADSTONE_CAPACITY_CLOUD", "here")
    assert planned()["targets"][0]["chosen"] == "--cloud here"
    monkeypatch.delenv("LOADSTONE_CAPACITY_CLOUD")
    monkeypatch.setenv("OS_CLOUD", "here")
    assert planned()["targets"][0]["url"] == "http://127.0.0.1:9/v3"


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('[capacity]\nanyway = true', 2, "a permission is given on the command line only"),
        ('[run]\n"yes-load-this-target" = true', 2, "on the command line only"),
        ('[results]\n[results.delete]\nforce = true', 3, "on the command line only"),
        ('[results]\ndelete.force = true', 2, "on the command line only"),
        ('[store]\nlocation = "postgresql://me:pw12345@db/x"', 2, "holds a secret"),
        ('[monitors]\nwatch = "prometheus=http://u:pw12345@h"', 2, "holds a secret"),
        ('[target]\npassword = "x"', 2, "holds a secret"),
        ('# mine\n\n[target]\nclowd = "x"', 4, "not known; [target] has cloud, lab"),
        ('[run]\nmax-rate = 1\n[capacity]\nmax-rat = 3', 4, "option; did you mean max-rate?"),
        ('[target]\ncloud = "a"\nlab = "b"', 3, "names a cloud and a lab; keep one of them"),
        ('[capacity]\nxyzzy = 3', 2, "no such option; it has a"),
        ('[capacitee]\nmax-rate = 3', 2, "no command has this name"),
        ('[study]\nquick = true', 2, "name the command, as in [study.NAME]"),
        ("users = 3", 1, "is not in a table"),
        ("[limits]\nusers = 2026-01-01", 2, "is not a text, a number"),
        ("limits = {anyway = true}", None, "on the command line only"),
        ("[limits", None, "not TOML"),
        ("\udc80", None, "not UTF-8"),
    ],
)  # fmt: skip
def test_a_mistake_names_the_file_the_line_and_the_key(own, text, line, words) -> None:
    own.write_bytes(text.encode(errors="surrogateescape"))
    message = refused()
    assert words in message
    assert (f"{own}: " if line is None else f"{own}:{line}: ") in message
    assert "pw12345" not in message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[limits]\nusers = [4]", "limits.users: takes one value, not a list"),
        ("[limits]\nusers = 4.5", "'4.5' is not a valid integer"),
        ("[limits]\nusers = true", "'true' is not a valid integer"),
        ('[capacity]\nusers = "ten"', "'ten' is not a valid integer"),
        ("[capacity]\nquiet = 2", "'2' is not a valid boolean"),
        ("[capacity]\nclient-secret-file = 0", "'0' does not exist"),
        ('[store]\nlocation = ["a"]', "store.location: takes one value, not a list"),
    ],
)
def test_a_value_of_another_kind_names_the_file_and_the_key(own, text, words) -> None:
    own.write_text(text)
    message = refused()
    table, _, key = text.split(" = ")[0].removeprefix("[").partition("]\n")
    assert words in message
    assert f"{own}:2: {table}.{key}" in message


def test_a_wrong_value_of_a_variable_names_it(monkeypatch) -> None:
    monkeypatch.setenv("LOADSTONE_CAPACITY_USERS", "ten")
    assert refused().endswith("(from LOADSTONE_CAPACITY_USERS)")
    assert "(from" not in refused("capacity", "--users", "ten")


def test_a_working_directory_that_must_not_be_entered_has_no_file(monkeypatch) -> None:
    known = os.stat

    def refuse(path: Any, *args: Any, **options: Any) -> os.stat_result:
        if str(path).endswith("loadstone.toml"):
            raise PermissionError(13, "Permission denied")
        return known(path, *args, **options)

    monkeypatch.setattr(os, "stat", refuse)
    assert invoke("results", "list").exception is None
    assert invoke("config").exception is None


@pytest.mark.parametrize(
    ("path", "words"),
    [("none-such.toml", "no such file; with LOADSTONE_CONFIG=-"), ("x" * 300, "name too long")],
)
def test_a_named_file_that_cannot_be_read_is_one_line(monkeypatch, path, words) -> None:
    monkeypatch.setenv("LOADSTONE_CONFIG", path)
    assert words in refused()


@pytest.mark.parametrize(
    "text",
    [
        '[capacity]\n"yes-load-this-target" = true',
        '[fault]\nfaults = "breaks.yaml"',
        '[run]\n"existing-users" = "/etc/passwd"',
        '[compare]\nmarkdown = "/tmp/x"',
        '[serve]\nhost = "0.0.0.0"',
        '[fleet.up]\nhost = "0.0.0.0"',
        '[capacity]\nfleet = "tls://198.51.100.1:8786"',
        '[capacity]\nmonitor = "ssh=-oProxyCommand=x"',
        '[capacity]\nscenario = "HttpRequests.check_request"\narg = ["url=http://192.0.2.1/"]',
        '[capacity]\ncloud = "far"',
        '[hit]\nmethod = "DELETE"',
        '[store]\nlocation = "../elsewhere"',
        '[store]\nlocation = "/tmp/x"',
        '[store]\nlocation = "postgresql://db.example/x"',
        '[monitors]\nwatch = ["ssh=host"]',
        '[monitors]\nwatch = "prometheus=http://h:9090,queries=/etc/passwd"',
    ],
)
def test_a_file_of_the_folder_permits_nothing_runs_nothing_and_stores_only_below(
    of_folder, text
) -> None:
    of_folder.write_text(text)
    assert refused().startswith(str(of_folder))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[capacity]\nmaxrate = 50", "capacity.maxrate: no such option; did you mean max-rate?"),
        ("[capacty]\nhost = 50", "capacty.host: no command has this name"),
        ("[results]\nlimit = 1", "results.limit: name the command, as in [results.NAME]"),
    ],
)
def test_what_is_not_known_in_a_file_of_the_folder_is_not_sent_to_the_own_file(
    of_folder, text, words
) -> None:
    of_folder.write_text(text)
    assert refused() == f"{of_folder}:2: {words}"


def test_a_file_of_the_folder_sets_figures_of_commands_of_a_group(of_folder) -> None:
    of_folder.write_text("[study.run]\nseed = 7\n")
    rows = json.loads(invoke("config", "--json", "-").stdout)["defaults"]
    assert ("study.run.seed", "7") in [(row["name"], row["value"]) for row in rows]


def test_a_variable_of_an_option_that_is_given_once_may_have_spaces(monkeypatch, tmp_path) -> None:
    (tmp_path / "a task.yaml").write_text(
        "Authenticate.keystone: [{runner: {type: constant, times: 1, concurrency: 1}}]\n"
    )
    monkeypatch.setenv("LOADSTONE_CAPACITY_TASK", str(tmp_path / "a task.yaml"))
    assert planned("--cloud", "here")["loads"][0]["title"] == "Authenticate.keystone"


def test_a_working_directory_that_was_removed_is_named(tmp_path, monkeypatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    message = refused("results", "list")
    monkeypatch.chdir(tmp_path)
    assert message == "the working directory was removed; change to another"


@pytest.mark.parametrize("value", ["0", "1"])
def test_a_switch_is_also_a_variable(monkeypatch, value: str) -> None:
    monkeypatch.setenv("LOADSTONE_HIT_HTTP2", value)
    done = invoke("hit", "http://127.0.0.1:9/", "--dry-run")
    assert done.exception is None


def test_a_limit_of_load_is_none_of_the_reference_service(own, monkeypatch) -> None:
    own.write_text("[limits]\nmax-connections = 7\n")
    served: list[ServiceSettings] = []

    def serve(settings: ServiceSettings, *_: object) -> str:
        served.append(settings)
        return json.dumps({"kept": None, "tokens_evicted": 0})

    monkeypatch.setattr("loadstone.serve.service.serve", serve)
    assert invoke("serve").exception is None
    assert [one.connections for one in served] == [None]


def test_a_target_of_the_folder_is_not_loaded_on_another_machine(of_folder, own) -> None:
    of_folder.write_text('[target]\ncloud = "far"\n')
    assert planned()["targets"][0]["lacks_permission"] is True
    message = refused("capacity", "--yes-load-this-target", "--dry-run")
    assert message.endswith("with --yes-load-this-target name it yourself: --cloud far")
    named = planned("--yes-load-this-target", "--cloud", "far")
    assert named["targets"][0]["lacks_permission"] is False
    provider = ("--oidc", "http://127.0.0.1:9", "--client-id", "x", "--scenario", "oidc-discover")
    named = planned("--yes-load-this-target", *provider)
    assert named["targets"][0]["chosen"] == "--oidc"
    of_folder.unlink()
    own.write_text('[target]\ncloud = "far"\n')
    assert planned("--yes-load-this-target")["targets"][0]["lacks_permission"] is False


def test_a_permission_is_no_variable(monkeypatch) -> None:
    monkeypatch.setenv("LOADSTONE_CAPACITY_YES_LOAD_THIS_TARGET", "1")
    assert planned("--cloud", "far")["targets"][0]["lacks_permission"] is True


def test_config_shows_what_holds_and_from_where(own, of_folder, monkeypatch) -> None:
    own.write_text('[target]\ncloud = "here"\n')
    of_folder.write_text("[limits]\nusers = 3\n")
    monkeypatch.setenv("LOADSTONE_RUN_BUDGET", "2m")
    monkeypatch.setenv("LOADSTONE_SERVE_PASSWORD", "pw-of-serve")
    done = invoke("config", "--json", "-")
    data = json.loads(done.stdout)
    assert data["files"] == [str(own), str(of_folder)]
    rows = {row["name"]: (row["value"], row["from"]) for row in data["defaults"]}
    assert rows["target.cloud"] == ("here", str(own))
    assert rows["limits.users"] == ("3", str(of_folder))
    assert rows["LOADSTONE_RUN_BUDGET"] == ("2m", "environment")
    assert "pw-of-serve" not in done.stdout
    assert "limits.users" in invoke("config").stdout


def test_config_says_which_variables_set_nothing(monkeypatch) -> None:
    known = ("CAPACITY_MAX_RATE", "STUDY_RUN_SEED", "STORE", "SERVE_PASSWORD", "SERVE_CAPACITY")
    unknown = ("CAPACITY_MAXRATE", "STUDY_SEED", "CAPACITY_YES_LOAD_THIS_TARGET", "CAPCITY_USERS")
    for name in (*known, *unknown):
        monkeypatch.setenv(f"LOADSTONE_{name}", "5")
    rows = json.loads(invoke("config", "--json", "-").stdout)["defaults"]
    sources = {row["name"].removeprefix("LOADSTONE_"): row["from"] for row in rows}
    assert {sources[name] for name in known} == {"environment"}
    assert {sources[name] for name in unknown} == {
        "environment, without effect: no option is called so"
    }


def test_config_refuses_a_value_that_its_option_does_not_take(own, monkeypatch) -> None:
    for table in ("capacity", "limits"):
        own.write_text(f"[{table}]\nmax-rate = 'fast'\n")
        words = f"{own}:2: {table}.max-rate: 'fast' is not a rate"
        assert refused("config").startswith(words)
    own.write_text("")
    monkeypatch.setenv("LOADSTONE_STUDY_RUN_SEED", "x")
    assert refused("config").startswith("LOADSTONE_STUDY_RUN_SEED: 'x' is not a valid integer")


def test_a_command_warns_of_its_variables_that_set_nothing(monkeypatch) -> None:
    for name in ("RUN_BUDGETT", "STUDY_RUN_SEED", "STUDY_RUN_SEDE"):
        monkeypatch.setenv(f"LOADSTONE_{name}", "5")
    assert invoke("study", "list", "--json", "-").stderr == (
        "loadstone: LOADSTONE_STUDY_RUN_SEDE has no effect: no option of study has this variable; "
        "did you mean LOADSTONE_STUDY_RUN_SEED?\n"
    )
    monkeypatch.setenv("LOADSTONE_RESULTS_DELETE_FORCE", "1")
    assert invoke("results", "list").stderr == (
        "loadstone: LOADSTONE_RESULTS_DELETE_FORCE has no effect: a permission is given on the "
        "command line only: --force\n"
    )
    for name in ("SERVE_PASSWORD", "OIDC_CLIENT_SECRET", "KEYSTONE_RUST", "LAB"):
        monkeypatch.setenv(f"LOADSTONE_{name}", "of another purpose")
    assert invoke("serve", "--help").stderr == ""


def test_a_variable_of_a_misspelt_command_is_named_by_the_command_that_is_meant(
    monkeypatch,
) -> None:
    monkeypatch.setenv("LOADSTONE_REUSLTS_LIST_LIMIT", "5")
    assert invoke("results", "list").stderr == (
        "loadstone: LOADSTONE_REUSLTS_LIST_LIMIT has no effect: no option of results has this "
        "variable; did you mean LOADSTONE_RESULTS_LIST_LIMIT?\n"
    )
    assert invoke("study", "list").stderr == ""


def test_a_misspelt_variable_of_all_commands_is_named(monkeypatch) -> None:
    monkeypatch.setenv("LOADSTONE_STOER", "elsewhere")
    warning = "loadstone: LOADSTONE_STOER has no effect: did you mean LOADSTONE_STORE?\n"
    assert invoke("study", "list").stderr == warning


def test_without_files_and_with_a_file_of_ones_own(own, of_folder, monkeypatch, tmp_path) -> None:
    own.write_text("[limits]\nusers = 3\n")
    monkeypatch.setenv("LOADSTONE_CONFIG", "-")
    assert planned("--cloud", "here")["creates"] == ["1 domain, 2 projects, 10 users"]
    (tmp_path / "ci.toml").write_text("[limits]\nusers = 6\n")
    of_folder.write_text("[limits]\nusers = 8\n")
    monkeypatch.setenv("LOADSTONE_CONFIG", str(tmp_path / "ci.toml"))
    assert planned("--cloud", "here")["creates"] == ["1 domain, 2 projects, 6 users"]


def test_a_broken_file_is_one_line(own) -> None:
    own.mkdir()
    done = invoke("results", "list")
    assert isinstance(done.exception, InvalidInput)
    assert "\n" not in str(done.exception)


def test_a_file_may_begin_with_a_byte_order_mark(of_folder: Path) -> None:
    of_folder.write_text("\ufeff[limits]\r\nmax-rate = 50\r\n", "utf-8")
    assert planned("--cloud", "here")["rate_per_s_at_most"] == 50


def test_a_target_of_the_command_is_nearer_than_a_shared_one_of_another_kind(own) -> None:
    own.write_text('[target]\nlab = "shared"\n[capacity]\ncloud = "here"\n')
    assert "127.0.0.1:9" in str(planned()["targets"])
    own.write_text('[target]\ncloud = "here"\n[capacity]\nlab = "none-such"\n')
    assert "none-such" in refused()
