"""Settings of a deployment, as named by `lab up --with KEY=VALUE`."""

import ipaddress
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from enum import StrEnum

from loadstone.errors import InvalidInput
from loadstone.lab.keystone.manage import Population
from loadstone.lab.keystone.release import OLDEST, VERSION, Release, restored
from loadstone.lab.keystone.release import read as read_release
from loadstone.lab.keystone.web import Web
from loadstone.lab.parts.database import BUFFER_MB, CONNECTIONS, Flush, Isolation
from loadstone.lab.parts.haproxy import KeepAlive
from loadstone.lab.ports import HOST
from loadstone.lab.provider.credentials import USERS
from loadstone.lab.provider.java import LEAST as LEAST_JAVA
from loadstone.lab.provider.password_hash import Algorithm
from loadstone.lab.state import DeploymentState

Option = tuple[str, str, str]  # section, option, value of keystone.conf
# Limit on workers and threads: far above any core count, far below what harms the machine.
WIDEST = 512
DISK, TMPFS = "disk", "tmpfs"
# Address settings, which a second deployment with the same settings does not copy.
OF_ITS_OWN = ("port", "address")
_OF_SERVER = ("db_connections", "db_buffer_mb", "db_flush", "db_isolation")
_OF_DATABASE = ("database", "storage", *_OF_SERVER)
_OF_UWSGI = (Web.UWSGI, Web.NGINX_UWSGI)
OF_POPULATION = tuple(one.name for one in fields(Population))
# Settings that say nothing about the reference service.
OF_KEYSTONE = (
    *_OF_DATABASE,
    *("token", "identity", "federation", "client_certificates", "cache"),
    "memcached_servers",
    "hash_rounds",
    "fernet_keys",
    *("revocation_events", "expired_tokens", "compute", "conf"),
    *("allocator", "gc_threshold"),
    *OF_POPULATION,
)
# YAML reads on and off as true and false.
ALSO_CALLED = {"postgresql": "postgres", "true": "on", "false": "off"}
MOST_NODES = 16
MOST_MEMCACHED = 16
JWS_SINCE = 15
QUEENS = OLDEST  # the last with UUID tokens, on Python 3.6
MOST_EVENTS = 1_000_000
MOST_KEYS = 1000
MOST_USERS = 1_000_000
MOST_ROLES_PER_USER = 100
MOST_PASSWORDS = 10_000  # each takes a hash: 0.3 s with Keystone's default


class Service(StrEnum):
    """The service that a lab runs."""

    KEYSTONE = "keystone"
    OIDC_PROVIDER = "oidc-provider"  # node oidc-provider
    KEYCLOAK = "keycloak"
    HYDRA = "hydra"  # Ory Hydra, with a login page of the lab
    FLASK_REFERENCE = "flask-reference"  # a plain token service, as a control

    @property
    def is_provider(self) -> bool:
        """Whether it is a provider of OpenID Connect."""
        return self in OF_PROVIDERS


class DatabaseBackend(StrEnum):
    """The database server."""

    SQLITE = "sqlite"
    MARIADB = "mariadb"
    POSTGRES = "postgres"
    H2 = "h2"  # Keycloak's own file


# They run in the process that uses them, so that there is no server to set up.
_WITHOUT_SERVER = (DatabaseBackend.SQLITE, DatabaseBackend.H2)
OF_HYDRA = (DatabaseBackend.SQLITE, DatabaseBackend.POSTGRES)  # SQLite: in memory
# Settings that only providers have.
OF_PROVIDERS: dict[Service, tuple[str, ...]] = {
    Service.OIDC_PROVIDER: ("scrypt_n",),
    Service.HYDRA: ("scrypt_n",),
    Service.KEYCLOAK: (
        *("java", "heap_mb", "java_options", "db_pool"),
        *("hash", "hash_iterations", "realm_users"),
    ),
}
# Settings that this provider shares with Keystone.
_ALSO_OF: dict[Service, tuple[str, ...]] = {
    Service.OIDC_PROVIDER: ("port",),
    Service.HYDRA: ("port", *_OF_DATABASE),
    Service.KEYCLOAK: ("port", *_OF_DATABASE),
}
# Settings of a Keystone in Rust: what Python has made, and what both read.
_OF_RUST = (
    *("release", "implementation", "workers", "port", "address"),
    *_OF_DATABASE,
    *("hash_rounds", "fernet_keys", "revocation_events"),
    *OF_POPULATION,
)


