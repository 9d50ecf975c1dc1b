"""`python -m release licenses | wheels`."""

import argparse
from pathlib import Path

from release import licenses, wheels

ROOT = Path(__file__).parents[1]


def main() -> None:
    """Run the part that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m release", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("licenses", help="write THIRD-PARTY-LICENSES.txt")
    build = commands.add_parser("wheels", help="build wheels and the source distribution")
    build.add_argument("--out", type=Path, default=ROOT / "dist")
    build.add_argument("--work", type=Path, default=ROOT / "target/release-build")
    build.add_argument("--repository", default="", help="address of the repository's pages")
    given = parser.parse_args()
    if given.command == "licenses":
        print(licenses.write())
    else:
        for path in wheels.build(given.out.resolve(), given.work.resolve(), given.repository):
            print(f"{path.stat().st_size / 1e6:6.1f} MB  {path}")


if __name__ == "__main__":
    main()
