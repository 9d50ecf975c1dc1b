"""Finds the lines of a log that explain a failure."""

import os
import re
from pathlib import Path

BLOCK_BYTES = 64 * 1024  # of the end of a log; twice as much until it has enough lines
EXPLAINING_LINES = 6
# oslo.log ends a traceback with a line that has nothing after its prefix.
_EMPTY = re.compile(r"^([\d-]+ [\d:.]+ \d+ \w+ [\w.]+)?\s*$")
# "ValueError: ...", "oslo_config.cfg.ConfigFileValueError: ...", "[emerg] ...", "ERROR ...".
_TELLING = re.compile(
    r"^\s*[\w.]*(Error|Exception|Found|Exit)\b.*:|\b(ERROR|CRITICAL|FATAL|PANIC)\b|\[(emerg|alert|crit)\]"
    r"|^\s*(error|fatal):|[Nn]o space left|[Aa]ddress already in use|[Pp]ermission denied"
)


def tail(path: Path, lines: int) -> tuple[str, ...]:
    """Return the last lines of a log; none if the log does not exist."""
    try:
        with path.open("rb") as log:
            size, block = log.seek(0, os.SEEK_END), BLOCK_BYTES
            while True:
                log.seek(max(0, size - block))
                text = log.read().decode(errors="replace")
                # The first line may be cut.
                found = text.splitlines()[0 if block >= size else 1 :]
                if len(found) >= lines or block >= size:
                    return tuple(found[-lines:])
                block *= 2
    except OSError:
        return ()


def explain(paths: tuple[Path, ...]) -> str:
    """Return the lines that explain why a part ended: up to the last error, else the last lines.

    They are indented under the path of their log.
    """
    for path in paths:
        lines = [line for line in tail(path, 400) if not _EMPTY.match(line)]
        telling = [i for i, line in enumerate(lines) if _TELLING.search(line)]
        if telling:
            return _show(path, lines[max(0, telling[-1] + 1 - EXPLAINING_LINES) : telling[-1] + 1])
    for path in paths:
        lines = [line for line in tail(path, EXPLAINING_LINES * 2) if line.strip()]
        if lines:
            return _show(path, lines[-EXPLAINING_LINES:])
    return "  (its logs are empty)"


def _show(path: Path, lines: list[str]) -> str:
    return "\n".join([f"  {path}:", *(f"    {line.rstrip()}" for line in lines)])
