"""Passwords of the users that a run makes: kept nowhere, and the same for whoever resumes it."""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Callable

from loadstone.target import Access

# Letters, digits and a sign, for clouds whose password rules ask for each.
_ENDING = "aA1!"
_BYTES = 24
# How the generic and the v3 plugins call it (keystoneauth1).
_SECRETS = (
    "password",
    "password_password",
    "application_credential_application_credential_secret",
)


def passwords(access: Access, run_id: str) -> Callable[[str], str]:
    """Give what gives a user's password from its name.

    Whoever comes with the same secret of the administrator gets the same passwords again, so that
    users need not be given new ones (a password hash each). From a user's password that secret can
    only be guessed, at the price of scrypt for each guess.
    """
    secret = _own_secret(access)
    if secret is None:
        return lambda _: secrets.token_urlsafe(_BYTES) + _ENDING
    # RFC 7914; as much work as n=2**14, p=1, its section 2's for interactive use (some 50 ms), in
    # 4 MB in place of 16, which would be the most memory that a run needs.
    key = hashlib.scrypt(secret.encode(), salt=run_id.encode(), n=2**12, r=8, p=4)

    def password(name: str) -> str:
        digest = hmac.digest(key, name.encode(), "sha256")[:_BYTES]
        return base64.urlsafe_b64encode(digest).decode() + _ENDING

    return password


def _own_secret(access: Access) -> str | None:
    """Give what the target was logged in to with; None where that was a token."""
    from keystoneauth1.identity.base import BaseIdentityPlugin

    auth = access.session.auth
    known = auth.get_cache_id_elements() if isinstance(auth, BaseIdentityPlugin) else {}
    return next((str(known[name]) for name in _SECRETS if known.get(name)), None)
