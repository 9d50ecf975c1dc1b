"""Ory Hydra, built from its Go module, with a login page and one address for both.

Hydra has no login page: an application of its operator asks for the password and accepts login and
consent over Hydra's admin API (www.ory.sh/docs/hydra/concepts/login). The lab's is in Python, and
haproxy puts it behind the same address as Hydra, as a reverse proxy does in production.
"""

import json
import os
import re
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path

from loadstone.errors import EnvironmentUnusable
from loadstone.lab import diskspace, processes
from loadstone.lab.hashing import FACT
from loadstone.lab.parts.haproxy import HAPROXY
from loadstone.lab.parts.part import Facts, Part
from loadstone.lab.parts.server import Server, Site, answers
from loadstone.lab.ports import HOST
from loadstone.lab.processes import Command, Process
from loadstone.lab.programs import Program
from loadstone.lab.provider import credentials
from loadstone.lab.provider.credentials import CLIENT_ID, REDIRECT_URI, USERS
from loadstone.lab.provider.password_hash import scrypt_in_words
from loadstone.lab.state import scratch_folder, secret_folder, write_secret
from loadstone.system import locks, paths
from loadstone.system.say import Say

VERSION = "2.3.0"
MODULE = "github.com/ory/hydra/v2"
# The module replaces this one by a folder that is not published with it.
CLIENT_MODULE, CLIENT_VERSION = "github.com/ory/hydra-client-go/v2", "2.2.1"
LEAST_GO = (1, 21)  # fetches the toolchain that a module asks for
GO_FOLDERS = ("/usr/local/go/bin", "/usr/lib/go-*/bin")
GCC = Program("gcc", "gcc")  # SQLite is in C
SIZE_MB = 3000  # sources and cache while it is built; the program has 60
ADMIN_S = 60.0
MEMORY = "memory"  # Hydra's own SQLite
LOGIN_PAGE = Path(__file__).parent / "inside" / "hydra_login.py"
METADATA = "/.well-known/openid-configuration"
# Variables with which Go reaches the network.
_GO_VARIABLES = ("GOPROXY", "GONOSUMDB", "GOSUMDB", "GOFLAGS", "GOTOOLCHAIN", "SSL_CERT_FILE")
_PROXY_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")

FRONT = """\
global
    maxconn 4096
    nbthread 1
defaults
    mode http
    timeout connect 5s
    timeout client 60s
    timeout server 60s
frontend clients
    bind {host}:{port}
    use_backend login if {{ path /login /consent /seen }}
    default_backend hydra
backend hydra
    server hydra {host}:{hydra}
backend login
    server login {host}:{login}
"""


class GoProgram(Program):
    """Go as a program that a part needs."""

    __slots__ = ()

    def find(self) -> str | None:
        """Return the first that is new enough: on the PATH, or where Go's installer puts it."""
        beside = (str(one) for folder in GO_FOLDERS for one in Path("/").glob(f"{folder[1:]}/go"))
        for path in (shutil.which("go"), *beside):
            if path is not None and _go_version(path) >= LEAST_GO:
                return path
        return None


GO = GoProgram(f"go (version {LEAST_GO[0]}.{LEAST_GO[1]} or later)", "golang-go")


def _go_version(path: str) -> tuple[int, ...]:
    """Read the version from the file that every installation of Go has."""
    try:
        text = (Path(path).resolve().parent.parent / "VERSION").read_text()
    except (OSError, UnicodeDecodeError):
        return (0, 0)
    found = re.match(r"go(\d+)\.(\d+)", text)
    return tuple(map(int, found.groups())) if found else (0, 0)


def program() -> Path:
    """Return the path of the program, which is built once for all deployments."""
    return paths.environments() / f"hydra-{VERSION}" / "hydra"


