"""Settings of the lab as lines of the configuration files of a service."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from loadstone.lab.keystone.cache import OPTIONS
from loadstone.lab.keystone.settings import Cache, DatabaseBackend
from loadstone.lab.keystone.web import Web
from loadstone.lab.parts.database import Flush
from loadstone.lab.parts.haproxy import KeepAlive
from loadstone.tune.space import Pairs

KEYSTONE, HAPROXY = "keystone.conf", "haproxy.cfg"
MEMCACHED = "HOST:PORT"  # in place of the address of memcached
LAB = "loadstone lab up"  # in place of a file, for what only the lab names
APPLY = "environment of --apply"  # in place of a file, for settings that a command applies


@dataclass(frozen=True, slots=True)
class ConfigLine:
    """One line of a configuration file, or one argument of a program."""

    file: str
    text: str
    section: str = ""  # of keystone.conf, uwsgi.ini and my.cnf

    @property
    def shown(self) -> str:
        """The line with its section."""
        return f"[{self.section}] {self.text}" if self.section else self.text


DATABASE = ("db-buffer-mb", "db-connections", "db-flush", "db-isolation")
PLAIN = {
    "web": ConfigLine("web server", "serve Keystone with VALUE"),
    "hash-rounds": ConfigLine(KEYSTONE, "password_hash_rounds = VALUE", "identity"),
    "token": ConfigLine(KEYSTONE, "provider = VALUE", "token"),
    "balance": ConfigLine(HAPROXY, "balance VALUE"),
    "maxconn": ConfigLine(HAPROXY, "server NAME ADDRESS check maxconn VALUE"),
    "allocator": ConfigLine("environment of the web server", "PYTHONMALLOC=VALUE"),
    "gc-threshold": ConfigLine("WSGI file of Keystone", "import gc; gc.set_threshold(VALUE)"),
}


def lines(changes: Pairs, values: Mapping[str, str]) -> tuple[ConfigLine, ...]:
    """Return the lines of all changes; `values` are all settings, which name the programs."""
    return tuple(line for name, value in changes for line in lines_of(name, value, values))


def variables(changes: Pairs) -> tuple[ConfigLine, ...]:
    """Return the variables with which the user's command applies the changes."""
    return tuple(ConfigLine(APPLY, f"{name}={value}") for name, value in changes)


def lines_of(name: str, value: str, values: Mapping[str, str]) -> tuple[ConfigLine, ...]:
    """Return the lines of one setting."""
    if name.startswith("conf."):
        _, section, option = name.split(".", 2)
        return (_keystone(section, option, value),)
    if name == "cache":
        return _cache(Cache(value))
    if name in ("workers", "threads", "listen"):
        return (_of_web_server(name, value, Web(values.get("web", Web.UWSGI))),)
    if name in DATABASE:
        return (_of_database(name, value, values.get("database", "")),)
    if name == "keep-alive":
        return (ConfigLine(HAPROXY, KeepAlive(value).option),)
    line = PLAIN.get(name, ConfigLine(LAB, f"--with {name}=VALUE"))
    return (replace(line, text=line.text.replace("VALUE", value)),)


def files(found: tuple[ConfigLine, ...]) -> tuple[tuple[str, str], ...]:
    """Return each file with its lines, under their sections."""
    texts: dict[str, list[str]] = {}
    for file in dict.fromkeys(one.file for one in found):
        own = [one for one in found if one.file == file]
        for section in dict.fromkeys(one.section for one in own):
            texts.setdefault(file, []).extend([f"[{section}]"] if section else [])
            texts[file] += [one.text for one in own if one.section == section]
    return tuple((file, "\n".join(text)) for file, text in texts.items())


def _keystone(section: str, option: str, value: str) -> ConfigLine:
    return ConfigLine(KEYSTONE, f"{option} = {value}", section)


def _of_web_server(name: str, value: str, web: Web) -> ConfigLine:
    match web:
        case Web.GUNICORN:
            return ConfigLine("gunicorn", f"--{name} {value}")
        case Web.GRANIAN:
            option = {"threads": "blocking-threads"}.get(name, name)
            return ConfigLine("granian", f"--{option} {value}")
        case Web.APACHE:
            option = {"workers": "processes"}.get(name, name)
            return ConfigLine("apache2.conf", f"WSGIDaemonProcess keystone {option}={value}")
        case _:
            option = {"workers": "processes"}.get(name, name)
            return ConfigLine("uwsgi.ini", f"{option} = {value}", "uwsgi")


def _of_database(name: str, value: str, database: str) -> ConfigLine:
    at_commit = value == Flush.COMMIT
    if database == DatabaseBackend.POSTGRES:
        texts = {
            "db-buffer-mb": f"shared_buffers = {value}MB",
            "db-connections": f"max_connections = {value}",
            "db-flush": f"synchronous_commit = {'on' if at_commit else 'off'}",
            "db-isolation": f"default_transaction_isolation = '{value.replace('-', ' ')}'",
        }
        return ConfigLine("postgresql.conf", texts[name])
    texts = {
        "db-buffer-mb": f"innodb_buffer_pool_size = {value}M",
        "db-connections": f"max_connections = {value}",
        "db-flush": f"innodb_flush_log_at_trx_commit = {1 if at_commit else 2}",
        "db-isolation": f"transaction_isolation = {value.upper()}",
    }
    return ConfigLine("my.cnf", texts[name], "mysqld")


def _cache(level: Cache) -> tuple[ConfigLine, ...]:
    servers = (("cache", "memcache_servers", MEMCACHED),) if level.is_shared else ()
    return tuple(_keystone(*option) for option in (*OPTIONS[level], *servers))
