"""Keystone itself, without a server: configuration, keys, the administrator."""

import secrets
import shutil
import signal
from dataclasses import dataclass, field
from pathlib import Path

from loadstone.keystone.deploy import conf, manage
from loadstone.keystone.deploy.manage import INSIDE, Bootstrap, Order, Place
from loadstone.keystone.deploy.settings import Option, Settings
from loadstone.lab.part import Application, Facts, Say
from loadstone.lab.processes import Process

APPLICATION = "keystone_app"
DEFAULT_ROUNDS = 12  # [identity] password_hash_rounds unless it is set: keystone/conf/identity.py


def password() -> str:
    """Make a password that nobody has seen."""
    return secrets.token_urlsafe(24)


@dataclass(frozen=True, slots=True)
class Keystone:
    """One Keystone, ready to be served."""

    place: Place
    settings: Settings
    url: str
    options: tuple[Option, ...]
    admin_password: str = field(repr=False)
    name: str = "keystone"
    ask: signal.Signals = signal.SIGTERM

    @property
    def _conf(self) -> Path:
        return self.place.folder / "keystone.conf"

    def application(self) -> Application:
        """Give what a web server serves."""
        options = "\n".join(manage.options(self._conf))
        return Application(
            python=self.place.python,
            folder=self.place.folder / "app",
            module=APPLICATION,
            variables=(("LOADSTONE_KEYSTONE_OPTIONS", options), ("PYTHONWARNINGS", "ignore")),
            health="/v3",
        )

    def prepare(self, say: Say) -> None:
        """Write the configuration, make missing keys, give the administrator a password."""
        folder = self.place.folder
        self._conf.write_text(conf.render((*conf.options(folder, self.settings), *self.options)))
        (folder / "policy.yaml").write_text("{}\n")
        for name in ("policy.d", "app", "logs", "keys"):
            (folder / name).mkdir(mode=0o700, exist_ok=True)
        shutil.copy(INSIDE / f"{APPLICATION}.py", folder / "app")
        say("giving the administrator a fresh password")
        order = Order(
            manage.options(self._conf),
            keys=True,
            bootstrap=Bootstrap(self.admin_password, f"{self.url}/"),
        )
        manage.carry_out(order, self.place)

    def start(self) -> Process | None:
        """No process: a web server serves it."""
        return None

    def healthy(self) -> bool:
        """Prepared is healthy."""
        return True

    def facts(self) -> Facts:
        """What of its configuration weighs on its speed."""
        chosen = {(s, o): v for s, o, v in conf.options(self.place.folder, self.settings)}
        rounds = chosen.get(("identity", "password_hash_rounds"), str(DEFAULT_ROUNDS))
        provider = chosen.get(("token", "provider"), "fernet")
        return (("token", provider), ("cache", str(self.settings.cache)), ("hash rounds", rounds))

    def logs(self) -> tuple[Path, ...]:
        """Its own log, and what its commands said."""
        return (self.place.folder / "logs" / "keystone.log", self.place.log)
