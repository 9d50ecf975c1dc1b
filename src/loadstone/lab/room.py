"""Room on a disk, asked for before it is used: a full disk costs one line, not half a start."""

import shutil
from pathlib import Path

from loadstone.errors import EnvironmentUnusable

MARGIN_MB = 100  # for logs, and for what a run writes
MB = 1024 * 1024


def require(folder: Path, needed_mb: int) -> None:
    """Raise when the folder's disk has less room than that and a margin."""
    free_mb = shutil.disk_usage(folder).free // MB
    if free_mb < needed_mb + MARGIN_MB:
        raise EnvironmentUnusable(
            f"no room in {folder}: {needed_mb + MARGIN_MB} MB are needed, {free_mb} MB are free"
        )


def size_mb(folder: Path) -> int:
    """Give what the files of a folder take on disk (holes in them take nothing)."""
    blocks = sum(path.lstat().st_blocks for path in folder.rglob("*"))
    return blocks * 512 // MB


def copy(source: Path, target: Path) -> None:
    """Copy a folder, or leave nothing of it."""
    existing = next(parent for parent in target.parents if parent.exists())
    require(existing, size_mb(source))
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    half = target.with_name(f".{target.name}")
    shutil.rmtree(half, ignore_errors=True)
    try:
        shutil.copytree(source, half)
        half.rename(target)
    except shutil.Error as problem:
        # A line for each file; they fail for the same reason.
        [(_, failed, reason), *_] = problem.args[0]
        raise EnvironmentUnusable(f"cannot copy to {failed}: {reason}") from None
    finally:
        shutil.rmtree(half, ignore_errors=True)
