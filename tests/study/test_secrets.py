"""A study whose task holds passwords: they stay in the user's file."""

import json

import pytest
from click.testing import CliRunner

from loadstone.cli.study import study
from loadstone.errors import InvalidInput
from loadstone.study import journal
from loadstone.study.order import turns
from loadstone.study.read import StudySource

# Its quick form measures no Keystone, only the reference service.
STUDY = """\
title: A secretive task, with password-hunter2 in its title
factors: {workers: [1, 2]}
cells: [{workers: 2}]
quick: {words: the reference service, levels: {workers: [1]}, repeats: 1}
reference: {}
measurement:
  kind: task
  task:
    KeystoneBasic.authenticate_user_and_validate_token:
      - runner: {type: serial, times: 2}
        context: {users: {tenants: 1, users_per_tenant: 1, user_password: password-hunter2}}
        sla: {max_avg_duration_per_atomic: {keystone_v3.fetch_token: 60}}
        hooks:
          - name: sys_call
            args: "sh told.sh -u admin:hook-hunter2"
            trigger: {name: event, args: {unit: iteration, at: [1]}}
"""
SECRETS = (b"password-hunter2", b"hook-hunter2")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("LOADSTONE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text(STUDY)
    (tmp_path / "told.sh").write_text('echo "$2" | tee -a told')
    return tmp_path


def ask(*words):
    return CliRunner().invoke(study, [str(word) for word in words])


def secrets_below(folder):
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    return [path for path in files if any(secret in path.read_bytes() for secret in SECRETS)]


@pytest.mark.processes
def test_a_study_keeps_no_secret_of_its_task_and_can_be_resumed(folder, monkeypatch):
    # Where the load generator was the limit, as on a busy machine, a turn is measured once more.
    monkeypatch.setattr("loadstone.engine.limits._limits", lambda *_: ())
    begun = journal.begin(folder / "store", StudySource("mine.yaml", STUDY), quick=True, seed=1)
    assert secrets_below(folder / "store") == []
    resume = ("run", "--resume", begun.study_id, "--store", "store", "--json", "found.json")
    done = ask(*resume)
    assert done.exit_code == 0, done.output
    assert json.loads((folder / "found.json").read_text())["missing"] == 0
    assert (folder / "told").read_text() == "admin:hook-hunter2\n"
    shown = ask("show", begun.study_id, "--store", "store", "--markdown")
    assert "1. KeystoneBasic.authenticate_user_and_validate_token" in shown.output
    (folder / "store" / "shown").write_text(done.output + shown.output)
    assert secrets_below(folder / "store") == []
    assert "hunter2" not in (folder / "found.json").read_text()


def test_a_study_goes_on_only_with_the_file_that_it_began_with(folder):
    begun = journal.begin(folder / "store", StudySource("mine.yaml", STUDY), quick=True, seed=1)
    (folder / "mine.yaml").write_text(STUDY.replace("times: 2", "times: 3"))
    refused = ask("run", "--resume", begun.study_id, "--store", "store")
    assert isinstance(refused.exception, InvalidInput)
    assert f"{folder}/mine.yaml: is not the file with which the study began" in str(
        refused.exception
    )


def test_a_study_without_secrets_is_kept_as_it_is(folder):
    plain = STUDY.replace("user_password", "user_choice_method").replace("-u admin:hook", "")
    plain = plain.replace("password-hunter2", "random")
    begun = journal.begin(folder / "store", StudySource("mine.yaml", plain), quick=False, seed=1)
    assert begun.begun.text == plain
    assert begun.with_secrets() == begun


def test_the_copy_without_secrets_has_the_same_order(folder):
    file = """\
title: A password and workers
factors: {conf.ldap.password: [S3cret-hunter2], workers: [1, 2]}
measurement: {scenario: issue, budget_s: 20}
"""
    (folder / "mine.yaml").write_text(file)
    for seed in range(8):
        source = StudySource("mine.yaml", file)
        begun = journal.begin(folder / f"store{seed}", source, quick=False, seed=seed).begun
        order, secret = (
            [dict(turn.cell.levels)["workers"] for turn in turns(study, seed)]
            for study in (begun.study(), begun.with_secrets().study())
        )
        assert order == secret


def test_levels_that_differ_by_a_secret_alone_are_refused(folder):
    file = """\
title: Two passwords
factors: {conf.ldap.password: [first-hunter2, second-hunter2]}
measurement: {scenario: issue, budget_s: 20}
"""
    with pytest.raises(InvalidInput, match="no level may differ by a secret alone"):
        journal.begin(folder / "store", StudySource("mine.yaml", file), quick=False, seed=1)
    assert not (folder / "store").exists()


def test_a_plan_shows_no_secret_of_a_setting(folder):
    url = "mysql://ks:S3cret-hunter2@db/ks"
    text = f'title: X\nfactors: {{workers: [1]}}\nsettings: {{conf.oslo_limit.password: "{url}"}}\n'
    (folder / "plan.yaml").write_text(text)
    shown = ask("show", "plan.yaml")
    assert shown.exit_code == 0, shown.output
    assert "conf.oslo_limit.password" in shown.output
    assert "S3cret-hunter2" not in shown.output
