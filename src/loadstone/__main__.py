"""Where the process begins: `loadstone`, and `python -m loadstone`."""

import sys


def main() -> None:
    """Run the command line; Ctrl-C ends it in one line, also while Python still imports it."""
    try:
        from loadstone.cli import main as command_line

        command_line()
    except KeyboardInterrupt:
        from loadstone.errors import INTERRUPTED

        sys.stderr.write("loadstone: interrupted\n")
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
