"""What the settings of a deployment become in its parts, none of which is started."""

import configparser
import resource
from pathlib import Path

import pytest

from loadstone.faults import database
from loadstone.lab import interpreters, processes, state
from loadstone.lab.deployment import facts_of
from loadstone.lab.keystone import settings
from loadstone.lab.keystone.blueprint import Blueprint
from loadstone.lab.keystone.compose import parts, programs
from loadstone.lab.keystone.service import set_keys
from loadstone.lab.parts.mariadb import MariaDb
from loadstone.lab.parts.part import Part
from loadstone.lab.parts.postgres import Postgres
from loadstone.lab.ports import HOST, Ports
from loadstone.lab.programs import Program
from loadstone.lab.provider.keycloak import Keycloak
from loadstone.lab.state import DeploymentPhase, DeploymentState, Record


class OnePort(Ports):
    """Reserves nothing."""

    def allocate(self, purpose: str, requested: int | None = None, host: str = HOST) -> int:  # noqa: ARG002
        return 1


def composed(folder: Path, *words: str) -> dict[str, Part]:
    chosen = settings.read([settings.split(word) for word in words])
    blueprint = Blueprint(folder, chosen, OnePort({}), 5000, *["x"] * 4)
    return {part.name: part for part in parts(blueprint)}


@pytest.mark.parametrize(
    ("words", "cache"),
    [
        (("cache=memcached",), "memcached"),
        (("cache=memcached", "conf.cache.enabled=false"), "off"),
        (("cache=off", "conf.cache.enabled=true"), "local"),
        (("cache=off", "conf.cache.backend=dogpile.cache.memory"), "off"),
        (("conf.cache.backend=dogpile.cache.memory",), "memory"),
        (("conf.cache.backend=oslo_cache.etcd3gw",), "oslo_cache.etcd3gw"),
    ],
)
def test_the_fact_cache_follows_the_users_options(
    tmp_path: Path, words: tuple[str, ...], cache: str
) -> None:
    assert dict(composed(tmp_path, *words)["keystone"].facts())["cache"] == cache


def test_options_of_ldap_reach_the_domain_of_the_directory(tmp_path: Path) -> None:
    words = ("identity=ldap", "conf.ldap.pool_size=3", "conf.ldap.use_pool=false")
    composed(tmp_path, *words)["directory"].prepare(lambda _: None)
    found = configparser.ConfigParser(interpolation=None)
    found.read(state.secret_folder(tmp_path) / "domains" / "keystone.directory.conf")
    assert found["ldap"]["pool_size"] == "3"
    assert found["ldap"]["use_pool"] == "false"
    assert found["ldap"]["use_auth_pool"] == "true"


def test_a_population_without_users_is_a_fact(tmp_path: Path) -> None:
    facts = dict(composed(tmp_path, "projects=50", "groups=3")["keystone"].facts())
    assert (facts["projects"], facts["groups"]) == ("50", "3")
    assert not {"users", "unique passwords"} & set(facts)
    assert not {"projects", "groups"} & set(dict(composed(tmp_path)["keystone"].facts()))


@pytest.mark.parametrize(
    ("part", "usual", "chosen"),
    [
        ("haproxy", ("nodes=2",), "maxconn=3"),
        ("uwsgi", (), "listen=64"),
        ("uwsgi", ("web=nginx-uwsgi",), "listen=64"),
        ("keystone", ("cache=memcached",), "memcached-servers=2"),
        ("apache", ("web=apache", "tls=on"), "client-certificates=on"),
    ],
)
def test_deployments_that_queue_or_cache_differently_have_different_facts(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    part: str,
    usual: tuple[str, ...],
    chosen: str,
) -> None:
    monkeypatch.setattr(Program, "version", lambda *_: "1.0")
    one, other = (
        dict(composed(tmp_path, *words)[part].facts()) for words in (usual, (*usual, chosen))
    )
    assert set(one) < set(other)


@pytest.mark.parametrize(
    ("words", "part", "file"),
    [
        ("web=apache", "apache", "run/apache.pid"),
        ("database=postgres", "postgres", "data/30.0.0-postgres/postgres-data/postmaster.pid"),
    ],
)
def test_a_pid_of_before_a_reboot_does_not_stop_a_server_from_starting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, part: str, file: str
) -> None:
    pid_file = tmp_path / file
    pid_file.parent.mkdir(parents=True)
    pid_file.write_text("1\n")
    left: list[bool] = []
    monkeypatch.setattr(Program, "path", lambda one: one.name)
    monkeypatch.setattr(processes, "start", lambda _: left.append(pid_file.exists()))
    composed(tmp_path, words)[part].start()
    assert left == [False]


def test_a_pid_of_before_a_reboot_does_not_stop_a_database_from_being_prepared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = tmp_path / "data" / "30.0.0-postgres" / "postgres-data"
    tables.mkdir(parents=True)
    for name, text in (
        ("postmaster.pid", "1\n"),
        ("postgresql.conf", ""),
        ("postgresql.auto.conf", ""),
    ):
        (tables / name).write_text(text)
    left: list[bool] = []
    monkeypatch.setattr(Program, "path", lambda one: one.name)
    monkeypatch.setattr(Program, "version", lambda *_: "15.1")
    monkeypatch.setattr(
        processes, "complete", lambda *_: left.append((tables / "postmaster.pid").exists())
    )
    composed(tmp_path, "database=postgres")["postgres"].prepare(print)
    assert left == [False]


