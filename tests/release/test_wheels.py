"""What is handed out: metadata, licences, contents, and a README for package indexes."""

import base64
import hashlib
import json
import re
import subprocess
import tomllib
import zipfile
from pathlib import Path

import pytest

from release import bill, checks, contents, licenses, tree

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
DIST_INFO = "loadstone-0.1.0.dist-info"
METADATA = """\
Version: {version}
Summary: s
Author: a
Classifier: c
Description-Content-Type: text/markdown
Keywords: k
License-Expression: Apache-2.0
License-File: LICENSE
Requires-Python: >=3.11

# Loadstone

See [the docs](https://host/docs) and [below](#below).
"""


def whole_wheel() -> dict[str, bytes]:
    crates = licenses.listed(licenses.FILE.read_text())
    bill = {"components": [{"name": name, "version": version} for name, version in crates]}
    files = dict.fromkeys(contents.package(), b"")
    files[f"{DIST_INFO}/METADATA"] = METADATA.format(version=tree.version()).encode()
    files[f"{DIST_INFO}/sboms/loadstone.cyclonedx.json"] = json.dumps(bill).encode()
    for name in PROJECT["license-files"]:
        files[f"{DIST_INFO}/licenses/{name}"] = b""
    return files


@pytest.mark.processes
def test_a_whole_wheel_has_no_problem():
    assert list(contents.of_files(whole_wheel())) == []


@pytest.mark.processes
@pytest.mark.parametrize("name", ["py.typed", "_engine.abi3.so", "report/html/flame.LICENSES.txt"])
def test_a_wheel_without_a_file_of_the_package_is_refused(name):
    files = whole_wheel()
    del files[f"loadstone/{name}"]
    assert list(contents.of_files(files)) == [f"loadstone/{name} is missing"]


@pytest.mark.processes
def test_a_wheel_without_licences_or_bill_of_materials_is_refused():
    files = whole_wheel()
    del files[f"{DIST_INFO}/licenses/THIRD-PARTY-LICENSES.txt"]
    del files[f"{DIST_INFO}/sboms/loadstone.cyclonedx.json"]
    licence, bill = contents.of_files(files)
    assert licence == "the licence file THIRD-PARTY-LICENSES.txt is missing"
    assert "tokio 1." in bill


@pytest.mark.processes
def test_a_relative_link_of_the_readme_is_refused():
    files = whole_wheel()
    files[f"{DIST_INFO}/METADATA"] += b"[docs](docs/ci.md)"
    assert list(contents.of_files(files)) == ["metadata: the README links to docs/ci.md"]


def test_the_tag_of_a_wheel_for_one_distribution_alone_is_refused():
    assert contents.TAG.fullmatch(
        "loadstone-0.1.0-cp311-abi3-manylinux2014_x86_64.manylinux_2_17_x86_64.whl"
    )
    assert not contents.TAG.fullmatch("loadstone-0.1.0-cp311-abi3-linux_x86_64.whl")


@pytest.mark.processes
def test_the_licences_are_those_of_the_crates_in_the_lock():
    assert licenses.FILE.read_text() == licenses.text(licenses.crates()), "make licenses"


def test_every_crate_has_a_licence_that_a_wheel_may_carry():
    """A crate under a copyleft licence would put the wheel under it."""
    allowed = {
        *("Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "Unicode-3.0", "Unlicense"),
        *("CC0-1.0", "LLVM-exception", "Zlib"),
    }
    head = licenses.FILE.read_text().partition(licenses.LINE)[0]
    for name, version in licenses.listed(head):
        expression = re.search(rf"^{re.escape(name)} {re.escape(version)}: (.+)$", head, re.M)[1]
        assert set(re.findall(r"[A-Za-z][\w.-]+", expression)) - {"AND", "OR", "WITH"} <= allowed


def test_the_metadata_names_files_that_are_here_and_versions_that_are_true():
    assert all((ROOT / name).is_file() for name in PROJECT["license-files"])
    assert (ROOT / "src/loadstone/py.typed").is_file()
    assert "version" in PROJECT["dynamic"]  # Cargo.toml has it


def test_the_rust_version_is_in_one_place():
    """Crates inherit it, and pages and messages name the same."""
    least = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["rust-version"]
    for manifest in (ROOT / "rust").glob("*/Cargo.toml"):
        package = tomllib.loads(manifest.read_text())["package"]
        assert package["rust-version"] == package["version"] == {"workspace": True}
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "src").rglob("*.py")]
    named = {found for page in pages for found in re.findall(r"Rust (\d+\.\d+)", page.read_text())}
    assert named == {least}


