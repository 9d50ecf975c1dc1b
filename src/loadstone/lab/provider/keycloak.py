"""Keycloak from its Maven distribution: the distribution, the server, and its realm."""

import json
import os
import shutil
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from loadstone.errors import EnvironmentUnusable
from loadstone.lab import diskspace, processes
from loadstone.lab.hashing import FACT
from loadstone.lab.parts.part import Facts, Part
from loadstone.lab.parts.server import Server, Site, answers
from loadstone.lab.ports import HOST
from loadstone.lab.processes import Command, Process
from loadstone.lab.programs import Program
from loadstone.lab.provider import credentials
from loadstone.lab.provider.java import JAVA, Java, choose
from loadstone.lab.provider.password_hash import PasswordHash
from loadstone.lab.provider.realm import REALM, realm
from loadstone.lab.state import scratch_folder
from loadstone.system import locks, paths
from loadstone.system.redaction import masked
from loadstone.system.say import Say

VERSION = "26.7.3"
ARTIFACT = f"org.keycloak:keycloak-quarkus-dist:{VERSION}:zip"
MAVEN = Program("mvn", "maven")
SIZE_MB = 380  # the archive and its contents
FOLDER = "keycloak"  # of a deployment: Keycloak's home
IMPORT_S = 900.0  # each user costs a hash
ADMIN_S = 60.0
# Options of the network that Maven reads; proxies are in its settings file.
_MAVEN_VARIABLES = ("MAVEN_OPTS", "MAVEN_ARGS", "JAVA_HOME")


@dataclass(frozen=True, slots=True)
class KeycloakDatabase:
    """The database of a Keycloak, as its options name it."""

    kind: str  # of `kc.sh build --db`
    url: str = ""  # JDBC; empty: Keycloak's own file
    user: str = ""
    password: str = field(default="", repr=False)

    @property
    def variables(self) -> dict[str, str]:
        """Environment variables of the server."""
        if not self.url:
            return {}
        return {
            "KC_DB_URL": self.url,
            "KC_DB_USERNAME": self.user,
            "KC_DB_PASSWORD": self.password,
        }


H2 = KeycloakDatabase("dev-file")


@dataclass(frozen=True, slots=True)
class Distribution(Part):
    """The distribution, fetched and built for a database once for all deployments."""

    deployment: Path
    data: Path  # of the deployment; removed, so that it begins with an empty database
    database: str
    java: int | None

    programs = (JAVA,)
    name = "distribution"

    @property
    def folder(self) -> Path:
        """The distribution as it was published."""
        return paths.environments() / f"keycloak-{VERSION}"

    @property
    def built(self) -> Path:
        """The distribution with the options that `kc.sh build` fixes."""
        return self.folder.with_name(f"{self.folder.name}-{self.database}")

    def prepare(self, say: Say) -> None:
        """Fetch and build it, unless that is done; give the deployment a home that links to it."""
        chosen = choose(self.java)  # refused before the download
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        with locks.held(self.folder.parent / f".{self.folder.name}.lock"):
            if not self.folder.exists():
                self._fetch(say)
            if not self.built.exists():
                self._build(chosen, say)
        home = self.deployment / FOLDER
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(mode=0o700)
        # The script finds its home from its own path, so it is no link.
        shutil.copytree(self.built / "bin", home / "bin")
        for name in ("lib", "conf", "providers", "themes"):
            (home / name).symlink_to(self.built / name)
        shutil.rmtree(self.data, ignore_errors=True)
        self.data.mkdir(mode=0o700, parents=True)
        (home / "data").symlink_to(self.data)

    def _fetch(self, say: Say) -> None:
        maven = MAVEN.path()
        say(f"fetching Keycloak {VERSION} with Maven (once)")
        half = scratch_folder(self.deployment) / "fetched"
        half.mkdir(parents=True)
        for folder in (half, self.folder.parent):  # which may be on another disk
            diskspace.require(folder, SIZE_MB)
        words = (maven, "-q", "-B", "dependency:copy", f"-Dartifact={ARTIFACT}")
        given = {name: os.environ[name] for name in _MAVEN_VARIABLES if name in os.environ}
        command = Command((*words, f"-DoutputDirectory={half}"), self._log, self.deployment, given)
        processes.complete(command, f"Maven could not fetch Keycloak {VERSION}")
        archive = half / f"keycloak-quarkus-dist-{VERSION}.zip"
        with zipfile.ZipFile(archive) as file:
            file.extractall(half)
        archive.unlink()
        unpacked = half / f"keycloak-{VERSION}"
        (unpacked / "bin" / "kc.sh").chmod(0o755)
        diskspace.move(unpacked, self.folder)
        half.rmdir()

    def _build(self, chosen: Java, say: Say) -> None:
        say(f"building Keycloak {VERSION} for {self.database} (once)")
        half = scratch_folder(self.deployment) / "built"
        half.mkdir(parents=True)
        for name in ("bin", "conf", "providers", "themes"):
            shutil.copytree(self.folder / name, half / name)
        (half / "lib").mkdir()
        for one in (self.folder / "lib").iterdir():
            # The libraries (168 MB) are only read.
            if one.name == "lib":
                (half / "lib" / "lib").symlink_to(one)
            elif one.is_dir():
                shutil.copytree(one, half / "lib" / one.name)
            else:
                shutil.copy(one, half / "lib")
        options = (f"--db={self.database}", "--health-enabled=true", "--metrics-enabled=true")
        words = (str(half / "bin" / "kc.sh"), "build", *options)
        given = {"JAVA_HOME": str(chosen.home)}
        command = Command(words, self._log, self.deployment, given)
        processes.complete(command, f"Keycloak {VERSION} could not be built")
        diskspace.move(half, self.built)

    @property
    def _log(self) -> Path:
        return self.deployment / "logs" / "distribution.log"

    def logs(self) -> tuple[Path, ...]:
        """Return the log of Maven and of the build."""
        return (self._log,)


