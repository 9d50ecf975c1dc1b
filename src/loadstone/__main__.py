"""Where the process begins: `loadstone`, and `python -m loadstone`."""

import gc
import sys

# Objects between two collections. With Python's 700 they take a tenth of the time to start.
COLLECT_AFTER = 50_000


def main() -> None:
    """Run the command line; Ctrl-C ends it in one line, also while Python still imports it."""
    gc.set_threshold(COLLECT_AFTER)
    try:
        from loadstone.cli import main as command_line

        command_line()
    except KeyboardInterrupt:
        from loadstone.errors import INTERRUPTED

        sys.stderr.write("loadstone: interrupted\n")
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
