"""Measures one turn of a study on a lab host, in a process of its own."""

import os
import signal
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection

from loadstone.errors import LoadstoneError
from loadstone.result.model import Tags
from loadstone.result.observer import Display
from loadstone.run.flow import hidden, run
from loadstone.store.location import StoreLocation
from loadstone.store.store import Store
from loadstone.study import journal
from loadstone.study.cell import config_of
from loadstone.study.figure import is_valid
from loadstone.study.journal import TurnResult
from loadstone.study.order import turns
from loadstone.study.placing import LabSlot
from loadstone.system import crash
from loadstone.system.redaction import Redaction
from loadstone.target.choice import LabOnHost, OwnLab


@dataclass(frozen=True, slots=True)
class TurnOrder:
    """A turn and its lab host; sent to the process that measures it."""

    store: StoreLocation
    study_id: str
    number: int
    command: str
    slot: LabSlot
    beyond_loopback: bool
    pause_s: float
    tags: Tags = ()


@dataclass(slots=True)
class PipeDisplay(Display):
    """Sends progress lines to the process that runs the study."""

    pipe: Connection
    redaction: Redaction = Redaction()  # noqa: RUF009 (frozen)

    def say(self, line: str) -> None:
        """Send one line."""
        with suppress(OSError):  # the reader is gone; users must still be removed
            self.pipe.send(self.redaction.text(line))

    def hide(self, redaction: Redaction) -> None:
        """Redact these secrets from now on."""
        self.redaction = redaction
        crash.hide(redaction)

    def begin(self, load_s: float) -> None:
        """Show no countdown: several turns run in parallel."""


def serve(order: TurnOrder, pipe: Connection) -> None:
    """Measure a turn; send lines, and the `TurnResult` at the end."""
    os.setsid()  # Ctrl-C reaches only the process that runs the study, which forwards it
    signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=_end_with, args=(pipe,), daemon=True).start()
    with suppress(KeyboardInterrupt):
        time.sleep(order.pause_s)
        pipe.send(_result(order, pipe))


def _result(order: TurnOrder, pipe: Connection) -> TurnResult:
    try:
        return _measured(order, pipe)
    except Exception as error:
        line, exit_code = crash.report(error, lambda: order.command)
        return TurnResult(order.number, None, line, exit_code, host=order.slot.host)


def _measured(order: TurnOrder, pipe: Connection) -> TurnResult:
    begun = journal.find(order.store, order.study_id).with_secrets()
    study = begun.begun.study()
    turn = next(one for one in turns(study, begun.begun.seed) if one.number == order.number)
    display = PipeDisplay(pipe)
    slot = order.slot
    with Store.open(order.store) as store, hidden(study.secrets, store, display) as hiding:
        config = config_of(study, order.study_id, turn, order.command)
        lab = config.target
        if not isinstance(lab, OwnLab):
            raise AssertionError("what is not a lab was refused before")
        pairs, beyond = turn.cell.settings, order.beyond_loopback
        target = LabOnHost(lab.name, pairs, slot.place, beyond)
        config = replace(config, target=target, fleet=slot.senders, tags=order.tags)
        try:
            found = run(config, hiding, display)
        except LoadstoneError as failed:
            why = hiding.redaction.text(str(failed))
            return TurnResult(turn.number, None, why, failed.exit_code, host=slot.host)
        valid = is_valid(found, study.measurement, is_reference=turn.cell.is_reference)
        return TurnResult(turn.number, found.run_id, None, is_valid=valid, host=slot.host)


def _end_with(pipe: Connection) -> None:
    """Interrupt this process when the process that runs the study is gone."""
    try:
        pipe.recv()
    except (EOFError, OSError):
        os.kill(os.getpid(), signal.SIGINT)
