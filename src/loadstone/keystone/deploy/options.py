"""Checks the user's settings of keystone.conf against those that the release knows."""

import hashlib
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadstone import files
from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.keystone.deploy.manage import INSIDE, CommandContext
from loadstone.keystone.deploy.settings import Option
from loadstone.lab import processes
from loadstone.lab.part import Part, Say

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
        for wrong in self._ask(fresh):
            raise InvalidInput(self._words(wrong))
        known = sorted({*accepted, *map(_mark, fresh)})
        files.write(self._file, json.dumps(known, indent=1), files.PRIVATE)

    @property
    def _file(self) -> Path:
        return self.place.python.parent.parent / ACCEPTED

    def _accepted(self) -> set[str]:
        try:
            return set(json.loads(self._file.read_text()))
        except (OSError, TypeError, ValueError):
            return set()

    def _ask(self, options: list[Option]) -> list[dict[str, Any]]:
        try:
            done = subprocess.run(
                (str(self.place.python), str(INSIDE / "check_options.py")),
                input=json.dumps(options),
                capture_output=True,
                text=True,
                env=processes.clean_environment(self.place.folder, {"PYTHONWARNINGS": "ignore"}),
                cwd="/",
                check=False,
                timeout=PATIENCE_S,
            )
            found: list[dict[str, Any]] = json.loads(done.stdout)
        except subprocess.TimeoutExpired:
            raise EnvironmentUnusable(
                f"the options of Keystone {self.release} were not listed in {PATIENCE_S:.0f} s"
            ) from None
        except ValueError:
            last = (done.stderr.strip().splitlines() or ["nothing was printed"])[-1]
            raise EnvironmentUnusable(
                f"the options of Keystone {self.release} cannot be listed: {last}"
            ) from None
        return found

    def _words(self, wrong: dict[str, Any]) -> str:
        section, option = wrong["section"], wrong["option"]
        key = f"conf.{section}.{option}"
        if wrong["why"] == "value":
            value = next(v for s, o, v in self.options if (s, o) == (section, option))
            return f"{key}={value}: Keystone {self.release} does not take it: {wrong['words']}"
        missing = f"option {option} in [{section}]" if wrong["why"] == "option" else f"[{section}]"
        if wrong["near"]:
            meant = f"; did you mean conf.{'.'.join(wrong['near'])}?"
        else:
            meant = f"; [{section}] has {wrong['words']}" if wrong["words"] else ""
        return f"{key}: Keystone {self.release} has no {missing}{meant}"


def _mark(option: Option) -> str:
    """Identify a setting without its value, which may be secret."""
    return hashlib.sha256(json.dumps(option).encode()).hexdigest()
