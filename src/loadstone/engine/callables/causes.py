"""Converts an exception to an outcome, a status and a one-line cause."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from loadstone.engine.outcome import Outcome
from loadstone.system.redaction import MASK, masked

MOST_CHARACTERS = 500


class IterationEnd(NamedTuple):
    """How an action or iteration ended; a plain tuple, because it is sent through a pipe."""

    outcome: int
    status: int = 0
    cause: str = ""


def ended(error: BaseException | None) -> IterationEnd:
    """Return the outcome for this exception, or for none."""
    if error is None:
        return IterationEnd(Outcome.OK)
    cause = f"{type(error).__name__}: {' '.join(_text(error).split())}"
    status = _status(error)
    if status:
        return IterationEnd(Outcome.HTTP_STATUS, status, cause)
    refused = any(isinstance(one, ConnectionRefusedError) for one in _chain(error))
    return IterationEnd(Outcome.REFUSED if refused else Outcome.RAISED, 0, cause)


def struck(secrets: Iterable[str], text: str) -> str:
    """Remove known secrets."""
    for secret in secrets:
        text = text.replace(secret, MASK)
    return text


def without(secrets: Iterable[str], cause: str) -> str:
    """Remove known and likely secrets, and shorten the text."""
    cause = masked(struck(secrets, cause))
    return cause if len(cause) <= MOST_CHARACTERS else f"{cause[: MOST_CHARACTERS - 3]}..."


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return "(its message cannot be read)"


def _status(error: BaseException) -> int:
    """Return the HTTP status that OpenStack's libraries store on their exceptions."""
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