class TokenProvider(StrEnum):
    """The token provider."""

    FERNET = "fernet"
    JWS = "jws"
    UUID = "uuid"  # one database row per token; only in release 13


class IdentityBackend(StrEnum):
    """Where users are kept (the administrator is always in SQL)."""

    SQL = "sql"
    LDAP = "ldap"


class FederationProvider(StrEnum):
    """The identity provider whose users may log in."""

    NONE = "none"
    OIDC_PROVIDER = "oidc-provider"  # node oidc-provider, behind Apache's mod_auth_openidc


class Implementation(StrEnum):
    """Which Keystone serves the database and keys."""

    PYTHON = "python"
    RUST = "rust"  # openstack-experimental/keystone


class Balance(StrEnum):
    """How haproxy distributes requests."""

    ROUNDROBIN = "roundrobin"
    LEASTCONN = "leastconn"


class Allocator(StrEnum):
    """Python's memory allocator (PYTHONMALLOC)."""

    PYMALLOC = "pymalloc"  # its own allocator: the default
    MALLOC = "malloc"  # the C library's


class Compute(StrEnum):
    """The compute cloud beside Keystone."""

    NONE = "none"
    NOVA = "nova"  # Nova in one process
    NOVA_SPLIT = "nova-split"  # a process for each of its services, with RabbitMQ


class MiddlewareCache(StrEnum):
    """Token cache of keystonemiddleware in the services of the compute cloud."""

    LOCAL = "local"  # keystonemiddleware's default: each process its own, for 300 s
    OFF = "off"
    MEMCACHED = "memcached"  # shared


class Switch(StrEnum):
    """A setting that is on or off."""

    ON = "on"
    OFF = "off"

    @property
    def is_on(self) -> bool:
        """Whether it is on."""
        return self is Switch.ON


class Cache(StrEnum):
    """Keystone's cache."""

    LOCAL = "local"  # Keystone's default: `enabled`, with a backend that stores nothing
    OFF = "off"  # not even within one request
    MEMORY = "memory"  # separate in each process; not for production
    MEMCACHED = "memcached"
    MEMCACHED_POOL = "memcached-pool"

    @property
    def is_shared(self) -> bool:
        """Whether it is in servers of its own."""
        return self in (Cache.MEMCACHED, Cache.MEMCACHED_POOL)


def _cores() -> int:
    return os.cpu_count() or 1


