"""A plain token service in Flask in place of Keystone, behind the same web servers."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from loadstone.lab.keystone.manage import INSIDE
from loadstone.lab.parts.application import LOADED, Application
from loadstone.lab.parts.part import Part
from loadstone.system.say import Say

MODULE = "flask_reference"


@dataclass(frozen=True, slots=True)
class FlaskReference(Part):
    """The service, without a server. Keystone's environment has the Flask that it uses."""

    python: Path
    folder: Path
    url: str
    password_file: Path
    name: str = MODULE.replace("_", "-")

    def application(self) -> Application:
        """Return the application for a web server."""
        return Application(
            python=self.python,
            folder=self.folder / "app",
            module=MODULE,
            variables=(
                ("LOADSTONE_URL", self.url),
                ("LOADSTONE_PASSWORD_FILE", str(self.password_file)),
                ("LOADSTONE_LOADED", LOADED),
            ),
            health="/v3",
        )

    def prepare(self, say: Say) -> None:  # noqa: ARG002
        """Put the module where web servers look for it."""
        (self.folder / "app").mkdir(mode=0o700, exist_ok=True)
        shutil.copy(INSIDE / f"{MODULE}.py", self.folder / "app")
