import os
import zipfile
from pathlib import Path

import pytest

from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.lab import state
from loadstone.lab.keystone import compose, settings
from loadstone.lab.parts.server import Site
from loadstone.lab.processes import Command
from loadstone.lab.provider import java, keycloak
from loadstone.lab.provider.keycloak import (
    H2,
    Distribution,
    Keycloak,
    KeycloakDatabase,
    KeycloakSettings,
)
from loadstone.lab.provider.password_hash import Algorithm, PasswordHash
from loadstone.lab.provider.realm import realm

SERVICE = ("service", "keycloak")
ARCHIVE = f"keycloak-quarkus-dist-{keycloak.VERSION}.zip"
OTHERS = ("conf/keycloak.conf", "providers/README.md", "themes/README.md")
ARGON2 = PasswordHash.chosen(None, None)


def test_its_settings_are_read_as_they_are_written() -> None:
    chosen = settings.read([
        SERVICE,
        *(("database", "postgres"), ("heap-mb", "256"), ("java", "17"), ("db-pool", "5")),
        *(("java-options", "-XX:ActiveProcessorCount=1"), ("realm-users", "10")),
        *(("hash", "pbkdf2-sha512"), ("hash-iterations", "1000")),
    ])  # fmt: skip
    assert settings.read(chosen.pairs()) == chosen
    assert settings.read([SERVICE]).database is settings.DatabaseBackend.H2


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("service", "oidc-provider"), ("service", "hydra"), ("service", "keycloak")),
        *(("service", "flask-reference"), ("implementation", "rust")),
    ],
)
def test_a_lab_that_is_kept_has_no_settings_of_others(key: str, value: str) -> None:
    # With another default in a later release of Loadstone, they would be refused.
    chosen = settings.read([(key, value)])
    kept = dict(chosen.pairs())
    assert kept[key] == value
    assert not {"token", "cache", "identity", "compute", "found"} & kept.keys()
    assert settings.read(chosen.pairs()) == chosen


@pytest.mark.parametrize(
    ("words", "mend"),
    [
        (("heap-mb=256",), "heap-mb needs service=keycloak"),
        (("service=oidc-provider", "realm-users=5"), "realm-users needs service=keycloak"),
        (("service=keycloak", "scrypt-n=16"), "scrypt-n needs service=oidc-provider"),
        (("service=keycloak", "heap-mb=64"), "from 128 to"),
        (("service=keycloak", "java=8"), "from 17 to"),
        (("service=keycloak", "hash=md5"), "argon2, pbkdf2-sha256, pbkdf2-sha512"),
        (("service=keycloak", "database=sqlite"), "h2, postgres, mariadb"),
        (("service=keycloak", "workers=4"), "workers is a setting of Keystone"),
        (("service=keycloak", "nodes=2"), "nodes is a setting of Keystone"),
        (("service=keycloak", "address=10.0.0.5"), "keycloak is on 127.0.0.1 alone, without add"),
        (("service=keycloak", "java-options=-Xss1m -Xmx1g"), "choose with --with heap-mb="),
        (("service=keycloak", "java-options=-Xa\n-Xb"), "one line"),
        (("database=h2",), "database=h2 needs service=keycloak"),
    ],
)
def test_what_it_does_not_have_is_refused_in_one_line(words: tuple[str, ...], mend: str) -> None:
    with pytest.raises(InvalidInput, match=mend) as refused:
        settings.read([settings.split(word) for word in words])
    assert "\n" not in str(refused.value)


def test_a_hash_is_compared_with_the_stored_credential() -> None:
    # Credentials as Keycloak 26.7.3 stored them.
    stored = {
        "hashIterations": 5,
        "algorithm": "argon2",
        "additionalParameters": {
            "hash": ["32"], "memory": ["7168"], "type": ["id"], "version": ["1.3"],
            "parallelism": ["1"],
        },
    }  # fmt: skip
    assert PasswordHash.stored(stored) == ARGON2
    assert PasswordHash.stored({**stored, "hashIterations": 1}) != ARGON2
    assert PasswordHash.stored({
        "hashIterations": 210_000, "algorithm": "pbkdf2-sha512", "additionalParameters": {},
    }) == PasswordHash.chosen(Algorithm.PBKDF2_SHA512, None)  # fmt: skip


def test_argon2_is_set_at_the_server_and_others_in_the_realm() -> None:
    one = PasswordHash.chosen(Algorithm.ARGON2, 1)
    assert (one.policy, one.server_options["KC_SPI_PASSWORD_HASHING__ARGON2__ITERATIONS"]) == (
        "",
        "1",
    )
    other = PasswordHash.chosen(Algorithm.PBKDF2_SHA512, 1000)
    assert other.policy == "hashAlgorithm(pbkdf2-sha512) and hashIterations(1000)"
    assert other.server_options == {}
    made = realm([{"username": "u0", "password": "secret of u0"}], "of the client", other.policy)
    assert made["passwordPolicy"] == other.policy
    assert {"email", "firstName", "lastName"} <= made["users"][0].keys()


def a_java(root: Path, version: str) -> Path:
    home = root / f"java-{version}"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").touch(mode=0o755)
    (home / "release").write_text(f'IMPLEMENTOR="Some"\nJAVA_VERSION="{version}"\n')
    return home


@pytest.fixture
def javas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(java, "FOLDERS", str(tmp_path))
    monkeypatch.setattr("os.environ", {"PATH": str(tmp_path / "nowhere")})
    return tmp_path


