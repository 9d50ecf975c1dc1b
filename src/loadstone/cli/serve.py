"""`loadstone serve`: a token service in memory, whose capacity may be known exactly."""

import os
import threading
from pathlib import Path
from typing import Unpack

import click

from loadstone.cli.serve_options import Options, serve_options


@click.command()
@serve_options
def serve(**options: Unpack[Options]) -> None:
    """Serve Identity v3 from memory: a target whose answers are right and whose limit is known.

    Prints OS_* variables for a shell, then serves until Ctrl-C. The administrator's password is
    made anew, unless LOADSTONE_SERVE_PASSWORD holds one. With --capacity, token requests (all
    below /v3/auth) are served by --workers behind one queue, at exactly that rate.

    \b
    loadstone serve > service.env &
    . service.env; loadstone capacity --scenario validate
    """
    from loadstone import reference
    from loadstone.cli.served import settings, tell

    chosen = settings(options)
    ended = threading.Event()
    if options["until_stdin_closes"]:
        threading.Thread(target=_await_end_of_stdin, args=(ended,), daemon=True).start()

    def ready(port: int) -> None:
        tell(chosen, port)
        _write(options["port_file"], str(port))

    counts = reference.serve(chosen, ready, lambda: not ended.is_set())
    _write(options["counts"], counts + "\n")


def _write(path: Path | None, text: str) -> None:
    from loadstone import files

    if path is not None:
        files.write(path, text, files.PRIVATE)


def _await_end_of_stdin(ended: threading.Event) -> None:
    # The parent holds our standard input open; when it closes it or dies, nothing is left to read.
    while os.read(0, 4096):
        pass
    ended.set()
