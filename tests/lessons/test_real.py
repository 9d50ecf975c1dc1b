"""The lessons of the docs, command by command in a shell, with the exit codes that they state."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import lessons
import pytest

MOST_S = {"keystone": 2400}


@pytest.mark.verify
@pytest.mark.parametrize("name", lessons.NAMES)
def test_a_lesson_works_as_it_is_written(name: str, tmp_path: Path) -> None:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("OS_", "LOADSTONE_"))}
    here = str(Path(sys.executable).parent)
    environment = kept | {
        "PATH": f"{here}:{kept.get('PATH', os.defpath)}",
        "LOADSTONE_HOME": str(tmp_path / "home"),
    }
    folder = tmp_path / "lesson"
    folder.mkdir()
    bash = shutil.which("bash")
    assert bash is not None
    with subprocess.Popen(
        (bash, "-c", lessons.script(name)),
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            told, _ = process.communicate(timeout=MOST_S.get(name, 900))
        finally:
            _end_rest(process.pid)
    assert process.returncode == 0, told[-4000:]


def _end_rest(session: int) -> None:
    """End what the lesson left in its session: services, if it failed."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if os.getsid(int(entry.name)) == session:
                    os.kill(int(entry.name), signal.SIGTERM)
            except ProcessLookupError:
                continue
