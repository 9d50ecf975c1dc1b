"""Injects faults into a deployment; each undo step is in the journal before its fault begins."""

import os
import secrets
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from threading import Thread

from loadstone.analysis.fault import FaultEffect, FaultPhase
from loadstone.diagnosis.finding import Finding
from loadstone.errors import EnvironmentUnusable, InvalidInput, LoadstoneError
from loadstone.faults import balancer, database, filling, keys, parts, queues, rolling
from loadstone.faults.commands import require_no_secret
from loadstone.faults.journal import Owner, Undo, UndoJournal, UndoStep
from loadstone.faults.model import FaultRecord
from loadstone.faults.observer import Injector
from loadstone.faults.parts import FAULT
from loadstone.faults.proxy import CUT, LOSS
from loadstone.faults.sentence import KEYSTONE, ROLLING, Fault, Verb
from loadstone.faults.undo import undo_steps
from loadstone.lab import composition, processes
from loadstone.lab.keystone import conf, settings
from loadstone.lab.keystone.deployment import Deployment
from loadstone.lab.keystone.settings import TokenProvider
from loadstone.lab.ports import HOST, choose, is_free
from loadstone.lab.processes import Command
from loadstone.lab.state import Record
from loadstone.system.say import Say

ANSWER_S = 5.0  # of memcached
PROXY = (sys.executable, "-P", "-m", "loadstone.faults.proxy")
PROXY_S = 30.0  # until a process between haproxy and a node listens, on a busy machine
# Takes a share of one core for some seconds: argv has both.
BUSY_LOOP = """\
import sys, time
share, least_s = map(float, sys.argv[1:])
end_s = time.monotonic() + least_s
while (now_s := time.monotonic()) < end_s:
    while time.monotonic() < now_s + 0.1 * share: pass
    time.sleep(0.1 * (1 - share))
"""
LEAST_CORES = 0.001  # of a busy loop
SPARE_S = 60.0  # a busy loop or a proxy that nobody ended ends by itself so long after the fault
# Verbs after which haproxy should stop sending requests to the node.
_TAKES_DOWN = (
    Verb.KILL,
    Verb.TERMINATE,
    Verb.STOP,
    Verb.FREEZE,
    Verb.REBOOT,
    Verb.TAKE_OUT,
    Verb.DISCONNECT,
)


@dataclass(slots=True)
class LoadInjector(Injector):
    """Injects overloads: the engine raises the rate itself, so nothing is broken or undone."""

    folder: Path | None = None  # of the lab, where it is one

    def logged_failures(self) -> int | None:
        """Return the number of failed requests in haproxy's logs; None without haproxy."""
        return None if self.folder is None else balancer.logged_failures(self.folder)

    def findings(self, fault: Fault, effect: FaultEffect) -> tuple[Finding, ...]:
        """Say which queues of a lab an overload fills."""
        return () if self.folder is None else queues.findings(self.folder, fault, effect)

    def inject(self, fault: Fault) -> FaultRecord:
        """Wait until the overload is over."""
        began_s = self.clock.unix_s()
        self.begun.set()
        self.clock.wait(self.over, fault.hold_s)
        return FaultRecord(
            fault, began_s, self.clock.unix_s(), None, ("load",), ((began_s, fault.sentence),)
        )


