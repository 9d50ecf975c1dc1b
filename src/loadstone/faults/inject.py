"""Carries faults out on a deployment; how each is undone is in the journal before it is done."""

import os
import secrets
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from threading import Event, Thread

from loadstone.analysis.fault import FaultEffect, FaultPhase
from loadstone.errors import EnvironmentUnusable, InvalidInput, LoadstoneError
from loadstone.faults import balancer, database, filling, keys, parts, queues, rolling
from loadstone.faults.journal import Undo, UndoJournal, UndoStep
from loadstone.faults.model import Done
from loadstone.faults.proxy import CUT, LOSS
from loadstone.faults.sentence import KEYSTONE, ROLLING, Fault, Verb
from loadstone.faults.undo import FAULT, undo
from loadstone.findings import Finding
from loadstone.keystone.deploy import manage, settings
from loadstone.keystone.deploy.settings import TokenProvider
from loadstone.lab import composition, processes, state
from loadstone.lab.part import Say
from loadstone.lab.ports import HOST, choose, is_free
from loadstone.lab.processes import Command
from loadstone.lab.state import Record

ANSWER_S = 5.0  # of memcached
PROXY_S = 30.0  # until a process between haproxy and a node listens, on a busy machine
SPARE_S = 60.0  # a busy loop ends by itself so long after it should have been ended
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
class LoadInjector:
    """For faults that are of the load: there is nothing to break."""

    over: Event = field(default_factory=Event)  # the load has ended
    folder: Path | None = None  # of the lab, where it is one

    def check(self, fault: Fault) -> None:
        """Every target can be overloaded."""

    def prepare(self, fault: Fault, say: Say) -> None:
        """Nothing is needed."""

    def logged_failures(self) -> int | None:
        """Return how many requests failed by haproxy's log."""
        return None if self.folder is None else balancer.logged_failures(self.folder)

    def findings(self, fault: Fault, seen: FaultEffect) -> tuple[Finding, ...]:
        """Say which queues of a lab an overload fills."""
        return () if self.folder is None else (queues.finding(self.folder, fault, seen),)

    def settle(self) -> None:
        """Nothing was broken."""

    def inject(self, fault: Fault) -> Done:
        """Wait until the overload is over."""
        began_s = time.time()
        self.over.wait(fault.hold_s)
        return Done(fault, began_s, time.time(), None, ("load",), ((began_s, fault.sentence),))


@dataclass(slots=True)
class LabInjector:
    """Carries faults out on one deployment; several may overlap."""

    folder: Path  # of the deployment
    random: Random = field(default_factory=Random)
    over: Event = field(default_factory=Event)  # nothing is held any longer
    _journal: UndoJournal = field(init=False)

    def __post_init__(self) -> None:
        self._journal = UndoJournal.read(self.folder)

    def check(self, fault: Fault) -> None:
        """Raise InvalidInput for a fault that this deployment cannot have."""
        match fault.verb:
            case Verb.FLUSH if fault.service == "memcached":
                _memcached(self.folder)
            case Verb.FLUSH:
                _require_kept_tokens(self.folder, fault)
            case Verb.ROTATE | Verb.STEAL_CPU:
                return
            case Verb.READ_ONLY:
                database.kind(self.folder)
            case Verb.FILL:
                filling.require_small(database.folder(self.folder))
            case Verb.EXPIRE:
                balancer.require_tls(self.folder)
            case Verb.RELOAD if fault.service != "haproxy":
                raise InvalidInput(
                    f"fault {fault.sentence!r}: only haproxy can be reloaded; restart is for all"
                )
            case (
                Verb.TAKE_OUT | Verb.DISCONNECT | Verb.DELAY | Verb.LOSE
                | Verb.ROLL | Verb.CONFIGURE | Verb.UPGRADE
            ) if fault.service in KEYSTONE and not balancer.has_balancer(self.folder):  # fmt: skip
                raise InvalidInput(
                    f"fault {fault.sentence!r}: lab {self.folder.name} has no haproxy; it needs "
                    "--with nodes=2"
                )
            case Verb.UPGRADE:
                rolling.require_upgrade(self.folder, fault)
            case _:
                parts.hit(fault, parts.known(self.folder), self.random)

    def prepare(self, fault: Fault, say: Say) -> None:
        """Make what takes long before the load begins."""
        if fault.verb in ROLLING:
            rolling.prepare(self.folder, fault, say)

    def findings(self, fault: Fault, seen: FaultEffect) -> tuple[Finding, ...]:  # noqa: ARG002
        """What was broken is known."""
        return ()

    def logged_failures(self) -> int | None:
        """Return how many requests failed by haproxy's log; None: there is no haproxy."""
        return balancer.logged_failures(self.folder)

    def inject(self, fault: Fault) -> Done:
        """Carry a fault out, hold it, undo it; what goes wrong is in `failure`."""
        carried = _Carried(self, fault)
        try:
            carried.carry_out()
        except LoadstoneError as problem:
            return carried.done(str(problem))
        return carried.done()

    def settle(self) -> None:
        """Wait until the service is whole: haproxy sends to every node."""
        balancer.await_all(self.folder)

    def note(self, kind: Undo, what: str) -> UndoStep:
        """Write how something is undone to the journal."""
        step = UndoStep(kind, what, processes.boot_id())
        self._journal.add(step)
        return step

    def forget(self, step: UndoStep) -> None:
        """Remove what is undone from the journal."""
        self._journal.remove(step)


