"""Changes the settings of a service of one's own, by the user's commands.

REVERT puts back all settings. APPLY is run after it and has the settings of a combination in its
environment. Both return when the service has its settings; then it may take a while to answer.
The revert command is in the undo journal of faults before the first change, so that the settings
are put back after Ctrl-C and kills, too.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

from loadstone.errors import EnvironmentUnusable, InvalidInput, MeasurementInvalid
from loadstone.faults.carried import undoing
from loadstone.faults.commands import carry_out_marked
from loadstone.faults.host import HERE, HostCommand
from loadstone.faults.journal import Owner, Undo, UndoJournal
from loadstone.faults.pending import chosen_target
from loadstone.system.clock import Clock
from loadstone.system.redaction import masked
from loadstone.system.say import Say
from loadstone.target.choice import NamedTarget
from loadstone.target.target import Target
from loadstone.tune.space import Pairs, words

ANSWERS_WITHIN_S = 60.0  # after a command, with its programs starting
ASKS_EVERY_S = 0.2


@dataclass(frozen=True, slots=True)
class ChangeCommands:
    """A cloud, and the commands that change its settings and put them back."""

    cloud: str  # entry of clouds.yaml
    apply: str
    revert: str
    beyond_loopback: bool = False  # the user permits load on another machine
    anyway: bool = False  # measure it although a fault is still in force

    @property
    def target(self) -> NamedTarget:
        """The cloud as a target."""
        return NamedTarget(None, self.cloud, self.beyond_loopback, self.anyway)

    def require_kept(self) -> None:
        """Raise InvalidInput if a command cannot be kept in a journal."""
        for option, command in (("--apply", self.apply), ("--revert", self.revert)):
            if not command.strip():
                raise InvalidInput(f"{option}: the command is empty")
            if masked(command) != command:
                raise InvalidInput(
                    f"{option}: a secret would be kept in the tuning's journal; let the command "
                    "read it from a file"
                )


@dataclass(slots=True)
class CommandSwitch:
    """Makes the service that of one of two combinations; a `compare.measure.SideSwitch`."""

    commands: ChangeCommands
    sides: tuple[Pairs, Pairs]
    journal: UndoJournal
    owner: Owner
    connected: Callable[[], AbstractContextManager[Target]]
    clock: Clock
    took_s: float = field(default=0.0, init=False)  # of all changes
    is_changed: bool = field(default=False, init=False)

    def to(self, side: int) -> None:
        """Put the settings back, then apply the combination of a side.

        Raises MeasurementInvalid if it cannot be applied or the service does not answer with it,
        EnvironmentUnusable if the settings cannot be put back.
        """
        began_s, changes = self.clock.monotonic_s(), self.sides[side]
        self._revert()
        if changes:
            self.is_changed = True
            try:
                carry_out_marked(
                    self.journal, self.owner, self.commands.apply, variables=dict(changes)
                )
                self._await()
            except EnvironmentUnusable as problem:
                self._revert()
                raise MeasurementInvalid(f"{words(changes)}: {problem}") from None
        self.took_s += self.clock.monotonic_s() - began_s

    def back(self) -> None:
        """Put the settings back."""
        if self.is_changed:
            self._revert()

    def _revert(self) -> None:
        self.is_changed = True  # until it has succeeded
        carry_out_marked(self.journal, self.owner, self.commands.revert)
        self._await()
        self.is_changed = False

    def _await(self) -> None:
        """Wait until the service answers a login."""
        until_s = self.clock.monotonic_s() + ANSWERS_WITHIN_S
        while True:
            try:
                with self.connected():
                    return
            except EnvironmentUnusable:
                if self.clock.monotonic_s() > until_s:
                    raise
            self.clock.sleep(ASKS_EVERY_S)


@contextmanager
def switching(
    commands: ChangeCommands,
    sides: tuple[Pairs, Pairs],
    tuning_id: str,
    connected: Callable[[], AbstractContextManager[Target]],
    clock: Clock,
    say: Say,
) -> Iterator[CommandSwitch]:
    """Yield the switch between two combinations; the settings are put back whatever happens.

    Raises EnvironmentUnusable with the command to run by hand if they could not be put back.
    """
    target = chosen_target(commands.target)
    if target is None:
        raise AssertionError("a cloud is known before it is connected to")
    journal, owner = UndoJournal.of(target), Owner.this(tuning_id)
    with undoing(journal, owner, say):
        revert = HostCommand.here_and_now(HERE, commands.revert)
        step = journal.note(Undo.COMMAND, revert.as_json(), owner)
        switch = CommandSwitch(commands, sides, journal, owner, connected, clock)
        try:
            yield switch
        finally:
            if not switch.is_changed:
                journal.remove(step)
