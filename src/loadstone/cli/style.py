"""The style of a task's exit codes: Loadstone's own, or Rally's."""

from collections.abc import Iterator
from contextlib import contextmanager

from loadstone.errors import FELL_SHORT, LoadstoneError

# Rally's own: 2 where an SLA does not hold, 1 where a task could not be carried out.
RALLY_SLA, RALLY_ERROR = 2, 1


def styled(code: int, style: str) -> int:
    """Give the exit code in the style that was asked for."""
    if style != "rally" or code == 0:
        return code
    return RALLY_SLA if code == FELL_SHORT else RALLY_ERROR


@contextmanager
def in_style(style: str) -> Iterator[None]:
    """Let what stops a task end with the code of this style."""
    try:
        yield
    except LoadstoneError as stopped:
        if style == "rally":
            stopped.exit_code = RALLY_ERROR  # type: ignore[misc]  # of this one alone
        raise
