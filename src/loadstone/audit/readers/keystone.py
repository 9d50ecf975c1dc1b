"""Facts of Keystone: its settings with their defaults, its keys, what its tables hold."""

import math
import re
import string
from collections.abc import Mapping
from itertools import pairwise
from typing import TypeVar

from loadstone.audit.document import Document
from loadstone.audit.facts import Facts, SettingOrigin, Value, merged
from loadstone.audit.readers import schedule, sections, service

# Defaults of Keystone 30 and of the oslo libraries that it uses (keystone/conf/*.py, oslo.cache
# 4.3.0, oslo.db 18.1.1, oslo.log, oslo.messaging, osprofiler).
DEFAULTS: dict[str, Value] = {
    "DEFAULT.debug": False,
    "DEFAULT.insecure_debug": False,
    "DEFAULT.list_limit": 0,
    "DEFAULT.max_token_size": 255,
    "DEFAULT.notification_opt_out": (
        "identity.authenticate.success",
        "identity.authenticate.pending",
    ),
    "cache.enabled": True,
    "cache.backend": "dogpile.cache.null",
    "cache.expiration_time": 600,
    "cache.debug_cache_backend": False,
    "cache.memcache_servers": ("localhost:11211",),
    "cache.memcache_dead_retry": 300.0,
    "cache.memcache_socket_timeout": 1.0,
    "cache.memcache_pool_maxsize": 10,
    "cache.memcache_pool_connection_get_timeout": 10.0,
    "database.max_pool_size": 5,
    "database.max_overflow": 50,
    "database.connection_recycle_time": 3600,
    "database.connection_debug": 0,
    "database.connection_trace": False,
    "fernet_tokens.max_active_keys": 3,
    "identity.password_hash_algorithm": "bcrypt",
    "identity.password_hash_rounds": 12,
    "identity.list_limit": 0,
    "oslo_messaging_notifications.driver": "",
    "profiler.enabled": False,
    "resource.list_limit": 0,
    "revoke.expiration_buffer": 1800,
    "token.provider": "fernet",
    "token.expiration": 3600,
    "token.allow_expired_window": 172800,
    "token.cache_on_issue": True,
    "wsgi.debug_middleware": False,
}
LDAP: dict[str, Value] = {
    "use_pool": True,
    "use_auth_pool": True,
    "pool_size": 10,
    "auth_pool_size": 100,
    "page_size": 0,
    "chase_referrals": True,  # unset in Keystone: OpenLDAP's library follows them
    "user_enabled_emulation": False,
}
BAD_IF_TRUE = ("chase_referrals", "user_enabled_emulation")  # the others: the less, the worse
HAS_LDAP = ("conf.has_ldap", "conf.has_active_directory")
CACHING = (
    *("token", "catalog", "role", "resource", "assignment", "identity", "revoke"),
    *("application_credential", "credential", "domain_config", "federation"),
    *("receipt", "unified_limit"),
)
# Older names of options (oslo.config, deprecated_opts), which count where the newer is not set.
OLDER_NAMES = {
    ("resource", "list_limit"): ("assignment", "list_limit"),
    ("resource", "caching"): ("assignment", "caching"),
    ("profiler", "enabled"): ("profiler", "profiler_enabled"),
}
# Options that may be set several times.
DRIVER = ("oslo_messaging_notifications", "driver")
LISTS = (("DEFAULT", "notification_opt_out"), ("cache", "backend_argument"), DRIVER)
# Attributes that only Active Directory has, in lower case.
ACTIVE_DIRECTORY = (
    *("samaccountname", "userprincipalname", "useraccountcontrol", "objectguid", "objectsid"),
)
UNKNOWN_OPTION = re.compile(r"ERROR:\S+:(\S+/\S+) is not part of the sample config")
SYMPTOM = re.compile(r"^WARNING: (.+)$", re.MULTILINE)


