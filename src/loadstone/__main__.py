"""Where the process begins: `loadstone`, and `python -m loadstone`."""

import gc
import os
import sys

# Objects between two collections. With Python's 700 they take a tenth of the time to start.
COLLECT_AFTER = 50_000


def main() -> None:
    """Run the command line; Ctrl-C ends it in one line, also while Python still imports it."""
    gc.set_threshold(COLLECT_AFTER)
    _open_closed_streams()
    try:
        from loadstone.cli import main as command_line

        command_line()
    except KeyboardInterrupt:
        from loadstone.errors import INTERRUPTED

        sys.stderr.write("loadstone: interrupted\n")
        sys.exit(INTERRUPTED)
    except Exception as error:
        from loadstone.system import crash

        line, exit_code = crash.report(error, lambda: "loadstone")
        sys.stderr.write(f"loadstone: {line}\n")
        sys.exit(exit_code)
    finally:
        # A Ctrl-C that passed through exec() of a text (dataclasses do that while they are
        # imported) lets Python end by SIGINT later, although it was handled. The next text that is
        # run resets that.
        eval("0")  # noqa: S307 (a constant)


def _open_closed_streams() -> None:
    """Open standard streams that the parent closed (`2>&-`) on /dev/null.

    Otherwise the next file or socket would get the descriptor, and messages would be written to it.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            # The lowest free descriptor is this one, as those below it are open.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, closefd=False, encoding="utf-8"))  # noqa: SIM115


if __name__ == "__main__":
    main()
