"""The lean server that every generator is measured against."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE
from tempfile import TemporaryDirectory

SOURCE = Path(__file__).parents[1] / "rust/engine/examples/lean_target.rs"


@dataclass(frozen=True, slots=True)
class LeanTarget:
    """A running server."""

    port: int
    process: subprocess.Popen[bytes]

    def end(self) -> int:
        """End it, and give the number of requests that it has answered."""
        answered, _ = self.process.communicate()
        return int(answered)


@contextmanager
def lean_target(core: int) -> Iterator[int]:
    """Give the port of a server on a core of its own; it ends with the block."""
    with counting_target() as target:
        os.sched_setaffinity(target.process.pid, {core})
        yield target.port


@contextmanager
def counting_target() -> Iterator[LeanTarget]:
    """Start a server that counts what it answers; it ends with the block, if not before."""
    # It needs nothing but the standard library, so there is nothing for cargo to build first.
    options = ["--edition", "2024", "-C", "opt-level=3"]
    with TemporaryDirectory() as folder:
        program = Path(folder) / "lean_target"
        subprocess.run(["rustc", *options, SOURCE, "-o", program], check=True)
        with subprocess.Popen([program], stdin=PIPE, stdout=PIPE) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            yield LeanTarget(int(process.stdout.readline()), process)
            process.stdin.close()