def read(document: Document) -> Facts:
    """Return Keystone's facts."""
    found = sections.files(document.text("keystone"))
    if not found:
        reason = "no keystone.conf was found"
        return Facts(missing={"conf.": reason, "keystone.": reason, "fernet.": reason})
    domains, problem = _domains(found, document)
    directories = _directories(found, domains)
    origins = _origins(found) | _ldap_origins(directories)
    return merged((
        _settings(found),
        _ldap(directories, sections.problem(found) or problem),
        *(_release(document), _programs(document), _password(document)),
        _keys(document, found),
        Facts(origins=origins, roles=frozenset({"keystone"})),
    ))  # fmt: skip


T = TypeVar("T")
UNREAD = "-"  # digest of a key that the collector may not read
MEMCACHED = ("memcache", "pylibmc")  # in the names of oslo.cache's backends


def _settings(found: tuple[sections.File, ...]) -> Facts:
    problem = sections.problem(found)
    if problem is not None:
        return Facts(missing={"conf.": problem})
    known = _substituted(_newer_names(sections.settings(found, LISTS).values))
    values: dict[str, Value] = {}
    for name, default in DEFAULTS.items():
        section, _, option = name.partition(".")
        text = known.get((section, option))
        values[f"conf.{name}"] = default if text is None else sections.typed(text, default)
    renamed = known.get(("cache", "socket_timeout"))  # since oslo.cache 4.3
    if renamed is not None:
        values["conf.cache.memcache_socket_timeout"] = sections.typed(renamed, 1.0)
    values["conf.cache.name_of_socket_timeout"] = (
        "memcache_socket_timeout" if renamed is None else "socket_timeout"
    )
    drivers = known.get(DRIVER, "").splitlines() or [""]
    sending = [driver for driver in drivers if driver not in ("", "noop")]
    values["conf.oslo_messaging_notifications.driver"] = ", ".join(sending) or drivers[-1]
    arguments = tuple(known.get(("cache", "backend_argument"), "").splitlines())
    values["conf.cache.backend_argument"] = arguments
    values["conf.file"] = found[0].path
    values["conf.caching_off"] = tuple(
        section
        for section in CACHING
        if known.get((section, "caching"), "true").lower() not in sections.TRUE
    )
    urls = [argument[4:] for argument in arguments if argument.startswith("url:")]
    servers = values["conf.cache.memcache_servers"]
    values["conf.cache_servers"] = sections.typed(urls[-1], ()) if urls else servers
    values["conf.uses_memcached"] = bool(
        values["conf.cache.enabled"]
        and any(name in str(values["conf.cache.backend"]) for name in MEMCACHED)
    )
    return Facts(values)


def _newer_names(known: Mapping[tuple[str, str], T]) -> dict[tuple[str, str], T]:
    return {new: known[old] for new, old in OLDER_NAMES.items() if old in known} | dict(known)


class _Template(string.Template):
    """Text of a setting, with names of other settings."""

    idpattern = r"[_a-z][\._a-z0-9]*"  # oslo_config.cfg.ConfigOpts.Template


def _substituted(known: Mapping[tuple[str, str], str]) -> dict[tuple[str, str], str]:
    """Replace $name and ${group.name} by the values of these options, as oslo.config does."""
    defaults = {
        name: str(default) for name, default in DEFAULTS.items() if not isinstance(default, tuple)
    }
    by_name = defaults | {f"{section}.{option}": text for (section, option), text in known.items()}

    def filled(section: str, text: str) -> str:
        own = {
            name.removeprefix(f"{group}."): value
            for group in ("DEFAULT", section)
            for name, value in by_name.items()
            if name.startswith(f"{group}.")
        }
        return _Template(text.replace(r"\$", "$$")).safe_substitute(own | by_name)

    return {key: filled(key[0], text) if "$" in text else text for key, text in known.items()}


def _domains(
    found: tuple[sections.File, ...], document: Document
) -> tuple[tuple[sections.File, ...], str | None]:
    """Return the files of domains that Keystone reads, and why settings of domains are unknown."""
    known = sections.settings(found).values
    if not _is_on(known, "domain_specific_drivers_enabled"):
        return (), None
    if _is_on(known, "domain_configurations_from_database"):
        return (), "the settings of domains are in Keystone's database, where they are not read"
    domains = sections.files(document.text("domains"))
    return domains, sections.problem(domains)


