"""What `release` may be: a version, a patch, sources, a commit, a wheel."""

import subprocess
from pathlib import Path

import pytest

from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.lab.keystone import settings
from loadstone.lab.keystone.release import SourceTree, read, restored


def git(tree: Path, *words: str) -> str:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    done = subprocess.run(
        ["git", "-C", str(tree), *identity, *words], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A repository with one commit, tagged 29.0.1."""
    tree = tmp_path / "checkout"
    (tree / "keystone").mkdir(parents=True)
    (tree / "setup.py").write_text("")
    (tree / "keystone" / "token.py").write_text("SLEEP_S = 0\n")
    git(tree, "init", "--quiet")
    git(tree, "add", ".")
    git(tree, "commit", "--quiet", "-m", "first")
    git(tree, "tag", "29.0.1")
    return tree


def test_a_version_on_pypi() -> None:
    found = read("30.0.0")
    assert (found.version, found.title, found.label, found.major) == (
        *("30.0.0",) * 3,
        30,
    )


@pytest.mark.processes
def test_a_changed_source_tree_is_another_release(sources: Path) -> None:
    before = read(str(sources))
    (sources / "keystone" / "token.py").write_text("SLEEP_S = 1\n")
    after = read(str(sources))
    assert before.version == after.version == "29.0.1"
    assert before.title != after.title
    assert before.label == f"29.0.1 from checkout ({before.digest})"


@pytest.mark.processes
def test_a_commit_is_installed_without_later_changes(sources: Path, tmp_path: Path) -> None:
    first = git(sources, "rev-parse", "HEAD")
    (sources / "keystone" / "token.py").write_text("SLEEP_S = 1\n")
    git(sources, "commit", "--quiet", "--all", "-m", "second")
    found = read(f"git+file://{sources}@29.0.1")
    assert found.commit == first
    assert read(f"git+file://{sources}").commit != first
    copy = tmp_path / "copy"
    SourceTree(found, copy).prepare(lambda _: None)
    assert (copy / "keystone" / "token.py").read_text() == "SLEEP_S = 0\n"
    assert not (copy / ".git").exists()


def test_a_patch_names_the_environment_by_its_content(tmp_path: Path) -> None:
    patch = tmp_path / "fix.patch"
    patch.write_text("--- a\n")
    before = read(f"30.0.0+{patch}")
    patch.write_text("--- b\n")
    assert read(f"30.0.0+{patch}").title != before.title
    assert before.label == f"30.0.0 with fix.patch ({before.digest})"


@pytest.mark.processes
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("30", "release must be a version of Keystone on PyPI"),
        ("12.0.0", "release=12.0.0 is too old"),
        ("/nowhere", "'/nowhere' is none of them"),
        ("30.0.0+/nowhere.patch", "/nowhere.patch: No such file or directory"),
        ("git+file:///nowhere@main", "release=git.*nowhere"),
    ],
)
def test_what_is_no_release_is_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        read(text)


@pytest.mark.processes
def test_an_unknown_commit_is_named(sources: Path) -> None:
    with pytest.raises(InvalidInput, match="Needed a single revision"):
        read(f"git+file://{sources}@no-such-branch")


def test_a_wheel_of_another_project_is_refused(tmp_path: Path) -> None:
    wheel = tmp_path / "requests-2.32.0-py3-none-any.whl"
    wheel.write_bytes(b"")
    with pytest.raises(InvalidInput, match="is not a wheel of Keystone"):
        read(str(wheel))


def test_a_wheel_without_a_version_is_refused(tmp_path: Path) -> None:
    wheel = tmp_path / "keystone-3a-py3-none-any.whl"
    wheel.touch()
    with pytest.raises(InvalidInput, match=r"keystone-3a-py3-none-any\.whl is not a wheel"):
        read(str(wheel))


def test_sources_that_cannot_be_read_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_bytes", refuse)
    wheel = tmp_path / "keystone-30.0.0-py3-none-any.whl"
    wheel.touch()
    with pytest.raises(InvalidInput, match=r"\.whl: Permission denied$"):
        read(str(wheel))


@pytest.mark.processes
def test_a_lab_knows_its_sources_from_every_folder(
    sources: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(sources.parent)
    patch = sources.parent / "fix.patch"
    patch.write_text("")
    for typed, known in (
        ("checkout", str(sources)),
        ("./checkout/../checkout", f"{sources}/../checkout"),
        ("30.0.0+fix.patch", f"30.0.0+{patch}"),
        (f"git+file://{sources}@29.0.1", f"git+file://{sources}@29.0.1"),
        ("29.1.0", "29.1.0"),
    ):
        assert settings.read([("release", typed)]).release == known


@pytest.mark.processes
def test_a_kept_release_is_the_one_that_was_read(sources: Path, tmp_path: Path) -> None:
    patch = tmp_path / "fix.patch"
    patch.write_text("--- a\n")
    for text in (str(sources), f"git+file://{sources}@29.0.1", f"30.0.0+{patch}", "30.0.0"):
        assert restored(read(text).pairs()) == read(text)


@pytest.mark.processes
def test_sources_that_change_before_they_are_copied_are_refused(
    sources: Path, tmp_path: Path
) -> None:
    found = read(str(sources))
    (sources / "keystone" / "token.py").write_text("SLEEP_S = 1\n")
    with pytest.raises(EnvironmentUnusable, match=f"{found.title}.*run the command again"):
        SourceTree(found, tmp_path / "copies" / "copy").prepare(lambda _: None)
    assert not [path for path in (tmp_path / "copies").iterdir() if path.is_dir()]
