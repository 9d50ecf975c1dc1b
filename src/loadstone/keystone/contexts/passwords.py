"""Random passwords for the users that a run creates."""

import secrets

# A lower-case letter, an upper-case letter, a digit and a sign, to satisfy common password rules.
_ENDING = "aA1!"
_BYTES = 24


def new_password() -> str:
    """Return a random password; it is kept in memory only."""
    return secrets.token_urlsafe(_BYTES) + _ENDING
