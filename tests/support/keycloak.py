"""Keycloak from its Maven distribution, in development mode and with a realm of its own."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests
from oidc_service import SECRET
from reserved_port import reserve_port
from shared_labs import kept_home

from loadstone.oidc.client import REDIRECT_URI, Client
from loadstone.oidc.target import OidcIssuer
from loadstone.system import locks

VERSION = "26.7.3"
START_S = 300.0
CLIENT_ID, REALM, USERS = "load", "load", 8
_SERIES = re.compile(r"^(\w+)\{(.*)\} ([\d.eE+]+)$", re.MULTILINE)


@dataclass(frozen=True)
class Keycloak:
    """A running Keycloak."""

    port: int
    management: int
    users: Path

    @property
    def choice(self) -> OidcIssuer:
        issuer = f"http://127.0.0.1:{self.port}/realms/{REALM}"
        return OidcIssuer(issuer, Client(CLIENT_ID, SECRET, REDIRECT_URI), self.users)

    def counted(self) -> tuple[float, float]:
        """Return how many requests of the realm it has answered, and passwords it has checked."""
        text = requests.get(f"http://127.0.0.1:{self.management}/metrics", timeout=30).text
        answered = checked = 0.0
        for name, labels, value in _SERIES.findall(text):
            if name == "http_server_requests_seconds_count" and 'uri="/realms/' in labels:
                answered += float(value)
            if name == "keycloak_credentials_password_hashing_validations_total":
                checked += float(value)
        return answered, checked


@contextlib.contextmanager
def keycloak(folder: Path) -> Iterator[Keycloak]:
    """Start Keycloak; skip where Java or Maven is missing."""
    home = _installed()
    port, management = reserve_port(), reserve_port()
    users = folder / "users.csv"
    names = [f"u{number}" for number in range(USERS)]
    users.write_text("\n".join(("username,password", *(f"{one},pw of {one}" for one in names))))
    own = folder / "keycloak"
    shutil.copytree(home, own, symlinks=True)
    (own / "data/import").mkdir(parents=True)
    (own / "data/import/load-realm.json").write_text(json.dumps(_realm(names)))
    given = {
        "KC_BOOTSTRAP_ADMIN_USERNAME": "admin",
        "KC_BOOTSTRAP_ADMIN_PASSWORD": "of a test",
        "KC_HTTP_HOST": "127.0.0.1",
        "KC_HTTP_PORT": str(port),
        "KC_HTTP_MANAGEMENT_HOST": "127.0.0.1",
        "KC_HTTP_MANAGEMENT_PORT": str(management),
        "KC_HOSTNAME": f"http://127.0.0.1:{port}",
        "KC_CACHE": "local",  # otherwise it looks for a cluster, beyond loopback
        "KC_HEALTH_ENABLED": "true",
        "KC_METRICS_ENABLED": "true",
        "JAVA_OPTS_KC_HEAP": "-Xms256m -Xmx768m",
    }
    words = [str(own / "bin/kc.sh"), "start-dev", "--db=dev-mem", "--import-realm"]
    with (folder / "keycloak.log").open("wb") as log:
        # The script becomes Java itself.
        process = subprocess.Popen(words, env=os.environ | given, stdout=log, stderr=log)
        try:
            _await(process, f"http://127.0.0.1:{management}/health/ready", folder / "keycloak.log")
            yield Keycloak(port, management, users)
        finally:
            process.terminate()
            process.wait(timeout=60)


def _await(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(requests.RequestException):
            if requests.get(url, timeout=5).status_code == 200:
                return
        time.sleep(0.5)
    raise RuntimeError(f"Keycloak did not start: {log.read_text()[-500:]}")


def _installed() -> Path:
    """Return the folder of the distribution, fetched on first use."""
    maven = shutil.which("mvn")
    if maven is None or shutil.which("java") is None:
        pytest.skip("mvn and java are not installed")
    folder = kept_home() / f"keycloak-{VERSION}"
    with locks.held(kept_home() / ".keycloak.lock"):
        if not folder.exists():
            artifact = f"org.keycloak:keycloak-quarkus-dist:{VERSION}:zip"
            words = [maven, "-q", "-B", "dependency:copy", f"-Dartifact={artifact}"]
            there = f"-DoutputDirectory={kept_home()}"
            done = subprocess.run([*words, there], check=False, capture_output=True, text=True)
            archive = kept_home() / f"keycloak-quarkus-dist-{VERSION}.zip"
            if done.returncode or not archive.exists():
                pytest.skip(f"Maven could not fetch Keycloak: {done.stdout[-200:]}")
            unpacked = kept_home() / ".keycloak"
            shutil.rmtree(unpacked, ignore_errors=True)
            with zipfile.ZipFile(archive) as file:
                file.extractall(unpacked)
            archive.unlink()
            (unpacked / folder.name / "bin/kc.sh").chmod(0o755)
            (unpacked / folder.name).rename(folder)
    return folder


def _realm(names: list[str]) -> dict[str, Any]:
    # Without the mapper the client's own tokens are not active for it (since 26.6.2).
    audience = {
        "name": "own audience",
        "protocol": "openid-connect",
        "protocolMapper": "oidc-audience-mapper",
        "config": {
            "included.client.audience": CLIENT_ID,
            "access.token.claim": "true",
            "introspection.token.claim": "true",
        },
    }
    client = {
        "clientId": CLIENT_ID,
        "secret": SECRET,
        "publicClient": False,
        "directAccessGrantsEnabled": True,
        "serviceAccountsEnabled": True,
        "redirectUris": [REDIRECT_URI],
        "attributes": {
            "pkce.code.challenge.method": "S256",
            "post.logout.redirect.uris": REDIRECT_URI,
        },
        "protocolMappers": [audience],
    }
    users = [
        {
            "username": name,
            "enabled": True,
            "email": f"{name}@example.org",
            "emailVerified": True,
            "firstName": "U",
            "lastName": name,
            "credentials": [{"type": "password", "value": f"pw of {name}"}],
        }
        for name in names
    ]
    return {
        "realm": REALM,
        "enabled": True,
        "sslRequired": "none",
        "revokeRefreshToken": True,
        "refreshTokenMaxReuse": 0,
        "clients": [client],
        "users": users,
    }
