"""Disk space, checked before it is used, so that a full disk gives one clear line."""

import shutil
from pathlib import Path

from loadstone.errors import EnvironmentUnusable

MARGIN_MB = 100  # for logs and the results of a run
MB = 1024 * 1024


def require(folder: Path, needed_mb: int) -> None:
    """Raise if the folder's disk has less free space than `needed_mb` and a margin."""
    free_mb = shutil.disk_usage(folder).free // MB
    if free_mb < needed_mb + MARGIN_MB:
        raise EnvironmentUnusable(
            f"not enough space in {folder}: {needed_mb + MARGIN_MB} MB needed, {free_mb} MB free"
        )


def size_mb(folder: Path) -> int:
    """Return the space that the files of a folder take on disk (holes are not counted)."""
    blocks = sum(path.lstat().st_blocks for path in folder.rglob("*"))
    return blocks * 512 // MB


def copy(source: Path, target: Path) -> None:
    """Copy a folder; leave nothing behind if that fails."""
    existing = next(parent for parent in target.parents if parent.exists())
    require(existing, size_mb(source))
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    half = target.with_name(f".{target.name}")
    shutil.rmtree(half, ignore_errors=True)
    try:
        shutil.copytree(source, half, symlinks=True)
        half.rename(target)
    except shutil.Error as problem:
        raise _failed(problem) from None
    finally:
        shutil.rmtree(half, ignore_errors=True)


def move(source: Path, target: Path) -> None:
    """Move a file or folder, also to another disk; the target is there whole or not at all."""
    half = target.with_name(f".{target.name}")
    _remove(half)
    try:
        shutil.move(source, half)
        half.rename(target)
    except shutil.Error as problem:
        raise _failed(problem) from None
    except OSError as problem:
        raise EnvironmentUnusable(f"cannot move {source} to {target}: {problem.strerror}") from None
    finally:
        _remove(half)


def _failed(problem: shutil.Error) -> EnvironmentUnusable:
    # There is one line per file, all with the same cause.
    [(_, failed, reason), *_] = problem.args[0]
    return EnvironmentUnusable(f"cannot copy to {failed}: {reason}")


def _remove(path: Path) -> None:
    """Remove a file or folder that may be there."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