@dataclass(frozen=True, slots=True)
class LabSettings:
    """Settings of a deployment. Absent: the default of Keystone or of the lab."""

    release: str = "30.0.0"
    implementation: Implementation = Implementation.PYTHON
    workers: int = field(default_factory=_cores)
    threads: int = 1
    port: int | None = None
    address: str | None = None  # that clients use; None: loopback
    web: Web = Web.UWSGI
    nodes: int = 1
    balance: Balance = Balance.ROUNDROBIN
    maxconn: int | None = None  # requests at once that haproxy sends to each node
    keep_alive: KeepAlive = KeepAlive.BOTH  # of haproxy
    tls: Switch = Switch.OFF  # between clients and haproxy, or Apache
    client_certificates: Switch = Switch.OFF  # Apache asks clients for one
    database: DatabaseBackend = DatabaseBackend.SQLITE
    storage: str = DISK  # disk, tmpfs or a folder
    token: TokenProvider = TokenProvider.FERNET
    identity: IdentityBackend = IdentityBackend.SQL
    federation: FederationProvider = FederationProvider.NONE
    cache: Cache = Cache.LOCAL
    memcached_servers: int = 1  # keys are distributed among them
    hash_rounds: int | None = None
    listen: int | None = None  # length of uWSGI's listen queue
    db_connections: int = CONNECTIONS
    db_buffer_mb: int = BUFFER_MB
    db_flush: Flush = Flush.COMMIT
    db_isolation: Isolation | None = None  # None: the server's default
    allocator: Allocator = Allocator.PYMALLOC
    gc_threshold: int | None = None  # objects until Python collects garbage; None: its default
    fernet_keys: int = 0  # 0: as many as there are
    revocation_events: int = 0
    expired_tokens: int = 0
    users: int = 0  # population: users, and so on, besides those that the lab needs
    projects: int = 0
    groups: int = 0
    roles_per_user: int = 0
    unique_passwords: int = 1  # different hashes among the population
    compute: Compute = Compute.NONE
    middleware_cache: MiddlewareCache = MiddlewareCache.LOCAL
    service_tokens: Switch = Switch.ON  # Nova sends its own token with the user's
    conf: tuple[Option, ...] = ()
    service: Service = Service.KEYSTONE
    scrypt_n: int = 0  # cost of a password check; 0: compared as it is
    java: int | None = None  # release; None: the newest that is installed
    heap_mb: int = 512  # the most, Keycloak's default
    java_options: str = ""
    db_pool: int = 100  # connections, Keycloak's default
    hash: Algorithm | None = None
    hash_iterations: int | None = None
    realm_users: int = USERS  # who can log in
    # What `release` names, as it was when it was read: a patch or a branch may change later.
    found: Release | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.found is None or self.found.text != self.release:
            object.__setattr__(self, "found", read_release(self.release))
        self._require_what_service_has()
        if self.web is Web.SINGLE and (self.workers, self.threads) != (1, 1):
            raise InvalidInput("web=single serves with workers=1 and threads=1 only")
        self._require_what_the_reference_has()
        self._require_what_settings_of_servers_need()
        self._require_what_settings_of_keystone_need()
        self._require_what_rust_has()
        if self.is_queens:
            self._require_what_queens_has()

    @property
    def source(self) -> Release:
        """The Keystone to install."""
        if self.found is None:
            raise AssertionError("it is read when the settings are made")
        return self.found

    @property
    def host(self) -> str:
        """Address of the Identity v3 endpoint."""
        return self.address or HOST

    @property
    def is_queens(self) -> bool:
        """Return whether this is the release that needs Python 3.6."""
        return self.source.major == QUEENS

    def _require_what_service_has(self) -> None:
        own = OF_PROVIDERS.get(self.service, ())
        of_providers = (name for names in OF_PROVIDERS.values() for name in names)
        for name in self._changed(name for name in of_providers if name not in own):
            has = [f"service={one}" for one, names in OF_PROVIDERS.items() if name in names]
            raise InvalidInput(f"{_key(name)} needs {' or '.join(has)}: no other has it")
        if not self.service.is_provider:
            if self.database is DatabaseBackend.H2:
                raise InvalidInput("database=h2 needs service=keycloak: it is Keycloak's own")
            return
        self._require_only_its_own()
        if self.scrypt_n in (1, 2) or self.scrypt_n & (self.scrypt_n - 1):
            raise InvalidInput(f"scrypt-n must be 0 or a power of 2 from 4, not {self.scrypt_n}")
        if self.service is Service.KEYCLOAK and self.database is DatabaseBackend.SQLITE:
            raise InvalidInput("service=keycloak has database h2, postgres, mariadb, not sqlite")
        if self.service is Service.HYDRA and self.database not in OF_HYDRA:
            raise InvalidInput(
                f"service=hydra has database {', '.join(OF_HYDRA)}, not {self.database}"
            )

    def _require_only_its_own(self) -> None:
        if self.address is not None:
            raise InvalidInput(
                f"service={self.service} is on {HOST} alone, without address: its issuer's URL "
                "has that address"
            )
        own = ("service", *_ALSO_OF[self.service], *OF_PROVIDERS[self.service])
        for name in self._changed(name for name in _usual() if name not in own):
            has = ", ".join(map(_key, own))
            raise InvalidInput(
                f"{_key(name)} is a setting of Keystone: service={self.service} has {has}"
            )

    def _changed(self, names: Iterable[str]) -> list[str]:
        """Return those of the fields that do not have their default."""
        usual = _usual()
        return [name for name in names if getattr(self, name) != usual[name]]

    def _refuse_unless(self, is_possible: bool, why_not: str, *names: str) -> None:
        """Raise InvalidInput if one of these settings does not have its default."""
        for name in () if is_possible else self._changed(names):
            raise InvalidInput(f"{_key(name)}={getattr(self, name)} {why_not}")

    def _require_what_settings_of_servers_need(self) -> None:
        refuse_unless = self._refuse_unless
        has_apache, has_balancer = self.web is Web.APACHE, self.nodes > 1
        why_not = "needs nodes=2 or more: one node has no haproxy before it"
        refuse_unless(has_balancer, why_not, "maxconn", "balance", "keep_alive")
        why_not = "needs web=apache: mod_auth_openidc is its module"
        refuse_unless(has_apache, why_not, "federation")
        why_not = "needs web=uwsgi or web=nginx-uwsgi: it is uWSGI's queue"
        refuse_unless(self.web in _OF_UWSGI, why_not, "listen")
        why_not = "needs cache=memcached or cache=memcached-pool"
        refuse_unless(self.cache.is_shared, why_not, "memcached_servers")
        why_not = "needs nodes=2 or more, where haproxy ends it, or web=apache"
        refuse_unless(has_apache or has_balancer, why_not, "tls")
        why_not = (
            "needs tls=on, web=apache and nodes=1: Apache tells Keystone whose certificate it was"
        )
        can_ask = self.tls.is_on and has_apache and not has_balancer
        refuse_unless(can_ask, why_not, "client_certificates")
        why_not = (
            f"is on {HOST} alone, without address: clients elsewhere have no copy of the lab's CA"
        )
        refuse_unless(self.address is None, why_not, "tls")
        is_hydra, has_server = self.service is Service.HYDRA, self.database not in _WITHOUT_SERVER
        why_not = "needs database=postgres: with database=sqlite, Hydra keeps everything in memory"
        refuse_unless(has_server or not is_hydra, why_not, "storage")
        servers = "postgres" if is_hydra else "mariadb or postgres"
        why_not = f"needs database={servers}: {self.database} has no server"
        refuse_unless(has_server, why_not, *_OF_SERVER)

    def _require_what_settings_of_keystone_need(self) -> None:
        refuse_unless, token = self._refuse_unless, self.token
        is_uuid = token is TokenProvider.UUID
        why_not = "needs release=13.0.2: Keystone has no UUID tokens since release 14"
        refuse_unless(self.is_queens or not is_uuid, why_not, "token")
        why_not = f"needs release={JWS_SINCE}.0.0 or later: older ones have no JWS tokens"
        has_jws = self.is_queens or self.source.major >= JWS_SINCE
        refuse_unless(has_jws or token is not TokenProvider.JWS, why_not, "token")
        why_not = "needs token=uuid: no others are kept in a database"
        refuse_unless(is_uuid, why_not, "expired_tokens")
        why_not = f"needs token=fernet: {token} tokens have no such keys"
        refuse_unless(token is TokenProvider.FERNET, why_not, "fernet_keys")
        why_not = "needs as many projects or more: each role of a user is in another project"
        refuse_unless(self.roles_per_user <= self.projects, why_not, "roles_per_user")
        why_not = "needs users=1 or more: they are roles of the population's users"
        refuse_unless(self.users > 0, why_not, "roles_per_user")
        passwords = self.unique_passwords
        why_not = f"needs users={passwords} or more: each user of the population has one password"
        refuse_unless(passwords <= self.users, why_not, "unique_passwords")
        why_not = "needs compute=nova: it is a setting of Nova's cloud"
        has_cloud = self.compute is not Compute.NONE
        refuse_unless(has_cloud, why_not, "middleware_cache", "service_tokens")
        why_not = "needs tls=off: its services do not know the lab's CA"
        refuse_unless(not self.tls.is_on, why_not, "compute")
        why_not = (
            "needs web=uwsgi or web=nginx-uwsgi: uWSGI's log tells which service asks Keystone for "
            "what"
        )
        refuse_unless(self.web in _OF_UWSGI, why_not, "compute")
        why_not = f"is on {HOST} alone, without address: its catalog names services there"
        refuse_unless(self.address is None, why_not, "compute")

    def _require_what_the_reference_has(self) -> None:
        if self.service is not Service.FLASK_REFERENCE:
            return
        if self.is_queens:
            raise InvalidInput(
                f"service={self.service} needs a later release: {self.release} has no Flask"
            )
        changed = self._changed(OF_KEYSTONE)
        if changed:
            raise InvalidInput(
                f"service={self.service} has no {', '.join(map(_key, changed))}: these are "
                "settings of Keystone"
            )

    def _require_what_rust_has(self) -> None:
        """Refuse settings of Python's web servers and cache, and what Rust's Keystone lacks."""
        if self.implementation is not Implementation.RUST:
            return
        others = self._changed(name for name in _usual() if name not in _OF_RUST)
        if others:
            raise InvalidInput(
                f"implementation=rust has no {', '.join(map(_key, others))}: its settings are "
                f"{', '.join(map(_key, _OF_RUST))}"
            )
        if self.workers != 1:
            raise InvalidInput("implementation=rust is one process with a thread for each core")
        if self.database is DatabaseBackend.POSTGRES:
            raise InvalidInput("implementation=rust has database sqlite, mariadb")

    def _require_what_queens_has(self) -> None:
        for key, (value, possible) in {
            "implementation": (self.implementation, (Implementation.PYTHON,)),
            "web": (self.web, (*_OF_UWSGI, Web.SINGLE)),
            "database": (self.database, (DatabaseBackend.SQLITE,)),
            "token": (self.token, (TokenProvider.FERNET, TokenProvider.UUID)),
            "cache": (self.cache, (Cache.LOCAL, Cache.OFF, Cache.MEMORY)),
            "identity": (self.identity, (IdentityBackend.SQL,)),
            "compute": (self.compute, (Compute.NONE,)),
        }.items():
            if value not in possible:
                known = ", ".join(possible)
                raise InvalidInput(f"release={self.release} is started with {key} {known} only")
        if self.users or self.projects or self.groups:
            raise InvalidInput(f"release={self.release} is started without users, projects, groups")

    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Return the settings as KEY, VALUE pairs, which `read` accepts."""
        plain = tuple(
            (_key(name), str(value))
            for name in self._names()
            if (value := getattr(self, name)) not in (None, "")
        )
        return plain + tuple((f"conf.{s}.{o}", value) for s, o, value in self.conf)

    def _names(self) -> tuple[str, ...]:
        """Return the fields that this service has, besides `conf`."""
        if self.service.is_provider:
            return ("workers", *_ALSO_OF[self.service], "service", *OF_PROVIDERS[self.service])
        if self.implementation is Implementation.RUST:
            return _OF_RUST
        others = {"conf", "service"}.union(*OF_PROVIDERS.values())
        names = [one.name for one in fields(self) if one.compare and one.name not in others]
        if self.service is Service.FLASK_REFERENCE:
            return (*(name for name in names if name not in OF_KEYSTONE), "service")
        return tuple(names)


def read(pairs: Iterable[tuple[str, str]]) -> LabSettings:
    """Return settings from KEY, VALUE pairs; the last value of a key counts."""
    return _made(values(pairs))


def require_possible(pairs: Iterable[tuple[str, str]]) -> None:
    """Refuse settings that no host can have; which folders and files there are is left out."""
    checked = []
    has_version = True
    for key, value in pairs:
        version = value.partition("+")[0]  # of a release with a patch
        if key == "release":
            has_version = VERSION.fullmatch(version) is not None
            if has_version:
                checked.append((key, version))
        elif not (key == "storage" and value.startswith("/")):
            checked.append((key, value))
    if has_version:
        read(checked)
    else:  # which settings go together depends on the version of those sources
        values(checked)


def started(known: DeploymentState, given: tuple[tuple[str, str], ...] = ()) -> LabSettings:
    """Return the settings of a deployment, with the release as it was when it was started.

    Settings that are `given` replace those of the deployment.
    """
    pairs = (*known.settings, *given)
    # A provider has no setting for it.
    if "release" not in dict(known.settings) or "release" in dict(given):
        return read(pairs)
    release = restored(known.release)
    others = ((key, value) for key, value in pairs if key != "release")
    return _made({**values(others), "release": release.text, "found": release})


def _made(chosen: dict[str, object]) -> LabSettings:
    service = chosen.get("service", Service.KEYSTONE)
    is_rust = chosen.get("implementation") is Implementation.RUST  # one process
    if chosen.get("web") is Web.SINGLE or service in OF_PROVIDERS or is_rust:
        chosen.setdefault("workers", 1)
    if service is Service.KEYCLOAK:
        chosen.setdefault("database", DatabaseBackend.H2)
    if chosen.get("address") == HOST:
        del chosen["address"]
    return LabSettings(**chosen)  # type: ignore[arg-type]  # each reader gives its field's type


def _key(name: str) -> str:
    """Return the KEY of a field."""
    return name.replace("_", "-")


def _usual() -> dict[str, object]:
    """Return the defaults of a provider's settings: one process serves."""
    found = {one.name: one.default for one in fields(LabSettings) if one.compare}
    return {**found, "workers": 1}