@dataclass(slots=True)
class LabInjector(Injector):
    """Carries faults out on one deployment; several may overlap."""

    folder: Path  # of the deployment
    journal: UndoJournal
    owner: Owner = field(default_factory=Owner.this)
    random: Random = field(default_factory=Random)

    def check(self, fault: Fault) -> None:
        """Raise InvalidInput for a fault that this deployment cannot have, or with a secret."""
        require_no_secret(fault)
        match fault.verb:
            case Verb.FLUSH:
                _require_flush(self.folder, fault)
            case Verb.STEAL_CPU:
                return
            case Verb.ROTATE:
                _require_fernet(self.folder, fault)
            case Verb.READ_ONLY:
                database.kind(self.folder)
            case Verb.FILL:
                filling.require_small(database.folder(self.folder))
            case Verb.EXPIRE:
                balancer.require_tls(self.folder)
            case Verb.RELOAD:
                _require_reload(self.folder, fault, self.random)
            case (
                Verb.TAKE_OUT | Verb.DISCONNECT | Verb.DELAY | Verb.LOSE
                | Verb.ROLL | Verb.CONFIGURE | Verb.UPGRADE
            ) if fault.service in KEYSTONE and not balancer.has_balancer(self.folder):  # fmt: skip
                raise InvalidInput(f"fault {fault.sentence!r}: {balancer.missing(self.folder)}")
            case Verb.UPGRADE:
                rolling.require_upgrade(self.folder, fault)
            case _:
                parts.hit(fault, parts.read_state(self.folder), self.random)

    def prepare(self, fault: Fault, say: Say) -> None:
        """Prepare a rolling change before the load."""
        if fault.verb in ROLLING:
            rolling.prepare(self.folder, fault, say)

    def logged_failures(self) -> int | None:
        """Return the number of failed requests in haproxy's logs; None without haproxy."""
        return balancer.logged_failures(self.folder)

    def inject(self, fault: Fault) -> FaultRecord:
        """Inject a fault, hold it, undo it; errors are in `failure` of the result."""
        active = _ActiveFault(self, fault)
        try:
            active.carry_out()
        except (LoadstoneError, OSError) as problem:
            return active.record(str(problem))
        return active.record()

    def settle(self) -> None:
        """Wait until haproxy sends requests to every node."""
        balancer.await_all(self.folder)

    def note(self, kind: Undo, what: str) -> UndoStep:
        """Add an undo step to the journal."""
        return self.journal.note(kind, what, self.owner, parts.read_state(self.folder).run)


