"""The lean server that every generator is measured against."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

PROFILE = "editable"


@contextmanager
def lean_target(core: int) -> Iterator[int]:
    """Give the port of a server on a core of its own; it ends with the block."""
    options = ["--quiet", "--profile", PROFILE, "--package", "loadstone-engine"]
    subprocess.run(["cargo", "build", *options, "--example", "lean_target"], check=True)
    program = f"target/{PROFILE}/examples/lean_target"
    with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        os.sched_setaffinity(process.pid, {core})
        assert process.stdout is not None
        yield int(process.stdout.readline())
        process.communicate()