@dataclass(slots=True)
class _Carried:
    """One fault on its way."""

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

    def done(self, failure: str = "") -> Done:
        """Return what was done."""
        return Done(
            self.fault,
            self.began_s or time.time(),
            self.undone_s,
            self.detected_s,
            self.targets,
            tuple(self.steps),
            failure,
            tuple(self.phases),
        )

    def carry_out(self) -> None:
        """Do it, hold it, undo it."""
        fault, folder = self.fault, self.folder
        try:
            match fault.verb:
                case Verb.FLUSH:
                    self._flush()
                case Verb.ROTATE:
                    self._rotate()
                case Verb.READ_ONLY:
                    self.targets = (database.kind(folder),)
                    self._noted(Undo.WRITABLE, self.targets[0])
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
                    self._on_parts(parts.hit(fault, parts.known(folder), self.injector.random))
            self._hold()
        finally:
            self._undo()

    def _hold(self) -> None:
        # Detection goes on also after the fault was undone, which haproxy may not have noticed.
        self.injector.over.wait(self.fault.hold_s)

    def _undo(self, but: int = 0) -> None:
        """Undo what was done, the last step first, but the first ones."""
        is_needed = len(self.to_undo) > but
        while len(self.to_undo) > but:
            step = self.to_undo[-1]
            undo(step, self.folder)
            self.injector.forget(self.to_undo.pop())
            self._said(step.words if step.undo is not Undo.END else "ended what was started")
        if is_needed:
            self.undone_s = time.time()

    def _noted(self, kind: Undo, what: str) -> None:
        self.to_undo.append(self.injector.note(kind, what))

    def _said(self, words: str) -> None:
        self.steps.append((time.time(), words))

    def _act(self, words: str, act: Callable[[], object]) -> None:
        """Do something; its instant is the fault's if it is the first."""
        now_s = time.time()
        self.began_s = self.began_s or now_s
        self.steps.append((now_s, words))
        act()

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
        for record in records:
            self._noted(Undo.START, parts.ended(record))
        members = [one for record in records for one in _family(record)]
        self._act(f"killed {', '.join(self.targets)}", lambda: processes.kill(members))

    def _stop(self, records: Sequence[Record]) -> None:
        for record in records:
            self._noted(Undo.START, parts.ended(record))
        for record in records:
            if record.process is not None:
                ask = signal.Signals(record.ask)
                stop = partial(processes.stop, record.process, ask=ask)
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
            self._noted(Undo.CONTINUE, record.part)
        members = [one for record in records for one in _family(record)]
        self._act(f"froze {', '.join(self.targets)}", lambda: processes.freeze(members))

    def _unfreeze(self, records: Sequence[Record]) -> None:
        members = [one for record in records for one in _family(record)]
        self._act("continued", lambda: processes.continue_(members))

    def _take_out(self, records: Sequence[Record]) -> None:
        for node in sorted({parts.node_of(record.part) for record in records}):
            server = balancer.server_of(node)
            self._noted(Undo.READY, server)
            take_out = partial(balancer.set_state, self.folder, server, "maint")
            self._act(f"took {server} out", take_out)

    def _disconnect(self, records: Sequence[Record]) -> None:
        if self.fault.service in KEYSTONE:
            self._reroute(records)
        else:
            # No network of its own can be cut. To the others it is the same: connections stay
            # open, and nothing answers.
            self._freeze(records)

    def _reroute(self, records: Sequence[Record]) -> None:
        """Send haproxy to a process that delays, or never answers, in place of the node."""
        fault, folder = self.fault, self.folder
        how = {Verb.DISCONNECT: CUT, Verb.LOSE: f"{LOSS}{fault.share}"}.get(fault.verb)
        how = how or str(fault.delay_s)
        for node in sorted({parts.node_of(record.part) for record in records}):
            server = balancer.server_of(node)
            target = parts.known(folder).port(server)
            if target is None:
                raise AssertionError("a node behind haproxy has a port")
            between, mark = choose(None), secrets.token_hex(8)
            self._noted(Undo.END, mark)
            self._noted(Undo.ADDRESS, f"{server} {target}")
            words = (sys.executable, "-m", "loadstone.faults.proxy", str(between), str(target), how)
            processes.start(Command(words, folder / "logs" / "fault.log", folder, {FAULT: mark}))
            deadline = time.monotonic() + PROXY_S
            # It must not be tried by connecting, which takes a place in its listen queue.
            while is_free(between):
                if time.monotonic() > deadline:
                    raise EnvironmentUnusable("the process between haproxy and node does not start")
                time.sleep(balancer.POLL_S)
            reroute = partial(balancer.set_port, folder, server, between)
            self._act(f"{fault.verb} {server}", reroute)

    @contextmanager
    def _phase(self, words: str) -> Iterator[None]:
        began_s = time.time()
        try:
            yield
        finally:
            self.phases.append(FaultPhase(words, began_s, time.time()))

    def _roll(self, records: Sequence[Record]) -> None:
        before = len(self.to_undo)
        for node in sorted({parts.node_of(record.part) for record in records}):
            own = [record for record in records if parts.node_of(record.part) == node]
            server = balancer.server_of(node)
            with self._phase(f"node {node} was out"):
                self._noted(Undo.READY, server)
                self._drain(node)
                self._stop(own)
                self._undo(before)  # starts it, waits until it serves, puts it back
                balancer.await_up(self.folder, server)
            self._said(f"{server} is served again")

    def _drain(self, node: int) -> None:
        server = balancer.server_of(node)
        self._act(f"took {server} out", lambda: None)
        if not rolling.take_out(self.folder, node):
            self._said(f"{server} still has requests after {rolling.DRAIN_S:.0f} s")

    def _configure(self, records: Sequence[Record]) -> None:
        section, name = self.fault.option
        option = (section, name, self.fault.value)
        self._noted(Undo.CONF, "as it was")
        set_option = partial(rolling.set_option, self.folder, option)
        self._act(f"set [{section}] {name} = {self.fault.value}", set_option)
        self._roll(records)

    def _upgrade(self, records: Sequence[Record]) -> None:
        folder, release = self.folder, self.fault.value
        self._noted(Undo.UPGRADE, release)
        for how, words in (("expand", "schema was expanded"), ("migrate", "data were migrated")):
            with self._phase(f"the {words}"):
                self._act(f"db_sync --{how}", partial(rolling.sync, folder, release, how))
        rolling.switch(folder, release)
        for node in sorted({parts.node_of(record.part) for record in records}):
            with self._phase(f"node {node} was out"):
                self._drain(node)
                self._act(f"restarted node {node}", partial(rolling.restart, folder, node))
                rolling.put_back(folder, node)
            self._said(f"node {node} serves with {release}")
        with self._phase("the schema was contracted"):
            self._act("db_sync --contract", partial(rolling.sync, folder, release, "contract"))
        self.injector.forget(self.to_undo.pop())
        self.undone_s = time.time()
        self._said(f"all is of {release}")

    def _fill(self) -> None:
        data = database.folder(self.folder)
        self.targets = (database.kind(self.folder),)
        self._noted(Undo.FREE, str(filling.file(data)))
        self._act("filled the disk", lambda: filling.fill(data))

    def _reload(self, _: Sequence[Record]) -> None:
        # If a crash comes before the new process is recorded, START ends it and starts another.
        self._noted(Undo.START, "haproxy")
        self._act("reloaded haproxy", lambda: None)
        process = balancer.reload(self.folder)
        part = parts.part(self.folder, "haproxy")
        composition.await_health(part, process)
        parts.replace_process(self.folder, "haproxy", process)

    def _flush(self) -> None:
        if self.fault.service == "memcached":
            self.targets = ("memcached",)
            port = _memcached(self.folder)
            self._act("flushed memcached", lambda: _flush_memcached(port))
        else:
            self.targets = ("keystone",)
            self._act("flushed tokens", lambda: _manage(self.folder, "token_flush"))

    def _rotate(self) -> None:
        repository = self.folder / "keys" / "fernet"
        keys.copy(repository)
        self.targets = ("keystone",)
        self._noted(Undo.KEYS, str(repository))
        self._act("rotated Fernet keys", lambda: keys.rotate(repository))

    def _expire(self) -> None:
        self.targets = ("haproxy",)
        self._noted(Undo.CERTIFICATE, "the valid one")
        show = partial(balancer.set_certificate, self.folder, is_valid=False)
        self._act("haproxy shows an expired certificate", show)

    def _steal_cpu(self) -> None:
        cores = os.cpu_count() or 1
        mark = secrets.token_hex(8)
        count = max(1, round(cores * self.fault.share))
        self.targets = (f"{count} of {cores} cores",)
        self._noted(Undo.END, mark)
        log = self.folder / "logs" / "fault.log"
        # It looks at the clock, so that it ends by itself if nobody is left to end it.
        least_s = self.fault.hold_s + SPARE_S
        code = f"import time\nend = time.time() + {least_s}\nwhile time.time() < end: pass"
        command = Command((sys.executable, "-c", code), log, self.folder, {FAULT: mark})

        def begin() -> None:
            for _ in range(count):
                processes.start(command)

        self._act(f"busy loops on {count} cores", begin)

    def _watch_balancer(self, records: Sequence[Record]) -> None:
        if self.fault.verb not in _TAKES_DOWN or not balancer.has_balancer(self.folder):
            return
        nodes = {
            parts.node_of(one.part) for one in records if parts.kind_of(one.part) in parts.OF_A_NODE
        }
        if nodes:
            Thread(target=self._detect, args=(sorted(nodes),), daemon=True).start()

    def _detect(self, nodes: Sequence[int]) -> None:
        """Note when haproxy has stopped sending to the nodes."""
        try:
            while any(balancer.is_up(self.folder, balancer.server_of(node)) for node in nodes):
                if self.undone_s is not None or self.injector.over.is_set():
                    return
                time.sleep(balancer.POLL_S)
        except EnvironmentUnusable:
            return  # haproxy itself is away
        self.detected_s = time.time()