def values(pairs: Iterable[tuple[str, str]]) -> dict[str, object]:
    """Parse each pair on its own, without checking combinations; return fields of the settings."""
    found: dict[str, object] = {}
    conf: dict[tuple[str, str], str] = {}
    for key, value in pairs:
        if key.startswith("conf."):
            conf[_option(key)] = _line(key, value)
        elif key in _READERS:
            found[key.replace("-", "_")] = _READERS[key](key, value)
        else:
            raise InvalidInput(f"the lab has no setting {key!r}; {_nearest(key)}")
    options = tuple((section, option, value) for (section, option), value in conf.items())
    return {**found, "conf": options}


def _nearest(key: str) -> str:
    near = get_close_matches(key, _READERS, 1)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"its settings are {', '.join([*_READERS, 'conf.SECTION.OPTION'])}"


def split(word: str) -> tuple[str, str]:
    """Split KEY=VALUE."""
    key, equals, value = word.partition("=")
    if not equals or not key:
        raise InvalidInput(f"--with {word}: must be KEY=VALUE")
    return key.strip(), value.strip()


def read_population(spec: str) -> tuple[tuple[str, str], ...]:
    """Return the settings that "users=1000,projects=50" stands for."""
    pairs = []
    for word in spec.split(","):
        key, _, value = (part.strip() for part in word.partition("="))
        known = tuple(map(_key, OF_POPULATION))
        if key not in known or not value:
            raise InvalidInput(
                f"--population {word}: must be KEY=N; the keys are {', '.join(known)}"
            )
        pairs.append((key, value))
    return tuple(pairs)


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
            return levels(ALSO_CALLED.get(value, value))
        except ValueError:
            raise InvalidInput(f"{key} must be one of {', '.join(levels)}, not {value!r}") from None

    return read_level


