"""Licences of the Rust crates in the engine: `python -m release licenses` writes them to a file.

The file is part of every wheel. A test compares its list of crates with Cargo.lock.
"""

import json
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
FILE = ROOT / "THIRD-PARTY-LICENSES.txt"
ENGINE = "loadstone-python"
PLATFORMS = ("x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu")
APACHE = "Apache-2.0"
MIT = """\
Permission is hereby granted, free of charge, to any person obtaining a copy of this software and
associated documentation files (the "Software"), to deal in the Software without restriction,
including without limitation the rights to use, copy, modify, merge, publish, distribute,
sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or
substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT
NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND
NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM,
DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT
OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE."""
HEAD = """Software of others in Loadstone's wheels

Rust crates that are compiled into loadstone/_engine.abi3.so, and their licences. The scripts of the
report and their licences are in loadstone/report/html/flame.LICENSES.txt. Rust's standard library,
which is in the file too, is under MIT OR Apache-2.0, copyright the Rust Project contributors.

Written by `python -m release licenses` from Cargo.lock.
"""
LINE = "=" * 100


@dataclass(frozen=True, slots=True)
class Crate:
    """A crate, its SPDX expression and the texts of its licence files."""

    name: str
    version: str
    expression: str
    texts: tuple[str, ...]


def crates() -> tuple[Crate, ...]:
    """Return the crates that the engine is built from, ours left out, by name and version."""
    found = {}
    for platform in PLATFORMS:
        metadata = _metadata(platform)
        packages = {package["id"]: package for package in metadata["packages"]}
        for one in _used(metadata, packages):
            found[one] = packages[one]
    ours = [package for package in found.values() if package["source"] is not None]
    ours.sort(key=lambda package: (package["name"], package["version"]))
    return tuple(_crate(package) for package in ours)


def text(every: tuple[Crate, ...]) -> str:
    """Return the file: a line per crate, then each text once, with the crates that have it."""
    rows = [f"{one.name} {one.version}: {one.expression}" for one in every]
    by_text = defaultdict(list)
    shown = {}
    for one in every:
        for licence in one.texts:
            key = " ".join(licence.split())
            by_text[key].append(f"{one.name} {one.version}")
            shown[key] = licence.strip()
    parts = [HEAD, "\n".join(rows)]
    parts += [f"{LINE}\n{', '.join(names)}\n\n{shown[key]}" for key, names in by_text.items()]
    return "\n".join(f"{part}\n" for part in parts)


def write() -> Path:
    """Write the file and return its path."""
    FILE.write_text(text(crates()), encoding="utf-8")
    return FILE


def listed(content: str) -> tuple[tuple[str, str], ...]:
    """Return the names and versions of the crates in a file."""
    return tuple(re.findall(r"^(\S+) (\d\S*): \S", content.partition(LINE)[0], re.MULTILINE))


def _metadata(platform: str) -> Mapping[str, object]:
    words = ["cargo", "metadata", "--locked", "--format-version=1", f"--filter-platform={platform}"]
    ended = subprocess.run(words, cwd=ROOT, check=True, stdout=subprocess.PIPE)
    return json.loads(ended.stdout)


def _used(metadata: Mapping[str, object], packages: Mapping[str, object]) -> Iterator[str]:
    """Yield the ids of what the engine depends on, without build and test dependencies."""
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    left = [one for one, package in packages.items() if package["name"] == ENGINE]
    seen = set(left)
    while left:
        one = left.pop()
        yield one
        for needed in nodes[one]["deps"]:
            is_normal = any(kind["kind"] is None for kind in needed["dep_kinds"])
            if is_normal and needed["pkg"] not in seen:
                seen.add(needed["pkg"])
                left.append(needed["pkg"])


def _crate(package: Mapping[str, object]) -> Crate:
    folder = Path(package["manifest_path"]).parent
    files = sorted(
        path
        for path in folder.iterdir()
        if re.match(r"(?i)(licen[cs]e|copying|notice|copyright)", path.name) and path.is_file()
    )
    texts = tuple(path.read_text(encoding="utf-8") for path in files)
    expression = (package["license"] or "").replace("/", " OR ")
    expression = re.sub(r"\s+", " ", expression)
    return Crate(
        package["name"], package["version"], expression, texts or _usual(package, expression)
    )


def _usual(package: Mapping[str, object], expression: str) -> tuple[str, ...]:
    """Return the text of a licence that a crate names but does not contain."""
    if APACHE in expression:
        return ((ROOT / "LICENSE").read_text(encoding="utf-8"),)
    if expression == "MIT":
        return (f"Copyright (c) {', '.join(package['authors']) or package['name']}\n\n{MIT}",)
    raise SystemExit(f"{package['name']}: no licence file, and no text for {expression!r}")
