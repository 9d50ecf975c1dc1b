"""A deployment as described on disk: what runs, where, with which settings."""

from dataclasses import dataclass
from pathlib import Path
from typing import assert_never

from loadstone.cloud.cloud import Endpoint
from loadstone.diagnosis.demand import Setup
from loadstone.diagnosis.service import KEYCLOAK, PROVIDER
from loadstone.errors import EnvironmentUnusable
from loadstone.lab import composition, processes
from loadstone.lab.keystone import directory, settings
from loadstone.lab.keystone.cache import cache_in_use
from loadstone.lab.keystone.compute.cloud import is_beside_keystone
from loadstone.lab.keystone.manage import REGION
from loadstone.lab.keystone.settings import (
    Compute,
    DatabaseBackend,
    FederationProvider,
    IdentityBackend,
    Implementation,
    Service,
    Switch,
)
from loadstone.lab.parts import uwsgi
from loadstone.lab.parts.uwsgi import Uwsgi
from loadstone.lab.ports import HOST
from loadstone.lab.provider import credentials
from loadstone.lab.provider.realm import REALM
from loadstone.lab.server_certificates import ServerCertificates
from loadstone.lab.state import DeploymentPhase, DeploymentState, secret_folder
from loadstone.monitor.service import ServiceProcess

WEB = "web"  # the port that clients use
# Parts whose processes come and go with the load: PostgreSQL starts one per connection, and
# Apache's event MPM starts and ends processes on demand.
POOL, OVERFLOW = 5, 50  # defaults of oslo.db's max_pool_size and max_overflow
ELASTIC = ("postgres", "apache")


@dataclass(frozen=True, slots=True)
class DeploymentSummary:
    """One row of the list of deployments."""

    name: str
    state: str  # running, failed, starting, stopped
    url: str | None
    workers: str
    pid: int | None  # of the server that clients use
    memory_mb: float | None


