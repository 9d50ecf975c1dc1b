"""Users that log in at a provider, from a file."""

import csv
import io
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from loadstone.errors import InvalidInput
from loadstone.system import files, yaml_file

OPTION = "--oidc-users"
HEADER = "username,password"


@dataclass(frozen=True, slots=True)
class OidcUser:
    """A user of the provider; the password is kept in memory only."""

    name: str
    password: str = field(repr=False)


def read_users(path: Path, option: str = OPTION) -> tuple[OidcUser, ...]:
    """Read users from CSV (a header username,password), or from a list in YAML or JSON.

    InvalidInput names `option` and the mistake, never a password.
    """
    is_csv = path.suffix.lower() == ".csv"
    rows = _csv_rows(path, option) if is_csv else _listed(path, option)
    users = tuple(_user(row, f"{place}: user {at}") for at, (place, row) in enumerate(rows, 1))
    if not users:
        raise InvalidInput(f"{option} {path}: has no users")
    return users


def write_users(path: Path, count: int) -> tuple[OidcUser, ...]:
    """Write users with new passwords to a CSV file that only its owner may read."""
    users = tuple(OidcUser(f"u{i:05d}", secrets.token_urlsafe(18)) for i in range(count))
    lines = (HEADER, *(f"{user.name},{user.password}" for user in users))
    files.write(path, "\n".join(lines) + "\n", files.PRIVATE)
    return users


def _csv_rows(path: Path, option: str) -> Iterable[tuple[str, object]]:
    """Return rows with the places of their last lines."""
    place = f"{option} {path}"
    text = yaml_file.read_text(path, option).removeprefix("\ufeff")
    reader = csv.DictReader(io.StringIO(text, newline=""))
    try:
        if not {"username", "password"} <= set(reader.fieldnames or ()):
            raise InvalidInput(f"{place}: its first line must be {HEADER}")
        return [(f"{place}:{reader.line_num}", row) for row in reader]
    except csv.Error:
        raise InvalidInput(f"{place}:{reader.line_num}: not CSV") from None


def _listed(path: Path, option: str) -> Iterable[tuple[str, object]]:
    file = yaml_file.read(path, option, is_secret=True)
    keys = ("users",) if isinstance(file.content, dict) else ()
    rows = file.content.get("users") if keys else file.content
    if not isinstance(rows, list):
        raise InvalidInput(
            f"{file.place(*keys)}: must be a list of users, as - {{username: ..., password: ...}}"
        )
    return [(file.place(*keys, index), row) for index, row in enumerate(rows)]


def _user(row: object, place: str) -> OidcUser:
    if not isinstance(row, dict):
        raise InvalidInput(f"{place}: must be a mapping with username and password")
    for key in ("username", "password"):
        if not isinstance(row.get(key), str) or not row[key]:
            raise InvalidInput(f"{place}: {key} must be a text")
    return OidcUser(row["username"], row["password"])
