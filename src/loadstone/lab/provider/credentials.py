"""The client and the users that a provider of the lab is made with."""

import json
import secrets
from pathlib import Path

from loadstone.lab.state import secret_folder, write_secret

CLIENT_ID = "lab"
REDIRECT_URI = "http://127.0.0.1/callback"
USERS = 50


def users_file(folder: Path) -> Path:
    """Return the file of a deployment's users, which exists while it runs."""
    return secret_folder(folder) / "users.json"


def client_secret_file(folder: Path) -> Path:
    """Return the file of the client's secret, which exists while the deployment runs."""
    return secret_folder(folder) / "client-secret"


def make(folder: Path, users: int) -> None:
    """Make the client's secret and the users' passwords."""
    rows = [{"username": f"u{i:05d}", "password": secrets.token_urlsafe(12)} for i in range(users)]
    write_secret(users_file(folder), json.dumps(rows))
    write_secret(client_secret_file(folder), secrets.token_urlsafe(24))
