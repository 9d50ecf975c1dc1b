"""This machine's own Loadstone as a wheel, and its dependencies pinned by hash, for fleet hosts.

Hosts never resolve the name `loadstone` in a package index, where anybody may register it.
"""

import base64
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, distribution
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import loadstone
from loadstone.errors import EnvironmentUnusable

# Written by `make requirements` from uv.lock.
REQUIREMENTS = Path(__file__).with_name("requirements.txt")
_METADATA = ("METADATA", "WHEEL", "entry_points.txt")
_NOT_PACKED = {"__pycache__", ".DS_Store"}


@dataclass(frozen=True, slots=True)
class PackedFile:
    """A file of the wheel, and where its content is."""

    name: str
    path: Path


def key(version: str) -> str:
    """Return the name of an environment on a host: it differs if any file of Loadstone does."""
    digest = hashlib.sha256(REQUIREMENTS.read_bytes())
    for file in _files():
        digest.update(file.name.encode())
        digest.update(hashlib.sha256(file.path.read_bytes()).digest())
    return f"{version}-{digest.hexdigest()[:16]}"


def pack(folder: Path) -> Path:
    """Write the wheel into a folder, from the installed files or the checkout."""
    found = _distribution()
    name = f"loadstone-{found.version}"
    path = folder / f"{name}-{_tag(found)}.whl"
    rows = []
    with ZipFile(path, "w", ZIP_DEFLATED) as wheel:
        for file in _files():
            content = file.path.read_bytes()
            _add(wheel, file.name, content)
            rows.append(f"{file.name},sha256={_digest(content)},{len(content)}")
        record = f"{name}.dist-info/RECORD"
        _add(wheel, record, "\n".join((*rows, f"{record},,", "")).encode())
    return path


def _files() -> Iterator[PackedFile]:
    package = Path(loadstone.__file__).parent
    for path in sorted(package.rglob("*")):
        if path.is_file() and not _NOT_PACKED.intersection(path.parts):
            yield PackedFile(path.relative_to(package.parent).as_posix(), path)
    found = _distribution()
    for one in found.files or ():
        is_wanted = one.name in _METADATA or one.parent.name == "licenses"
        if is_wanted and one.parts[0].endswith(".dist-info"):
            yield PackedFile(one.as_posix(), Path(str(found.locate_file(one))))


def _distribution() -> Distribution:
    found = distribution("loadstone")
    if not any(one.name == "WHEEL" for one in found.files or ()):
        raise EnvironmentUnusable(
            "this Loadstone was not installed as a wheel, so it cannot be sent to other hosts; "
            "install it by `make install` or from a wheel"
        )
    return found


def _tag(found: Distribution) -> str:
    lines = (found.read_text("WHEEL") or "").splitlines()
    tags = [line.partition(":")[2].strip() for line in lines if line.startswith("Tag:")]
    if not tags:
        raise EnvironmentUnusable("the installed Loadstone's WHEEL names no tag; install it again")
    return tags[0]


def _add(wheel: ZipFile, name: str, content: bytes) -> None:
    entry = ZipInfo(name)  # of a fixed date, so that the same files give the same wheel
    entry.external_attr = 0o644 << 16
    entry.compress_type = ZIP_DEFLATED
    wheel.writestr(entry, content)


def _digest(content: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest())
    return digest.rstrip(b"=").decode()