def _release(key: str, value: str) -> str:  # noqa: ARG001 (a reader's face)
    return read_release(value).absolute  # it is read again later, in other folders


def _address(key: str, value: str) -> str:
    """Parse a private address: a lab must not be reachable outside the test network."""
    try:
        address = ipaddress.IPv4Address(value)
    except ValueError:
        address = None
    if address is None or not address.is_private or address.is_unspecified:
        raise InvalidInput(
            f"{key} must be a private IPv4 address of the machine, such as 10.0.0.5, not {value!r}"
        )
    return value


def _storage(key: str, value: str) -> str:
    if value in (DISK, TMPFS) or (value.startswith("/") and os.path.isdir(value)):
        return value
    raise InvalidInput(f"{key} must be disk, tmpfs, or the full path of a folder, not {value!r}")


def _option(key: str) -> tuple[str, str]:
    match = re.fullmatch(r"conf\.([\w-]+)\.(\w+)", key)
    if match is None:
        raise InvalidInput(f"{key}: must be conf.SECTION.OPTION, as conf.token.expiration")
    if (match[1], match[2]) == ("database", "connection"):
        raise InvalidInput(f"{key} is the lab's own: choose with --with database=")
    return match[1], match[2]


def _line(key: str, value: str) -> str:
    if not value.isprintable():
        raise InvalidInput(f"{key}: the value must be one line")
    return value


