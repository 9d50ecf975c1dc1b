"""`python -m release COMMAND`: what `make wheels`, `dependencies` and `release` run."""

import argparse
import subprocess
from pathlib import Path

from release import checks, dependencies, licenses, tree, wheelhouse, wheels

DIST = tree.ROOT / "dist"
WORK = tree.ROOT / "target/release-build"


def main() -> None:
    """Run the command that is named."""
    parser = argparse.ArgumentParser(prog="python -m release", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("licenses", help="write THIRD-PARTY-LICENSES.txt")
    build = commands.add_parser("wheels", help="build and check wheels and source distribution")
    again = commands.add_parser("reproduce", help="build again and compare hashes")
    whole = commands.add_parser("release", help="check, test, build, compare, tag")
    locked = commands.add_parser("dependencies", help="check licences, sources and advisories")
    house = commands.add_parser("wheelhouse", help="collect what an installation needs")
    for one in (build, again, whole):
        one.add_argument("--repository", default="", help="address of the repository's pages")
    for one in (build, again, house):
        one.add_argument("--dist", type=Path, default=DIST)
    build.add_argument("--work", type=Path, default=WORK)
    whole.add_argument("--make", default="make")
    for one in (house, locked, whole):
        one.add_argument("--uv", default="uv")
    house.add_argument("--extras", default="", help="comma list")
    house.add_argument("--lab", action="store_true", help="also what `loadstone demo` installs")
    given = parser.parse_args()
    match given.command:
        case "licenses":
            print(licenses.write())
        case "wheels":
            build_wheels(given.dist.resolve(), given.work.resolve(), given.repository)
        case "reproduce":
            checks.reproduce(given.dist.resolve(), given.repository)
        case "wheelhouse":
            collect(given)
        case "dependencies":
            dependencies.check(given.uv)
        case _:
            release(given.repository, given.make, given.uv)


def build_wheels(dist: Path, work: Path, repository: str) -> tuple[Path, ...]:
    """Build and check; print the files and their sizes."""
    files = wheels.build(dist, work, repository)
    checks.check(files)
    sums = checks.write_sums(dist, files)
    for path in (*files, sums):
        print(f"{path.stat().st_size / 1e6:6.2f} MB  {path}", flush=True)
    return files


def collect(given: argparse.Namespace) -> None:
    """Fill the wheelhouse and print its size."""
    folder = given.dist.resolve() / "wheelhouse"
    extras = [word.strip() for word in given.extras.split(",") if word.strip()]
    size = wheelhouse.fill(folder, given.dist.resolve(), given.uv, extras, has_keystone=given.lab)
    print(f"{size / 1e6:6.1f} MB  {folder}")
    print(f"pip install --no-index --find-links {folder} loadstone")


def release(repository: str, make: str, uv: str) -> None:
    """Make a release of the commit that is checked out: tests, builds, checks, notes and a tag."""
    if not repository:
        raise SystemExit(
            "name the repository's pages: make release REPOSITORY=https://HOST/OWNER/loadstone"
        )
    name, tag = tree.commit().name, f"v{tree.version()}"
    if name.endswith("-dirty"):
        raise SystemExit("there are uncommitted changes; a release is made of a commit")
    if tree.has_tag(tag):
        raise SystemExit(f"the tag {tag} exists; raise the version in Cargo.toml")
    notes = checks.write_notes(DIST)
    checks.lint_workflows()
    dependencies.check(uv)
    subprocess.run([make, "test"], cwd=tree.ROOT, check=True)
    files = build_wheels(DIST, WORK, repository)
    checks.reproduce(DIST, repository)
    tree.make_tag(tag, f"Loadstone {tree.version()}")
    print(f"tagged {tag} ({name}); nothing was published. To publish:")
    print(f"    git push origin {tag} && twine upload {' '.join(str(path) for path in files)}")
    print(f"Notes: {notes}")


if __name__ == "__main__":
    main()
