import pytest
from virtual import VirtualCommandLine


@pytest.fixture
def loadstone(tmp_path, capfd, monkeypatch):
    """The command line in virtual time."""
    return VirtualCommandLine(tmp_path, capfd, monkeypatch)
