"""The sources of a release: what git tracks, with a README for package indexes."""

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
COMMIT_FILE = "src/loadstone/commit"  # `loadstone --version` prints it
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|!\[[^\]]*\]\([^)]*\))*)\]\(([^)\s]+)\)")


@dataclass(frozen=True, slots=True)
class Commit:
    """The commit of the checkout; its name ends with `-dirty` if there are uncommitted changes."""

    name: str
    time_s: int


def commit() -> Commit:
    """Return the commit of the checkout."""
    name = _git("describe", "--always", "--abbrev=12", "--exclude=*", "--dirty")
    return Commit(name, int(_git("log", "-1", "--format=%ct")))


def version() -> str:
    """Return the version, which stands in Cargo.toml alone."""
    found = re.search(r'^version = "(.+)"$', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)
    if found is None:
        raise SystemExit("Cargo.toml: no version")
    return found[1]


def tracked(*paths: str) -> list[str]:
    """Return the files that git tracks and that are here."""
    names = _git("ls-files", "-z", *paths).split("\0")
    return [name for name in names if name and (ROOT / name).is_file()]


def export(folder: Path, repository: str) -> None:
    """Copy what git tracks to a folder, and prepare it for a package index.

    Links of the README become absolute below `repository`, the address of the repository's pages
    (https://HOST/OWNER/loadstone); without an address they become plain text.
    """
    shutil.rmtree(folder, ignore_errors=True)
    for name in tracked():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target)  # with its time, so that cargo compiles what changed
    (folder / COMMIT_FILE).write_text(f"{commit().name}\n")
    readme = folder / "README.md"
    readme.write_text(for_index(readme.read_text(encoding="utf-8"), repository), encoding="utf-8")
    if repository:
        project = folder / "pyproject.toml"
        project.write_text(f"{project.read_text()}\n{_urls(repository)}")


def for_index(readme: str, repository: str) -> str:
    """Return a README whose links work outside the repository."""

    def absolute(link: re.Match[str]) -> str:
        mark, label, target = link.groups()
        inner = _LINK.sub(absolute, label)
        if re.match(r"[a-z]+:|#", target):
            return f"{mark}[{inner}]({target})"
        if not repository:
            return "" if mark else inner
        kind = "raw" if mark else "blob"
        return f"{mark}[{inner}]({repository}/{kind}/v{version()}/{target})"

    return _LINK.sub(absolute, readme)


def _urls(repository: str) -> str:
    pages = {
        "Homepage": repository,
        "Documentation": f"{repository}/blob/v{version()}/docs/index.md",
        "Changelog": f"{repository}/blob/v{version()}/CHANGELOG.md",
        "Issues": f"{repository}/issues",
        "Source": repository,
    }
    return "\n".join(("[project.urls]", *(f'{name} = "{url}"' for name, url in pages.items()), ""))


def has_tag(name: str) -> bool:
    """Return whether the repository has a tag."""
    return bool(_git("tag", "--list", name))


def make_tag(name: str, message: str) -> None:
    """Tag the commit that is checked out."""
    _git("tag", "--annotate", "--message", message, name)


def _git(*words: str) -> str:
    ended = subprocess.run(["git", *words], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    return ended.stdout.strip()