@dataclass(frozen=True, slots=True)
class HydraProgram(Part):
    """The program, fetched and built by Go unless it is there."""

    deployment: Path
    data: Path  # of the deployment's database; removed, so that it begins with an empty one

    programs = (GO, GCC)
    name = "hydra-build"

    def prepare(self, say: Say) -> None:
        """Build the program; remove the data of an earlier start."""
        folder = program().parent
        folder.parent.mkdir(parents=True, exist_ok=True)
        with locks.held(folder.parent / f".{folder.name}.lock"):
            if not program().exists():
                say(f"building Hydra {VERSION} with Go (once; some minutes)")
                half = scratch_folder(self.deployment) / "hydra"
                half.mkdir(parents=True)
                try:
                    self._build(half)
                    folder.mkdir(exist_ok=True)
                    diskspace.move(half / "hydra", program())
                finally:
                    shutil.rmtree(half, ignore_errors=True)
        shutil.rmtree(self.data, ignore_errors=True)

    @property
    def _log(self) -> Path:
        return self.deployment / "logs" / "hydra-build.log"

    def logs(self) -> tuple[Path, ...]:
        """Return the log of Go."""
        return (self._log,)

    def _build(self, half: Path) -> None:
        diskspace.require(half, SIZE_MB)
        fetching, source = half / "fetch", half / "source"
        fetching.mkdir()
        (half / "tmp").mkdir()
        self._go(half, "mod", "init", "-C", str(fetching), "fetch")
        self._go(half, "mod", "download", "-C", str(fetching), f"{MODULE}@v{VERSION}")
        # Go builds nothing in its cache of modules.
        shutil.copytree(half / "go/pkg/mod" / f"{MODULE}@v{VERSION}", source)
        self._go(half, "mod", "edit", "-C", str(source), f"-dropreplace={CLIENT_MODULE}")
        self._go(half, "get", "-C", str(source), f"{CLIENT_MODULE}@v{CLIENT_VERSION}")
        output = ("-o", str(half / "hydra"))
        self._go(half, "build", "-C", str(source), "-tags", "sqlite,json1", *output, ".")

    def _go(self, half: Path, *words: str) -> None:
        given = {name: os.environ[name] for name in _GO_VARIABLES if name in os.environ}
        given |= {k: v for k, v in os.environ.items() if k.upper() in _PROXY_VARIABLES}
        # All that Go fetches and compiles stays in one folder, whose files can be removed.
        flags = f"{given.get('GOFLAGS', '')} -mod=mod -modcacherw -buildvcs=false".strip()
        folders = {"GOPATH": "go", "GOCACHE": "cache", "GOTMPDIR": "tmp"}
        own = {name: str(half / folder) for name, folder in folders.items()}
        arguments = (GO.path(), *words)
        command = Command(arguments, self._log, self.deployment, given | own | {"GOFLAGS": flags})
        processes.complete(command, f"Go could not build Hydra {VERSION}")


@dataclass(frozen=True, slots=True)
class Hydra(Server):
    """The server, with its public and its admin API on loopback."""

    admin: int  # port
    address: str  # URL of clients, of haproxy
    dsn: str = field(repr=False)  # MEMORY, or the URL of a PostgreSQL

    kind = "hydra"

    @property
    def _settings(self) -> Path:
        return secret_folder(self.site.folder) / "hydra.json"

    def prepare(self, say: Say) -> None:  # noqa: ARG002
        """Write its configuration; make the tables of a database server, and the credentials."""
        credentials.make(self.site.folder, USERS)
        secret = credentials.client_secret_file(self.site.folder).read_text()
        settings = {
            "serve": {
                "public": {"host": HOST, "port": self.site.port},
                "admin": {"host": HOST, "port": self.admin},
            },
            "urls": {
                "self": {"issuer": self.address},
                "login": f"{self.address}/login",
                "consent": f"{self.address}/consent",
            },
            "dsn": self.dsn,
            "secrets": {"system": [secret]},
            "log": {"level": "warn"},  # two lines for each request otherwise
            "sqa": {"opt_out": True},  # it would send statistics to its makers
        }
        write_secret(self._settings, json.dumps(settings))
        if self.dsn != MEMORY:
            words = ("migrate", "sql", "-e", "-y", "-c", str(self._settings))
            command = Command((str(program()), *words), self.log, self.site.folder)
            processes.complete(command, "Hydra could not make its tables")

    def start(self) -> Process:
        """Start it; --dev permits an issuer without TLS."""
        words = ("serve", "all", "--dev", "-c", str(self._settings))
        return self.run((str(program()), *words))

    def healthy(self) -> bool:
        """Return whether it is ready."""
        return answers(Site(self.site.folder, self.admin), "/health/ready")

    def facts(self) -> Facts:
        """Return the version, and where tokens and sessions are."""
        data = "in memory" if self.dsn == MEMORY else "on a server"
        return (("provider", f"Ory Hydra {VERSION}"), ("tokens and sessions", data))


