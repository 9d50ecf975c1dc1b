"""Rolling changes of Keystone, node by node: another release, another keystone.conf."""

import re
import shutil
import signal
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from loadstone.errors import InvalidInput
from loadstone.faults import balancer, parts
from loadstone.faults.sentence import Fault, Verb
from loadstone.lab import composition, processes, state, watcher
from loadstone.lab.keystone import compose, conf, manage, settings
from loadstone.lab.keystone.database import data_folder, rename_data
from loadstone.lab.keystone.settings import DatabaseBackend, LabSettings, Option
from loadstone.lab.keystone.web import Web
from loadstone.lab.processes import Command
from loadstone.lab.state import Record
from loadstone.system import locks
from loadstone.system.say import Say

# Web servers whose processes show their environment in the command line.
UPGRADED = (Web.UWSGI, Web.NGINX_UWSGI, Web.GUNICORN, Web.GRANIAN)
# Prepared before the load: the environment of the other release, checked options.
_BEFORE = ("sources", "environment", "options")
DRAIN_S = 10.0  # time for a node's requests in progress before its restart


def require_upgrade(folder: Path, fault: Fault) -> None:
    """Raise InvalidInput for an upgrade that this deployment cannot have."""
    chosen = _chosen(folder)
    place = f"fault {fault.sentence!r}: lab {folder.name}"
    if chosen.release == fault.value:
        raise InvalidInput(f"{place} has release {fault.value} already: an upgrade happens once")
    present = chosen.source.version
    if _numbers(fault.value) < _numbers(present):
        raise InvalidInput(
            f"{place} has release {present}, and a contracted schema cannot go back to "
            f"{fault.value}; name a later release"
        )
    if data_folder(folder, replace(chosen, release=fault.value)).exists():
        raise InvalidInput(
            f"{place} has other data of release {fault.value}, from an earlier start: begin anew "
            f"with loadstone lab down {folder.name} --purge, or take another name"
        )
    if chosen.database is DatabaseBackend.SQLITE or chosen.web not in UPGRADED:
        raise InvalidInput(
            f"{place} needs database=mariadb or postgres, and web={', '.join(UPGRADED)}"
        )


def _numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, without what a pre-release adds."""
    return tuple(int(one) for one in re.findall(r"\d+", version)[:3])


def prepare(folder: Path, fault: Fault, say: Say) -> None:
    """Prepare the change before the load: build the other release, check the options."""
    chosen, option = _chosen(folder), fault.option
    if fault.verb is Verb.UPGRADE:
        require_upgrade(folder, fault)  # another upgrade of this run may have come before
        chosen = replace(chosen, release=fault.value)
    elif fault.verb is Verb.CONFIGURE:
        chosen = replace(chosen, conf=(*chosen.conf, (*option, fault.value)))
    for part in compose.parts(replace(parts.blueprint(folder), settings=chosen)):
        if part.name in _BEFORE:
            part.prepare(say)


def sync(folder: Path, release: str, how: str) -> None:
    """Run a step of a release's db_sync: expand, migrate or contract."""
    python = compose.environment(folder, replace(_chosen(folder), release=release)).python
    failing = f"db_sync --{how} of Keystone {release} failed"
    run_manage(folder, python, ("db_sync", f"--{how}"), failing)


def run_manage(folder: Path, python: Path, arguments: Sequence[str], failing: str) -> None:
    """Run the keystone-manage beside a Python; raise EnvironmentUnusable if it fails."""
    files = (folder / "keystone.conf", state.secret_folder(folder) / "keystone.conf")
    argv = (str(python.parent / "keystone-manage"), *manage.options(*files), *arguments)
    log = folder / "logs" / "fault.log"
    command = Command(argv, log, folder, {"PYTHONWARNINGS": "ignore"})
    # A migration that is cut off between two statements cannot always be repeated.
    processes.complete(command, failing, own_session=True)


