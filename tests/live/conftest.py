import contextlib
import os
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import shared_labs
from lab_client import quietly, skipping_without_servers
from rally_files import unpacked

from loadstone.lab import deployment
from loadstone.lab.deployment import Deployment
from loadstone.lab.keystone import settings


@pytest.fixture(scope="session")
def labs(pytestconfig: pytest.Config) -> Path:
    """The folder of the deployments that this session's processes share."""
    return shared_labs.session_folder(pytestconfig)


@pytest.fixture(scope="session")
def lab_home(labs: Path) -> Iterator[None]:
    """Deployments in the session's folder, environments and prepared databases as kept."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOADSTONE_HOME", str(shared_labs.home_of(labs)))
        yield


@contextlib.contextmanager
def lent(labs: Path, name: str, *, exclusively: bool = False) -> Iterator[Deployment]:
    """A shared deployment; without its servers the test is skipped, but not in CI."""
    with contextlib.ExitStack() as stack:
        with skipping_without_servers():
            using = shared_labs.in_use(labs, name, exclusively=exclusively)
            lab = stack.enter_context(using)
        yield lab


@pytest.fixture
def lab_keystone(labs: Path, lab_home: None) -> Iterator[Deployment]:  # noqa: ARG001
    """A Keystone on uWSGI and SQLite, 2 workers, which other tests use at the same time."""
    with lent(labs, "plain") as lab:
        yield lab


@pytest.fixture
def exclusive_keystone(labs: Path, lab_home: None) -> Iterator[Deployment]:  # noqa: ARG001
    """The same Keystone, for a test that counts or changes what is in it."""
    with lent(labs, "plain", exclusively=True) as lab:
        yield lab


@pytest.fixture(scope="module")
def module_keystone(labs: Path, lab_home: None) -> Iterator[Deployment]:  # noqa: ARG001
    """The same Keystone, exclusively for all tests of a module."""
    with lent(labs, "plain", exclusively=True) as lab:
        yield lab


@pytest.fixture
def balanced_keystone(labs: Path, lab_home: None) -> Iterator[Deployment]:  # noqa: ARG001
    """Two nodes on uWSGI behind haproxy, with MariaDB and memcached, set up as recommended."""
    with lent(labs, "balanced", exclusively=True) as lab:
        yield lab


@pytest.fixture
def nginx_keystone(labs: Path, lab_home: None) -> Iterator[Deployment]:  # noqa: ARG001
    """Keystone on nginx and uWSGI, with PostgreSQL, users in slapd, JWS tokens."""
    with lent(labs, "nginx", exclusively=True) as lab:
        yield lab


@pytest.fixture
def apache_keystone(labs: Path, lab_home: None) -> Iterator[Deployment]:  # noqa: ARG001
    """Keystone in Apache's mod_wsgi, on SQLite."""
    with lent(labs, "apache", exclusively=True) as lab:
        yield lab


@pytest.fixture(scope="session")
def rally_files() -> Path:
    """Rally's source packages: where LOADSTONE_TEST_RALLY_FILES says, else fetched once."""
    chosen = os.environ.get("LOADSTONE_TEST_RALLY_FILES")
    return Path(chosen) if chosen else unpacked(shared_labs.kept_home() / "rally-files")


@pytest.fixture
def name(lab_home: None, request: pytest.FixtureRequest) -> Iterator[str]:  # noqa: ARG001
    """A name for a deployment of one test, which is gone afterwards."""
    # Short, because its folder holds Unix sockets. Its home belongs to this session alone.
    chosen = f"t{zlib.crc32(request.node.nodeid.encode()):x}"
    yield chosen
    if any(one.name == chosen for one in deployment.every()):
        deployment.down(chosen, purge=True)


@pytest.fixture
def start(name: str) -> Callable[..., Deployment]:
    """Start a deployment of one test; without its servers the test is skipped, but not in CI."""

    def start_it(*words: str) -> Deployment:
        chosen = settings.read([("hash-rounds", "4"), *map(settings.split, words)])
        with skipping_without_servers():
            return deployment.up(name, chosen, quietly, owned=True)

    return start_it