LINKS = "[ci](docs/ci.md#x), [![shot](a.png)](docs/b.md), [web](https://w/), [a](#a), ![p](p.png)"


def test_links_of_the_readme_become_absolute():
    base = "https://host/o/loadstone"
    pages, pictures = (f"{base}/{kind}/v{tree.version()}" for kind in ("blob", "raw"))
    assert tree.for_index(LINKS, base) == (
        f"[ci]({pages}/docs/ci.md#x), [![shot]({pictures}/a.png)]({pages}/docs/b.md), "
        f"[web](https://w/), [a](#a), ![p]({pictures}/p.png)"
    )


def test_links_of_the_readme_become_text_where_no_page_is_known():
    assert tree.for_index(LINKS, "") == "ci, , [web](https://w/), [a](#a), "


def test_the_notes_of_a_release_are_its_section_of_the_changelog():
    changelog = (
        "# Changelog\n\n## Unreleased\n\n- a\n\n## 0.2.0 - 2027-01-01\n\n- b\n\n## 0.1.0\n\n- c\n"
    )
    assert checks.notes(changelog, "0.2.0") == "- b\n"
    with pytest.raises(SystemExit, match=r"no section for 0\.3"):
        checks.notes(changelog, "0.3")


@pytest.mark.processes
def test_an_export_has_what_git_tracks_and_the_commit(tmp_path):
    tree.export(tmp_path / "out", "https://host/o/loadstone")
    exported = {
        path.relative_to(tmp_path / "out").as_posix()
        for path in (tmp_path / "out").rglob("*")
        if path.is_file()
    }
    assert exported == {*tree.tracked(), tree.COMMIT_FILE}
    project = tomllib.loads((tmp_path / "out/pyproject.toml").read_text())["project"]
    assert project["urls"]["Issues"] == "https://host/o/loadstone/issues"
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    name = (tmp_path / "out" / tree.COMMIT_FILE).read_text().strip()
    assert head.startswith(name.removesuffix("-dirty"))


def test_a_wheel_of_another_commit_is_not_compared(tmp_path):
    wheel = tmp_path / "loadstone-0.1.0-cp311-abi3-manylinux2014_x86_64.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("loadstone/commit", "0123456789ab\n")
    with pytest.raises(SystemExit, match="was built from 0123456789ab, and the checkout is at"):
        checks.reproduce(tmp_path, "")


def built_in(folder: Path, into: Path) -> Path:
    """A wheel whose bill of materials names the folder in which it was built."""
    name = f"{DIST_INFO}/sboms/loadstone.cyclonedx.json"
    text = json.dumps({"ref": f"path+file://{folder}/rust/engine#loadstone-engine@0.1.0"})
    into.mkdir()
    path = into / "loadstone-0.1.0-cp311-abi3-linux_x86_64.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for member, content in (
            (name, text),
            ("loadstone/__init__.py", ""),
            (f"{DIST_INFO}/RECORD", f"{name},sha256=x,1\nloadstone/__init__.py,sha256=y,0\n"),
        ):
            archive.writestr(zipfile.ZipInfo(member, (2026, 1, 2, 3, 4, 6)), content)
    return path


def test_a_wheel_does_not_tell_the_folder_in_which_it_was_built(tmp_path):
    wheels = []
    for number in ("1", "22"):
        folder = Path("/build") / number
        wheels.append(built_in(folder, tmp_path / number))
        bill.remove_folder(wheels[-1], folder, "/loadstone")
    first, second = (path.read_bytes() for path in wheels)
    assert first == second
    assert b"/build" not in first
    with zipfile.ZipFile(wheels[0]) as archive:
        inside = archive.read(f"{DIST_INFO}/sboms/loadstone.cyclonedx.json")
        record = archive.read(f"{DIST_INFO}/RECORD").decode().splitlines()
    digest = base64.urlsafe_b64encode(hashlib.sha256(inside).digest()).decode().rstrip("=")
    assert record[0].split(",")[1:] == [f"sha256={digest}", str(len(inside))]
    assert record[1] == "loadstone/__init__.py,sha256=y,0"


def test_the_notes_of_a_release_are_written_where_nothing_was_built_before(tmp_path):
    path = checks.write_notes(tmp_path / "dist")
    assert path.read_text().strip()