@dataclass(frozen=True, slots=True)
class KeycloakSettings:
    """The settings of a Keycloak."""

    java: int | None
    heap_mb: int
    java_options: str
    pool: int  # most connections to the database
    users: int
    hash: PasswordHash


@dataclass(frozen=True, slots=True)
class Keycloak(Server):
    """The server. It begins with an empty database: what runs leave there changes what is next."""

    management: int  # the port of health and metrics
    database: KeycloakDatabase
    chosen: KeycloakSettings
    admin_password: str = field(repr=False)

    kind = "keycloak"
    programs = (JAVA,)

    @property
    def java(self) -> Java:
        """The runtime."""
        return choose(self.chosen.java)

    def prepare(self, say: Say) -> None:  # noqa: ARG002
        """Make the client's secret and the users' passwords."""
        credentials.make(self.site.folder, self.chosen.users)

    def start(self) -> Process:
        """Start it without a cluster, on loopback alone."""
        script = self.site.folder / FOLDER / "bin" / "kc.sh"
        return self.run((str(script), "start", "--optimized"), self.variables)

    @property
    def variables(self) -> dict[str, str]:
        """Options of the server, as environment variables; passwords are in no argument."""
        return {
            "JAVA_HOME": str(self.java.home),
            "JAVA_OPTS_KC_HEAP": f"-Xms64m -Xmx{self.chosen.heap_mb}m",
            "JAVA_OPTS_APPEND": self.chosen.java_options,
            "KC_BOOTSTRAP_ADMIN_USERNAME": "admin",
            "KC_BOOTSTRAP_ADMIN_PASSWORD": self.admin_password,
            "KC_HTTP_ENABLED": "true",
            "KC_HTTP_HOST": HOST,
            "KC_HTTP_PORT": str(self.site.port),
            "KC_HTTP_MANAGEMENT_HOST": HOST,
            "KC_HTTP_MANAGEMENT_PORT": str(self.management),
            "KC_HOSTNAME": f"http://{HOST}:{self.site.port}",
            "KC_CACHE": "local",  # otherwise it looks for a cluster, beyond loopback
            "KC_DB_POOL_MAX_SIZE": str(self.chosen.pool),
            "KC_DB_POOL_MIN_SIZE": str(min(5, self.chosen.pool)),
            "KC_DB_POOL_INITIAL_SIZE": str(min(5, self.chosen.pool)),
            **self.database.variables,
            **self.chosen.hash.server_options,
        }

    def healthy(self) -> bool:
        """Return whether it is ready; its port answers before."""
        return answers(Site(self.site.folder, self.management), "/health/ready")

    def statistics(self) -> str:
        """Return the URL of its metrics."""
        return f"jvm://{HOST}:{self.management}/metrics"

    def facts(self) -> Facts:
        """Versions and settings that change what a login costs."""
        chosen = self.chosen
        rows = (
            ("provider", f"Keycloak {VERSION}"),
            ("java", self.java.version),
            ("heap", f"{chosen.heap_mb} MB"),
            ("database pool", f"{chosen.pool} connections"),
        )
        options = (("java options", masked(chosen.java_options)),) if chosen.java_options else ()
        return rows + options