def _family(record: Record) -> tuple[processes.Process, ...]:
    return () if record.process is None else processes.family(record.process)


def _memcached(folder: Path) -> int:
    """Return the port of memcached."""
    port = parts.known(folder).port("memcached")
    if port is None:
        raise InvalidInput(f"lab {folder.name} has no memcached; it needs --with cache=memcached")
    return port


def _require_kept_tokens(folder: Path, fault: Fault) -> None:
    """Raise InvalidInput where no token is in the database: keystone-manage has no token_flush."""
    if settings.read(parts.known(folder).settings).token is not TokenProvider.UUID:
        raise InvalidInput(
            f"fault {fault.sentence!r}: lab {folder.name} keeps no tokens in its database; it "
            "needs --with token=uuid --with release=13.0.2"
        )


def _flush_memcached(port: int) -> None:
    try:
        with socket.create_connection((HOST, port), timeout=ANSWER_S) as link:
            link.sendall(b"flush_all\r\n")
            link.recv(64)
    except OSError as problem:
        raise EnvironmentUnusable(f"memcached on port {port}: {problem}") from None


def _manage(folder: Path, command: str) -> None:
    """Run one of keystone-manage's commands."""
    found = parts.known(folder)
    files = (folder / "keystone.conf", state.secret_folder(folder) / "keystone.conf")
    program = str(Path(found.python).parent / "keystone-manage")
    words = (program, *manage.options(*files), command)
    log = folder / "logs" / "fault.log"
    processes.complete(
        Command(words, log, folder, {"PYTHONWARNINGS": "ignore"}),
        f"keystone-manage {command} failed",
    )
