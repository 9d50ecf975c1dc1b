import os
from collections.abc import Iterator

import pytest

from loadstone.keystone import deployment
from loadstone.keystone.deploy import settings
from loadstone.keystone.deployment import Deployment


@pytest.fixture(scope="session")
def lab_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep environments and templates where LOADSTONE_TEST_HOME says, else in pytest's folder."""
    with pytest.MonkeyPatch.context() as patch:
        kept = os.environ.get("LOADSTONE_TEST_HOME")
        patch.setenv("LOADSTONE_HOME", kept or str(tmp_path_factory.mktemp("home")))
        yield


def quietly(line: str) -> None:
    """Say nothing."""


@pytest.fixture(scope="session")
def lab_keystone(lab_home: None) -> Iterator[Deployment]:  # noqa: ARG001
    """A real Keystone for all tests of the session: 2 workers, cheap password hashes."""
    name = f"test-{os.getpid()}"
    chosen = settings.read([("workers", "2"), ("hash-rounds", "4")])
    yield deployment.up(name, chosen, quietly, owned=True)
    deployment.down(name, purge=True)
