"""What tests say to a real Keystone."""

import contextlib
import os
import time
from collections.abc import Callable, Iterator

import pytest
import requests

from loadstone.errors import EnvironmentUnusable
from loadstone.lab.deployment import Deployment


@contextlib.contextmanager
def skipping_without_servers() -> Iterator[None]:
    """Skip a test whose servers are not installed; in CI it fails."""
    try:
        yield
    except EnvironmentUnusable as missing:
        if "not installed: " in str(missing) and not os.environ.get("CI"):
            pytest.skip(str(missing))
        raise


@contextlib.contextmanager
def skipping_without_node() -> Iterator[None]:
    """Skip a test of node oidc-provider where it cannot be installed; in CI it fails.

    Debian 12's Node is too old, so that .ci/packages cannot name it.
    """
    try:
        yield
    except EnvironmentUnusable as missing:
        if "CI" in os.environ or ("npm" not in str(missing) and "node" not in str(missing)):
            raise
        pytest.skip(f"oidc-provider cannot be installed: {missing}")


def quietly(line: str) -> None:
    """Say nothing."""


def until(held: Callable[[], bool], what: str) -> None:
    """Return when it holds."""
    deadline = time.monotonic() + 60
    while not held():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def token_of(variables: dict[str, str]) -> str:
    """Issue a token, scoped to the project."""
    user = {
        "name": variables["OS_USERNAME"],
        "domain": {"id": variables["OS_USER_DOMAIN_ID"]},
        "password": variables["OS_PASSWORD"],
    }
    scope = {
        "name": variables["OS_PROJECT_NAME"],
        "domain": {"id": variables["OS_PROJECT_DOMAIN_ID"]},
    }
    body = {
        "auth": {
            "identity": {"methods": ["password"], "password": {"user": user}},
            "scope": {"project": scope},
        }
    }
    url = f"{variables['OS_AUTH_URL']}/auth/tokens"
    trusted = variables.get("OS_CACERT", True)
    answer = requests.post(url, json=body, timeout=30, verify=trusted)
    assert answer.status_code == 201, answer.text
    return answer.headers["X-Subject-Token"]


def validation_of(url: str, token: str) -> requests.Response:
    """Have a token validated by itself."""
    headers = {"X-Auth-Token": token, "X-Subject-Token": token}
    return requests.get(f"{url}/auth/tokens", headers=headers, timeout=30)


def assert_serves(started: Deployment) -> None:
    """It issues a token and validates it, and no part has died."""
    token = token_of(started.environment_variables())
    assert validation_of(started.url, token).status_code == 200
    assert started.failure() is None
