"""Rotates Fernet keys as keystone-manage does, and restores them."""

import base64
import os
import shutil
from pathlib import Path

MOST_KEYS = 3  # default of [fernet_tokens] max_active_keys: keystone/conf/fernet_tokens.py


def copy(repository: Path) -> None:
    """Copy the keys to a backup beside their folder."""
    half = repository.with_suffix(".copy")
    shutil.rmtree(half, ignore_errors=True)
    shutil.copytree(repository, half)
    shutil.rmtree(_before(repository), ignore_errors=True)
    half.rename(_before(repository))


def rotate(repository: Path) -> None:
    """Make the staged key the primary one, stage a new one, remove the oldest.

    `keystone-manage fernet_rotate` does the same, but its seconds of CPU would disturb the load.
    """
    numbers = sorted(int(path.name) for path in repository.iterdir() if path.name.isdigit())
    primary = numbers[-1] + 1
    (repository / "0").rename(repository / str(primary))
    staged = repository / ".0"
    staged.touch(mode=0o600)
    staged.write_bytes(base64.urlsafe_b64encode(os.urandom(32)))
    staged.rename(repository / "0")
    old = [number for number in numbers if number]
    most = max(MOST_KEYS, len(numbers))  # a lab may have been given more
    for number in old[: max(0, len(old) + 2 - most)]:
        (repository / str(number)).unlink()


def put_back(repository: Path) -> None:
    """Restore the keys from their backup, and remove it."""
    before = _before(repository)
    if not before.exists():
        return
    backup = {path.name for path in before.iterdir()}
    for path in before.iterdir():
        half = repository / f".{path.name}"
        shutil.copy2(path, half)
        half.rename(repository / path.name)
    for path in repository.iterdir():
        if path.name not in backup:
            path.unlink()
    shutil.rmtree(before)


def _before(repository: Path) -> Path:
    return repository.with_suffix(".before")
