"""Takes the folder of the build out of the bill of materials in a wheel.

maturin names the project's own crates by their folder, so two builds in different folders would
differ, and a wheel would tell where it was built.
"""

import base64
import csv
import hashlib
import io
import zipfile
from pathlib import Path

BILLS, RECORD = ".dist-info/sboms/", ".dist-info/RECORD"


def remove_folder(wheel: Path, folder: Path, name: str) -> None:
    """Call the folder by a name in the wheel's bills of materials, and update its RECORD."""
    with zipfile.ZipFile(wheel) as archive:
        files = [(info, archive.read(info)) for info in archive.infolist()]
    changed = {
        info.filename: data.replace(str(folder).encode(), name.encode())
        for info, data in files
        if BILLS in info.filename
    }
    part = wheel.with_suffix(".part")
    with zipfile.ZipFile(part, "w") as archive:
        for info, data in files:
            kept = changed.get(info.filename, data)
            if info.filename.endswith(RECORD):
                kept = _recorded(data, changed)
            archive.writestr(info, kept)
    part.replace(wheel)


def _recorded(record: bytes, changed: dict[str, bytes]) -> bytes:
    """Return a RECORD with the hashes and sizes of the changed files (packaging.python.org)."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    for name, digest, size in csv.reader(io.StringIO(record.decode())):
        if name in changed:
            data = changed[name]
            hashed = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
            rows.writerow((name, f"sha256={hashed}", len(data)))
        else:
            rows.writerow((name, digest, size))
    return text.getvalue().encode()
