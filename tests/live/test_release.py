"""A developer's own Keystone in the lab: a patch on a release, and a commit of a repository."""

import subprocess
import sys
import tarfile
from difflib import unified_diff
from pathlib import Path

import pytest
from lab_client import quietly, token_of, validation_of

from loadstone.errors import EnvironmentUnusable
from loadstone.lab import deployment
from loadstone.lab.deployment import Deployment
from loadstone.lab.keystone import settings

pytestmark = pytest.mark.live

PROVIDER = Path("keystone/token/provider.py")
BEFORE = "        try:\n            token = self._validate_token(token_id)\n"
AFTER = BEFORE.replace("try:\n", "try:\n            LOG.warning('patched validation')\n")


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Keystone 30.0.0 as on PyPI, in a git repository with one commit and its tag."""
    folder = tmp_path_factory.mktemp("sources")
    fetched = folder / "sdist"
    pip = ["download", "--quiet", "--no-deps", "--no-binary", "keystone", "keystone==30.0.0"]
    environment = folder / "pip"
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    subprocess.run([environment / "bin" / "pip", *pip, "-d", str(fetched)], check=True)
    [archive] = fetched.glob("keystone-*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    tree = folder / "keystone-30.0.0"
    git(tree, "init", "--quiet")
    git(tree, "add", "--all", "--force")
    git(tree, "commit", "--quiet", "-m", "30.0.0")
    git(tree, "tag", "30.0.0")
    return tree


def git(tree: Path, *words: str) -> None:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    subprocess.run(["git", "-C", str(tree), *identity, *words], check=True)


def started(name: str, release: str) -> Deployment:
    pairs = [("workers", "1"), ("hash-rounds", "4"), ("release", release)]
    return deployment.up(name, settings.read(pairs), quietly, owned=True)


def log_after_a_validation(lab: Deployment) -> str:
    validation_of(lab.url, token_of(lab.environment_variables())).raise_for_status()
    return "".join(path.read_text(errors="replace") for _, path in lab.logs() if path.exists())


def test_a_patch_is_applied_and_named(lab_keystone: Deployment, tmp_path: Path, name: str) -> None:
    [installed] = lab_keystone.python.parent.parent.glob(f"lib/python*/site-packages/{PROVIDER}")
    original = installed.read_text()
    assert BEFORE in original
    patch = tmp_path / "warn.patch"
    lines = unified_diff(
        original.splitlines(keepends=True),
        original.replace(BEFORE, AFTER).splitlines(keepends=True),
        f"a/{PROVIDER}",
        f"b/{PROVIDER}",
    )
    patch.write_text("".join(lines))
    lab = started(name, f"30.0.0+{patch}")
    assert dict(lab.facts())["release"].startswith("keystone 30.0.0 with warn.patch (")
    assert "patched validation" in log_after_a_validation(lab)


@pytest.mark.verify
def test_a_commit_is_built_and_named(sources: Path, name: str) -> None:
    changed = (sources / PROVIDER).read_text().replace(BEFORE, AFTER)
    git(sources, "checkout", "--quiet", "-b", "topic")
    (sources / PROVIDER).write_text(changed)
    git(sources, "commit", "--quiet", "--all", "-m", "warn")
    lab = started(name, f"git+file://{sources}@topic")
    assert " from keystone-30.0.0 at commit " in dict(lab.facts())["release"]
    assert "patched validation" in log_after_a_validation(lab)


def test_a_patch_that_does_not_apply_leaves_nothing(tmp_path: Path, name: str) -> None:
    patch = tmp_path / "wrong.patch"
    patch.write_text("--- a/keystone/no.py\n+++ b/keystone/no.py\n@@ -1 +1 @@\n-a\n+b\n")
    with pytest.raises(EnvironmentUnusable, match=r"wrong\.patch does not apply to keystone-30"):
        started(name, f"30.0.0+{patch}")
    assert not any(found.name == name for found in deployment.every(quietly))
