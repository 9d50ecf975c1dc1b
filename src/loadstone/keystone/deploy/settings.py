"""The settings of a deployment, as `lab up --with KEY=VALUE` names them."""

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from enum import StrEnum
from pathlib import Path

from loadstone.errors import InvalidInput

Option = tuple[str, str, str]  # section, option, value of keystone.conf
WIDEST = 512  # workers or threads: far above any core count, far below what harms the machine
DISK, TMPFS = "disk", "tmpfs"
MOST_NODES = 16
JWS_SINCE = 15
QUEENS = 13  # the oldest that the lab starts: the last with UUID tokens, on Python 3.6
MOST_EVENTS = 1_000_000


class Web(StrEnum):
    """What serves Keystone."""

    UWSGI = "uwsgi"
    NGINX_UWSGI = "nginx-uwsgi"
    APACHE = "apache"
    GUNICORN = "gunicorn"
    GRANIAN = "granian"
    SINGLE = "single"  # one process, one thread


class Database(StrEnum):
    """What keeps Keystone's tables."""

    SQLITE = "sqlite"
    MARIADB = "mariadb"
    POSTGRES = "postgres"


class Token(StrEnum):
    """What a token is."""

    FERNET = "fernet"
    JWS = "jws"
    UUID = "uuid"  # a row in the database each; only release 13 has them


class Identity(StrEnum):
    """Where users are kept (the administrator always in SQL)."""

    SQL = "sql"
    LDAP = "ldap"


class Balance(StrEnum):
    """How haproxy shares requests out."""

    ROUNDROBIN = "roundrobin"
    LEASTCONN = "leastconn"


class Cache(StrEnum):
    """Keystone's cache across requests."""

    LOCAL = "local"  # Keystone's default: `enabled`, with a backend that keeps nothing
    OFF = "off"  # not even within one request
    MEMORY = "memory"  # each process its own; not for production
    MEMCACHED = "memcached"
    MEMCACHED_POOL = "memcached-pool"


def _cores() -> int:
    return os.cpu_count() or 1


