"""Checks of what is in dist/ before it is handed out: by us, by auditwheel and by twine."""

import hashlib
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from release import contents, licenses, tree, wheels

SUMS = "SHA256SUMS"
NOTES = "RELEASE-NOTES.md"
AGAIN = "again"  # folder below dist/ with what a second build made, if it differs
COMMIT_IN_WHEEL = tree.COMMIT_FILE.removeprefix("src/")
ACTIONLINT = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.7"
WORKFLOWS = (".github/workflows/*.yml", "docs/examples/github-*.yml")


def check(files: Sequence[Path]) -> None:
    """End with every problem that a file of the release has."""
    built = [path for path in files if path.suffix == ".whl"]
    found = [f"{path.name}: {problem}" for path in built for problem in contents.problems(path)]
    if licenses.FILE.read_text(encoding="utf-8") != licenses.text(licenses.crates()):
        found.append(f"{licenses.FILE.name} is not that of Cargo.lock: make licenses")
    if found:
        raise SystemExit("\n".join(found))
    for path in built:
        print(f"+ auditwheel show {path.name}", flush=True)
        subprocess.run([wheels.TOOLS / "auditwheel", "show", path], check=True)
    subprocess.run([wheels.TOOLS / "twine", "check", "--strict", *files], check=True)


def lint_workflows() -> None:
    """Check the workflows with actionlint, if Go is here to run it."""
    go = shutil.which("go")
    if go is None:
        print("left out: actionlint (needs Go)")
        return
    files = sorted(path for pattern in WORKFLOWS for path in tree.ROOT.glob(pattern))
    subprocess.run([go, "run", ACTIONLINT, *files], cwd=tree.ROOT, check=True)


def reproduce(folder: Path, repository: str) -> None:
    """Build again elsewhere, from nothing; end if a file differs, and keep the second one."""
    for path in sorted(folder.glob("*.whl")):
        built, here = built_from(path), tree.commit().name
        if built != here:
            raise SystemExit(
                f"{path.name} was built from {built}, and the checkout is at {here}: make wheels"
            )
    with tempfile.TemporaryDirectory(prefix="loadstone-again-") as name:
        again = Path(name) / "dist"
        for path in wheels.build(again, Path(name) / "work", repository, is_fresh=True):
            first, second = (_digest(one) for one in (folder / path.name, path))
            if first != second:
                kept = folder / AGAIN
                kept.mkdir(exist_ok=True)
                shutil.copy2(path, kept)
                raise SystemExit(
                    f"{path.name} differs between two builds: {first}, {second}. The second is in "
                    f"{kept}; {', '.join(_differing(folder / path.name, path))}"
                )
            print(f"reproduced {path.name} {first}", flush=True)


def _differing(one: Path, other: Path) -> Sequence[str]:
    """Return the names of the members in which two wheels differ."""
    if one.suffix != ".whl":
        return ("compare with diffoscope",)
    with zipfile.ZipFile(one) as a, zipfile.ZipFile(other) as b:
        crcs = [{info.filename: info.CRC for info in archive.infolist()} for archive in (a, b)]
    names = sorted(name for name in crcs[0] | crcs[1] if crcs[0].get(name) != crcs[1].get(name))
    return names or ("only the archives differ, not what they contain",)


def built_from(wheel: Path) -> str:
    """Return the commit that a wheel was built from."""
    with zipfile.ZipFile(wheel) as archive:
        return archive.read(COMMIT_IN_WHEEL).decode().strip()


def write_sums(folder: Path, files: Sequence[Path]) -> Path:
    """Write the SHA-256 hashes of the files, as `sha256sum --check` reads them."""
    path = folder / SUMS
    path.write_text("".join(f"{_digest(file)}  {file.name}\n" for file in files))
    return path


def write_notes(folder: Path) -> Path:
    """Write the release notes: the section of this version in CHANGELOG.md."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / NOTES
    path.write_text(notes((tree.ROOT / "CHANGELOG.md").read_text(), tree.version()))
    return path


def notes(changelog: str, version: str) -> str:
    """Return the section of a version; end if there is none."""
    sections = changelog.split("\n## ")[1:]
    for section in sections:
        title, _, text = section.partition("\n")
        if title.split()[0].strip("[]") == version:
            return f"{text.strip()}\n"
    raise SystemExit(f"CHANGELOG.md has no section for {version}")


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
