import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.lab import deployment
from loadstone.lab.keystone import compose, conf, settings
from loadstone.lab.keystone.database import (
    data_folder,
    rename_data,
    require_not_upgraded,
    storage_folder,
)
from loadstone.lab.keystone.settings import Cache, DatabaseBackend, LabSettings


def test_settings_are_read_as_they_are_written() -> None:
    chosen = LabSettings(
        workers=3, port=15000, cache=Cache.MEMORY, hash_rounds=4, conf=(("a", "b", "c"),)
    )
    assert settings.read(chosen.pairs()) == chosen


@pytest.mark.parametrize(
    ("word", "mend"),
    [
        ("a=b", "hash-rounds"),
        ("workers=0", "from 1 to"),
        ("workers=two", "whole number"),
        ("port=70000", "65535"),
        ("cache=redis", "local, off, memory, memcached"),
        ("web=iis", "nginx-uwsgi, apache"),
        ("storage=nowhere", "disk, tmpfs, or the full path"),
        ("nodes=0", "from 1 to 16"),
        ("hash-rounds=3", "from 4 to 31"),
        ("listen=0", "from 1 to 65535"),
        ("db-connections=1", "from 10 to"),
        ("db-buffer-mb=some", "whole number"),
        ("fernet-keys=1001", "from 0 to 1000"),
        ("release=new", "30.0.0"),
        ("conf.token=3", "conf.SECTION.OPTION"),
        ("conf.token.expiration=3\n[cache]", "one line"),
        ("conf.database.connection=sqlite://", "database="),
        ("workers", "KEY=VALUE"),
        ("compute=swift", "none, nova"),
        ("middleware-cache=memory", "local, off, memcached"),
        ("middleware-cache=off", "needs compute=nova"),
        ("service-tokens=off", "needs compute=nova"),
        ("service-tokens=maybe", "on, off"),
        ("tls=on", "needs nodes=2"),
        ("federation=oidc-provider", "needs web=apache"),
        ("client-certificates=on", "needs tls=on, web=apache and nodes=1"),
        ("unique-passwords=2", "needs users=2 or more"),
        ("users=1000001", "from 0 to 1000000"),
        ("roles-per-user=3", "needs as many projects or more"),
        ("balance=leastconn", "needs nodes=2 or more"),
        ("db-connections=500", "needs database=mariadb or postgres: sqlite has no server"),
        ("db-buffer-mb=512", "needs database=mariadb or postgres"),
    ],
)
def test_what_cannot_be_is_answered_with_what_can(word: str, mend: str) -> None:
    with pytest.raises(InvalidInput, match=mend.replace("[", r"\[")):
        settings.read([settings.split(word)])


def test_roles_of_no_users_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"^roles-per-user=3 needs users=1 or more"):
        settings.read(settings.read_population("projects=5,roles-per-user=3"))


def test_a_lab_may_serve_at_a_private_address_only() -> None:
    chosen = settings.read([("address", "10.0.0.5")])
    assert chosen.host == "10.0.0.5"
    assert settings.read(chosen.pairs()) == chosen
    for elsewhere in ("8.8.8.8", "0.0.0.0", "host", "fe80::1"):
        with pytest.raises(InvalidInput, match="must be a private IPv4 address"):
            settings.read([("address", elsewhere)])
    with pytest.raises(InvalidInput, match="its catalog names services there"):
        settings.read([("address", "10.0.0.5"), ("compute", "nova")])


def test_a_compute_cloud_needs_a_keystone_that_logs_its_requests() -> None:
    chosen = settings.read([("compute", "nova"), ("service-tokens", "false")])  # as YAML reads off
    assert not chosen.service_tokens.is_on
    assert settings.read(chosen.pairs()) == chosen
    with pytest.raises(InvalidInput, match="web=uwsgi or web=nginx-uwsgi"):
        settings.read([("compute", "nova"), ("web", "gunicorn")])
    with pytest.raises(InvalidInput, match="needs tls=off"):
        settings.read([("compute", "nova"), ("nodes", "2"), ("tls", "on")])
    with pytest.raises(InvalidInput, match=re.escape("release=13.0.2 is started with compute")):
        settings.read([("compute", "nova"), ("release", "13.0.2")])


