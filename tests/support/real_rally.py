"""Real Rally, as its users start it."""

import os
import subprocess
from pathlib import Path

PACKAGES = ("rally==5.1.1", "rally-openstack==4.1.0")


class Rally:
    """Rally with a home and a database of its own."""

    def __init__(self, python: str, home: Path) -> None:
        self._program = Path(python).with_name("rally")
        self._home = home
        self._config = home / "rally.conf"
        self._config.write_text(f"[database]\nconnection=sqlite:///{home}/rally.sqlite\n")
        self("db", "create")

    def __call__(self, *words: str, variables: dict[str, str] | None = None) -> str:
        # Its entry point would import whatever a PYTHONPATH leads to.
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("OS_", "PYTHON"))}
        ended = subprocess.run(
            [self._program, "--config-file", self._config, *words],
            capture_output=True,
            text=True,
            env={**kept, "HOME": str(self._home), **(variables or {})},
            check=False,
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout
