"""Checks of what Loadstone depends on: licences, sources and duplicates of crates; advisories.

Advisories need data from the internet. Where there is none, one line says that they were not
checked; the rest is checked from the lock files. No other line means that all was checked.
"""

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from release import tree, wheels

NOT_CHECKED = "not checked: no data"
INSTALL_DENY = "cargo install cargo-deny --locked"
CRATES, PACKAGES = "advisories of Rust crates", "advisories of Python packages"
# What cargo-deny prints if it has no advisory database and cannot fetch one.
NO_DATABASE = ("failed to fetch advisory database", "unable to load advisory", "failed to open")


def check(uv: str) -> None:
    """Print what was checked; end with every problem."""
    problems = [*_crates(), *_packages(uv)]
    if problems:
        raise SystemExit("\n".join(problems))


def _crates() -> list[str]:
    deny = shutil.which("cargo-deny")
    if deny is None:
        print(f"licences, bans and sources of Rust crates not checked: {INSTALL_DENY}")
        print(f"{CRATES} not checked: {INSTALL_DENY}")
        return []
    problems = []
    code, text = _run(deny, "check", "licenses", "bans", "sources")
    if code:
        problems.append(f"cargo deny check licenses bans sources:\n{text}")
    else:
        print("licences, bans and sources of Rust crates checked (deny.toml)")
    code, text = _run(deny, "check", "advisories")
    if code and any(words in text for words in NO_DATABASE):
        print(f"{CRATES} {NOT_CHECKED}")
    elif code:
        problems.append(f"cargo deny check advisories:\n{text}")
    else:
        print(f"{CRATES} checked")
    return problems


def _packages(uv: str) -> list[str]:
    """Audit what uv.lock has for users; packages of developers are left out."""
    with tempfile.TemporaryDirectory() as folder:
        locked = Path(folder) / "requirements.txt"
        words = ("--all-extras", "--no-dev", "--no-emit-project", "--no-annotate", "--no-header")
        code, text = _run(uv, "export", "--locked", "--quiet", *words, "--output-file", str(locked))
        if code:
            return [f"uv export: {text}"]
        ended = subprocess.run(
            (
                *(str(wheels.TOOLS / "pip-audit"), "--requirement", str(locked)),
                *("--require-hashes", "--disable-pip", "--progress-spinner", "off"),
                *("--format", "json"),
            ),
            capture_output=True,
            text=True,
            check=False,
        )
    found, line = audited(ended.stdout)
    print(line)
    return found


def audited(report: str) -> tuple[list[str], str]:
    """Return the vulnerabilities in pip-audit's JSON, and a line that says what was checked.

    pip-audit ends with 0 also if it could look up nothing: each package is then "skipped".
    """
    try:
        rows = json.loads(report)["dependencies"]
    except (ValueError, KeyError):
        return [], f"{PACKAGES} {NOT_CHECKED}"
    known = [row for row in rows if "skip_reason" not in row]
    if not known:
        return [], f"{PACKAGES} {NOT_CHECKED}"
    found = [
        f"{row['name']} {row['version']}: {', '.join(one['id'] for one in row['vulns'])}"
        for row in known
        if row["vulns"]
    ]
    rest = len(rows) - len(known)
    return found, f"{PACKAGES} checked" + (f", except {rest} without data" if rest else "")


def _run(*words: str) -> tuple[int, str]:
    # Colour codes would hide the words that are looked for.
    environment = os.environ | {"NO_COLOR": "1", "CARGO_TERM_COLOR": "never"}
    ended = subprocess.run(
        words, cwd=tree.ROOT, capture_output=True, text=True, check=False, env=environment
    )
    return ended.returncode, ended.stdout + ended.stderr