def _java_options(key: str, value: str) -> str:
    # They follow the lab's own options, and of two that set the heap the JVM takes the last one.
    if re.search(r"(^|\s)-(Xmx|XX:MaxHeapSize)", value):
        raise InvalidInput(f"{key}: the heap is the lab's own: choose with --with heap-mb=")
    return _line(key, value)


_READERS: dict[str, Callable[[str, str], object]] = {
    "release": _release,
    "implementation": _level(Implementation),
    "workers": _whole(1, WIDEST),
    "threads": _whole(1, WIDEST),
    "port": _whole(1, 65535),
    "address": _address,
    "web": _level(Web),
    "nodes": _whole(1, MOST_NODES),
    "balance": _level(Balance),
    "maxconn": _whole(1, 4096),
    "keep-alive": _level(KeepAlive),
    "tls": _level(Switch),
    "client-certificates": _level(Switch),
    "database": _level(DatabaseBackend),
    "storage": _storage,
    "token": _level(TokenProvider),
    "identity": _level(IdentityBackend),
    "federation": _level(FederationProvider),
    "cache": _level(Cache),
    "memcached-servers": _whole(1, MOST_MEMCACHED),
    # bcrypt's limits.
    "hash-rounds": _whole(4, 31),
    "listen": _whole(1, 65535),
    "db-connections": _whole(10, 10_000),
    # MariaDB's least is 5, PostgreSQL's less.
    "db-buffer-mb": _whole(5, 1_000_000),
    "db-flush": _level(Flush),
    "db-isolation": _level(Isolation),
    "allocator": _level(Allocator),
    "gc-threshold": _whole(1, 1_000_000),
    "fernet-keys": _whole(0, MOST_KEYS),
    "revocation-events": _whole(0, MOST_EVENTS),
    "expired-tokens": _whole(0, MOST_EVENTS),
    "users": _whole(0, MOST_USERS),
    "projects": _whole(0, MOST_USERS),
    "groups": _whole(0, MOST_USERS),
    "roles-per-user": _whole(0, MOST_ROLES_PER_USER),
    "unique-passwords": _whole(1, MOST_PASSWORDS),
    "compute": _level(Compute),
    "middleware-cache": _level(MiddlewareCache),
    "service-tokens": _level(Switch),
    "service": _level(Service),
    "scrypt-n": _whole(0, 1 << 18),  # 256 MB and about a second for each password
    "java": _whole(LEAST_JAVA, 99),
    "heap-mb": _whole(128, 1_000_000),
    "java-options": _java_options,
    "db-pool": _whole(2, 10_000),  # Keycloak does not start with 1
    "hash": _level(Algorithm),
    "hash-iterations": _whole(1, 10_000_000),
    "realm-users": _whole(1, 5000),
}
