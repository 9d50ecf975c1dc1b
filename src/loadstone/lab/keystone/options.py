"""Checks the user's settings of keystone.conf against those that the release knows."""

import hashlib
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.lab import processes
from loadstone.lab.keystone.manage import INSIDE, CommandContext
from loadstone.lab.keystone.settings import Option
from loadstone.lab.parts.part import Part
from loadstone.system import files
from loadstone.system.say import Say

# In the environment: settings that this release has accepted, so that each is checked once.
ACCEPTED = "accepted-settings.json"
PATIENCE_S = 120.0


@dataclass(frozen=True, slots=True)
class CheckedOptions(Part):
    """The user's `conf.SECTION.OPTION`. Keystone itself ignores options that it does not know."""

    place: CommandContext
    release: str
    options: tuple[Option, ...]
    name: str = "options"

    def prepare(self, say: Say) -> None:
        """Raise InvalidInput for the first setting that the release does not know or accept."""
        accepted = self._accepted()
        fresh = [option for option in self.options if _mark(option) not in accepted]
        if not fresh:
            return
        say("checking the settings of keystone.conf")
        if problems := self._problems(fresh):
            raise InvalidInput(problems[0])
        marks = sorted({*accepted, *map(_mark, fresh)})
        files.write(self._file, json.dumps(marks, indent=1), files.PRIVATE)

    @property
    def _file(self) -> Path:
        return self.place.python.parent.parent / ACCEPTED

    def _accepted(self) -> set[str]:
        try:
            return set(json.loads(self._file.read_text()))
        except (OSError, TypeError, ValueError):
            return set()

    def _problems(self, options: list[Option]) -> list[str]:
        try:
            completed = subprocess.run(
                (str(self.place.python), str(INSIDE / "check_options.py"), self.release),
                input=json.dumps(options),
                capture_output=True,
                text=True,
                env=processes.clean_environment(self.place.folder, {"PYTHONWARNINGS": "ignore"}),
                cwd="/",
                check=False,
                timeout=PATIENCE_S,
            )
            found: list[str] = json.loads(completed.stdout)
        except subprocess.TimeoutExpired:
            raise EnvironmentUnusable(
                f"the options of Keystone {self.release} were not listed in {PATIENCE_S:.0f} s"
            ) from None
        except ValueError:
            last = (completed.stderr.strip().splitlines() or ["nothing was printed"])[-1]
            raise EnvironmentUnusable(
                f"the options of Keystone {self.release} cannot be listed: {last}"
            ) from None
        return found


def _mark(option: Option) -> str:
    """Identify a setting without its value, which may be secret."""
    return hashlib.sha256(json.dumps(option).encode()).hexdigest()
