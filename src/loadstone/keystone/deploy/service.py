"""Keystone itself, without a server: configuration, keys, the administrator."""

import secrets
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from loadstone.keystone.deploy import conf, manage, queens
from loadstone.keystone.deploy.directory import DOMAIN
from loadstone.keystone.deploy.manage import INSIDE, Bootstrap, Order, Place
from loadstone.keystone.deploy.settings import Identity, Option, Settings, Token
from loadstone.lab import state
from loadstone.lab.application import LOADED, Application
from loadstone.lab.part import Facts, Part, Say

APPLICATION = "keystone_app"
DEFAULT_ROUNDS = 12  # [identity] password_hash_rounds unless it is set: keystone/conf/identity.py


def password() -> str:
    """Make a password that nobody has seen."""
    return secrets.token_urlsafe(24)


@dataclass(frozen=True, slots=True)
class Keystone(Part):
    """One Keystone, ready to be served."""

    place: Place
    settings: Settings
    url: str
    options: tuple[Option, ...]  # what the other parts make of its configuration
    secret_options: tuple[Option, ...] = field(repr=False)
    admin_password: str = field(repr=False)
    name: str = "keystone"

    @property
    def _files(self) -> tuple[Path, Path]:
        return (
            self.place.folder / "keystone.conf",
            state.secret_folder(self.place.folder) / "keystone.conf",
        )

    def application(self) -> Application:
        """Give what a web server serves."""
        options = "\n".join(manage.options(*self._files))
        return Application(
            python=self.place.python,
            folder=self.place.folder / "app",
            module=APPLICATION,
            variables=(
                ("LOADSTONE_KEYSTONE_OPTIONS", options),
                ("LOADSTONE_LOADED", LOADED),
                ("PYTHONWARNINGS", "ignore"),
            ),
            health="/v3",
        )

    def prepare(self, say: Say) -> None:
        """Write the configuration, make missing keys, give the administrator a password."""
        folder = self.place.folder
        file, secret_file = self._files
        file.write_text(conf.render(self._options()))
        state.write_secret(secret_file, conf.render(self.secret_options))
        (folder / "policy.yaml").write_text("{}\n")
        for name in ("policy.d", "app", "keys"):
            (folder / name).mkdir(mode=0o700, exist_ok=True)
        shutil.copy(INSIDE / f"{APPLICATION}.py", folder / "app")
        say("giving the administrator a fresh password")
        order = Order(
            manage.options(*self._files),
            keys=True,
            jws=self.settings.token is Token.JWS,
            directory=DOMAIN if self.settings.identity is Identity.LDAP else None,
            bootstrap=Bootstrap(self.admin_password, f"{self.url}/"),
            revocation_events=self.settings.revocation_events,
            expired_tokens=self.settings.expired_tokens,
        )
        manage.carry_out(order, self.place)

    def facts(self) -> Facts:
        """What of its configuration weighs on its speed."""
        chosen = {(s, o): v for s, o, v in self._options()}
        rounds = chosen.get(("identity", "password_hash_rounds"), str(DEFAULT_ROUNDS))
        provider = chosen["token", "provider"]
        events, expired = self.settings.revocation_events, self.settings.expired_tokens
        return (
            ("token", provider),
            ("cache", str(self.settings.cache)),
            ("hash rounds", rounds),
            ("identity", str(self.settings.identity)),
            *((("revocation events", str(events)),) if events else ()),
            *((("expired tokens", str(expired)),) if expired else ()),
        )

    def _options(self) -> tuple[Option, ...]:
        given = conf.options(self.place.folder, self.settings)
        old = queens.options(self.place.python) if self.settings.is_queens else ()
        return (*given, *old, *self.options, *self.settings.conf)

    def logs(self) -> tuple[Path, ...]:
        """Its own log, and what its commands said."""
        return (self.place.folder / "logs" / "keystone.log", self.place.log)
