import multiprocessing
from multiprocessing import forkserver

import pytest


@pytest.fixture(scope="session", autouse=True)
def fork_server_with_openstacksdk():
    """Import openstacksdk once for the workers of all tests, whichever comes first."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["__main__", "loadstone.rally.functions.cloud"])
    forkserver.ensure_running()
