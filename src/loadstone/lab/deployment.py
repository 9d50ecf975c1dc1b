"""Starts, finds and stops real Keystones on this machine."""

import os
import re
import secrets
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.lab import composition, processes, state, watcher
from loadstone.lab.keystone import settings as settings_
from loadstone.lab.keystone.blueprint import Blueprint
from loadstone.lab.keystone.database import (
    drop_data,
    require_not_upgraded,
    require_own,
    storage_folder,
)
from loadstone.lab.keystone.deployment import WEB, Deployment, not_running, password_file
from loadstone.lab.keystone.service import password
from loadstone.lab.keystone.settings import Implementation, LabSettings, Service
from loadstone.lab.ports import Ports
from loadstone.lab.shutdown import shut_down
from loadstone.lab.state import DeploymentPhase, DeploymentState
from loadstone.system import locks, paths
from loadstone.system.redaction import MASK, is_secret_option, masked
from loadstone.system.say import Say

__all__ = ["Deployment", "LabSettings", "down", "every", "find", "is_known", "requested", "up"]

OLD_LOGS = "logs.before"
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")
_SPECIAL = re.compile(r"""[\s"'#;:?%${}\\]""")  # in a configuration file of a server
_SPECIAL_OF_DATA = re.compile(r"[?$\n]")  # in a URL of SQLAlchemy, or a value of oslo.config
# The watcher of a command that was killed stops the parts in this time.
WAIT_S = 60.0


def up(name: str, settings: LabSettings, say: Say, *, owned: bool = False) -> Deployment:
    """Start a deployment, or return the running one; an `owned` one ends with this process."""
    folder = folder_of(name)
    for place in (folder, paths.environments()):  # the second without links
        _require_plain(place, _SPECIAL, "set LOADSTONE_HOME to another folder")
    if settings.storage not in (settings_.DISK, settings_.TMPFS):
        _require_plain(
            Path(settings.storage), _SPECIAL_OF_DATA, "give another one: --with storage="
        )
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as problem:
        raise EnvironmentUnusable(
            f"cannot start {name} in {folder}: {problem.strerror}; set LOADSTONE_HOME to a folder "
            "in which you may write"
        ) from problem
    try:
        busy = f"another loadstone is starting or stopping {name}; wait for it"
        with locks.held(folder / watcher.LOCK, busy=busy, wait_s=WAIT_S), _kept_if_begun(folder):
            before = state.read(folder)
            if before is not None and Deployment(folder, before).is_running:
                return _same(Deployment(folder, before), settings, owned=owned)
            shut_down(folder)  # left by a crash or by a part that died
            before = state.read(folder)
            return _guarded(folder, settings, before, say, owned=owned)
    except OSError as problem:
        raise EnvironmentUnusable(f"cannot start {name} in {folder}: {problem}") from problem


def _require_plain(folder: Path, characters: re.Pattern[str], mend: str) -> None:
    """Refuse a path that configuration files would have to quote, each server's in another way."""
    special = characters.search(str(folder))
    if special is not None:
        raise InvalidInput(
            f"{folder}: servers of a lab cannot use a path with {special[0]!r}; {mend}"
        )


@contextmanager
def _kept_if_begun(folder: Path) -> Iterator[None]:
    """Remove the folder after an error or an interrupt that came before anything was in it."""
    try:
        yield
    except BaseException:
        if folder.exists():
            watcher.remove_unbegun(folder)
        raise


def requested(
    name: str, pairs: Iterable[tuple[str, str]], usual: Iterable[tuple[str, str]] = ()
) -> LabSettings:
    """Return the settings of a start; those not given are the ones of a running deployment.

    Without any, a stopped deployment starts again as it was. Settings that neither has are the
    `usual` ones.
    """
    given = tuple(pairs)
    before = state.read(folder_of(name))
    running = before if before and Deployment(folder_of(name), before).is_running else None
    present = before.last.settings if before is not None and (running or not given) else ()
    known = {key for key, _ in (*present, *given)}
    also = (pair for pair in usual if pair[0] not in known)
    try:
        return _requested(running, present, (*given, *also))
    except InvalidInput as wrong:
        if given or not present:
            raise
        # A patch is gone, or another release of Loadstone has made it.
        raise InvalidInput(
            f"lab {name} cannot start as it was: {wrong}; give its settings anew with --with, or "
            f"remove it: loadstone lab down {name} --purge"
        ) from None


