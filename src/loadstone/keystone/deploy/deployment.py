"""A deployment as the disk knows it: what runs, where, with which settings."""

from dataclasses import dataclass
from pathlib import Path

from loadstone.errors import EnvironmentUnusable
from loadstone.keystone.deploy import directory
from loadstone.keystone.deploy.manage import REGION
from loadstone.keystone.deploy.settings import Identity
from loadstone.lab import composition, processes
from loadstone.lab.ports import HOST
from loadstone.lab.state import Phase, State, secret_folder

WEB = "web"  # the port that clients speak to


@dataclass(frozen=True, slots=True)
class Summary:
    """One line of the list of deployments."""

    name: str
    state: str  # running, failed, starting, stopped
    url: str | None
    workers: str
    pid: int | None  # of the server that clients speak to
    memory_mb: float | None


@dataclass(frozen=True, slots=True)
class Deployment:
    """A Keystone that `lab up` made, as the disk knows it at this moment."""

    folder: Path
    state: State

    @property
    def name(self) -> str:
        """What the user called it."""
        return self.state.name

    @property
    def url(self) -> str:
        """The Identity v3 endpoint."""
        return url_of(self.state.port(WEB) or 0)

    @property
    def python(self) -> Path:
        """The interpreter of its environment."""
        return Path(self.state.python)

    @property
    def is_running(self) -> bool:
        """It was started in this boot, and no part has died."""
        return self._was_started and self.failure() is None

    @property
    def _was_started(self) -> bool:
        return self.state.phase is Phase.RUNNING and self.state.is_of_this_boot

    def environment_variables(self) -> dict[str, str]:
        """Give what a client needs as OS_*; the password is in it."""
        return self._variables("admin", "admin", "default", password_file(self.folder))

    def cloud(self) -> dict[str, object]:
        """Give the same as an entry of clouds.yaml."""
        variables = self.environment_variables()
        auth = ("AUTH_URL", "USERNAME", "PASSWORD", "PROJECT_NAME", "USER_DOMAIN_ID")
        return {
            "auth": {key.lower(): variables[f"OS_{key}"] for key in (*auth, "PROJECT_DOMAIN_ID")},
            "region_name": REGION,
            "identity_api_version": "3",
        }

    def directory_users(self) -> tuple[dict[str, str], ...]:
        """Give OS_* of each user that is kept in LDAP; none where users are in SQL."""
        if dict(self.state.settings).get("identity") != Identity.LDAP:
            return ()
        file = directory.password_file(self.folder)
        return tuple(
            self._variables(user, directory.DOMAIN, directory.DOMAIN, file)
            for user in directory.USERS
        )

    def facts(self) -> tuple[tuple[str, str], ...]:
        """Give what a report says of it."""
        return self.state.facts

    def pids(self) -> tuple[int, ...]:
        """Give all living processes of the service, workers too."""
        return tuple(process.pid for process in self._processes())

    def summary(self) -> Summary:
        """Give its line of the list; memory counts pages that processes share once."""
        condition = self.state.phase.value
        if self.state.phase is not Phase.STOPPED and not self.state.is_of_this_boot:
            condition = Phase.STOPPED.value
        elif self.failure() is not None:
            condition = "failed"
        serving = [r.process.pid for r in self.state.records if r.process is not None]
        lives = self.is_running
        return Summary(
            name=self.name,
            state=condition,
            url=self.url if lives else None,
            workers=dict(self.state.settings)["workers"],
            pid=serving[-1] if lives and serving else None,
            memory_mb=round(processes.memory_mb(self._processes()), 1) if lives else None,
        )

    def failure(self) -> str | None:
        """Name a part that died, with the lines of its log that explain it."""
        return composition.failure(self.state) if self._was_started else None

    def logs(self) -> tuple[tuple[str, Path], ...]:
        """Give (part, log), in the order in which the parts started."""
        return tuple(
            (record.part, Path(path)) for record in self.state.records for path in record.logs
        )

    def _variables(self, user: str, project: str, domain: str, password: Path) -> dict[str, str]:
        try:
            secret = password.read_text()
        except FileNotFoundError:
            raise EnvironmentUnusable(not_running(self.name)) from None
        return {
            "OS_AUTH_URL": self.url,
            "OS_USERNAME": user,
            "OS_PASSWORD": secret,
            "OS_PROJECT_NAME": project,
            "OS_USER_DOMAIN_ID": domain,
            "OS_PROJECT_DOMAIN_ID": domain,
            "OS_IDENTITY_API_VERSION": "3",
            "OS_REGION_NAME": REGION,
        }

    def _processes(self) -> tuple[processes.Process, ...]:
        if not self._was_started:
            return ()
        leaders = (r.process for r in self.state.records if r.process is not None)
        return tuple(member for leader in leaders for member in processes.family(leader))


def password_file(folder: Path) -> Path:
    """Give the file that holds the administrator's password while the deployment runs."""
    return secret_folder(folder) / "admin-password"


def url_of(port: int) -> str:
    """Give the Identity v3 endpoint that is served on a port."""
    return f"http://{HOST}:{port}/v3"


def not_running(name: str) -> str:
    """Say that it must be started first, and how."""
    return f"lab {name} is not running; start it: loadstone lab up {name}"
