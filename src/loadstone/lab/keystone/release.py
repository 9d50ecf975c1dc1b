"""The Keystone that a deployment installs: a release on PyPI, with a patch, or a developer's own.

30.0.0                         a release on PyPI
30.0.0+/path/fix.patch         the same, with a patch applied (as `git diff` writes it)
/path/keystone                 a source tree, with its uncommitted changes
git+file:///path/keystone@REF  a commit of a git repository; without @REF its HEAD
/path/keystone-*.whl           a wheel
"""

import hashlib
import io
import os
import re
import shutil
import subprocess
import tarfile
from dataclasses import dataclass, fields
from pathlib import Path

from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.lab.parts.part import Part
from loadstone.system import locks
from loadstone.system.paths import expanded
from loadstone.system.say import Say

VERSION = re.compile(r"\d+\.\d+\.\d+(\.?[a-z0-9]+)?")
OLDEST = 13  # the last with UUID tokens, on Python 3.6
# For a source tree without a version (no tag, no PKG-INFO): the newest tested release.
NEWEST = "30.0.0"
GIT = "git+file://"
_DIGITS = 12  # of a SHA-256, in names of folders
_LEFT_OUT = shutil.ignore_patterns(
    ".git", "__pycache__", "*.egg-info", ".tox", ".venv", ".stestr", "build", "dist"
)