def _requested(
    running: DeploymentState | None,
    present: tuple[tuple[str, str], ...],
    given: tuple[tuple[str, str], ...],
) -> LabSettings:
    try:
        return settings_.read((*present, *given))
    except InvalidInput:
        if running is None:
            raise
        return settings_.started(running, given)  # which does not need the patch that is gone


def require_same(name: str, settings: LabSettings) -> None:
    """Refuse a deployment of the user's that has other settings; a start would replace them.

    One that a command last started for itself may have the defaults of another release of
    Loadstone, or of a machine with other cores.
    """
    before = state.read(folder_of(name))
    if before is None or before.is_owned:
        return
    remove = f"remove it with its data: loadstone lab down {name} --purge"
    try:
        has = settings_.read(before.last.settings)
    except InvalidInput as unknown:  # of another release of Loadstone
        raise InvalidInput(f"lab {name} exists: {unknown}; {remove}") from None
    if settings != replace(has, port=settings.port):
        raise InvalidInput(
            f"lab {name} exists with other settings ({_difference(has, settings)}); {remove}; or "
            f"measure it: loadstone lab up {name}, then loadstone capacity --lab {name}"
        )


def down(name: str, *, purge: bool = False) -> None:
    """Stop a deployment and remove its password; `purge`: its data, keys and logs too."""
    folder = _existing(name)
    busy = f"another loadstone is starting or stopping {name}; wait for it"
    try:
        with locks.held(folder / watcher.LOCK, busy=busy, wait_s=WAIT_S):
            try:
                shut_down(folder)
            except EnvironmentUnusable:
                if not purge:  # which frees the full disk on which no state can be written
                    raise
            if folder in _guards:
                _guards.pop(folder).release()
            if purge:
                _purge(folder)
    except OSError as problem:
        raise EnvironmentUnusable(f"cannot end {name} in {folder}: {problem}") from problem


def find(name: str) -> Deployment:
    """Return a running deployment."""
    deployment = _read(_existing(name))
    if not deployment.state.was_started:
        raise EnvironmentUnusable(not_running(name))
    failure = deployment.failure()
    if failure is not None:
        raise EnvironmentUnusable(f"{failure}\n  start it again: loadstone lab up {name}")
    return deployment


def load(name: str) -> Deployment:
    """Read a deployment from disk, running or not."""
    return _read(_existing(name))


def loss(measured: Deployment) -> str | None:
    """Say why a deployment that is measured is no longer what it was; None: it is.

    A part has died, or another command has ended it, and perhaps started it again.
    """
    known = state.read(measured.folder)
    if known is None or not known.was_started or known.run != measured.state.run:
        return f"lab {measured.name} was ended by another command"
    return Deployment(measured.folder, known).failure()


def every(say: Say = lambda _: None) -> tuple[Deployment, ...]:
    """Return all deployments by name, running or not; report those that cannot be read."""
    found = []
    for name in _names():
        try:
            found.append(_read(folder_of(name)))
        except EnvironmentUnusable as unreadable:
            say(str(unreadable))
    return tuple(found)


# The watchers of the deployments that this process owns.
_guards: dict[Path, watcher.WatcherPipe] = {}


def _guarded(
    folder: Path,
    settings: LabSettings,
    before: DeploymentState | None,
    say: Say,
    *,
    owned: bool,
) -> Deployment:
    run = secrets.token_hex(8)
    guard = watcher.watch(folder, run)
    book = Ports(dict(before.ports) if before else {})
    try:
        deployment = _start(book, folder, run, settings, before, say)
    except BaseException:
        shut_down(folder)
        guard.release()
        # If nothing was prepared yet, the deployment is not kept.
        if before is None and not any((folder / "logs").glob("*")):
            _purge(folder)
        raise
    finally:
        book.release()
    if not owned:
        guard.release()
        return deployment
    _guards[folder] = guard
    known = replace(deployment.state, is_owned=True)
    state.write(folder, known)
    return Deployment(folder, known)


