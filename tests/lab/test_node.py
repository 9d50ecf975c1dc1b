"""Node, which oidc-provider needs in a version that Debian 12 does not have."""

from pathlib import Path

import pytest

from loadstone.errors import EnvironmentUnusable
from loadstone.lab import programs
from loadstone.lab.provider.node import NODE


@pytest.mark.processes
@pytest.mark.parametrize(("version", "is_used"), [("v18.19.0", False), ("v20.20.2", True)])
def test_a_node_that_is_too_old_is_told_before_anything_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, is_used: bool
) -> None:
    node = tmp_path / "node"
    node.write_text(f"#!/bin/sh\necho {version}\n")
    node.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    if is_used:
        programs.check([NODE])
        assert NODE.path() == str(node)
        return
    with pytest.raises(EnvironmentUnusable, match=r"not installed: node \(version 20 or later\)"):
        programs.check([NODE])
