"""Finds the lines of a log that explain a failure."""

import re
from pathlib import Path

BLOCK_BYTES = 64 * 1024  # only the end of a log is read
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
            log.seek(0, 2)
            log.seek(max(0, log.tell() - BLOCK_BYTES))
            text = log.read().decode(errors="replace")
    except OSError:
        return ()
    return tuple(text.splitlines()[-lines:])


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