def _start(
    book: Ports,
    folder: Path,
    run: str,
    settings: LabSettings,
    before: DeploymentState | None,
    say: Say,
) -> Deployment:
    # Here, because measurements look for labs and start none: this imports all parts.
    from loadstone.lab.keystone import compose

    if settings.storage != settings_.DISK:
        require_own(storage_folder(folder, settings.storage))
    require_not_upgraded(folder, settings)
    port = book.allocate(WEB, settings.port, settings.host)
    blueprint = Blueprint(
        folder=folder,
        settings=settings,
        ports=book,
        port=port,
        admin_password=password(),
        database_password=password(),
        directory_password=password(),
        services_password=password(),
    )
    parts = compose.parts(blueprint)
    if before is not None and _has_lost_data(folder, settings, before):
        say(
            f"the data are gone from storage={settings.storage}, as after a reboot or in a copy of "
            "the lab: it begins with an empty database"
        )
    environment = compose.environment(folder, settings)
    uses = environment.folder.exists() and not settings.service.is_provider
    if uses and environment.installed() is None:
        _require_unused(environment.python, folder.name)
    _keep_old_logs(folder)
    begun = DeploymentState(
        name=folder.name,
        run=run,
        phase=DeploymentPhase.STARTING,
        boot=processes.boot_id(),
        settings=settings.pairs(),
        ports=tuple(book.chosen.items()),
        python=str(environment.python),
        release=settings.source.pairs(),
        before=before,
    )
    state.write(folder, begun)
    state.write_secret(password_file(folder), blueprint.admin_password)
    started = composition.assemble(folder, begun, parts, say)
    facts = facts_of(settings, blueprint.url, started.facts)
    running = replace(started, phase=DeploymentPhase.RUNNING, facts=facts, before=None)
    state.write(folder, running)
    if before is not None:
        drop_data(folder, before.setting("storage"), kept=settings.storage)
    return Deployment(folder, running)


def _require_unused(python: Path, name: str) -> None:
    """Refuse to make an environment anew from which another deployment runs."""
    for one in every():
        is_other = one.name != name and not one.is_provider
        if is_other and str(one.python) == str(python) and one.is_running:
            raise EnvironmentUnusable(
                f"{python.parents[1]} must be made anew, and lab {one.name} runs from it; end it "
                f"first: loadstone lab down {one.name}"
            )


def _has_lost_data(folder: Path, settings: LabSettings, before: DeploymentState) -> bool:
    """Whether an earlier start has kept data outside the lab's folder, and they are not there."""
    is_same = dict(before.facts).get("storage") == settings.storage != settings_.DISK
    # A provider begins with an empty database at each start.
    is_kept = is_same and not settings.service.is_provider
    return is_kept and not storage_folder(folder, settings.storage).exists()


def facts_of(
    settings: LabSettings, url: str, of_parts: tuple[tuple[str, str], ...]
) -> tuple[tuple[str, str], ...]:
    """Return the facts about a deployment that results keep, without secrets."""
    if settings.service.is_provider:
        place = settings.storage
        storage = (("storage", place),) if place != settings_.DISK else ()
        return (("service", settings.service.value), *storage, *of_parts)
    mine = (
        ("release", _served(settings)),
        *(
            (("workers", str(settings.workers)), ("threads", str(settings.threads)))
            if settings.implementation is Implementation.PYTHON
            else ()
        ),
        ("storage", settings.storage),
        ("url", url),
    )
    options = (
        (f"[{section}] {option}", MASK if is_secret_option(option) else masked(value))
        for section, option, value in settings.conf
    )
    return mine + of_parts + tuple(options)


def _served(settings: LabSettings) -> str:
    if settings.service is Service.FLASK_REFERENCE:
        return "Flask reference service"
    if settings.implementation is Implementation.RUST:
        return f"Keystone in Rust, on a database of keystone {settings.source.label}"
    return f"keystone {settings.source.label}"


