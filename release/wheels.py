"""Builds wheels and the source distribution with maturin, and zig as C compiler and linker.

zig links against glibc 2.17, whatever the building machine has, so the wheels are manylinux2014.
They are abi3: one wheel serves CPython 3.11 and newer.
"""

import os
import subprocess
import sys
from pathlib import Path

from release import bill, tree

TARGETS = {"x86_64": "x86_64-unknown-linux-gnu", "aarch64": "aarch64-unknown-linux-gnu"}
COMPATIBILITY = "manylinux2014"
TOOLS = Path(sys.prefix) / "bin"


def build(
    folder: Path, work: Path, repository: str = "", *, is_fresh: bool = False
) -> tuple[Path, ...]:
    """Build into a folder what this machine's Rust can build; return the files.

    `work` gets the sources and what the compiler makes, unless CARGO_TARGET_DIR says where the
    compiler keeps that. A fresh build uses nothing of an earlier one.
    """
    compiled = work / "cargo"
    if not is_fresh:
        compiled = Path(os.environ.get("CARGO_TARGET_DIR", compiled))
    folder.mkdir(parents=True, exist_ok=True)
    for old in (*folder.glob("*.whl"), *folder.glob("*.tar.gz")):
        old.unlink()
    sources = work / f"loadstone-{tree.version()}"
    tree.export(sources, repository)
    _maturin(("sdist",), sources, folder, compiled)
    for name, target in TARGETS.items():
        if _has_standard_library(target):
            words = ("build", "--release", "--zig", "--locked", "--target", target)
            _maturin((*words, "--compatibility", COMPATIBILITY), sources, folder, compiled)
        else:
            print(f"left out: {name} (rustup target add {target})", flush=True)
    for wheel in folder.glob("*.whl"):
        bill.remove_folder(wheel, sources, "/loadstone")
    return tuple(sorted((*folder.glob("*.whl"), *folder.glob("*.tar.gz"))))


def _maturin(words: tuple[str, ...], sources: Path, folder: Path, compiled: Path) -> None:
    """Run maturin such that the result depends on the sources and the compilers alone."""
    home = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo"))
    paths = {home / "registry" / "src": "/crates", sources: "/loadstone", compiled: "/compiled"}
    flags = [f"--remap-path-prefix={path}={name}" for path, name in paths.items()]
    variables = os.environ | {
        "CARGO_TARGET_DIR": str(compiled),
        "CARGO_ENCODED_RUSTFLAGS": "\x1f".join(flags),
        "CFLAGS": " ".join(f"-ffile-prefix-map={path}={name}" for path, name in paths.items()),
        "PATH": f"{TOOLS}:{os.environ['PATH']}",
        "SOURCE_DATE_EPOCH": str(tree.commit().time_s),
    }
    variables.pop("RUSTFLAGS", None)
    command = [TOOLS / "maturin", *words, "--out", folder]
    subprocess.run(command, cwd=sources, env=variables, check=True)


def _has_standard_library(target: str) -> bool:
    ended = subprocess.run(
        ["rustc", "--print", "target-libdir", "--target", target],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return any(Path(ended.stdout.strip()).glob("libstd-*"))
