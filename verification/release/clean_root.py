"""Loadstone from its wheel on a fresh Debian: `python -m verification.release.clean_root`.

Makes a root file system with Python and nothing else (mmdebstrap), enters it by chroot in
namespaces of its own, and does what docs/install.md says: installs the wheel as root with uv, as an
ordinary user with pip, and as a user without internet from a wheelhouse; measures with it; removes
it. There is no compiler, no make and no Rust. Needs root, `make wheels` and `make wheelhouse
LAB=1`. Ends with 1 if a step fails.
"""

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOTS = ROOT / "target/verify/roots"
PACKAGES = "python3,python3-venv,ca-certificates"
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
USER = "visitor"
USER_ID = 1000
LEFT_OUT = "left out: the wheelhouse is for another Python |"
CP = """python3 -c 'import sys; print("cp%d%d" % sys.version_info[:2])'"""
HAS_WHEELS = f"ls /wheelhouse/numpy-*-$({CP})-*"
ABSENT = ("cargo", "rustc", "cc", "gcc", "make", "uv")
# Installers' settings of this machine hold in the root as well; the wheelhouse is for one of them.
INSTALLERS = ("PIP_", "UV_", "SSL_CERT", "http_proxy", "https_proxy", "no_proxy")


@dataclass(frozen=True, slots=True)
class Way:
    """A way to install: as whom, with which commands, and where that puts files."""

    name: str
    user: str
    tools: str  # fetched first, and not counted
    install: str
    folder: str  # whose size is counted
    command: str
    remove: str
    variables: str = ""  # of the demo
    is_offline: bool = False


def ways() -> tuple[Way, ...]:
    """Return the ways that docs/install.md describes."""
    return (
        Way(
            "root, uv tool install",
            "root",
            "python3 -m venv /opt/uv && /opt/uv/bin/pip install --quiet uv",
            "/opt/uv/bin/uv tool install --quiet /wheels/loadstone-*.whl",
            "/root/.local/share/uv/tools/loadstone",
            "/root/.local/bin/loadstone",
            "/opt/uv/bin/uv tool uninstall loadstone",
        ),
        Way(
            "user, pip",
            USER,
            "python3 -m venv loadstone",
            "loadstone/bin/pip install --quiet /wheels/loadstone-*.whl",
            f"/home/{USER}/loadstone",
            f"/home/{USER}/loadstone/bin/loadstone",
            "rm -r loadstone",
        ),
        Way(
            "user, pip, no internet",
            USER,
            "python3 -m venv loadstone",
            "loadstone/bin/pip install --quiet --no-index --find-links /wheelhouse loadstone",
            f"/home/{USER}/loadstone",
            f"/home/{USER}/loadstone/bin/loadstone",
            "rm -r loadstone",
            "PIP_NO_INDEX=1 PIP_FIND_LINKS=/wheelhouse",
            is_offline=True,
        ),
    )


