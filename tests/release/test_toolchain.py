"""A checkout without Rust, a C compiler or Python ends in one line that says what to do."""

import subprocess
import tomllib
from pathlib import Path

import pytest

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[2]
RUST = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["rust-version"]
GOOD = {"cargo": "cargo 1.99.0", "rustc": "rustc 1.99.0", "cc": "", "python3": "Python 3.13.5"}


def checked(folder: Path, programs: dict[str, str]) -> tuple[int, str]:
    """Run the check where only these programs are, with what each prints of its version."""
    for name in ("cut", "dirname", "head", "sed", "sort"):
        (folder / name).symlink_to(Path("/usr/bin") / name)
    for name, version in programs.items():
        (folder / name).write_text(f"#!/bin/sh\necho '{version}'\n")
        (folder / name).chmod(0o755)
    script = ROOT / "release/toolchain.sh"
    ended = subprocess.run(
        ["/bin/sh", script], check=False, env={"PATH": str(folder)}, capture_output=True, text=True
    )
    return ended.returncode, ended.stderr


def test_a_machine_that_has_everything_passes(tmp_path):
    assert checked(tmp_path, GOOD) == (0, "")


@pytest.mark.parametrize(
    ("programs", "expected"),
    [
        ({"cargo": None}, f"Rust {RUST} or newer, and cargo is not here; install it with rustup"),
        ({"rustc": "rustc 1.63.0 (x)"}, f"Rust {RUST} or newer, and rustc here is 1.63.0;"),
        ({"cargo": "cargo 1.9.0"}, f"Rust {RUST} or newer, and cargo here is 1.9.0;"),
        ({"cc": None}, "a C compiler (cc); apt-get install gcc"),
        ({"python3": "Python 3.9.2"}, "Python 3.11 or newer, and none is on the PATH"),
    ],
)
def test_what_is_missing_or_too_old_is_one_line_with_the_mend(tmp_path, programs, expected):
    here = {name: version for name, version in (GOOD | programs).items() if version is not None}
    code, line = checked(tmp_path, here)
    assert code == 3
    assert line.count("\n") == 1
    assert expected in line
    assert "docs/install.md" in line


def test_a_newer_python_beside_an_old_one_is_enough(tmp_path):
    programs = GOOD | {"python3": "Python 3.9.2", "python3.12": "Python 3.12.1"}
    assert checked(tmp_path, programs) == (0, "")
