"""The versions of Keystone between two: releases on PyPI, commits of a checkout, or wheels."""

import os
from pathlib import Path

import requests

from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.lab.keystone.release import GIT, OLDEST, VERSION, git
from loadstone.system.paths import expanded

INDEX = "https://pypi.org/simple"
INDEX_VARIABLES = ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL")
# PEP 691: the simple index as JSON.
JSON = "application/vnd.pypi.simple.v1+json"
PATIENCE_S = 30.0


def between(good: str, bad: str) -> list[str]:
    """Return the versions from `good` to `bad`, both included, as the setting `release`.

    Raises InvalidInput if they are of two kinds, or if `bad` does not come after `good`, and
    EnvironmentUnusable if the package index does not answer.
    """
    if VERSION.fullmatch(good) and VERSION.fullmatch(bad):
        return _cut(_releases(), good, bad, "a release of Keystone on PyPI")
    if good.startswith(GIT) and bad.startswith(GIT):
        return _commits(good, bad)
    one, other = expanded(good), expanded(bad)
    if one.suffix == other.suffix == ".whl" and one.parent == other.parent:
        wheels = sorted(
            one.parent.glob("keystone-*.whl"), key=lambda wheel: _order(wheel.name.split("-")[1])
        )
        return _cut([str(wheel) for wheel in wheels], str(one), str(other), "a wheel of Keystone")
    raise InvalidInput(
        f"the versions between {good} and {bad} are not known: give two releases, two commits of "
        "one repository (git+file://PATH@REF) or two wheels of one folder, or list all of them "
        "with --release"
    )


def _cut(known: list[str], good: str, bad: str, what: str) -> list[str]:
    for name in (good, bad):
        if name not in known:
            raise InvalidInput(f"{name} is not {what}; the last are {', '.join(known[-12:])}")
    first, last = known.index(good), known.index(bad)
    if first >= last:
        raise InvalidInput(f"--bad {bad} must come after --good {good}")
    return known[first : last + 1]


def _releases() -> list[str]:
    """Return the final releases on the package index, in their order."""
    named = (os.environ[name] for name in INDEX_VARIABLES if os.environ.get(name))
    url = f"{next(named, INDEX).rstrip('/')}/keystone/"
    try:
        answer = requests.get(url, headers={"Accept": JSON}, timeout=PATIENCE_S)
        answer.raise_for_status()
        versions = [str(one) for one in answer.json()["versions"]]
    except (requests.RequestException, ValueError, KeyError) as error:
        raise EnvironmentUnusable(
            f"the package index did not list the releases of Keystone ({type(error).__name__}); "
            "list them with --release"
        ) from None
    final = [one for one in versions if all(part.isdigit() for part in one.split("."))]
    usable = [one for one in final if VERSION.fullmatch(one) and _order(one)[0] >= OLDEST]
    return sorted(usable, key=_order)


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def _commits(good: str, bad: str) -> list[str]:
    """Return the commits of the first parents from one to the other."""
    (place, _, one), (other_place, _, other) = (
        text.removeprefix(GIT).partition("@") for text in (good, bad)
    )
    if place != other_place:
        raise InvalidInput(f"{good} and {bad} are of two repositories")
    tree = Path(place)
    try:
        git(tree, "merge-base", "--is-ancestor", one or "HEAD", other or "HEAD")
        span = f"{one or 'HEAD'}..{other or 'HEAD'}"
        listed = git(tree, "rev-list", "--reverse", "--first-parent", span).decode().split()
    except EnvironmentUnusable as problem:
        raise InvalidInput(f"{bad} does not come after {good}: {problem}") from None
    if not listed:
        raise InvalidInput(f"{good} and {bad} are the same commit")
    return [good, *(f"{GIT}{place}@{commit}" for commit in listed)]