def main() -> None:
    """Print a row per way; end with 1 if a step failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suite", default="bookworm", help="release of Debian")
    parser.add_argument("--wheels", type=Path, default=ROOT / "dist")
    parser.add_argument("--wheelhouse", type=Path, default=ROOT / "dist/wheelhouse")
    parser.add_argument("--budget", default="75s", help="of each search of the demo")
    parser.add_argument("--way", default="", help="only this one")
    given = parser.parse_args()
    archive = made(given.suite)
    chosen = [way for way in ways() if given.way in ("", way.name)]
    failed = False
    print("| system | way | install s | MB | demo s | page | result |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for way in chosen:
        with tempfile.TemporaryDirectory(prefix="loadstone-root-") as name:
            root = Path(name)
            unpack(archive, root, given.wheels, given.wheelhouse)
            row = carry_out(root, way, given.budget)
        print(f"| Debian {given.suite} | {way.name} | {row}", flush=True)
        failed |= not row.endswith(("| removed |", LEFT_OUT))
    sys.exit(1 if failed else 0)


def made(suite: str) -> Path:
    """Return the archive of a root with Python alone; made once."""
    archive = ROOTS / f"{suite}.tar"
    if not archive.exists():
        ROOTS.mkdir(parents=True, exist_ok=True)
        partial = archive.with_suffix(".partial.tar")
        words = ["mmdebstrap", "--quiet", "--variant=apt", f"--include={PACKAGES}"]
        subprocess.run([*words, suite, partial], check=True)
        partial.rename(archive)
    return archive


def unpack(archive: Path, root: Path, wheels: Path, wheelhouse: Path) -> None:
    """Lay out the root: its files, the wheels, a user, and how names are resolved here."""
    subprocess.run(["tar", "-xf", archive, "-C", root, "--exclude=./dev/*"], check=True)
    root.chmod(0o755)
    (root / "wheels").mkdir()
    for wheel in wheels.glob("loadstone-*x86_64.whl"):
        shutil.copy(wheel, root / "wheels")
    if wheelhouse.exists():
        shutil.copytree(wheelhouse, root / "wheelhouse")
    for name in ("/etc/resolv.conf", CERTIFICATES):
        shutil.copy(name, root / name.removeprefix("/"))
    with (root / "etc/passwd").open("a") as users:
        users.write(f"{USER}:x:{USER_ID}:{USER_ID}::/home/{USER}:/bin/sh\n")
    home = root / "home" / USER
    home.mkdir(parents=True)
    os.chown(home, USER_ID, USER_ID)


def carry_out(root: Path, way: Way, budget: str) -> str:
    """Install, measure and remove; return the figures, or the step that failed."""
    present = inside(root, way.user, f"command -v {' '.join(ABSENT)}; true").stdout.split()
    if present:
        return f"not a clean root: {', '.join(present)} |"
    if way.is_offline and inside(root, way.user, HAS_WHEELS).returncode:
        return LEFT_OUT
    inside(root, way.user, way.tools)
    before_s = time.monotonic()
    ended = inside(root, way.user, way.install, is_offline=way.is_offline)
    installed_s = time.monotonic() - before_s
    if ended.returncode:
        return f"failed: {way.install}: {last_line(ended)} |"
    size_mb = int(inside(root, "root", f"du -s --block-size=1M {way.folder}").stdout.split()[0])
    figures = f"{installed_s:.0f} | {size_mb}"
    before_s = time.monotonic()
    command = f"{way.variables} {way.command} demo --budget {budget}"
    ended = inside(root, way.user, command, is_offline=way.is_offline)
    page = Path(ended.stdout.strip().rpartition("\n")[2].strip() or "/none")
    # 4: the searches were too short, or other work on this machine was in the way.
    if ended.returncode not in (0, 4) or not (root / str(page).removeprefix("/")).is_file():
        return f"{figures} | failed: demo ended with {ended.returncode}: {last_line(ended)} |"
    figures += f" | {time.monotonic() - before_s:.0f} | page, exit {ended.returncode}"
    ended = inside(root, way.user, f"{way.remove} && ! test -e {way.command}")
    return f"{figures} | {'removed' if ended.returncode == 0 else last_line(ended)} |"


def inside(
    root: Path, user: str, command: str, *, is_offline: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run a shell command in the root; nothing of it is left running."""
    enter = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private"]
    if is_offline:
        enter.append("--net")
    home = "/root" if user == "root" else f"/home/{user}"
    passed = [f"{k}={v}" for k, v in os.environ.items() if k.startswith(INSTALLERS)]
    passed = [one for one in passed if not one.startswith(("PIP_FIND_LINKS", "UV_PYTHON"))]
    clean = ["env", "-i", "PATH=/usr/local/bin:/usr/bin:/bin", f"HOME={home}", "LC_ALL=C.UTF-8"]
    shell = [*clean, *passed, "sh", "-c", f"cd {home} && {command}"]
    number = 0 if user == "root" else USER_ID
    as_user = ["chroot", f"--userspec={number}:{number}", str(root), *shell]
    prepare = "mount -t proc proc $0/proc && mount --rbind /dev $0/dev && "
    prepare += "ip link set lo up && " if is_offline else ""
    return subprocess.run(
        [*enter, "sh", "-c", f"{prepare} exec {shlex.join(as_user)}", str(root)],
        check=False,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )


def last_line(ended: subprocess.CompletedProcess[str]) -> str:
    """Return the last line that a command printed."""
    return (ended.stderr + ended.stdout).strip().rpartition("\n")[2]


if __name__ == "__main__":
    main()
