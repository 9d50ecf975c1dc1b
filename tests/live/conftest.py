import os
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from lab_client import quietly
from rally_files import unpacked

from loadstone.errors import EnvironmentUnusable
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


@pytest.fixture(scope="session")
def lab_keystone(lab_home: None) -> Iterator[Deployment]:  # noqa: ARG001
    """A real Keystone for all tests of the session: 2 workers, cheap password hashes."""
    name = f"test-{os.getpid()}"
    chosen = settings.read([("workers", "2"), ("hash-rounds", "4")])
    yield deployment.up(name, chosen, quietly, owned=True)
    deployment.down(name, purge=True)


@pytest.fixture(scope="session")
def rally_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rally's source packages: where LOADSTONE_TEST_RALLY_FILES says, else fetched once."""
    given = os.environ.get("LOADSTONE_TEST_RALLY_FILES")
    if given:
        return Path(given)
    kept = os.environ.get("LOADSTONE_TEST_HOME")
    if not (kept or os.environ.get("CI")):
        pytest.skip("Rally's files are fetched in CI, or where LOADSTONE_TEST_HOME keeps them")
    root = Path(kept) if kept else tmp_path_factory.mktemp("rally")
    return unpacked(root / "rally-files")


@pytest.fixture
def name(lab_home: None, request: pytest.FixtureRequest) -> Iterator[str]:  # noqa: ARG001
    """A name for a deployment of one test, which is gone afterwards."""
    chosen = f"t{os.getpid()}-{zlib.crc32(request.node.name.encode()):x}"
    yield chosen
    if any(one.name == chosen for one in deployment.every()):
        deployment.down(chosen, purge=True)


@pytest.fixture
def start(name: str) -> Callable[..., Deployment]:
    """Start a deployment of one test; without its servers the test is skipped, but not in CI."""

    def start_it(*words: str) -> Deployment:
        chosen = settings.read([("hash-rounds", "4"), *map(settings.split, words)])
        try:
            return deployment.up(name, chosen, quietly, owned=True)
        except EnvironmentUnusable as lacking:
            if "not installed: " in str(lacking) and not os.environ.get("CI"):
                pytest.skip(str(lacking))
            raise

    return start_it
