"""What a killed run left in its cloud is not forgotten."""

import json
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import pytest
import realistic
from fake_keystone import PASSWORD, FakeKeystone
from fake_server import serving

from loadstone.cli.report import reports_of
from loadstone.diagnosis.demand import Setup
from loadstone.keystone.journal import JOURNAL
from loadstone.lab import remote_lab
from loadstone.lab.lab_host import RemoteDeployment
from loadstone.run.exit_code import leftovers
from loadstone.run.temporary import gone_with_target
from loadstone.store.store import Store
from loadstone.target.choice import NamedTarget


@pytest.fixture
def left_behind(tmp_path):
    """A run that made a domain, and was killed before it could remove it."""
    with Store.open(tmp_path / "results") as store:
        result, _ = realistic.keystone()
        store.begin(result)
        store.finish(result)
        leave_domain(store, result.run_id)
    return result.run_id


def leave_domain(store, run_id):
    lines = (
        {
            "event": "target",
            "run_id": run_id,
            "chosen": "OS_*",
            "identity_url": "http://127.0.0.1:9/v3",
        },
        {"event": "create", "kind": "domain", "name": f"loadstone-{run_id}"},
    )
    journal = store.folder(run_id) / JOURNAL
    journal.write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_a_run_with_leftovers_is_not_deleted(loadstone, left_behind):
    ended = loadstone("results", "delete", left_behind)
    assert ended.returncode == 2
    assert f"loadstone results clean {left_behind}" in ended.stderr
    assert loadstone("results", "show", left_behind).returncode == 0


def test_every_format_says_that_something_is_left(loadstone, left_behind):
    assert (
        json.loads(loadstone("results", "show", "latest", "--json", "-").stdout)["exit_code"] == 1
    )
    assert f"remove it: loadstone results clean {left_behind}" in (
        loadstone("results", "show", "latest").stdout.replace("\n", " ")
    )
    assert "fell short" in loadstone("results", "badge").stdout
    assert 'failures="1"' in loadstone("report", "--as", "junit").stdout


def test_an_imported_run_has_left_what_it_had_left_when_it_was_exported(at_once, left_behind):
    other = ("--store", "other")
    assert at_once("results", "export", left_behind, "run.zip").returncode == 0
    assert at_once("results", "import", "run.zip", *other).returncode == 0
    shown = at_once("results", "show", left_behind, "--json", "-", *other).stdout
    assert json.loads(shown)["exit_code"] == 1
    assert 'failures="1"' in at_once("report", "--as", "junit", *other).stdout
    # Only the machine that measured has the journal, which lists what to remove.
    refused = at_once("results", "clean", left_behind, *other)
    assert refused.returncode == 3
    assert "do this on the machine that measured it" in refused.stderr
    assert at_once("results", "delete", left_behind, *other).returncode == 0


def test_a_run_under_way_is_exported_as_one_that_removes_things_at_its_end(at_once, tmp_path):
    with Store.open(tmp_path / "results") as store:
        result = replace(realistic.keystone()[0], status="running")
        store.begin(result)
        leave_domain(store, result.run_id)
        assert at_once("results", "export", result.run_id, "run.zip").returncode == 0
    assert at_once("results", "import", "run.zip", "--store", "other").returncode == 0
    with Store.open(tmp_path / "other") as other:
        assert not other.get("latest").environment.has_leftovers


def test_a_report_names_the_store_in_which_the_command_finds_the_run(
    at_once, left_behind, tmp_path
):
    (tmp_path / "results").rename(tmp_path / "other")
    command = f"loadstone results clean {left_behind} --store other"
    assert command in at_once("report", "--as", "markdown", "--store", "other").stdout
    assert at_once("report", "-o", "page.html", "--store", "other").returncode == 0
    assert command in (tmp_path / "page.html").read_text()
    assert command in at_once("results", "delete", left_behind, "--store", "other").stderr


def test_a_run_under_way_is_shown_without_its_journal(loadstone, tmp_path):
    with Store.open(tmp_path / "results") as store:
        result = replace(realistic.keystone()[0], status="running")
        journal = store.begin(result) / JOURNAL
        journal.symlink_to("elsewhere")  # cannot be read, like that of another user
        [shown] = reports_of(store, (result.run_id,), reads_samples=False)
        assert shown.title == "Results so far"
    assert loadstone("results", "show", result.run_id).returncode == 0


def test_clean_says_that_the_cloud_is_out_of_reach(loadstone, left_behind):
    ended = loadstone("results", "clean", left_behind)
    assert ended.returncode == 3
    assert "127.0.0.1:9" in ended.stderr


def test_clean_of_a_run_that_left_nothing_says_so(loadstone, left_behind, tmp_path):
    (tmp_path / "results" / "runs" / left_behind / JOURNAL).unlink()
    ended = loadstone("results", "clean", left_behind)
    assert ended.returncode == 0
    assert "left nothing" in ended.stdout
    assert loadstone("results", "delete", left_behind).returncode == 0


def test_clean_of_a_run_whose_lab_is_gone_says_what_that_means(loadstone, left_behind, tmp_path):
    journal = tmp_path / "results" / "runs" / left_behind / JOURNAL
    journal.write_text(journal.read_text().replace("OS_*", "--lab gone"))
    ended = loadstone("results", "clean", left_behind)
    assert ended.returncode == 2
    assert "lab gone does not exist; if it was removed with --purge, what run" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    assert loadstone("results", "delete", left_behind).returncode == 2
    assert loadstone("results", "delete", left_behind, "--force").returncode == 0
    assert loadstone("results", "show", left_behind).returncode == 2


@pytest.mark.processes
def test_clean_reaches_a_lab_on_another_host(at_once, left_behind, tmp_path, monkeypatch):
    journal = tmp_path / "results" / "runs" / left_behind / JOURNAL
    journal.write_text(journal.read_text().replace("OS_*", "--lab far"))
    monkeypatch.setenv("LOADSTONE_HOME", str(tmp_path))
    record = remote_lab.RemoteRecord("far", "host-2", "tcp://127.0.0.1:9", None, without_tls=True)
    remote_lab.keep(record)
    fake = FakeKeystone()
    fake.add("domains", f"loadstone-{left_behind}")
    with serving(fake.handler()) as url:
        variables = {
            "OS_AUTH_URL": f"{url}/v3",
            "OS_USERNAME": "admin",
            "OS_PASSWORD": PASSWORD,
            "OS_USER_DOMAIN_ID": "default",
        }
        lab = RemoteDeployment("far", url, (), Setup(), variables)
        host = SimpleNamespace(find={"far": lab}.get)
        monkeypatch.setattr(remote_lab, "connected", lambda *_, **__: nullcontext(host))
        ended = at_once("results", "clean", left_behind)
    assert ended.returncode == 0, ended.stderr
    assert fake.names("domains") == []


def test_what_a_run_left_in_a_lab_that_another_command_purged_is_not_left(
    left_behind, tmp_path, monkeypatch
):
    monkeypatch.setenv("LOADSTONE_HOME", str(tmp_path))
    (tmp_path / "lab/deployments/mine").mkdir(parents=True)
    state = tmp_path / "lab/deployments/mine/state.json"
    with Store.open(tmp_path / "results") as store:
        for is_purged in (False, True):
            state.write_text("{}")
            with gone_with_target(NamedTarget(lab="mine"), left_behind, store, lambda _: None):
                if is_purged:
                    state.unlink()
            assert bool(leftovers(store, left_behind)) is not is_purged
