"""node oidc-provider, a certified OpenID provider, from npm."""

import contextlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from oidc_service import CLIENT_ID, SECRET
from reserved_port import reserve_port
from shared_labs import kept_home

from loadstone.system import locks

VERSION = "9.13.3"
USERS = {"ann": "her&pw=1", "bob": "his pw"}
REDIRECT_URI = "http://127.0.0.1/callback"
SERVER = Path(__file__).parent / "node_provider.mjs"


@contextlib.contextmanager
def node_provider() -> Iterator[str]:
    """Start the provider, and yield its issuer; skip where node or npm is missing."""
    node, folder = shutil.which("node"), _installed()
    port = reserve_port()
    given = {
        "PORT": str(port),
        "CLIENT_ID": CLIENT_ID,
        "CLIENT_SECRET": SECRET,
        "REDIRECT_URI": REDIRECT_URI,
        "USERS": json.dumps(USERS),
    }
    process = subprocess.Popen(
        [str(node), "server.mjs"],
        cwd=folder,
        env=os.environ | given,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    try:
        ready = next((line for line in process.stdout if line.startswith("ready")), "")
        assert ready, "node oidc-provider did not start"
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(timeout=10)
        process.stdout.close()


def seen_by(issuer: str) -> dict[str, Any]:
    """Return what the provider has granted, and how many requests it got."""
    answer: dict[str, Any] = requests.get(f"{issuer}/seen", timeout=30).json()
    return answer


def _installed() -> Path:
    """Return the folder with the package, installed on first use."""
    if shutil.which("node") is None or (npm := shutil.which("npm")) is None:
        pytest.skip("node and npm are not installed")
    folder = kept_home() / f"oidc-provider-{VERSION}"
    folder.mkdir(parents=True, exist_ok=True)
    with locks.held(folder / "lock"):
        if not (folder / "node_modules/oidc-provider/package.json").exists():
            (folder / "package.json").write_text('{"type": "module", "private": true}')
            words = [npm, "install", "--no-audit", "--no-fund", f"oidc-provider@{VERSION}"]
            done = subprocess.run(words, check=False, cwd=folder, capture_output=True, text=True)
            if done.returncode:
                pytest.skip(f"npm could not install oidc-provider: {done.stderr[-200:]}")
        shutil.copy(SERVER, folder / "server.mjs")
    return folder
