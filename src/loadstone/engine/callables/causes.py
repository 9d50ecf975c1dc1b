"""An exception as what is kept of it: an outcome, a status, one line."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from loadstone.engine.outcome import Outcome

MOST_CHARACTERS = 500
LEAST_SECRET = 4  # characters; shorter values are no secrets, and would strike out half the text
# Fernet tokens, JWS tokens, and what stands after the usual names.
_TOKEN = re.compile(r"gAAAA[\w\-]{20,}=*|eyJ[\w\-]+\.[\w\-]+\.[\w\-]+")
_NAMED = re.compile(r"(?i)((?:password|secret|token)[\"']?\s*[:=]\s*[\"']?)([^\s\"',;}&]+)")
STRUCK = "***"


class Ended(NamedTuple):
    """How an action or an iteration ended; a plain tuple, since it crosses a pipe."""

    outcome: int
    status: int = 0
    cause: str = ""


def ended(error: BaseException | None) -> Ended:
    """Say how something ended that raised this, or nothing."""
    if error is None:
        return Ended(Outcome.OK)
    cause = f"{type(error).__name__}: {' '.join(_text(error).split())}"
    status = _status(error)
    if status:
        return Ended(Outcome.HTTP_STATUS, status, cause)
    refused = any(isinstance(one, ConnectionRefusedError) for one in _chain(error))
    return Ended(Outcome.REFUSED if refused else Outcome.RAISED, 0, cause)


def struck(secrets: Iterable[str], text: str) -> str:
    """Strike out known secrets."""
    for secret in secrets:
        text = text.replace(secret, STRUCK)
    return text


def without(secrets: Iterable[str], cause: str) -> str:
    """Strike out known secrets and what looks like one, and keep it short."""
    cause = _NAMED.sub(rf"\1{STRUCK}", _TOKEN.sub(STRUCK, struck(secrets, cause)))
    return cause if len(cause) <= MOST_CHARACTERS else f"{cause[: MOST_CHARACTERS - 3]}..."


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return "(its message cannot be read)"


def _status(error: BaseException) -> int:
    """Give the HTTP status that OpenStack's libraries put on their exceptions."""
    for one in _chain(error):
        for name in ("http_status", "status_code"):
            status = getattr(one, name, None)
            if isinstance(status, int) and 100 <= status <= 599:
                return status
    return 0


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen = 0
    while error is not None and seen < 20:
        yield error
        error, seen = error.__cause__ or error.__context__, seen + 1