def _same(running: Deployment, settings: LabSettings, *, owned: bool) -> Deployment:
    if running.state.is_owned and not owned and running.folder not in _guards:
        raise EnvironmentUnusable(
            f"lab {running.name} belongs to a command that ends it, such as `loadstone demo`; wait "
            "for that command, or take another name"
        )
    if owned and running.folder not in _guards:
        raise EnvironmentUnusable(
            f"lab {running.name} runs already, and another uses it; end it: "
            f"loadstone lab down {running.name}"
        )
    has = settings_.started(running.state)
    # A request without a port accepts the present one.
    has = replace(has, port=None if settings.port is None else running.state.port(WEB))
    if settings != has:
        raise InvalidInput(
            f"{running.name} runs with other settings ({_difference(has, settings)}); end it "
            f"first: loadstone lab down {running.name}"
        )
    if settings.source != has.source:
        raise InvalidInput(
            f"{running.name} runs keystone {has.source.label}, and {settings.release} was changed "
            f"since; end it first: loadstone lab down {running.name}"
        )
    return running


def _difference(running: LabSettings, requested: LabSettings) -> str:
    """Describe the differences: "release=30.0.0, not 29.1.0"; of options only the names."""
    running_pairs, requested_pairs = dict(running.pairs()), dict(requested.pairs())
    names = [
        name
        for name in running_pairs | requested_pairs
        if running_pairs.get(name) != requested_pairs.get(name)
    ]
    return "; ".join(
        name
        if name.startswith("conf.")
        else f"{name}={masked(running_pairs.get(name, 'unset'))}, "
        f"not {masked(requested_pairs.get(name, 'unset'))}"
        for name in names
        if name != "port" or requested.port is not None
    )


def _purge(folder: Path) -> None:
    try:
        last = state.read(folder)
        # Of the settings only this one is read: the sources of the release may be gone.
        drop_data(folder, None if last is None else last.setting("storage"))
    except EnvironmentUnusable:  # unreadable: its data may be in memory, or in an unknown folder
        drop_data(folder, settings_.TMPFS)
    shutil.rmtree(folder)


def _keep_old_logs(folder: Path) -> None:
    logs = folder / "logs"
    if any(logs.glob("*")):  # a start that was refused has left none
        shutil.rmtree(folder / OLD_LOGS, ignore_errors=True)
        logs.rename(folder / OLD_LOGS)


def elsewhere() -> Path:
    """Return the folder of records of deployments on other hosts."""
    return paths.labs() / "elsewhere"


def _names() -> tuple[str, ...]:
    if not paths.deployments().is_dir():
        return ()
    # A folder of another name is the user's own, such as a copy that is called mine.old.
    named = (path for path in paths.deployments().iterdir() if _NAME.fullmatch(path.name))
    return tuple(sorted(path.name for path in named if _has_state(path)))


def _has_state(folder: Path) -> bool:
    try:
        return (folder / state.FILE).exists()
    except PermissionError:  # of another user
        return True


def folder_of(name: str) -> Path:
    """Return the folder of a deployment, which need not exist."""
    if not _NAME.fullmatch(name):
        raise InvalidInput(
            f"lab name {name!r}: 1 to 32 of a-z 0-9 _ -, with a letter or digit first"
        )
    return paths.deployments() / name


def is_here(name: str) -> bool:
    """Return whether a deployment of this name exists on this machine, readable or not."""
    return name in _names()


def is_known(name: str) -> bool:
    """Return whether a deployment of this name exists, here or on another host, or its data."""
    return is_here(name) or os.path.exists(elsewhere() / f"{name}.json")


def _existing(name: str) -> Path:
    if is_here(name):
        return folder_of(name)
    if is_known(name):
        raise InvalidInput(f"lab {name} is on another host, and this is done on this machine only")
    names = ", ".join(_names()) or f"none; make it: loadstone lab up {name}"
    raise InvalidInput(f"no lab is called {name!r}; known: {names}")


def _read(folder: Path) -> Deployment:
    found = state.read(folder)
    if found is None:
        raise EnvironmentUnusable(not_running(folder.name))
    known = Deployment(folder, found)
    try:
        _ = known.service
    except ValueError as unknown:
        raise EnvironmentUnusable(
            f"lab {folder.name} was made by another release of Loadstone ({unknown}); use that "
            f"one, or remove it: loadstone lab down {folder.name} --purge"
        ) from None
    return known
