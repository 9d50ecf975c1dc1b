"""URL at which a service's statistics are read."""

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from loadstone.errors import InvalidInput

TIMEOUT_S = 2.0
WITH_DEFAULT_PORT = ("mariadb", "postgres")
OPTIONS = ("name", "database", "password-file")  # after ?


@dataclass(frozen=True, slots=True)
class MonitorAddress:
    """A service with its host and port or socket, and the user to log in as."""

    kind: str  # "mariadb", "haproxy"
    name: str  # source in the readings: the kind, or "uwsgi-2"
    host: str = "127.0.0.1"
    port: int = 0
    path: str = ""  # of a Unix socket, or of a URL where there is a host
    user: str = ""
    database: str = ""
    password_file: str = ""  # keeps the password out of command lines and state files

    @property
    def password(self) -> str:
        """Read the password; empty where none is needed."""
        if not self.password_file:
            return ""
        return Path(self.password_file).read_text(encoding="utf-8-sig").strip()


def read_address(url: str, kinds: tuple[str, ...]) -> MonitorAddress:
    """Parse KIND://[USER@]HOST:PORT/PATH or KIND:///SOCKET.

    After ? may follow name=, database= and password-file=.
    """
    shown = f"{url.partition('://')[0]}://..." if "@" in url else url  # it may hold a password
    try:
        parts = urlsplit(url)
        port = parts.port or 0
    except ValueError:  # its message quotes what may be a password
        raise InvalidInput(
            f"--monitor {url.partition('://')[0]}://...: must be a URL such as "
            "memcached://127.0.0.1:11211"
        ) from None
    if parts.scheme not in kinds:
        known = ", ".join(kinds)
        raise InvalidInput(
            f"--monitor {shown}: must be prometheus=URL, ssh=HOST, or the URL of a service of kind "
            f"{known}, such as memcached://127.0.0.1:11211"
        )
    if parts.password is not None:
        raise InvalidInput(
            f"--monitor {parts.scheme}://...: no password in the URL; write it to a file and give "
            "?password-file=FILE"
        )
    given = parse_qs(parts.query, keep_blank_values=True)
    if not all(name in OPTIONS and value for name, values in given.items() for value in values):
        # Not repeated: what follows ? may be a password.
        raise InvalidInput(
            f"--monitor {parts.scheme}://...: after ? may follow "
            f"{', '.join(f'{one}=...' for one in OPTIONS)}, separated by &"
        )
    if parts.hostname and not port and parts.scheme not in WITH_DEFAULT_PORT:
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        raise InvalidInput(f"--monitor {shown}: has no port; write {parts.scheme}://{host}:PORT")
    query = {key: values[-1] for key, values in given.items()}
    return MonitorAddress(
        kind=parts.scheme,
        name=query.get("name", parts.scheme),
        host=parts.hostname or "",
        port=port,
        path=unquote(parts.path),
        user=unquote(parts.username or ""),
        database=query.get("database", ""),
        password_file=query.get("password-file", ""),
    )
