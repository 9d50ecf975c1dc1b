"""Users that log in at a provider, from a file."""

import csv
import io
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.system import files, yaml_file

OPTION = "--oidc-users"
HEADER = "username,password"
MOST_BYTES = yaml_file.MOST_BYTES


@dataclass(frozen=True, slots=True)
class OidcUser:
    """A user of the provider; the password is kept in memory only."""

    name: str
    password: str = field(repr=False)


def read_users(path: Path) -> tuple[OidcUser, ...]:
    """Read users from CSV (a header username,password), or from a list in YAML or JSON.

    InvalidInput names the mistake, never a password.
    """
    rows = _csv_rows(path) if path.suffix.lower() == ".csv" else _listed(path)
    users = tuple(_user(row, f"{OPTION} {path}: user {at}") for at, row in enumerate(rows, 1))
    if not users:
        raise InvalidInput(f"{OPTION} {path}: has no users")
    return users


def write_users(path: Path, count: int) -> tuple[OidcUser, ...]:
    """Write users with new passwords to a CSV file that only its owner may read."""
    users = tuple(OidcUser(f"u{i:05d}", secrets.token_urlsafe(18)) for i in range(count))
    lines = (HEADER, *(f"{user.name},{user.password}" for user in users))
    files.write(path, "\n".join(lines) + "\n", files.PRIVATE)
    return users


def _csv_rows(path: Path) -> Iterable[object]:
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
        text = content.decode("utf-8-sig")
    except OSError as problem:
        raise EnvironmentUnusable(f"{OPTION} {path}: {problem.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidInput(f"{OPTION} {path}: not UTF-8") from None
    if len(content) > MOST_BYTES:
        raise InvalidInput(f"{OPTION} {path}: longer than {MOST_BYTES // 2**20} MiB")
    reader = csv.DictReader(io.StringIO(text, newline=""))
    try:
        if not {"username", "password"} <= set(reader.fieldnames or ()):
            raise InvalidInput(f"{OPTION} {path}: its first line must be {HEADER}")
        return list(reader)
    except csv.Error:
        raise InvalidInput(f"{OPTION} {path}:{reader.line_num}: not CSV") from None


def _listed(path: Path) -> Iterable[object]:
    rows = yaml_file.read(path, OPTION, is_secret=True)
    if isinstance(rows, dict):
        rows = rows.get("users")
    if not isinstance(rows, list):
        raise InvalidInput(
            f"{OPTION} {path}: must be a list of users, as - {{username: ..., password: ...}}"
        )
    return rows


def _user(row: object, place: str) -> OidcUser:
    if not isinstance(row, dict):
        raise InvalidInput(f"{place}: must be a mapping with username and password")
    for key in ("username", "password"):
        if not isinstance(row.get(key), str) or not row[key]:
            raise InvalidInput(f"{place}: {key} must be a text")
    return OidcUser(row["username"], row["password"])