def switch(folder: Path, release: str) -> None:
    """Make later starts use a release; running processes keep theirs."""
    with locks.held(folder / watcher.LOCK):
        deployment = parts.read_state(folder)
        old = settings.started(deployment)
        new = replace(old, release=release)
        rename_data(data_folder(folder, old), data_folder(folder, new))
        facts = dict(deployment.facts) | {"release": f"keystone {new.source.label}"}
        python = compose.environment(folder, new).python
        changed = replace(
            deployment,
            settings=new.pairs(),
            python=str(python),
            release=new.source.pairs(),
            facts=tuple(facts.items()),
        )
        state.write(folder, changed)


def take_out(folder: Path, node: int) -> bool:
    """Drain a node; return False if it still has requests after DRAIN_S."""
    server = balancer.server_of(node)
    balancer.set_state(folder, server, "maint")
    return balancer.await_idle(folder, server, DRAIN_S)


def put_back(folder: Path, node: int) -> None:
    """Put a node back into the balancer, and wait until it gets requests."""
    server = balancer.server_of(node)
    balancer.set_state(folder, server, "ready")
    balancer.await_up(folder, server)


def restart(folder: Path, node: int) -> None:
    """Restart the servers of a node with the present settings, and wait until they serve."""
    for record in _servers(folder):
        if parts.node_of(record.part) != node:
            continue
        if record.process is not None:
            processes.stop(record.process, stop_signal=signal.Signals(record.ask))
        part = parts.part(folder, record.part)
        part.prepare(lambda _: None)
        with locks.held(folder / watcher.LOCK):
            process = part.start()
            deployment = parts.read_state(folder)
            state.write(folder, deployment.with_record(replace(record, process=process)))
        if process is not None:
            composition.await_health(part, process)


def finish_upgrade(folder: Path, release: str) -> None:
    """Complete an upgrade; every step may be repeated."""
    sync(folder, release, "expand")
    sync(folder, release, "migrate")
    switch(folder, release)
    _each(folder, partial(_restart_old, folder))
    sync(folder, release, "contract")


def set_option(folder: Path, option: Option) -> None:
    """Set an option of keystone.conf, and back the file up."""
    file, before = _conf(folder)
    if not before.exists():
        shutil.copy2(file, before)
    # If an option is set twice, the last value counts.
    file.write_text(before.read_text() + "\n" + conf.render((option,)))


def put_back_conf(folder: Path) -> None:
    """Restore keystone.conf, and restart the nodes one after the other."""
    file, before = _conf(folder)
    if before.exists():
        shutil.copy2(before, file)
        _each(folder, partial(restart, folder))
        before.unlink()


def put_back_conf_at_rest(folder: Path, *, is_of_last_start: bool) -> None:
    """Restore keystone.conf of a stopped lab; a later start has written its own."""
    file, before = _conf(folder)
    if before.exists():
        if is_of_last_start:
            shutil.copy2(before, file)
        before.unlink()


def _conf(folder: Path) -> tuple[Path, Path]:
    file = folder / "keystone.conf"
    return file, file.with_suffix(".before")


def _each(folder: Path, change: Callable[[int], None]) -> None:
    for node in parts.nodes_of(_servers(folder)):
        take_out(folder, node)
        change(node)
        put_back(folder, node)


def _restart_old(folder: Path, node: int) -> None:
    """Restart a node that does not run, or runs another release."""
    environment = str(Path(parts.read_state(folder).python).parent)
    own = [one for one in _servers(folder) if parts.node_of(one.part) == node]
    if not all(_is_from(environment, record) for record in own):
        restart(folder, node)


def _is_from(environment: str, record: Record) -> bool:
    if record.process is None or not processes.alive(record.process):
        return False
    return environment in Path(f"/proc/{record.process.pid}/cmdline").read_text(errors="replace")


def _servers(folder: Path) -> tuple[Record, ...]:
    kinds = parts.SERVICES["keystone"]
    return tuple(
        one for one in parts.read_state(folder).records if parts.kind_of(one.part) in kinds
    )


def _chosen(folder: Path) -> LabSettings:
    return settings.started(parts.read_state(folder))