@dataclass(slots=True)
class _ActiveFault:
    """One fault in progress."""

    injector: LabInjector
    fault: Fault
    began_s: float = 0.0
    undone_s: float | None = None
    detected_s: float | None = None
    targets: tuple[str, ...] = ()
    steps: list[tuple[float, str]] = field(default_factory=list)
    to_undo: list[UndoStep] = field(default_factory=list)
    phases: list[FaultPhase] = field(default_factory=list)

    @property
    def folder(self) -> Path:
        return self.injector.folder

    def _now_s(self) -> float:
        return self.injector.clock.unix_s()

    def record(self, failure: str = "") -> FaultRecord:
        """Return the record of the fault."""
        return FaultRecord(
            self.fault,
            self.began_s or self._now_s(),
            self.undone_s,
            self.detected_s,
            self.targets,
            tuple(self.steps),
            failure,
            tuple(self.phases),
        )

    def carry_out(self) -> None:
        """Inject the fault, hold it, undo it."""
        fault, folder = self.fault, self.folder
        try:
            match fault.verb:
                case Verb.FLUSH:
                    self._flush()
                case Verb.ROTATE:
                    self._rotate()
                case Verb.READ_ONLY:
                    self.targets = (database.kind(folder),)
                    self._note(Undo.WRITABLE, self.targets[0])
                    self._act(
                        "read-only", lambda: database.set_read_only(folder, is_read_only=True)
                    )
                case Verb.FILL:
                    self._fill()
                case Verb.EXPIRE:
                    self._expire()
                case Verb.STEAL_CPU:
                    self._steal_cpu()
                case _:
                    self._on_parts(parts.hit(fault, parts.read_state(folder), self.injector.random))
            self.injector.begun.set()
            self.injector.clock.wait(self.injector.over, fault.hold_s)
        finally:
            self._undo()

    def _undo(self, keep: int = 0) -> None:
        """Undo the steps, the last one first, except the first `keep`."""
        steps, self.to_undo = self.to_undo[keep:], self.to_undo[:keep]
        if not steps:
            return
        outcome = undo_steps(
            self.injector.journal,
            steps,
            lambda step: self._log(
                step.description if step.undo is not Undo.END else "ended what was started"
            ),
        )
        if outcome.failed:
            raise EnvironmentUnusable(
                "; ".join(f"{one.description}: {one.failure}" for one in outcome.failed)
            )
        self.undone_s = self._now_s()

    def _note(self, kind: Undo, what: str) -> None:
        self.to_undo.append(self.injector.note(kind, what))

    def _log(self, message: str) -> None:
        self.steps.append((self._now_s(), message))

    def _act(self, message: str, action: Callable[[], object]) -> None:
        """Log and do one action; the first one is the begin of the fault."""
        now_s = self._now_s()
        self.began_s = self.began_s or now_s
        self.steps.append((now_s, message))
        action()

    def _on_parts(self, records: Sequence[Record]) -> None:
        self.targets = tuple(record.part for record in records)
        self._watch_balancer(records)
        acts: dict[Verb, Callable[[Sequence[Record]], None]] = {
            Verb.KILL: self._kill,
            Verb.REBOOT: self._kill,
            Verb.TERMINATE: self._stop,
            Verb.STOP: self._stop,
            Verb.RESTART: self._restart,
            Verb.START: self._start,
            Verb.RELOAD: self._reload,
            Verb.FREEZE: self._freeze,
            Verb.UNFREEZE: self._unfreeze,
            Verb.TAKE_OUT: self._take_out,
            Verb.DISCONNECT: self._disconnect,
            Verb.DELAY: self._reroute,
            Verb.LOSE: self._reroute,
            Verb.ROLL: self._roll,
            Verb.CONFIGURE: self._configure,
            Verb.UPGRADE: self._upgrade,
        }
        acts[self.fault.verb](records)

    def _kill(self, records: Sequence[Record]) -> None:
        self._note_starts(records)
        members = parts.members(records)
        self._act(f"killed {', '.join(self.targets)}", lambda: processes.kill(members))

    def _note_starts(self, records: Sequence[Record]) -> None:
        """Note that the parts are to be started again, in their order: the last step comes first.

        A web server serves only once its application does.
        """
        for record in reversed(records):
            self._note(Undo.START, parts.undo_target(record))

    def _stop(self, records: Sequence[Record]) -> None:
        self._note_starts(records)
        for record in records:
            if record.process is not None:
                stop_signal = signal.Signals(record.ask)
                stop = partial(processes.stop, record.process, stop_signal=stop_signal)
                self._act(f"stopped {record.part}", stop)

    def _restart(self, records: Sequence[Record]) -> None:
        self._stop(records)
        self._undo()

    def _start(self, records: Sequence[Record]) -> None:
        for record in records:
            start = partial(parts.start_again, self.folder, record.part)
            self._act(f"started {record.part}", start)

    def _freeze(self, records: Sequence[Record]) -> None:
        for record in records:
            self._note(Undo.CONTINUE, record.part)
        members = parts.members(records)
        freeze = partial(processes.send, signal.SIGSTOP, members)
        self._act(f"froze {', '.join(self.targets)}", freeze)

    def _unfreeze(self, records: Sequence[Record]) -> None:
        members = parts.members(records)
        self._act("continued", lambda: processes.send(signal.SIGCONT, members))

    def _take_out(self, records: Sequence[Record]) -> None:
        for node in parts.nodes_of(records):
            server = balancer.server_of(node)
            self._note(Undo.READY, server)
            take_out = partial(balancer.set_state, self.folder, server, "maint")
            self._act(f"took {server} out", take_out)

    def _disconnect(self, records: Sequence[Record]) -> None:
        if self.fault.service in KEYSTONE:
            self._reroute(records)
        else:
            # The part has no network of its own to cut. Freezing it looks the same to its clients:
            # connections stay open, and nothing answers.
            self._freeze(records)

    def _reroute(self, records: Sequence[Record]) -> None:
        """Put a proxy that delays, drops or never answers between haproxy and the node."""
        fault, folder = self.fault, self.folder
        for node in parts.nodes_of(records):
            server = balancer.server_of(node)
            target = parts.read_state(folder).port(server)
            if target is None:
                raise AssertionError("a node behind haproxy has a port")
            between, mark = choose(), secrets.token_hex(8)
            self._note(Undo.END, mark)
            self._note(Undo.ADDRESS, f"{server} {target}")
            argv = proxy_command(fault, between, target)
            processes.start(Command(argv, folder / "logs" / "fault.log", folder, {FAULT: mark}))
            deadline = time.monotonic() + PROXY_S
            # Do not probe by connecting: this would take a place in its listen queue.
            while is_free(between):
                if time.monotonic() > deadline:
                    raise EnvironmentUnusable("the process between haproxy and node does not start")
                time.sleep(balancer.POLL_S)
            reroute = partial(balancer.set_port, folder, server, between)
            self._act(f"{fault.verb} {server}", reroute)

    @contextmanager
    def _phase(self, description: str) -> Iterator[None]:
        began_s = self._now_s()
        try:
            yield
        finally:
            self.phases.append(FaultPhase(description, began_s, self._now_s()))

    def _roll(self, records: Sequence[Record]) -> None:
        before = len(self.to_undo)
        for node in parts.nodes_of(records):
            own = [record for record in records if parts.node_of(record.part) == node]
            server = balancer.server_of(node)
            with self._phase(f"node {node} was out"):
                self._note(Undo.READY, server)
                self._drain(node)
                self._stop(own)
                self._undo(before)  # starts it, waits until it serves, puts it back
                balancer.await_up(self.folder, server)
            self._log(f"{server} is served again")

    def _drain(self, node: int) -> None:
        server = balancer.server_of(node)
        self._act(f"took {server} out", lambda: None)
        if not rolling.take_out(self.folder, node):
            self._log(f"{server} still has requests after {rolling.DRAIN_S:.0f} s")

    def _configure(self, records: Sequence[Record]) -> None:
        section, name = self.fault.option
        option = (section, name, self.fault.value)
        self._note(Undo.CONF, "as it was")
        set_option = partial(rolling.set_option, self.folder, option)
        self._act(f"set [{section}] {name} = {self.fault.value}", set_option)
        self._roll(records)

    def _upgrade(self, records: Sequence[Record]) -> None:
        folder, release = self.folder, self.fault.value
        self._note(Undo.UPGRADE, release)
        for how, change in (("expand", "schema was expanded"), ("migrate", "data were migrated")):
            with self._phase(f"the {change}"):
                self._act(f"db_sync --{how}", partial(rolling.sync, folder, release, how))
        rolling.switch(folder, release)
        for node in parts.nodes_of(records):
            with self._phase(f"node {node} was out"):
                self._drain(node)
                self._act(f"restarted node {node}", partial(rolling.restart, folder, node))
                rolling.put_back(folder, node)
            self._log(f"node {node} serves with {release}")
        with self._phase("the schema was contracted"):
            self._act("db_sync --contract", partial(rolling.sync, folder, release, "contract"))
        self.injector.journal.remove(self.to_undo.pop())
        self.undone_s = self._now_s()
        self._log(f"all is of {release}")

    def _fill(self) -> None:
        data = database.folder(self.folder)
        self.targets = (database.kind(self.folder),)
        self._note(Undo.FREE, str(filling.file(data)))
        self._act("filled the disk", lambda: filling.fill(data))

    def _reload(self, _: Sequence[Record]) -> None:
        # If a crash comes before the new process is recorded, START ends it and starts another.
        self._note(Undo.START, "haproxy")
        self._act("reloaded haproxy", lambda: None)
        process = balancer.reload(self.folder)
        part = parts.part(self.folder, "haproxy")
        composition.await_health(part, process)
        parts.replace_process(self.folder, "haproxy", process)

    def _flush(self) -> None:
        if self.fault.service == "memcached":
            ports = _memcached(self.folder)
            self.targets = tuple(ports)
            self._act("flushed memcached", lambda: _flush_memcached(ports.values()))
        else:
            self.targets = ("keystone",)
            self._act("flushed tokens", lambda: _flush_tokens(self.folder))

    def _rotate(self) -> None:
        chosen = settings.started(parts.read_state(self.folder))
        repository = conf.fernet_keys(self.folder, chosen)
        # The copy that an earlier rotation in force made has the original keys.
        if all(step.undo is not Undo.KEYS for step in self.injector.journal.steps()):
            keys.copy(repository)
        self.targets = ("keystone",)
        self._note(Undo.KEYS, str(repository))
        self._act("rotated Fernet keys", lambda: keys.rotate(repository))

    def _expire(self) -> None:
        self.targets = ("haproxy",)
        self._note(Undo.CERTIFICATE, "the valid one")
        show = partial(balancer.set_certificate, self.folder, is_valid=False)
        self._act("haproxy shows an expired certificate", show)

    def _steal_cpu(self) -> None:
        cores, mark = os.cpu_count() or 1, secrets.token_hex(8)
        shares = core_shares(cores, self.fault.share)
        self.targets = (f"{sum(shares):g} of {cores} cores",)
        self._note(Undo.END, mark)
        log = self.folder / "logs" / "fault.log"
        # The loop has a deadline, in case nobody is left to end it.
        least_s = self.fault.hold_s + SPARE_S

        def begin() -> None:
            for share in shares:
                argv = (sys.executable, "-P", "-c", BUSY_LOOP, str(share), str(least_s))
                processes.start(Command(argv, log, self.folder, {FAULT: mark}))

        self._act(f"busy loops on {sum(shares):g} cores", begin)

    def _watch_balancer(self, records: Sequence[Record]) -> None:
        if self.fault.verb not in _TAKES_DOWN or not balancer.has_balancer(self.folder):
            return
        if nodes := parts.nodes_of(parts.of_nodes(records)):
            Thread(target=self._detect, args=(nodes,), daemon=True).start()

    def _detect(self, nodes: Sequence[int]) -> None:
        """Set `detected_s` when haproxy has stopped sending requests to the nodes."""
        try:
            while any(balancer.is_up(self.folder, balancer.server_of(node)) for node in nodes):
                if self.undone_s is not None or self.injector.over.is_set():
                    return
                time.sleep(balancer.POLL_S)
        except EnvironmentUnusable:
            return  # haproxy itself is away
        self.detected_s = self._now_s()


