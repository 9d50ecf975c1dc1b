"""Fills a file system with one file."""

import errno
import os
from pathlib import Path

from loadstone.errors import InvalidInput

NAME = "loadstone-fills-the-disk"
MOST_BYTES = 1 << 30  # largest file system to fill: a larger one is not a test file system
LEAST_BYTES = 4096
SHARED = Path("/dev/shm")  # noqa: S108  # other programs keep their memory there


def require_small(data: Path) -> None:
    """Raise InvalidInput unless the data are on a small file system of their own."""
    info = os.statvfs(data)
    size = info.f_blocks * info.f_frsize
    is_shared = data.stat().st_dev in {
        place.stat().st_dev for place in (Path("/"), Path.home(), SHARED) if place.exists()
    }
    if is_shared or size > MOST_BYTES:
        raise InvalidInput(
            f"{data} is on a file system of {size / 2**20:.0f} MB that others use, too, and is not "
            "filled; give the lab a small one of its own: mount -t tmpfs -o size=400m tmpfs "
            "/mnt/small, then lab up --with storage=/mnt/small"
        )


def file(data: Path) -> Path:
    """Return the path of the filler file."""
    return data / NAME


def fill(data: Path) -> None:
    """Fill the free space."""
    info = os.statvfs(data)
    chunk = max(LEAST_BYTES, info.f_bfree * info.f_frsize)
    end = 0
    handle = os.open(file(data), os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        while chunk >= LEAST_BYTES:
            try:
                os.posix_fallocate(handle, end, chunk)
                end += chunk
            except OSError as problem:
                if problem.errno != errno.ENOSPC:
                    raise
                chunk //= 2
    finally:
        os.close(handle)


def free(path: Path) -> None:
    """Free the space again."""
    path.unlink(missing_ok=True)