def test_the_newest_java_is_chosen_and_any_may_be_named(javas: Path) -> None:
    for version in ("17.0.15", "1.8.0", "25.0.3", "21"):
        a_java(javas, version)
    assert [one.major for one in java.installed()] == [25, 21, 17, 8]
    assert java.choose(None).version == "25.0.3"
    assert java.choose(17).program == javas / "java-17.0.15" / "bin" / "java"
    assert java.JAVA.find() == str(javas / "java-25.0.3" / "bin" / "java")


def test_java_home_counts_too(javas: Path) -> None:
    os.environ["JAVA_HOME"] = str(a_java(javas / "own", "23.0.1"))
    assert java.choose(None).version == "23.0.1"


def test_a_java_that_is_missing_or_too_old_is_named(javas: Path) -> None:
    with pytest.raises(EnvironmentUnusable, match=r"Java 17 or later .found no Java.*apt-get"):
        java.choose(None)
    a_java(javas, "11.0.2")
    with pytest.raises(EnvironmentUnusable, match=r"Java 17 or later .found 11\.0\.2 in"):
        java.choose(None)
    assert java.JAVA.find() is None
    with pytest.raises(EnvironmentUnusable, match="not installed: Java 99"):
        java.choose(99)


def test_the_server_is_alone_on_loopback_and_its_passwords_are_in_no_argument(javas: Path) -> None:
    a_java(javas, "25.0.3")
    database = KeycloakDatabase("postgres", "jdbc:postgresql://127.0.0.1:1/x", "x", "of the db")
    chosen = KeycloakSettings(None, 256, "-XX:+UseSerialGC", 1, 10, ARGON2)
    server = Keycloak(Site(javas, 8080), 9000, database, chosen, "of the admin")
    variables = server.variables
    assert variables["KC_CACHE"] == "local"
    assert variables["KC_HTTP_HOST"] == variables["KC_HTTP_MANAGEMENT_HOST"] == "127.0.0.1"
    assert variables["JAVA_OPTS_KC_HEAP"] == "-Xms64m -Xmx256m"
    assert (variables["KC_DB_POOL_MAX_SIZE"], variables["KC_DB_POOL_MIN_SIZE"]) == ("1", "1")
    assert variables["KC_DB_PASSWORD"] == "of the db"
    assert "of the" not in repr(server)
    assert not H2.variables


def test_its_programs_are_java_and_the_databases() -> None:
    names = [one.name for one in compose.programs(settings.read([SERVICE]))]
    assert names == ["java (version 17 or later)"]
    with_mariadb = compose.programs(settings.read([SERVICE, ("database", "mariadb")]))
    assert "mariadbd" in [one.name for one in with_mariadb]


def test_the_distribution_is_made_in_a_folder_of_the_deployment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOADSTONE_HOME", str(tmp_path))
    mine = tmp_path / "mine"
    mine.mkdir()
    scratch = state.scratch_folder(mine)

    def complete(command: Command, _: str) -> None:
        if command.arguments[0] == "mvn":
            [folder] = (w.partition("=")[2] for w in command.arguments if "outputDirectory" in w)
            assert scratch in Path(folder).parents
            with zipfile.ZipFile(Path(folder) / ARCHIVE, "w") as archive:
                for name in ("bin/kc.sh", "lib/lib/a.jar", "lib/b.jar", *OTHERS):
                    archive.writestr(f"keycloak-{keycloak.VERSION}/{name}", "")
        else:
            assert scratch in Path(command.arguments[0]).parents
            assert Path(command.arguments[0]).exists()

    monkeypatch.setattr(keycloak.processes, "complete", complete)
    monkeypatch.setattr(keycloak.Program, "path", lambda self: self.name)
    monkeypatch.setattr(keycloak, "choose", lambda _: java.Java(tmp_path, "21.0.1"))
    monkeypatch.setattr(keycloak.diskspace, "require", lambda *_: None)
    made = Distribution(mine, tmp_path / "data", "dev-file", None)
    made.prepare(lambda _: None)
    assert (made.folder / "bin" / "kc.sh").stat().st_mode & 0o111
    assert (made.built / "lib" / "lib").readlink() == made.folder / "lib" / "lib"
    assert sorted(path.name for path in made.folder.parent.iterdir() if path.is_dir()) == [
        made.folder.name,
        made.built.name,
    ]
    assert not list(scratch.iterdir())
    assert (mine / "keycloak" / "bin" / "kc.sh").exists()


def test_a_full_disk_of_the_environments_is_said_before_the_fetch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOADSTONE_HOME", str(tmp_path))
    made = Distribution(tmp_path / "mine", tmp_path / "data", "dev-file", None)

    def require(folder: Path, _: int) -> None:
        if folder == made.folder.parent:  # on a disk of its own
            raise EnvironmentUnusable("not enough space")

    monkeypatch.setattr(keycloak, "choose", lambda _: java.Java(tmp_path, "21.0.1"))
    monkeypatch.setattr(keycloak.diskspace, "require", require)
    monkeypatch.setattr(keycloak.Program, "path", lambda self: self.name)
    monkeypatch.setattr(keycloak.processes, "complete", lambda *_: pytest.fail("it was fetched"))
    with pytest.raises(EnvironmentUnusable, match="not enough space"):
        made.prepare(lambda _: None)


def test_a_java_that_is_not_installed_is_refused_before_the_fetch(
    javas: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_java(javas, "17.0.15")
    os.environ["LOADSTONE_HOME"] = str(javas)
    monkeypatch.setattr(Distribution, "_fetch", lambda *_: pytest.fail("it was fetched"))
    made = Distribution(javas / "mine", javas / "data", "dev-file", 21)
    with pytest.raises(EnvironmentUnusable, match="not installed: Java 21"):
        made.prepare(lambda _: None)
