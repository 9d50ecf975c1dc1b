"""Where a store is: a folder, or a PostgreSQL database with a folder for its files."""

import os
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from loadstone.errors import InvalidInput
from loadstone.system import paths
from loadstone.system.paths import expanded
from loadstone.system.redaction import is_secret

VARIABLE = "LOADSTONE_STORE"
FORM = "postgresql://USER@HOST/DATABASE"
FILES = "files"  # the query parameter that names the folder for files
_SCHEMES = ("postgresql", "postgres")
_SCHEME = re.compile(r"([A-Za-z][\w+.-]*)://")


@dataclass(frozen=True, slots=True)
class StoreLocation:
    """The folder of a store's files, and its database unless that is results.db in the folder.

    Sample files, the folders of runs and the journals of studies lie in `folder`.
    """

    folder: Path
    database: URL | None = None

    def __str__(self) -> str:
        """Return the value for `--store`, without passwords."""
        if self.database is None:
            return str(self.folder)
        return without_secrets(self.database.update_query_dict({FILES: str(self.folder)}))

    @property
    def option(self) -> str:
        """The option that chooses this store, with a space before it; empty for the usual one."""
        try:
            is_usual = self == usual()
        except InvalidInput:  # the variable, in place of which --store was given
            is_usual = False
        return "" if is_usual else f" --store {shlex.quote(str(self))}"

    @property
    def has_named_folder(self) -> bool:
        """Whether the URL of a database names the folder, which several users may share."""
        return self.database is not None and self.folder != _usual_folder(self.database)

    @classmethod
    def of(cls, place: "Path | StoreLocation") -> "StoreLocation":
        """Return the location of the store in a folder; a location is returned unchanged."""
        return place if isinstance(place, StoreLocation) else cls(place)


def usual() -> StoreLocation:
    """Return the location in LOADSTONE_STORE, else the platform's data folder."""
    text = os.environ.get(VARIABLE)
    return read(text, VARIABLE) if text else StoreLocation(paths.store())


def read(text: str, source: str = "--store") -> StoreLocation:
    """Read a folder or a URL; InvalidInput never repeats the URL, which may hold a password."""
    if not text:
        raise InvalidInput(f"{source}: is empty; name a folder, or is a variable not set?")
    scheme = _SCHEME.match(text)
    if scheme is None:
        # Shells leave the ~ of --store=~/results as it is.
        return StoreLocation(expanded(text))
    if scheme[1] not in _SCHEMES:
        raise InvalidInput(f"{source}: {scheme[1]}:// is not a store; use a folder or {FORM}")
    url = _url(text, source)
    files = url.query.get(FILES, "")
    if not isinstance(files, str):
        raise InvalidInput(f"{source}: {FILES}= is given twice")
    url = url.difference_update_query([FILES])
    folder = expanded(files).absolute() if files else _usual_folder(url)
    return StoreLocation(folder, url)


def without_secrets(url: URL) -> str:
    """Return a URL without its password and secret parameters, for messages."""
    query = {name: value for name, value in url.query.items() if not is_secret(name)}
    text = URL.create(
        "postgresql", url.username, None, url.host, url.port, url.database, query
    ).render_as_string()
    base, mark, parameters = text.partition("?")
    return base + mark + parameters.replace("%2F", "/")


def secrets(url: URL) -> frozenset[str]:
    """Return the password and the secret parameters of a URL."""
    values = [value for name, value in url.query.items() if is_secret(name)]
    known = (url.password, *(value for value in values if isinstance(value, str)))
    return frozenset(str(value) for value in known if value)


def _url(text: str, source: str) -> URL:
    try:
        url = make_url(text)
    except (ArgumentError, ValueError) as problem:
        raise InvalidInput(f"{source}: not a URL of the form {FORM}") from problem
    userinfo = text.partition("://")[2].partition("@")[0] if url.username is not None else ""
    if re.search(r"[\s/'\"]", userinfo) or "@" in (url.host or ""):
        raise InvalidInput(
            f"{source}: write special characters of the URL in percent-encoding: "
            "@ as %40, / as %2F, a space as %20"
        )
    return url.set(drivername="postgresql")


def _usual_folder(url: URL) -> Path:
    """Return the default folder on this machine for the files of a database's runs."""
    host = url.host or url.query.get("host") or "local"
    parts = (str(host), str(url.port or 5432), url.database or url.username or "usual")
    return paths.home() / "postgresql" / re.sub(r"[^\w.]+", "-", "-".join(parts)).strip("-")