@dataclass(frozen=True, slots=True)
class Settings:
    """What is started. Absent: Keystone's or the lab's own choice."""

    release: str = "30.0.0"
    workers: int = field(default_factory=_cores)
    threads: int = 1
    port: int | None = None
    web: Web = Web.UWSGI
    nodes: int = 1
    balance: Balance = Balance.ROUNDROBIN
    database: Database = Database.SQLITE
    storage: str = DISK  # disk, tmpfs, or a folder
    token: Token = Token.FERNET
    identity: Identity = Identity.SQL
    cache: Cache = Cache.LOCAL
    hash_rounds: int | None = None
    revocation_events: int = 0
    expired_tokens: int = 0
    conf: tuple[Option, ...] = ()

    def __post_init__(self) -> None:
        if self.web is Web.SINGLE and (self.workers, self.threads) != (1, 1):
            raise InvalidInput("web=single serves with workers=1 and threads=1 only")
        if self.token is Token.UUID and not self.is_queens:
            raise InvalidInput(
                "token=uuid needs release=13.0.2: Keystone has no UUID tokens since release 14"
            )
        if self.expired_tokens and self.token is not Token.UUID:
            raise InvalidInput("expired-tokens needs token=uuid: no others are kept in a database")
        if self.is_queens:
            self._require_what_queens_has()
        elif self.token is Token.JWS and self._major < JWS_SINCE:
            raise InvalidInput(
                f"token=jws needs release={JWS_SINCE}.0.0 or later: older ones have no JWS tokens"
            )

    @property
    def is_queens(self) -> bool:
        """Say whether it is the release that needs Python 3.6."""
        return self._major == QUEENS

    @property
    def _major(self) -> int:
        return int(self.release.partition(".")[0])

    def _require_what_queens_has(self) -> None:
        for key, (value, possible) in {
            "web": (self.web, (Web.UWSGI, Web.NGINX_UWSGI, Web.SINGLE)),
            "database": (self.database, (Database.SQLITE,)),
            "token": (self.token, (Token.FERNET, Token.UUID)),
            "cache": (self.cache, (Cache.LOCAL, Cache.OFF, Cache.MEMORY)),
            "identity": (self.identity, (Identity.SQL,)),
        }.items():
            if value not in possible:
                known = ", ".join(possible)
                raise InvalidInput(f"release={self.release} is started with {key} {known} only")

    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Give them as KEY, VALUE: what `read` makes the same settings of."""
        plain = tuple(
            (f.name.replace("_", "-"), str(getattr(self, f.name)))
            for f in fields(self)
            if f.name != "conf" and getattr(self, f.name) is not None
        )
        return plain + tuple((f"conf.{s}.{o}", value) for s, o, value in self.conf)


def read(pairs: Iterable[tuple[str, str]]) -> Settings:
    """Make settings of KEY, VALUE pairs; the last one of a key counts."""
    given = values(pairs)
    if given.get("web") is Web.SINGLE:
        given.setdefault("workers", 1)
    return Settings(**given)  # type: ignore[arg-type]  # each reader gives its field's type


def values(pairs: Iterable[tuple[str, str]]) -> dict[str, object]:
    """Read each pair alone, whether or not the settings fit together: fields of Settings."""
    found: dict[str, object] = {}
    conf: dict[tuple[str, str], str] = {}
    for key, value in pairs:
        if key.startswith("conf."):
            conf[_option(key)] = _line(key, value)
        elif key in _READERS:
            found[key.replace("-", "_")] = _READERS[key](key, value)
        else:
            known = ", ".join([*_READERS, "conf.SECTION.OPTION"])
            raise InvalidInput(f"--with {key}: no such key; the keys are {known}")
    options = tuple((section, option, value) for (section, option), value in conf.items())
    return {**found, "conf": options}


def split(word: str) -> tuple[str, str]:
    """Split KEY=VALUE."""
    key, equals, value = word.partition("=")
    if not equals or not key:
        raise InvalidInput(f"--with {word}: must be KEY=VALUE")
    return key.strip(), value.strip()


def _whole(lowest: int, highest: int) -> Callable[[str, str], int]:
    def read_whole(key: str, value: str) -> int:
        if not re.fullmatch(r"\d{1,9}", value) or not lowest <= int(value) <= highest:
            raise InvalidInput(
                f"{key} must be a whole number from {lowest} to {highest}, not {value!r}"
            )
        return int(value)

    return read_whole


def _level(levels: type[StrEnum]) -> Callable[[str, str], StrEnum]:
    def read_level(key: str, value: str) -> StrEnum:
        try:
            return levels(value)
        except ValueError:
            raise InvalidInput(f"{key} must be one of {', '.join(levels)}, not {value!r}") from None

    return read_level


def _release(key: str, value: str) -> str:
    if not re.fullmatch(r"\d+\.\d+\.\d+(\.?[a-z0-9]+)?", value):
        raise InvalidInput(f"{key} must be a version of Keystone on PyPI, as 30.0.0, not {value!r}")
    if int(value.partition(".")[0]) < QUEENS:
        raise InvalidInput(
            f"{key}={value} is too old; releases from {QUEENS} (13.0.2) on are tried"
        )
    return value


def _storage(key: str, value: str) -> str:
    if value in (DISK, TMPFS) or (value.startswith("/") and Path(value).is_dir()):
        return value
    raise InvalidInput(f"{key} must be disk, tmpfs, or the full path of a folder, not {value!r}")


def _option(key: str) -> tuple[str, str]:
    match = re.fullmatch(r"conf\.([\w-]+)\.(\w+)", key)
    if match is None:
        raise InvalidInput(f"--with {key}: must be conf.SECTION.OPTION, as conf.token.expiration")
    if (match[1], match[2]) == ("database", "connection"):
        raise InvalidInput(f"{key} is the lab's own: choose with --with database=")
    return match[1], match[2]


def _line(key: str, value: str) -> str:
    if not value.isprintable():
        raise InvalidInput(f"--with {key}: the value must be one line")
    return value


_READERS: dict[str, Callable[[str, str], object]] = {
    "release": _release,
    "workers": _whole(1, WIDEST),
    "threads": _whole(1, WIDEST),
    "port": _whole(1, 65535),
    "web": _level(Web),
    "nodes": _whole(1, MOST_NODES),
    "balance": _level(Balance),
    "database": _level(Database),
    "storage": _storage,
    "token": _level(Token),
    "identity": _level(Identity),
    "cache": _level(Cache),
    # bcrypt's own bounds.
    "hash-rounds": _whole(4, 31),
    "revocation-events": _whole(0, MOST_EVENTS),
    "expired-tokens": _whole(0, MOST_EVENTS),
}
