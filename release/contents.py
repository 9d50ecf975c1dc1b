"""Checks that a wheel contains the whole package, its licences, an SBOM and full metadata."""

import json
import re
from collections.abc import Iterator, Mapping
from email import message_from_string
from pathlib import Path
from zipfile import ZipFile

from release import licenses, tree

METADATA = (
    "Author",
    "Classifier",
    "Description-Content-Type",
    "Keywords",
    "License-Expression",
    "License-File",
    "Requires-Python",
    "Summary",
)
TAG = re.compile(r"loadstone-[^-]+-cp311-abi3-manylinux2014_(\w+)\.manylinux_2_17_\1\.whl")


def problems(wheel: Path) -> Iterator[str]:
    """Yield what a wheel lacks."""
    if not TAG.fullmatch(wheel.name):
        yield "its name is not that of an abi3 wheel for manylinux2014"
    with ZipFile(wheel) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    yield from of_files(files)


def of_files(files: Mapping[str, bytes]) -> Iterator[str]:
    """Yield what the files of a wheel lack, by name."""
    yield from (f"{name} is missing" for name in sorted(package() - set(files)))
    [folder] = {name.partition("/")[0] for name in files if ".dist-info/" in name}
    inside = {name.partition("/")[2]: file for name, file in files.items() if folder in name}
    for name in ("LICENSE", licenses.FILE.name):
        if f"licenses/{name}" not in inside:
            yield f"the licence file {name} is missing"
    yield from _metadata(inside["METADATA"].decode())
    yield from _materials(inside)


def package() -> set[str]:
    """Return the files that a wheel has of the package, as git knows them, and what is built."""
    tracked = tree.tracked("src/loadstone")
    built = ("loadstone/_engine.abi3.so", tree.COMMIT_FILE.removeprefix("src/"))
    return {*(name.removeprefix("src/") for name in tracked), *built}


def _metadata(text: str) -> Iterator[str]:
    found = message_from_string(text)
    yield from (f"metadata: no {name}" for name in METADATA if not found.get_all(name))
    if found["Version"] != tree.version():
        yield f"metadata: version {found['Version']}, not {tree.version()}"
    # Pictures and pages of the repository have no meaning on a page of a package index.
    yield from (
        f"metadata: the README links to {link}"
        for link in re.findall(r"\]\(([^)\s]+)", found.get_payload())
        if not re.match(r"https://|#", link)
    )


def _materials(inside: Mapping[str, bytes]) -> Iterator[str]:
    """Yield crates that the bill of materials (CycloneDX) does not name."""
    bills = [json.loads(file) for name, file in inside.items() if name.startswith("sboms/")]
    named = {(part["name"], part["version"]) for bill in bills for part in bill["components"]}
    wanted = set(licenses.listed(licenses.FILE.read_text(encoding="utf-8")))
    missing = sorted(" ".join(crate) for crate in wanted - named)
    if missing:
        yield f"the bill of materials lacks {', '.join(missing)}"