@dataclass(frozen=True, slots=True)
class Realm(Part):
    """The realm, made over the admin API, and the hash of a password that it has stored."""

    server: Keycloak
    name = "realm"

    def prepare(self, say: Say) -> None:
        """Make client and users; refuse a stored hash that is not the chosen one."""
        folder = self.server.site.folder
        users = json.loads(credentials.users_file(folder).read_text())
        secret = credentials.client_secret_file(folder).read_text()
        say(f"making the realm with {len(users)} users")
        with _Admin(self.server) as admin:
            admin.create(realm(users, secret, self.server.chosen.hash.policy))
            stored = admin.stored_hash(users[0]["username"])
        if stored != self.server.chosen.hash:
            raise EnvironmentUnusable(
                f"Keycloak stored a password as {stored}, not as {self.server.chosen.hash}: what a "
                "login costs would be another than the settings say"
            )

    def facts(self) -> Facts:
        """Return the hash, which `prepare` has read back from a stored credential."""
        return (
            (FACT, f"{self.server.chosen.hash} (read from a stored credential)"),
            ("realm-users", str(self.server.chosen.users)),
        )


class _Admin:
    """The admin API of a Keycloak on loopback."""

    def __init__(self, server: Keycloak) -> None:
        import requests

        self._base = f"http://{HOST}:{server.site.port}"
        self._password = server.admin_password
        self._session = requests.Session()
        self._session.trust_env = False

    def __enter__(self) -> "_Admin":
        return self

    def __exit__(self, *_: object) -> None:
        self._session.close()

    def create(self, made: Mapping[str, Any]) -> None:
        """Make a realm with everything in it."""
        self._send("POST", "/admin/realms", IMPORT_S, made)

    def stored_hash(self, user: str) -> PasswordHash:
        """Return the hash of a user's password, as it is stored."""
        found = self._send("GET", f"/admin/realms/{REALM}/users?exact=true&username={user}")
        path = f"/admin/realms/{REALM}/users/{found[0]['id']}/credentials"
        [stored] = (one for one in self._send("GET", path) if one["type"] == "password")
        return PasswordHash.stored(json.loads(stored["credentialData"]))

    def _send(
        self, method: str, path: str, patience_s: float = ADMIN_S, body: object = None
    ) -> Any:
        import requests

        headers = {"Authorization": f"Bearer {self._token()}"}
        try:
            answer = self._session.request(
                method, f"{self._base}{path}", json=body, headers=headers, timeout=patience_s
            )
        except requests.Timeout:
            raise EnvironmentUnusable(
                f"Keycloak's admin API did not answer within {patience_s:.0f} s; each user costs a "
                "password hash: choose fewer realm-users or a cheaper hash"
            ) from None
        except requests.RequestException as failed:
            raise EnvironmentUnusable(f"Keycloak's admin API: {type(failed).__name__}") from None
        if not answer.ok:
            raise EnvironmentUnusable(f"Keycloak's admin API: {method} {path}: HTTP "
                                      f"{answer.status_code}")  # fmt: skip
        return answer.json() if answer.content else None

    def _token(self) -> str:
        """Return a token, which lives for a minute only."""
        import requests

        form = {
            "client_id": "admin-cli",
            "grant_type": "password",
            "username": "admin",
            "password": self._password,
        }
        url = f"{self._base}/realms/master/protocol/openid-connect/token"
        try:
            answer = self._session.post(url, data=form, timeout=ADMIN_S)
            return str(answer.json()["access_token"])
        except (requests.RequestException, ValueError, KeyError):
            raise EnvironmentUnusable("Keycloak's administrator cannot log in") from None