def _is_on(known: Mapping[tuple[str, str], str], option: str) -> bool:
    return known.get(("identity", option), "").lower() in sections.TRUE


def _directories(
    found: tuple[sections.File, ...], domains: tuple[sections.File, ...]
) -> tuple[sections.IniSettings, ...]:
    """Return the settings of each directory: of keystone.conf, and of each domain's own file.

    Keystone reads the file of a domain alone: what it does not set has its default.
    """
    each = [sections.settings(found), *(sections.settings((file,)) for file in domains)]
    return tuple(one for one in each if "ldap" in one.values.get(("identity", "driver"), "sql"))


def _ldap(directories: tuple[sections.IniSettings, ...], problem: str | None) -> Facts:
    """Return for each option of [ldap] the worst value of all directories."""
    if problem is not None:
        return Facts(missing=dict.fromkeys(("conf.ldap.", *HAS_LDAP), problem))
    values: dict[str, Value] = dict.fromkeys(HAS_LDAP, False)
    values["conf.has_ldap"] = bool(directories)
    values["conf.has_active_directory"] = any(map(_is_active_directory, directories))
    for option, default in LDAP.items():
        worst = _worst(option, directories)
        values[f"conf.ldap.{option}"] = default if worst is None else _ldap_value(worst, option)
    return Facts(values)


def _is_active_directory(directory: sections.IniSettings) -> bool:
    return any(
        section == "ldap" and value.lower() in ACTIVE_DIRECTORY
        for (section, _), value in directory.values.items()
    )


def _ldap_value(directory: sections.IniSettings, option: str) -> Value:
    text = directory.values.get(("ldap", option))
    return LDAP[option] if text is None else sections.typed(text, LDAP[option])


def _worst(
    option: str, directories: tuple[sections.IniSettings, ...]
) -> sections.IniSettings | None:
    """Return the directory with the worst value; text that is no number counts as worst."""
    # Referrals cost time with Active Directory only.
    active = tuple(one for one in directories if _is_active_directory(one))
    of_all = active or directories if option == "chase_referrals" else directories

    def badness(directory: sections.IniSettings) -> float:
        value = _ldap_value(directory, option)
        if not isinstance(value, bool | int):
            return math.inf
        return float(value) if option in BAD_IF_TRUE else -float(value)

    return max(of_all, key=badness, default=None)


def _ldap_origins(directories: tuple[sections.IniSettings, ...]) -> dict[str, SettingOrigin]:
    origins = {}
    for option in LDAP:
        worst = _worst(option, directories)
        if worst is None:
            continue
        of_section = [place for (name, _), place in worst.origins.items() if name == "ldap"]
        origins[f"conf.ldap.{option}"] = worst.origins.get(("ldap", option), of_section[0])
    return origins


def _origins(found: tuple[sections.File, ...]) -> dict[str, SettingOrigin]:
    known = _newer_names(sections.settings(found).origins)
    origins = {f"conf.{section}.{option}": origin for (section, option), origin in known.items()}
    values = sections.settings(found).values
    if ("cache", "socket_timeout") in known:
        origins["conf.cache.memcache_socket_timeout"] = known["cache", "socket_timeout"]
    for section in CACHING:
        is_off = values.get((section, "caching"), "true").lower() not in sections.TRUE
        if is_off and (section, "caching") in known:
            origins.setdefault("conf.caching_off", known[section, "caching"])
    # A default has no line, and is written to any of the files.
    for name in DEFAULTS:
        origins.setdefault(f"conf.{name}", SettingOrigin(found[0].path, 1, is_default=True))
    return origins


def _release(document: Document) -> Facts:
    versions, reason = service.part(document, "versions")
    version = str(versions.get("keystone", ""))
    major = sections.number(version.partition(".")[0])
    if major is None:
        return Facts(missing={"keystone.": reason or "its Python has no package keystone"})
    return Facts({"keystone.version": version, "keystone.release": major})


