"""Keystone itself, without a server: configuration, keys, administrator."""

import base64
import json
import os
import secrets
import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path

from loadstone.lab import state
from loadstone.lab.hashing import DEFAULT_ROUNDS, FACT
from loadstone.lab.keystone import conf, manage, queens
from loadstone.lab.keystone.cache import cache_in_use
from loadstone.lab.keystone.directory import DOMAIN
from loadstone.lab.keystone.manage import (
    INSIDE,
    Bootstrap,
    CommandContext,
    FederatedUsers,
    Population,
    Preparation,
    ServiceAccount,
)
from loadstone.lab.keystone.settings import (
    OF_POPULATION,
    Allocator,
    IdentityBackend,
    LabSettings,
    Option,
    TokenProvider,
)
from loadstone.lab.parts.application import LOADED, Application
from loadstone.lab.parts.part import Facts, Part
from loadstone.lab.server_certificates import CLIENT
from loadstone.system.say import Say

APPLICATION = "keystone_app"
_WITHOUT_USERS = ("projects", "groups")  # of a population that may have no users
FEWEST_KEYS = 2  # of a new repository: one that is staged and one that encrypts


def password() -> str:
    """Return a new random password."""
    return secrets.token_urlsafe(24)


@dataclass(frozen=True, slots=True)
class Keystone(Part):
    """One Keystone, ready to be served."""

    place: CommandContext
    settings: LabSettings
    url: str
    options: tuple[Option, ...]  # options for keystone.conf from the other parts
    secret_options: tuple[Option, ...] = field(repr=False)
    admin_password: str = field(repr=False)
    services: tuple[ServiceAccount, ...] = ()  # of other services in the catalog
    federation: FederatedUsers | None = None
    name: str = "keystone"

    @property
    def _files(self) -> tuple[Path, Path]:
        return (
            self.place.folder / "keystone.conf",
            state.secret_folder(self.place.folder) / "keystone.conf",
        )

    def application(self) -> Application:
        """Return the application for a web server."""
        options = "\n".join(manage.options(*self._files))
        return Application(
            python=self.place.python,
            folder=self.place.folder / "app",
            module=APPLICATION,
            variables=(
                ("LOADSTONE_KEYSTONE_OPTIONS", options),
                ("LOADSTONE_LOADED", LOADED),
                ("PYTHONWARNINGS", "ignore"),
                *self._python_variables(),
            ),
            health="/v3",
            logs_requests=bool(self.services),
        )

    def prepare(self, say: Say) -> None:
        """Write the configuration, create missing keys, set the administrator's password."""
        folder = self.place.folder
        file, secret_file = self._files
        file.write_text(conf.render(self._options()))
        state.write_secret(secret_file, conf.render(self.secret_options))
        (folder / "policy.yaml").write_text("{}\n")
        for name in (manage.CONF_D, "policy.d", "app", "keys"):
            (folder / name).mkdir(mode=0o700, exist_ok=True)
        shutil.copy(INSIDE / f"{APPLICATION}.py", folder / "app")
        say("giving the administrator a fresh password")
        order = Preparation(
            manage.options(*self._files),
            jws=self.settings.token is TokenProvider.JWS,
            directory=DOMAIN if self.settings.identity is IdentityBackend.LDAP else None,
            bootstrap=Bootstrap(self.admin_password, f"{self.url}/"),
            password_hash=str(self._password_hash),
            services=self.services,
            federation=self.federation,
            by_certificate=CLIENT if self.settings.client_certificates.is_on else "",
            revocation_events=self.settings.revocation_events,
            expired_tokens=self.settings.expired_tokens,
            population=self._population,
        )
        self._password_hash.unlink(missing_ok=True)
        manage.carry_out(order, self.place)
        if self.settings.fernet_keys:
            set_keys(self._fernet, self.settings.fernet_keys)

    @property
    def _population(self) -> Population:
        return Population(*(getattr(self.settings, name) for name in OF_POPULATION))

    def _python_variables(self) -> tuple[tuple[str, str], ...]:
        threshold = self.settings.gc_threshold
        return (
            ("PYTHONMALLOC", str(self.settings.allocator)),
            *((("LOADSTONE_GC_THRESHOLD", str(threshold)),) if threshold else ()),
        )

    def facts(self) -> Facts:
        """Return the configuration that influences performance."""
        provider = self._chosen["token", "provider"]
        # Rotations, and a larger number at an earlier start, have left more.
        keys = len(_keys(self._fernet)) if provider == TokenProvider.FERNET else FEWEST_KEYS
        events, expired = self.settings.revocation_events, self.settings.expired_tokens
        servers = self.settings.memcached_servers
        return (
            ("token", provider),
            ("cache", cache_in_use(self.settings)),
            *((("memcached servers", str(servers)),) if servers > 1 else ()),
            (FACT, self._stored_hash()),
            ("identity", str(self.settings.identity)),
            *((("revocation events", str(events)),) if events else ()),
            *((("expired tokens", str(expired)),) if expired else ()),
            *(
                (name.replace("_", " "), str(count))
                for name, count in asdict(self._population).items()
                if count and (self.settings.users or name in _WITHOUT_USERS)
            ),
            *((("fernet keys", str(keys)),) if keys > FEWEST_KEYS else ()),
            *self._python_facts(),
        )

    def _python_facts(self) -> Facts:
        allocator, threshold = self.settings.allocator, self.settings.gc_threshold
        is_usual = allocator is Allocator.PYMALLOC
        return (
            *(() if is_usual else (("Python's allocator", str(allocator)),)),
            *((("garbage collection", f"after {threshold} objects"),) if threshold else ()),
        )

    @property
    def _fernet(self) -> Path:
        return conf.fernet_keys(self.place.folder, self.settings)

    @property
    def _password_hash(self) -> Path:
        return self.place.folder / "run" / "password-hash.json"

    def _stored_hash(self) -> str:
        try:
            algorithm, cost = json.loads(self._password_hash.read_text())
        except (FileNotFoundError, ValueError):  # release 13, which is prepared in another way
            algorithm = self._chosen.get(("identity", "password_hash_algorithm"), "bcrypt")
            usual = DEFAULT_ROUNDS if algorithm == "bcrypt" else "its usual"
            rounds = self._chosen.get(("identity", "password_hash_rounds"), usual)
            return f"{algorithm}, {rounds} rounds"
        return f"{hash_in_words(algorithm, cost)} (read from a stored credential)"

    def _options(self) -> tuple[Option, ...]:
        chosen = conf.options(self.place.folder, self.settings)
        old = queens.options(self.place.python) if self.settings.is_queens else ()
        return (*chosen, *old, *self.options, *self.settings.conf)

    @property
    def _chosen(self) -> dict[tuple[str, str], str]:
        """The value of each (section, option), of which the last one counts."""
        return {(section, option): value for section, option, value in self._options()}

    def logs(self) -> tuple[Path, ...]:
        """Return Keystone's log and that of its commands."""
        return (self.place.folder / "logs" / "keystone.log", self.place.log)


def hash_in_words(algorithm: str, cost: str) -> str:
    """Return the words for a hash in modular crypt format, $ALGORITHM$COST$..."""
    if algorithm.startswith("2"):  # 2b: bcrypt
        return f"bcrypt, {int(cost)} rounds"
    if algorithm.startswith("pbkdf2"):
        return f"{algorithm}, {cost} iterations"
    return f"{algorithm}, {cost}"


def set_keys(repository: Path, count: int) -> None:
    """Add or remove Fernet keys until there are `count`, or two; the newest one encrypts."""
    present = _keys(repository)
    newest = max(present, default=0)
    for number in range(newest + 1, newest + 1 + count - len(present)):
        path = repository / str(number)
        path.touch(mode=0o600)
        path.write_bytes(base64.urlsafe_b64encode(os.urandom(32)))
    # The first one, 0, is staged, and the last one encrypts.
    for number in present[1:-1][: max(len(present) - count, 0)]:
        (repository / str(number)).unlink()


def _keys(repository: Path) -> tuple[int, ...]:
    """Return the numbers of the keys in a repository, in order."""
    return tuple(sorted(int(path.name) for path in repository.glob("*") if path.name.isdigit()))
