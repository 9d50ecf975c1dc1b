"""What a run measures with: targets, an engine with its clock, and the audit of settings."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING, Self

from loadstone.audit.kept import Kept, audited
from loadstone.cloud.cloud import Endpoint
from loadstone.engine import gate
from loadstone.engine.gate import Engine
from loadstone.system.clock import Clock
from loadstone.system.say import Say
from loadstone.target.choice import TargetChoice
from loadstone.target.measured import measured_target
from loadstone.target.target import Target

if TYPE_CHECKING:
    from loadstone.engine.fleet.address import FleetAddress


@dataclass(frozen=True, slots=True)
class Backend:
    """How a run connects to targets, loads them and reads their settings.

    Tests replace all of it, so that a whole command runs in virtual time.
    """

    connected: Callable[[TargetChoice, Say], AbstractContextManager[Target]] = measured_target
    engine: Engine = gate.LOCAL
    audited: Callable[[TargetChoice, Endpoint], Kept] = audited
    seed: int | None = None  # of random orders; None: a different order every time

    @property
    def is_real(self) -> bool:
        """Whether targets are real, so that a lab needs its servers on this machine."""
        return self.connected is measured_target

    @property
    def clock(self) -> Clock:
        """The clock of the engine: an engine that simulates time brings its own."""
        return self.engine.clock

    def random(self) -> Random:
        """Return the source of random orders."""
        return Random(self.seed)  # noqa: S311 (no secret)

    @contextmanager
    def sending_from(
        self, fleet: "FleetAddress | None", targets: Sequence[Target], say: Say
    ) -> Iterator[Self]:
        """Connect to a fleet, if given; the targets' monitors also read its watched hosts."""
        if fleet is None:
            yield self
            return
        from loadstone.engine.fleet import client
        from loadstone.engine.fleet.hosts_file import SshFleet
        from loadstone.lab.watch_hosts import watched_hosts

        monitors = [target.watch.monitor for target in targets if target.watch is not None]
        with (
            client.located(fleet) if isinstance(fleet, SshFleet) else nullcontext(fleet) as found,
            gate.fleet(found) as engine,
            watched_hosts(found, monitors, say),
        ):
            yield replace(self, engine=engine)


REAL = Backend()