def test_where_a_provider_keeps_its_data_is_a_fact() -> None:
    words = (("service", "hydra"), ("database", "postgres"), ("storage", "tmpfs"))
    facts = dict(facts_of(settings.read(words), "http://127.0.0.1:5000", ()))
    assert facts["storage"] == "tmpfs"


def test_the_keys_are_as_many_as_was_said_last(tmp_path: Path) -> None:
    repository = tmp_path / "keys" / "fernet"
    repository.mkdir(parents=True)
    for name in "01":
        (repository / name).write_text(name)
    keystone = composed(tmp_path)["keystone"]
    assert "fernet keys" not in dict(keystone.facts())
    set_keys(repository, 5)
    assert dict(keystone.facts())["fernet keys"] == "5"
    set_keys(repository, 3)
    assert sorted(path.name for path in repository.iterdir()) == ["0", "3", "4"]
    set_keys(repository, 4)
    assert sorted(path.name for path in repository.iterdir()) == ["0", "3", "4", "5"]
    set_keys(repository, 1)
    assert sorted(path.name for path in repository.iterdir()) == ["0", "5"]


@pytest.mark.parametrize(
    ("words", "stored"),
    [
        ((), "bcrypt, 12 rounds"),
        (("hash-rounds=5",), "bcrypt, 5 rounds"),
        (("conf.identity.password_hash_rounds=4",), "bcrypt, 4 rounds"),
        (("conf.identity.password_hash_algorithm=scrypt",), "scrypt, its usual rounds"),
    ],
)
def test_the_hash_of_a_release_whose_database_is_not_read_is_that_of_its_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], stored: str
) -> None:
    monkeypatch.setattr(interpreters, "find", lambda *_: "/usr/bin/python3.6")
    facts = composed(tmp_path, "release=13.0.2", *words)["keystone"].facts()
    assert dict(facts)["password hash"] == stored


def test_keys_are_counted_where_keystone_conf_has_them(tmp_path: Path) -> None:
    repository = tmp_path / "elsewhere"
    repository.mkdir()
    set_keys(repository, 4)
    option = f"conf.fernet_tokens.key_repository={repository}"
    facts = composed(tmp_path, option)["keystone"].facts()
    assert dict(facts)["fernet keys"] == "4"


@pytest.mark.parametrize(
    "words",
    [
        ("database=postgres",),
        ("service=keycloak", "database=postgres"),
        ("service=keycloak", "database=mariadb"),
        ("service=hydra", "database=postgres"),
    ],
)
def test_faults_find_the_data_of_each_service(tmp_path: Path, words: tuple[str, ...]) -> None:
    composition = composed(tmp_path, *words)
    chosen = settings.read([settings.split(word) for word in words])
    record = Record(chosen.database.value, None, 15, ())
    known = DeploymentState(
        *("it", "r", DeploymentPhase.RUNNING, processes.boot_id()),
        settings=chosen.pairs(),
        release=chosen.source.pairs(),
        records=(record,),
    )
    state.write(tmp_path, known)
    server = composition[chosen.database.value]
    assert isinstance(server, Postgres | MariaDb)
    assert database.folder(tmp_path).parent == server.data


@pytest.mark.parametrize("words", [(), ("compute=nova", "database=mariadb"), ("identity=ldap",)])
def test_to_ask_what_a_lab_needs_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    def refuse(path: Path, *_: object, **__: object) -> None:
        raise PermissionError(f"as for another user than root: {path}")

    composed(tmp_path / "not-there", *words)
    assert not list(tmp_path.iterdir())
    monkeypatch.setattr(Path, "mkdir", refuse)
    programs(settings.read([settings.split(word) for word in words]))


@pytest.mark.parametrize(
    ("words", "kind", "url"),
    [
        (("service=keycloak", "database=postgres"), "postgres", "jdbc:postgresql://127.0.0.1:1/"),
        (("service=keycloak", "database=mariadb"), "mariadb", "jdbc:mariadb://127.0.0.1:1/"),
        (("service=hydra", "database=postgres"), "postgres", "postgres://keystone:x@127.0.0.1:1/"),
    ],
)
def test_providers_have_database_servers_as_keystone_has(
    tmp_path: Path, words: tuple[str, ...], kind: str, url: str
) -> None:
    made = composed(tmp_path, *words, "db-connections=50", "storage=tmpfs")
    server = made[kind]
    assert isinstance(server, Postgres | MariaDb)
    assert server.options.connections == 50
    assert Path("/dev/shm") in server.data.parents
    provider = made.get("keycloak") or made["hydra"]
    used = provider.database.url if isinstance(provider, Keycloak) else provider.dsn
    assert used.startswith(url)


@pytest.mark.parametrize(
    ("allowed", "opened"), [(1_048_576, 8192), (4096, 4096), (resource.RLIM_INFINITY, 8192)]
)
def test_nginx_may_open_as_many_files_as_it_takes_connections(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, allowed: int, opened: int
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, allowed))
    (tmp_path / "run").mkdir()
    nginx = composed(tmp_path, "web=nginx-uwsgi")["nginx"]
    nginx.prepare(lambda _: None)
    written = (tmp_path / "run" / "nginx.conf").read_text()
    assert f"worker_rlimit_nofile {opened};" in written
    assert "worker_connections 4096;" in written


def test_options_of_keystone_are_checked_before_the_compute_cloud_is_installed(
    tmp_path: Path,
) -> None:
    names = [*composed(tmp_path, "compute=nova", "database=mariadb")]
    assert names.index("options") < names.index("compute-environment")