@dataclass(frozen=True, slots=True)
class Release:
    """One Keystone to install."""

    text: str  # as the user wrote it
    version: str  # "30.0.0"; of a source tree the last tag
    patch: Path | None = None
    wheel: Path | None = None
    tree: Path | None = None  # folder of sources
    commit: str | None = None  # of `tree`, a git repository
    digest: str = ""  # of what is not on PyPI

    @property
    def major(self) -> int:
        """The major version."""
        return int(self.version.partition(".")[0])

    @property
    def title(self) -> str:
        """Name of the environment; equal for equal content."""
        return f"{self.version}-{self.digest}" if self.digest else self.version

    @property
    def absolute(self) -> str:
        """The text with the full path of what it names."""
        if self.tree is not None and self.commit is not None:
            place, at, reference = self.text.removeprefix(GIT).partition("@")
            return f"{GIT}{Path(place).absolute()}{at}{reference}"
        version, plus, patch = self.text.partition("+")
        if self.patch is not None:
            return f"{version}{plus}{expanded(patch).absolute()}"
        return self.text if not self.digest else str(expanded(self.text).absolute())

    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Return the fields as text, which `restored` accepts."""
        values = ((one.name, getattr(self, one.name)) for one in fields(self))
        return tuple((name, str(value)) for name, value in values if value is not None)

    def require_unchanged(self) -> None:
        """Raise EnvironmentUnusable if what the text names has another content by now."""
        try:
            present = read(self.text)
        except InvalidInput as gone:
            raise EnvironmentUnusable(str(gone)) from None
        if present != self:
            raise EnvironmentUnusable(
                f"release={self.text} was changed after it was read (it was {self.title}, and is "
                f"{present.title}): run the command again"
            )

    @property
    def label(self) -> str:
        """The release as reports show it."""
        match self:
            case Release(patch=Path() as patch):
                return f"{self.version} with {patch.name} ({self.digest})"
            case Release(wheel=Path() as wheel):
                return f"{self.version} from {wheel.name} ({self.digest})"
            case Release(tree=Path() as tree, commit=str() as commit):
                return f"{self.version} from {tree.name} at commit {commit[:_DIGITS]}"
            case Release(tree=Path() as tree):
                return f"{self.version} from {tree.name} ({self.digest})"
            case _:
                return self.version


def read(text: str) -> Release:
    """Parse the setting `release`; raise InvalidInput with the reason if it is invalid."""
    try:
        return _read(text)
    except OSError as problem:
        raise InvalidInput(f"release={text}: {problem.filename}: {problem.strerror}") from None


def _read(text: str) -> Release:
    version, plus, patch = text.partition("+")
    if VERSION.fullmatch(version):
        if int(version.partition(".")[0]) < OLDEST:
            raise InvalidInput(
                f"release={text} is too old; releases from {OLDEST} ({OLDEST}.0.2) on are tried"
            )
        return _patched(text, version, expanded(patch)) if plus else Release(text, version)
    if text.startswith(GIT):
        return _at_commit(text)
    path = expanded(text)
    # Unlike pathlib's, isfile() answers for a path in a folder that must not be entered, too.
    if path.suffix == ".whl" and os.path.isfile(path):
        return _from_wheel(text, path)
    if os.path.isfile(path / "setup.py") or os.path.isfile(path / "pyproject.toml"):
        return Release(text, _version_of(path), tree=path.resolve(), digest=_digest_of(path))
    raise InvalidInput(
        f"release must be a version of Keystone on PyPI (30.0.0), one with a patch "
        f"(30.0.0+/path/fix.patch), a folder with Keystone's sources, git+file:///path@REF, or a "
        f"wheel; {text!r} is none of them"
    )


def restored(pairs: tuple[tuple[str, str], ...]) -> Release:
    """Return the release that `Release.pairs` has written."""
    found = dict(pairs)
    patch, wheel, tree = (
        Path(found[name]) if name in found else None for name in ("patch", "wheel", "tree")
    )
    return Release(
        found["text"], found["version"], patch, wheel, tree, found.get("commit"), found["digest"]
    )


@dataclass(frozen=True, slots=True)
class SourceTree(Part):
    """A copy of the sources to install, because a build leaves files in its folder."""

    release: Release
    folder: Path  # of the copy
    name: str = "sources"

    def prepare(self, say: Say) -> None:
        """Copy the sources, once."""
        tree = self.release.tree
        if tree is None:
            return
        with locks.held(self.folder.with_name(f".{self.folder.name}.lock")):
            if self.folder.exists():
                return
            say(f"copying {tree}")
            unfinished = self.folder.with_name(f".{self.folder.name}.new")
            shutil.rmtree(unfinished, ignore_errors=True)
            try:
                self._copy(tree, unfinished)
                unfinished.rename(self.folder)
            finally:
                shutil.rmtree(unfinished, ignore_errors=True)

    def _copy(self, tree: Path, copy: Path) -> None:
        if self.release.commit is None:
            shutil.copytree(tree, copy, ignore=_LEFT_OUT)
            self.release.require_unchanged()
            return
        archive = git(tree, "archive", "--format=tar", self.release.commit)
        with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
            packed.extractall(copy, filter="data")


def _patched(text: str, version: str, patch: Path) -> Release:
    digest = _short(patch.read_bytes())
    return Release(text, version, patch=patch.resolve(), digest=digest)


def _from_wheel(text: str, wheel: Path) -> Release:
    name, _, rest = wheel.name.partition("-")
    version = rest.partition("-")[0]
    if name != "keystone" or not version.partition(".")[0].isdecimal():
        raise InvalidInput(f"release={text}: {wheel.name} is not a wheel of Keystone")
    return Release(text, version, wheel=wheel.resolve(), digest=_short(wheel.read_bytes()))


def _at_commit(text: str) -> Release:
    place, _, reference = text.removeprefix(GIT).partition("@")
    tree = Path(place)
    try:
        commit = git(tree, "rev-parse", "--verify", f"{reference or 'HEAD'}^{{commit}}")
    except EnvironmentUnusable as problem:
        raise InvalidInput(f"release={text}: {problem}") from None
    match = commit.decode().strip()
    version = _version_of(tree, match)
    return Release(text, version, tree=tree.resolve(), commit=match, digest=match[:_DIGITS])


def _version_of(tree: Path, reference: str = "HEAD") -> str:
    """Return the last tag, else the version of an unpacked source distribution."""
    try:
        # Empty in the top folder: the tags of a repository around the tree are not its own.
        is_own = not git(tree, "rev-parse", "--show-prefix").strip()
        found = git(tree, "describe", "--tags", "--abbrev=0", reference) if is_own else b""
        tag = found.decode().strip()
    except EnvironmentUnusable:
        tag = ""
    if VERSION.fullmatch(tag):
        return tag
    try:
        lines = (tree / "PKG-INFO").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return NEWEST
    stated = [line.partition(":")[2].strip() for line in lines if line.startswith("Version:")]
    return stated[0] if stated and VERSION.fullmatch(stated[0]) else NEWEST


def _digest_of(tree: Path) -> str:
    """Return a digest of the files that are installed from a source tree."""
    found = hashlib.sha256()
    installed = (*tree.glob("*.py"), *tree.glob("*.cfg"), *tree.glob("*.toml"))
    for path in sorted((*installed, *(tree / "keystone").rglob("*"))):
        if path.is_file() and path.suffix != ".pyc":
            found.update(f"{path.relative_to(tree)}\0".encode())
            found.update(hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()[:_DIGITS]


def git(tree: Path, *words: str) -> bytes:
    """Run git in a repository; EnvironmentUnusable has its last line."""
    try:
        completed = subprocess.run(
            ("git", "-C", str(tree), *words), stdin=subprocess.DEVNULL, capture_output=True,
            check=False,
        )  # fmt: skip
    except FileNotFoundError:
        raise EnvironmentUnusable("git is not installed (apt install git)") from None
    if completed.returncode != 0:
        lines = completed.stderr.decode(errors="replace").strip().splitlines()
        raise EnvironmentUnusable(lines[-1] if lines else f"git {words[0]} failed in {tree}")
    return completed.stdout


def _short(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:_DIGITS]
