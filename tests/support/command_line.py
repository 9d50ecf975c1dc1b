"""The command line as its users meet it: a process of its own."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import command_server
import quiet_machine

PASSWORD = "pw-that-must-not-be-seen"


def environment(url: str, home: Path) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("OS_")}
    return kept | {
        "LOADSTONE_HOME": str(home),
        "OS_AUTH_URL": url,
        "OS_USERNAME": "known",
        "OS_PASSWORD": PASSWORD,
        "OS_PROJECT_NAME": "known",
        "OS_USER_DOMAIN_ID": "default",
        "OS_PROJECT_DOMAIN_ID": "default",
    }


class CommandLine:
    """`loadstone` in a process of its own, with a home of its own."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def __call__(
        self, *words: str, url: str = "http://127.0.0.1:9/v3", before: tuple[str, ...] = ()
    ) -> subprocess.CompletedProcess[str]:
        if not before:
            return command_server.run(words, environment(url, self.home), self.home)
        return subprocess.run(
            [*before, *self.words(*words)],
            env=environment(url, self.home),
            capture_output=True,
            text=True,
            timeout=500,
            cwd=self.home,
            check=False,
        )

    def words(self, *words: str) -> list[str]:
        as_module = ("-m", "loadstone") if command_server.measures else (quiet_machine.__file__,)
        return [sys.executable, *as_module, *words]

    @contextlib.contextmanager
    def begun(self, *words: str, url: str) -> Iterator[subprocess.Popen[str]]:
        with subprocess.Popen(
            self.words(*words),
            env=environment(url, self.home),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.home,
        ) as process:
            try:
                yield process
            finally:
                if process.poll() is None:
                    process.kill()