def core_shares(cores: int, share: float) -> tuple[float, ...]:
    """Return the share of one core that each busy loop takes, for a share of all cores."""
    amount = max(round(cores * share, 3), LEAST_CORES)
    rest = round(amount % 1, 3)
    return (*[1.0] * int(amount), *([rest] if rest else []))


def proxy_command(fault: Fault, port: int, target: int) -> tuple[str, ...]:
    """Return the command of the process on a port that stands for a node's network."""
    how = {Verb.DISCONNECT: CUT, Verb.LOSE: f"{LOSS}{fault.share}"}.get(fault.verb)
    least_s = fault.hold_s + SPARE_S
    return (*PROXY, str(port), str(target), how or str(fault.delay_s), str(least_s))


def _memcached(folder: Path) -> dict[str, int]:
    """Return the ports of the memcached servers by part."""
    names = [one.part for one in parts.read_state(folder).records]
    ports = dict(parts.read_state(folder).ports)
    found = {name: ports[name] for name in names if parts.kind_of(name) == "memcached"}
    if not found:
        raise InvalidInput(f"lab {folder.name} has no memcached; it needs --with cache=memcached")
    return found


def _require_flush(folder: Path, fault: Fault) -> None:
    """Raise InvalidInput unless the lab has memcached, or tokens in its database."""
    if fault.service == "memcached":
        _memcached(folder)
    elif settings.started(parts.read_state(folder)).token is not TokenProvider.UUID:
        raise InvalidInput(
            f"fault {fault.sentence!r}: lab {folder.name} keeps no tokens in its database; it "
            "needs --with token=uuid --with release=13.0.2"
        )


def _require_reload(folder: Path, fault: Fault, random: Random) -> None:
    """Raise InvalidInput for other parts than haproxy, and for the haproxy before Hydra."""
    if fault.service != "haproxy":
        raise InvalidInput(
            f"fault {fault.sentence!r}: only haproxy can be reloaded; restart is for all"
        )
    known = parts.read_state(folder)
    parts.hit(fault, known, random)
    if Deployment(folder, known).is_provider:
        raise InvalidInput(
            f"fault {fault.sentence!r}: haproxy of lab {folder.name} stands before an OpenID "
            "provider and cannot be reloaded; restart it"
        )


def _require_fernet(folder: Path, fault: Fault) -> None:
    """Raise InvalidInput unless tokens are made with Fernet keys."""
    chosen = settings.started(parts.read_state(folder))
    has_keys = conf.fernet_keys(folder, chosen).is_dir()
    if not has_keys or chosen.token is not TokenProvider.FERNET:
        raise InvalidInput(
            f"fault {fault.sentence!r}: the tokens of lab {folder.name} are not made with Fernet "
            "keys; it needs a Keystone with --with token=fernet"
        )


def _flush_memcached(ports: Iterable[int]) -> None:
    for port in ports:
        try:
            with socket.create_connection((HOST, port), timeout=ANSWER_S) as link:
                link.sendall(b"flush_all\r\n")
                link.recv(64)
        except OSError as problem:
            raise EnvironmentUnusable(f"memcached on port {port}: {problem}") from None


def _flush_tokens(folder: Path) -> None:
    python = Path(parts.read_state(folder).python)
    rolling.run_manage(folder, python, ("token_flush",), "keystone-manage token_flush failed")