def test_the_users_option_wins() -> None:
    text = conf.render((("token", "provider", "fernet"), ("token", "provider", "jws")))
    assert text == "[token]\nprovider = jws\n"


def test_the_single_process_server_has_one_worker_and_no_more() -> None:
    assert settings.read([("web", "single")]).workers == 1
    with pytest.raises(InvalidInput, match="workers=1"):
        settings.read([("web", "single"), ("workers", "2")])


def test_a_home_that_cannot_be_written_is_said_with_a_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LOADSTONE_HOME", "/proc/nowhere")
    with pytest.raises(
        EnvironmentUnusable, match=r"cannot start it in /proc/nowhere[^\n]*LOADSTONE_HOME[^\n]*$"
    ):
        deployment.up("it", LabSettings(), lambda _: None)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("token=uuid",), r"token=uuid needs release=13\.0\.2"),
        (("release=13.0.2", "expired-tokens=5"), "expired-tokens=5 needs token=uuid"),
        (("release=13.0.2", "web=apache"), "with web uwsgi, nginx-uwsgi, single only"),
        (("release=13.0.2", "token=jws"), "with token fernet, uuid only"),
        (("release=13.0.2", "implementation=rust"), "with implementation python only"),
        (("release=14.2.0", "token=jws"), r"token=jws needs release=15\.0\.0 or later"),
        (("release=12.0.3",), "too old; releases from 13"),
        (("release=13.0.2", "users=5"), "started without users, projects, groups"),
        (("service=flask-reference", "users=5"), "has no users"),
        (("service=flask-reference", "storage=tmpfs"), "has no storage"),
        (("service=flask-reference", "release=13.0.2"), "13.0.2 has no Flask"),
        (("service=flask-reference", "db-buffer-mb=512"), "has no db-buffer-mb"),
        (("service=hydra", "storage=tmpfs"), "storage=tmpfs needs database=postgres"),
        (("service=hydra", "db-connections=500"), "db-connections=500 needs database=postgres"),
        (("service=keycloak", "db-buffer-mb=512"), "needs database=mariadb or postgres: h2 has"),
        (("token=jws", "fernet-keys=100"), "fernet-keys=100 needs token=fernet"),
        (("maxconn=4",), r"maxconn=4 needs nodes=2 or more"),
        (("keep-alive=none",), r"keep-alive=none needs nodes=2 or more"),
        (("db-flush=second",), r"db-flush=second needs database=mariadb or postgres"),
        (("db-isolation=read-committed",), r"needs database=mariadb or postgres"),
        (("service=flask-reference", "allocator=malloc"), "has no allocator"),
        (("implementation=rust", "gc-threshold=9000"), "implementation=rust has no gc-threshold"),
        (("memcached-servers=3",), "memcached-servers=3 needs cache=memcached or"),
        (("implementation=rust", "web=apache"), "implementation=rust has no web: its settings"),
        (("implementation=rust", "cache=memcached"), "implementation=rust has no cache"),
        (("implementation=rust", "workers=2"), "one process"),
        (("implementation=rust", "database=postgres"), "has database sqlite, mariadb"),
        (("implementation=rust", "conf.token.expiration=60"), "has no conf"),
    ],
)
def test_what_a_release_cannot_do_is_refused_with_the_reason(
    words: tuple[str, ...], reason: str
) -> None:
    with pytest.raises(InvalidInput, match=reason):
        settings.read([settings.split(word) for word in words])


def test_queens_may_have_uuid_tokens_and_expired_ones() -> None:
    words = ("release=13.0.2", "token=uuid", "expired-tokens=1000")
    chosen = settings.read([settings.split(word) for word in words])
    assert settings.read(chosen.pairs()) == chosen


@pytest.mark.parametrize("release", ["/srv/keystone-queens", "git+file:///srv/k@stable/queens"])
def test_sources_on_another_host_may_be_of_any_version(release: str) -> None:
    words = (("release", release), ("token", "uuid"), ("expired-tokens", "5"))
    settings.require_possible(words)
    with pytest.raises(InvalidInput, match="token must be"):
        settings.require_possible((*words, ("token", "paper")))
    with pytest.raises(InvalidInput, match=r"token=uuid needs release=13\.0\.2"):
        settings.require_possible((*words, ("release", "30.0.0")))