@dataclass(frozen=True, slots=True)
class Deployment:
    """A Keystone started by `lab up`, as described on disk."""

    folder: Path
    state: DeploymentState

    @property
    def name(self) -> str:
        """Name chosen by the user."""
        return self.state.name

    @property
    def url(self) -> str:
        """URL of the Identity v3 endpoint, or a provider's issuer."""
        host = self.state.setting("address") or HOST
        url = url_of(self.state.port(WEB) or 0, host, has_tls=self.has_tls)
        match self.service:
            case Service.OIDC_PROVIDER | Service.HYDRA:
                return url.removesuffix("/v3")
            case Service.KEYCLOAK:
                return f"{url.removesuffix('/v3')}/realms/{REALM}"
            case Service.KEYSTONE | Service.FLASK_REFERENCE:
                return url
            case _:
                assert_never(self.service)

    @property
    def service(self) -> Service:
        """What is served."""
        return Service(self.state.setting("service") or Service.KEYSTONE)

    @property
    def is_provider(self) -> bool:
        """Whether it is an OpenID provider."""
        return self.service.is_provider

    @property
    def place(self) -> str:
        """Host and port of the endpoint, in the form that tells targets apart."""
        return Endpoint.parse(self.url).place

    @property
    def has_tls(self) -> bool:
        """Whether clients speak TLS to it."""
        return self.state.setting("tls") == Switch.ON

    @property
    def _asks_clients(self) -> bool:
        """Whether it asks clients for a certificate."""
        return self.state.setting("client-certificates") == Switch.ON

    @property
    def has_federation(self) -> bool:
        """Whether users of an identity provider beside it may log in."""
        return self.state.setting("federation") not in (None, FederationProvider.NONE)

    @property
    def is_in_rust(self) -> bool:
        """Whether Keystone in Rust serves it."""
        return self.state.setting("implementation") == Implementation.RUST

    @property
    def python(self) -> Path:
        """Interpreter of its environment."""
        return Path(self.state.python)

    @property
    def is_running(self) -> bool:
        """Whether it was started since the last boot, and no part has died."""
        return self.state.was_started and self.failure() is None

    def environment_variables(self) -> dict[str, str]:
        """Return the OS_* variables for clients, including the password; or a provider's."""
        if self.is_provider:
            return self._provider_variables()
        return self._variables("admin", "admin", "default", password_file(self.folder))

    def directory_users(self) -> tuple[dict[str, str], ...]:
        """Return the OS_* of each user in LDAP; empty if users are in SQL."""
        if self.state.setting("identity") != IdentityBackend.LDAP:
            return ()
        file = directory.password_file(self.folder)
        return tuple(
            self._variables(user, directory.DOMAIN, directory.DOMAIN, file)
            for user in directory.USERS
        )

    def facts(self) -> tuple[tuple[str, str], ...]:
        """Return the rows about it for reports."""
        return self.state.facts

    def pids(self) -> tuple[int, ...]:
        """Return all living processes of the service, including workers."""
        return tuple(process.pid for process in self._processes())

    def identity_members(self) -> tuple[ServiceProcess, ...]:
        """Return the processes of Keystone, without those of the compute cloud."""
        return tuple(one for one in self.members() if not is_beside_keystone(one.part))

    def access_logs(self) -> tuple[Path, ...]:
        """Return Keystone's access logs, if it writes any."""
        if self.state.setting("compute") in (None, Compute.NONE):
            return ()
        names = (record.part for record in self.state.records)
        return tuple(
            uwsgi.access_log(self.folder, name)
            for name in names
            if name.partition("-")[0] == Uwsgi.kind
        )

    def members(self) -> tuple[ServiceProcess, ...]:
        """Return all living processes of the service, each with its part."""
        return tuple(
            ServiceProcess(process.pid, part, part.startswith(ELASTIC))
            for part, family in self._families()
            for process in family
        )

    def statistics(self) -> tuple[str, ...]:
        """Return the URLs of the parts' counters."""
        return tuple(r.statistics for r in self.state.records if r.statistics)

    def setup(self) -> Setup:
        """Return the settings that the analysis of resources needs."""
        chosen = settings.started(self.state)
        if self.service is Service.KEYCLOAK:
            return Setup(pool=chosen.db_pool, service=KEYCLOAK)
        if self.service is Service.HYDRA:
            return Setup(service=PROVIDER)  # threads as Go chooses
        if self.is_provider:
            return Setup(workers=chosen.workers, threads=chosen.threads, service=PROVIDER)
        if self.is_in_rust:
            return Setup()  # a thread for each core, and a pool that no setting here describes
        return Setup(
            workers=chosen.workers * chosen.nodes,
            threads=chosen.threads,
            pool=None if chosen.database is DatabaseBackend.SQLITE else _pool(chosen.conf),
            cache=cache_in_use(chosen),
        )

    def summary(self) -> DeploymentSummary:
        """Return its row of the list; memory counts shared pages once."""
        condition = self.state.phase.value
        if self.state.phase is not DeploymentPhase.STOPPED and not self.state.is_of_this_boot:
            condition = DeploymentPhase.STOPPED.value
        elif self.failure() is not None:
            condition = "failed"
        serving = [
            record.process.pid
            for record in self.state.records
            if record.process is not None and not is_beside_keystone(record.part)
        ]
        lives = self.is_running
        return DeploymentSummary(
            name=self.name,
            state=condition,
            url=self.url if lives else None,
            workers=self.state.setting("workers") or "-",
            pid=serving[-1] if lives and serving else None,
            memory_mb=round(processes.memory_mb(self._processes()), 1) if lives else None,
        )

    def failure(self) -> str | None:
        """Describe a part that died, with the log lines that explain it."""
        return composition.failure(self.state) if self.state.was_started else None

    def logs(self) -> tuple[tuple[str, Path], ...]:
        """Return (part, log) in the order in which the parts started."""
        return tuple(
            (record.part, Path(path)) for record in self.state.records for path in record.logs
        )

    def _variables(self, user: str, project: str, domain: str, password: Path) -> dict[str, str]:
        certificates = ServerCertificates(self.folder)
        client = str(certificates.client)
        return {
            "OS_AUTH_URL": self.url,
            "OS_USERNAME": user,
            "OS_PASSWORD": self._secret(password),
            "OS_PROJECT_NAME": project,
            "OS_USER_DOMAIN_ID": domain,
            "OS_PROJECT_DOMAIN_ID": domain,
            "OS_IDENTITY_API_VERSION": "3",
            "OS_REGION_NAME": REGION,
            **({"OS_CACERT": str(certificates.ca)} if self.has_tls else {}),
            **({"OS_CERT": client, "OS_KEY": client} if self._asks_clients else {}),
        }

    def _provider_variables(self) -> dict[str, str]:
        return {
            "LOADSTONE_OIDC_ISSUER": self.url,
            "LOADSTONE_OIDC_CLIENT_ID": credentials.CLIENT_ID,
            "LOADSTONE_OIDC_CLIENT_SECRET": self._secret(
                credentials.client_secret_file(self.folder)
            ),
            "LOADSTONE_OIDC_USERS": str(credentials.users_file(self.folder)),
        }

    def _secret(self, file: Path) -> str:
        """Return what a file holds that exists while the deployment runs."""
        try:
            return file.read_text()
        except FileNotFoundError:
            raise EnvironmentUnusable(not_running(self.name)) from None

    def _processes(self) -> tuple[processes.Process, ...]:
        return tuple(process for _, family in self._families() for process in family)

    def _families(self) -> tuple[tuple[str, tuple[processes.Process, ...]], ...]:
        """Return (part, its living processes)."""
        if not self.state.was_started:
            return ()
        leaders = {r.part: r.process for r in self.state.records if r.process is not None}
        found = processes.families(tuple(leaders.values()))
        return tuple(zip(leaders, found, strict=True))


def _pool(conf: tuple[settings.Option, ...]) -> int | None:
    """Return the most connections of SQLAlchemy's pool; None if it has no limit, or is unknown."""
    chosen = {(section, option): value for section, option, value in conf}
    try:
        size = int(chosen.get(("database", "max_pool_size"), POOL))
        overflow = int(chosen.get(("database", "max_overflow"), OVERFLOW))
    except ValueError:  # empty, or the name of another option
        return None
    # There is no limit with a size of 0 or a negative overflow.
    return size + overflow if size > 0 and overflow >= 0 else None


def cloud(variables: dict[str, str]) -> dict[str, object]:
    """Return OS_* variables as an entry of clouds.yaml."""
    auth = ("AUTH_URL", "USERNAME", "PASSWORD", "PROJECT_NAME", "USER_DOMAIN_ID")
    return {
        "auth": {key.lower(): variables[f"OS_{key}"] for key in (*auth, "PROJECT_DOMAIN_ID")},
        "region_name": REGION,
        "identity_api_version": "3",
        **{
            name.lower(): variables[f"OS_{name}"]
            for name in ("CACERT", "CERT", "KEY")
            if f"OS_{name}" in variables
        },
    }


def password_file(folder: Path) -> Path:
    """Return the file that holds the administrator's password while the deployment runs."""
    return secret_folder(folder) / "admin-password"


def url_of(port: int, host: str, *, has_tls: bool) -> str:
    """Return the URL of the Identity v3 endpoint on a port."""
    return f"{'https' if has_tls else 'http'}://{host}:{port}/v3"


def not_running(name: str) -> str:
    """Return the message that a deployment is not running, and how to start it."""
    return f"lab {name} is not running; start it: loadstone lab up {name}"