def _programs(document: Document) -> Facts:
    values: dict[str, Value] = {}
    missing = {}
    doctor, reason = service.part(document, "doctor")
    text = str(doctor.get("text", ""))
    symptoms = tuple(SYMPTOM.findall(text))
    if reason is None and (doctor.get("code") == 0 or symptoms):
        values["keystone.symptoms"] = symptoms
    else:
        missing["keystone.symptoms"] = f"keystone-manage doctor: {reason or _last(text)}"
    validator, reason = service.part(document, "validator")
    text = str(validator.get("text", ""))
    # Registered while Keystone runs: the issuer's variable of each protocol, and the plugin of each
    # method of authentication.
    unknown = tuple(
        option
        for option in UNKNOWN_OPTION.findall(text)
        if not option.startswith("auth/") and not option.endswith("/remote_id_attribute")
    )
    is_read = validator.get("code") == 0 or UNKNOWN_OPTION.search(text) is not None
    if reason is None and is_read:
        values["keystone.unknown_options"] = unknown
    else:
        missing["keystone.unknown_options"] = f"oslo-config-validator: {reason or _last(text)}"
    return Facts(values, missing)


def _last(text: str) -> str:
    return (text.strip().splitlines() or ["it printed nothing"])[-1][:200]


def _password(document: Document) -> Facts:
    found, reason = service.part(document, "password")
    cost = found.get("verify_ms")
    if not isinstance(cost, int | float):
        return Facts(missing={"keystone.password_check_ms": reason or "not measured"})
    return Facts({"keystone.password_check_ms": float(cost)})


def _keys(document: Document, found: tuple[sections.File, ...]) -> Facts:
    lines = document.text("fernet").splitlines()
    if not lines or lines[0].startswith("!"):
        reason = lines[0][2:] if lines else "the folder of the Fernet keys was not found"
        return Facts(missing={"fernet.": reason})
    rows = [line.split() for line in lines[1:]]
    keys = [row for row in rows if len(row) == 5 and row[0].isdigit()]
    time_s = sections.number(document.pairs("meta").get("time")) or 0
    # A rotation renames key 0, which keeps its time, and writes a new key 0.
    newest = max((int(row[3]) for row in keys), default=0)
    modes = [(row[0], row[1], int(row[1], 8)) for row in keys]
    owners = _owners(rows)
    values: dict[str, Value] = {
        "fernet.folder": lines[0].split()[1] if len(lines[0].split()) > 1 else found[0].path,
        "fernet.keys": len(keys),
        "fernet.open_modes": tuple(f"{key} ({text})" for key, text, mode in modes if mode & 0o077),
        "fernet.public": tuple(key for key, _, mode in modes if mode & 0o007),
    }
    digests = [(row[0], row[4]) for row in keys if row[0] != "0"]
    if all(digest != UNREAD for _, digest in digests):
        values["fernet.digest"] = " ".join(sorted(f"{key}:{digest}" for key, digest in digests))
    if owners:
        values["fernet.foreign"] = tuple(
            f"{row[0]} (uid {row[2]})" for row in keys if row[2] not in owners
        )
    periods = [schedule.longest_gap_s(line) for line in document.text("rotation").splitlines()]
    known = [period for period in periods if period is not None]
    if known:
        values["fernet.job_period_s"] = min(known)
    if newest and time_s:
        values["fernet.age_s"] = max(0, int(time_s) - newest)
    times = sorted(int(row[3]) for row in keys if row[0] != "0")
    gaps = [later - earlier for earlier, later in pairwise(times)]
    rotations = [gap for gap in gaps if gap > 60]  # keys of one set-up are seconds apart
    if rotations:
        values["fernet.rotation_s"] = sorted(rotations)[len(rotations) // 2]
    # keystone-manage fernet_setup makes the keys 0 and 1, and each rotation a new highest number.
    values["fernet.is_rotated"] = bool(rotations) or any(int(row[0]) > 1 for row in keys)
    missing = {
        "fernet.rotation_s": "the times of the keys show no period",
        "fernet.digest": "the collector may not read the keys",
    }
    return Facts(values, missing)


def _owners(rows: list[list[str]]) -> frozenset[str]:
    """Return the users that run Keystone; root counts only where no other does."""
    users = frozenset(row[1] for row in rows if len(row) == 2 and row[0] == "user")
    return users - {"0"} or users