def test_what_results_keep_of_a_deployment_has_no_secret() -> None:
    chosen = settings.read([
        *(("conf.ldap.password", "hunter2"), ("conf.token.expiration", "60")),
        ("conf.cache.redis_server", "redis://ann:hunter2@127.0.0.1/0"),
    ])  # fmt: skip
    facts = dict(deployment.facts_of(chosen, "http://127.0.0.1:5000", ()))
    assert facts["[token] expiration"] == "60"
    assert facts["[ldap] password"] == "***"
    assert "hunter2" not in str(facts)


def test_postgresql_is_postgres() -> None:
    assert settings.read([("database", "postgresql")]) == settings.read([("database", "postgres")])


@pytest.mark.processes
def test_a_data_folder_that_another_user_made_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOADSTONE_HOME", str(tmp_path / "home"))
    chosen = LabSettings(storage=str(tmp_path))
    data = storage_folder(tmp_path / "home" / "lab" / "deployments" / "it", chosen.storage)
    other = tmp_path / "elsewhere"
    other.mkdir()
    data.symlink_to(other)
    refused = re.escape(f"{data} is not a folder of this user (it belongs to user id ")
    with pytest.raises(EnvironmentUnusable, match=refused):
        deployment.up("it", chosen, lambda _: None)
    if os.geteuid() == 0:  # others cannot give a folder away
        data.unlink()
        data.mkdir()
        os.chown(data, 12345, 12345)
        with pytest.raises(EnvironmentUnusable, match=f"{refused}12345"):
            deployment.up("it", chosen, lambda _: None)
        assert list(data.iterdir()) == []
    assert list(other.iterdir()) == []


def test_a_population_is_four_settings() -> None:
    found = settings.read(settings.read_population("users=100, projects=5,roles-per-user=3"))
    assert (found.users, found.projects, found.groups, found.roles_per_user) == (100, 5, 0, 3)


@pytest.mark.parametrize("spec", ["", "users", "users=", "users=5,workers=2", "users=5,"])
def test_a_population_of_anything_else_is_refused(spec: str) -> None:
    with pytest.raises(InvalidInput, match=r"must be KEY=N; the keys are users, projects"):
        settings.read_population(spec)


def test_a_listen_queue_is_uwsgis() -> None:
    with pytest.raises(InvalidInput, match="web=uwsgi"):
        settings.read([("web", "gunicorn"), ("listen", "10")])


def test_data_that_were_upgraded_do_not_go_back(tmp_path: Path) -> None:
    chosen = settings.read([("database", "mariadb"), ("release", "25.0.0")])
    old, new, newest = (
        data_folder(tmp_path, replace(chosen, release=release))
        for release in ("25.0.0", "29.1.0", "30.0.0")
    )
    old.mkdir(parents=True)
    require_not_upgraded(tmp_path, chosen)
    rename_data(old, new)
    rename_data(new, newest)
    for release in ("25.0.0", "29.1.0"):
        with pytest.raises(InvalidInput, match=r"upgraded to 30\.0\.0.*release=30\.0\.0"):
            require_not_upgraded(tmp_path, replace(chosen, release=release))
    require_not_upgraded(tmp_path, replace(chosen, release="30.0.0"))
    # Those of another database server are others.
    require_not_upgraded(tmp_path, replace(chosen, database=DatabaseBackend.POSTGRES))


def test_the_reference_service_has_none_of_keystones_settings() -> None:
    chosen = settings.read([("service", "flask-reference"), ("web", "nginx-uwsgi")])
    packages = {program.package for program in compose.programs(chosen)}
    assert packages == {"nginx-light", "nginx-common"}
    with pytest.raises(InvalidInput, match="has no database, hash-rounds"):
        settings.read([
            ("service", "flask-reference"), ("database", "mariadb"), ("hash-rounds", "4")
        ])  # fmt: skip