@dataclass(frozen=True, slots=True)
class HydraClient(Part):
    """The client, made over the admin API."""

    server: Hydra
    name = "client"

    def prepare(self, say: Say) -> None:  # noqa: ARG002
        """Make the client in the empty database."""
        import requests

        secret = credentials.client_secret_file(self.server.site.folder).read_text()
        client = {
            "client_id": CLIENT_ID,
            "client_secret": secret,
            "grant_types": ["authorization_code", "refresh_token", "client_credentials"],
            "response_types": ["code"],
            "redirect_uris": [REDIRECT_URI],
            "post_logout_redirect_uris": [REDIRECT_URI],
            "scope": "openid offline",
            "token_endpoint_auth_method": "client_secret_basic",
            "skip_logout_consent": True,
        }
        url = f"http://{HOST}:{self.server.admin}/admin/clients"
        with requests.Session() as session:
            session.trust_env = False
            try:
                answer = session.post(url, json=client, timeout=ADMIN_S)
            except requests.RequestException as failed:
                raise EnvironmentUnusable(f"Hydra's admin API: {type(failed).__name__}") from None
        if answer.status_code != requests.codes.created:
            raise EnvironmentUnusable(
                f"Hydra's admin API does not make the client: HTTP {answer.status_code}"
            )


@dataclass(frozen=True, slots=True)
class LoginPage(Server):
    """The pages that ask for the password and accept the consent."""

    admin: int  # port of Hydra
    scrypt_n: int = 0

    kind = "loginpage"

    def start(self) -> Process:
        """Start it with the Python of this command."""
        variables = {
            "PORT": str(self.site.port),
            "ADMIN_PORT": str(self.admin),
            "USERS_FILE": str(credentials.users_file(self.site.folder)),
            "SCRYPT_N": str(self.scrypt_n),
        }
        return self.run((sys.executable, str(LOGIN_PAGE)), variables)

    def healthy(self) -> bool:
        """Return whether it answers."""
        return answers(self.site, "/seen")

    def facts(self) -> Facts:
        """Return the hash that a password check computes."""
        return ((FACT, scrypt_in_words(self.scrypt_n)),)


@dataclass(frozen=True, slots=True)
class FrontDoor(Server):
    """haproxy, which puts Hydra and the login page behind one address."""

    hydra: int  # ports
    login: int

    kind = "haproxy"
    programs = (HAPROXY,)

    def prepare(self, say: Say) -> None:  # noqa: ARG002
        """Write its configuration."""
        ports = {"port": self.site.port, "hydra": self.hydra, "login": self.login}
        self.conf.write_text(FRONT.format(host=HOST, **ports))

    def start(self) -> Process:
        """Start it in the foreground."""
        return self.run((HAPROXY.path(), "-db", "-f", str(self.conf)))

    def healthy(self) -> bool:
        """Return whether Hydra's metadata come through it."""
        return answers(self.site, METADATA)
