"""Real Keystones on this machine: started, found again, ended."""

import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from loadstone import places
from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.keystone.deploy import compose
from loadstone.keystone.deploy import settings as settings_
from loadstone.keystone.deploy.compose import Blueprint
from loadstone.keystone.deploy.manage import REGION
from loadstone.keystone.deploy.service import password
from loadstone.keystone.deploy.settings import Settings
from loadstone.lab import composition, locks, ports, processes, state, watcher
from loadstone.lab.ports import HOST
from loadstone.lab.shutdown import shut_down
from loadstone.lab.state import Phase, State

__all__ = ["Deployment", "Settings", "down", "every", "find", "up"]

SECRET = "admin-password"  # noqa: S105  # the file's name
WEB = "web"  # the port that clients speak to
OLD_LOGS = "logs.before"


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
        return _url(self.state.port(WEB) or 0)

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
        try:
            secret = (self.folder / SECRET).read_text()
        except FileNotFoundError:
            raise EnvironmentUnusable(_not_running(self.name)) from None
        return {
            "OS_AUTH_URL": self.url,
            "OS_USERNAME": "admin",
            "OS_PASSWORD": secret,
            "OS_PROJECT_NAME": "admin",
            "OS_USER_DOMAIN_ID": "default",
            "OS_PROJECT_DOMAIN_ID": "default",
            "OS_IDENTITY_API_VERSION": "3",
            "OS_REGION_NAME": REGION,
        }

    def facts(self) -> tuple[tuple[str, str], ...]:
        """Give what a report says of it."""
        return self.state.facts

    def pids(self) -> tuple[int, ...]:
        """Give all living processes of the service, workers too."""
        return tuple(process.pid for process in self._processes())

    def memory_mb(self) -> float:
        """Give the memory of all its processes, shared pages counted once."""
        return processes.memory_mb(self._processes())

    def failure(self) -> str | None:
        """Name a part that died, with the lines of its log that explain it."""
        return composition.failure(self.state) if self._was_started else None

    def logs(self) -> tuple[tuple[str, Path], ...]:
        """Give (part, log), in the order in which the parts started."""
        return tuple(
            (record.part, Path(path)) for record in self.state.records for path in record.logs
        )

    def _processes(self) -> tuple[processes.Process, ...]:
        if not self._was_started:
            return ()
        leaders = (r.process for r in self.state.records if r.process is not None)
        return tuple(member for leader in leaders for member in processes.family(leader))


def up(
    name: str, settings: Settings, say: Callable[[str], None], *, owned: bool = False
) -> Deployment:
    """Start a deployment, or give the one that runs; `owned`: it ends when this process does."""
    folder = _folder(name)
    busy = f"another loadstone is starting or stopping {name}; wait for it"
    with locks.held(folder / watcher.LOCK, busy=busy):
        before = state.read(folder)
        if before is not None and Deployment(folder, before).is_running:
            return _same(Deployment(folder, before), settings)
        shut_down(folder)  # what a crash, or a part that died, left behind
        guard = watcher.watch(folder)
        try:
            deployment = _start(folder, settings, before, say)
        except BaseException as problem:
            shut_down(folder)
            guard.release()
            raise _plainly(problem, folder) from problem
        if not owned:
            guard.release()
        else:
            _guards[folder] = guard
        return deployment


def down(name: str, *, purge: bool = False) -> None:
    """End a deployment and remove its password; `purge`: its data, keys and logs too."""
    folder = _existing(name)
    with locks.held(
        folder / watcher.LOCK, busy=f"another loadstone is starting or stopping {name}"
    ):
        shut_down(folder)
        if folder in _guards:
            _guards.pop(folder).release()
        if purge:
            shutil.rmtree(folder)


def find(name: str) -> Deployment:
    """Give a deployment that runs."""
    deployment = _read(_existing(name))
    if deployment.state.phase is not Phase.RUNNING or not deployment.state.is_of_this_boot:
        raise EnvironmentUnusable(_not_running(name))
    failure = deployment.failure()
    if failure is not None:
        raise EnvironmentUnusable(f"{failure}\n  start it again: loadstone lab up {name}")
    return deployment


def known(name: str) -> Deployment:
    """Give a deployment whether it runs or not."""
    return _read(_existing(name))


def every() -> tuple[Deployment, ...]:
    """Give all deployments, running or not, by name."""
    found = []
    for name in _names():
        with suppress(EnvironmentUnusable):
            found.append(_read(_folder(name)))
    return tuple(found)


# The watchers of the deployments that this process owns.
_guards: dict[Path, watcher.Watcher] = {}


def _start(
    folder: Path, settings: Settings, before: State | None, say: Callable[[str], None]
) -> Deployment:
    port = ports.choose(settings.port, before=before.port(WEB) if before else None)
    secret = password()
    blueprint = Blueprint(folder, settings, port, _url(port), secret)
    _keep_old_logs(folder)
    begun = State(
        name=folder.name,
        phase=Phase.STARTING,
        boot=processes.boot_id(),
        settings=settings.pairs(),
        ports=((WEB, port),),
        python=str(compose.environment(folder, settings).python),
        secrets=(str(folder / SECRET),),
    )
    state.write(folder, begun)
    state.replace_file(folder / SECRET, secret)
    started = composition.assemble(folder, begun, compose.parts(blueprint), say)
    running = replace(
        started,
        phase=Phase.RUNNING,
        facts=_facts(settings, blueprint.url, started.facts),
    )
    state.write(folder, running)
    return Deployment(folder, running)


def _facts(
    settings: Settings, url: str, of_parts: tuple[tuple[str, str], ...]
) -> tuple[tuple[str, str], ...]:
    mine = (
        ("release", f"keystone {settings.release}"),
        ("workers", str(settings.workers)),
        ("threads", str(settings.threads)),
        ("url", url),
    )
    return mine + of_parts + tuple((f"[{s}] {o}", value) for s, o, value in settings.conf)


def _same(running: Deployment, settings: Settings) -> Deployment:
    asked = replace(settings, port=None) if settings.port is None else settings
    has = settings_.read(running.state.settings)
    if asked.port is None:
        has = replace(has, port=None)
    if asked != has:
        raise InvalidInput(
            f"{running.name} runs with other settings; end it first: loadstone lab down "
            f"{running.name}"
        )
    return running


def _plainly(problem: BaseException, folder: Path) -> BaseException:
    if isinstance(problem, OSError):
        return EnvironmentUnusable(f"cannot start {folder.name} in {folder}: {problem.strerror}")
    return problem


def _keep_old_logs(folder: Path) -> None:
    logs = folder / "logs"
    if logs.exists():
        shutil.rmtree(folder / OLD_LOGS, ignore_errors=True)
        logs.rename(folder / OLD_LOGS)


def _url(port: int) -> str:
    return f"http://{HOST}:{port}/v3"


def _deployments() -> Path:
    return places.labs() / "deployments"


def _names() -> tuple[str, ...]:
    if not _deployments().is_dir():
        return ()
    return tuple(sorted(p.name for p in _deployments().iterdir() if (p / state.FILE).exists()))


def _folder(name: str) -> Path:
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,31}", name):
        raise InvalidInput(
            f"lab name {name!r}: 1 to 32 of a-z 0-9 _ -, with a letter or digit first"
        )
    return _deployments() / name


def _existing(name: str) -> Path:
    if name not in _names():
        names = ", ".join(_names()) or f"none; make it: loadstone lab up {name}"
        raise InvalidInput(f"no lab is called {name!r}; known: {names}")
    return _folder(name)


def _read(folder: Path) -> Deployment:
    found = state.read(folder)
    if found is None:
        raise EnvironmentUnusable(_not_running(folder.name))
    return Deployment(folder, found)


def _not_running(name: str) -> str:
    return f"lab {name} is not running; start it: loadstone lab up {name}"
